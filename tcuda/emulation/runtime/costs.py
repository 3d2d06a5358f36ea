"""The time that operations take: a plain model, which shows overlap and order, but predicts no GPU."""

from __future__ import annotations

from tcuda import _core

CLOCK_KHZ = 1_000_000
"""Clock rate of a multiprocessor: 1 GHz, so that one cycle is one nanosecond."""

MULTIPROCESSORS = 8
"""Multiprocessors of a device. Kernels on a share of them compute, and move memory, in proportion to the share."""

_LAUNCH = 2_000  # ns from the start of one kernel to the earliest start of the next
_COPY_LATENCY = 5_000  # ns
_MEMORY_BANDWIDTH = 2_000  # bytes per ns (2 TB/s), read and written together
_PINNED_BANDWIDTH = 25
_PAGEABLE_BANDWIDTH = 10
_FLOPS = 20_000  # floating-point operations per ns (20 TFLOP/s)

kernel = _core.KernelTime(_LAUNCH, _MEMORY_BANDWIDTH, _FLOPS, MULTIPROCESSORS)
"""Returns the nanoseconds of a kernel that moves ``nbytes`` of device memory and does ``flops`` operations: the time of
a launch, and then the longer one of the times for the bytes and for the operations. On a share of the multiprocessors,
the longer time grows in proportion.
"""

LONGEST = 2**62
"""The most nanoseconds that an operation takes."""

# The link between any two devices, in each direction, measured on H200s with NVLink: a peer copy of 1 KiB takes 8.9 us
# until both devices are synchronised, and the synchronisation of two idle devices takes 6.7 us of these. A peer copy of
# 256 MiB moves 388 GB/s.
_LINK_LATENCY = 2_200  # ns
_LINK_BANDWIDTH = 388  # bytes per ns


def copy_on_device(nbytes: int) -> int:
    """Return the nanoseconds of a copy of ``nbytes`` within one device."""
    return _LAUNCH + 2 * nbytes // _MEMORY_BANDWIDTH


def copy_between_devices(nbytes: int) -> int:
    """Return the nanoseconds of a copy of ``nbytes`` from one device to another."""
    return _LINK_LATENCY + nbytes // _LINK_BANDWIDTH


def copy_to_or_from_host(nbytes: int, *, pinned: bool) -> int:
    """Return the nanoseconds of a copy of ``nbytes`` between a device and the host."""
    return _COPY_LATENCY + nbytes // (_PINNED_BANDWIDTH if pinned else _PAGEABLE_BANDWIDTH)


def pipeline(nbytes: int, devices: int) -> int:
    """Return the nanoseconds in which ``nbytes`` pass through a chain of ``devices``: a broadcast or a reduction."""
    return _steps(devices - 1, nbytes if devices > 1 else 0)


def ring(nbytes: int, devices: int) -> int:
    """Return the nanoseconds in which a ring of ``devices`` gathers, or reduces and scatters, ``nbytes`` in all."""
    return _steps(devices - 1, nbytes * (devices - 1) // devices)


def ring_and_back(nbytes: int, devices: int) -> int:
    """Return the nanoseconds in which a ring of ``devices`` reduces ``nbytes`` and gives every device the result."""
    return _steps(2 * (devices - 1), 2 * nbytes * (devices - 1) // devices)


def _steps(steps: int, nbytes: int) -> int:
    """Return the nanoseconds of a kernel that takes ``steps`` along links, and moves ``nbytes`` over each link."""
    return _LAUNCH + steps * _LINK_LATENCY + nbytes // _LINK_BANDWIDTH
