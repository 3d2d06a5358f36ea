"""Collectives of arrays from one byte to 8 GiB, whose offsets do not fit into 32 bits."""

from __future__ import annotations

from typing import Any

import pytest

import tcuda
from support.sizes import GIB
from tcuda import comm

pytestmark = [pytest.mark.multigpu, pytest.mark.usefixtures("allocator_as_found")]

SIZES = pytest.mark.parametrize("size", [1, 3 * GIB + 5, 8 * GIB], ids=["1 byte", "3 GiB and 5 bytes", "8 GiB"])
DEVICES = (0, 1)


def pattern(xp: Any, size: int) -> Any:
    """Return ``size`` bytes on the current device, of which each eight differ from all others."""
    return xp.arange(-(-size // 8), dtype="uint64").view("uint8")[:size]


def different(xp: Any, array: Any, expected: Any) -> int:
    """Return the number of elements that differ."""
    return int((array != expected).sum())


def device_of(array: Any) -> int:
    return int(array.device.id)


@SIZES
def test_every_device_gets_a_copy(xp: Any, size: int) -> None:
    with tcuda.device(0):
        copies = comm.broadcast(pattern(xp, size), DEVICES)
    assert [device_of(copy) for copy in copies] == list(DEVICES)
    for device, copy in zip(DEVICES, copies, strict=True):
        with tcuda.device(device):
            assert different(xp, copy, pattern(xp, size)) == 0


@SIZES
def test_parts_are_scattered_and_gathered(xp: Any, size: int) -> None:
    with tcuda.device(0):
        whole = pattern(xp, size)
        parts = comm.scatter(whole, DEVICES)
    assert sum(part.size for part in parts) == size
    assert [device_of(part) for part in parts] == list(DEVICES)[: len(parts)]
    gathered = comm.gather(parts, destination=1)
    with tcuda.device(1):
        assert device_of(gathered) == 1
        assert different(xp, gathered, pattern(xp, size)) == 0


@SIZES
def test_sums_of_two_devices(xp: Any, size: int) -> None:
    terms = []
    for device in DEVICES:
        with tcuda.device(device):
            terms.append(pattern(xp, size))
    total = comm.reduce_add(terms, destination=1)
    with tcuda.device(1):
        assert device_of(total) == 1
        assert different(xp, total, 2 * pattern(xp, size)) == 0
