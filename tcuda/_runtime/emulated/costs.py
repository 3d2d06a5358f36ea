"""The time that operations take: a plain model, which shows overlap and order, but predicts no GPU."""

from __future__ import annotations

CLOCK_KHZ = 1_000_000
"""Clock rate of a multiprocessor: 1 GHz, so that one cycle is one nanosecond."""

_LAUNCH = 2_000  # ns from the start of one kernel to the earliest start of the next
_COPY_LATENCY = 5_000  # ns
_MEMORY_BANDWIDTH = 2_000  # bytes per ns (2 TB/s), read and written together
_PEER_BANDWIDTH = 300
_PINNED_BANDWIDTH = 25
_PAGEABLE_BANDWIDTH = 10
_FLOPS = 20_000  # floating-point operations per ns (20 TFLOP/s)


def kernel(nbytes: int, flops: int = 0) -> int:
    """Return the nanoseconds of a kernel that moves ``nbytes`` of device memory and does ``flops`` operations."""
    return _LAUNCH + max(nbytes // _MEMORY_BANDWIDTH, flops // _FLOPS)


def copy_on_device(nbytes: int) -> int:
    """Return the nanoseconds of a copy of ``nbytes`` within one device."""
    return _LAUNCH + 2 * nbytes // _MEMORY_BANDWIDTH


def copy_between_devices(nbytes: int) -> int:
    """Return the nanoseconds of a copy of ``nbytes`` from one device to another."""
    return _COPY_LATENCY + nbytes // _PEER_BANDWIDTH


def copy_to_or_from_host(nbytes: int, *, pinned: bool) -> int:
    """Return the nanoseconds of a copy of ``nbytes`` between a device and the host."""
    return _COPY_LATENCY + nbytes // (_PINNED_BANDWIDTH if pinned else _PAGEABLE_BANDWIDTH)
