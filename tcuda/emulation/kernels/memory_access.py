"""The memory that a kernel may use, and the message about an access to other memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tcuda._base.user_code import place_of
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcuda.emulation.runtime import EmulatedRuntime

_runtime = cast("EmulatedRuntime", cuda)
_PAGE = 4096
_POINTER_BYTES = 8
_UNIT = 512
_NEAR = 4096
"""A block that ends this many bytes before a wrong address is likely the block that the kernel meant."""


def ranges_of_pointers(parameters: Iterable[tuple[str, int, int]], packed: bytes, device: int) -> list[tuple[int, int]]:
    """Return the ranges that kernels of ``device`` may use now, of the addresses among the arguments of a launch.

    Args:
        parameters: The kind, the size and the offset of each parameter, as ``EmulatedFunction`` has them.
        packed: The bytes of the arguments.
        device: The index of the device.
    """
    ranges = [range_at(device, address, 1) for address in pointers(parameters, packed) if address]
    return [found for found in ranges if found is not None]


def pointers(parameters: Iterable[tuple[str, int, int]], packed: bytes) -> list[int]:
    """Return the arguments of a launch that may be addresses.

    Args:
        parameters: The kind, the size and the offset of each parameter, as ``EmulatedFunction`` has them.
        packed: The bytes of the arguments.
    """
    return [
        int.from_bytes(packed[offset : offset + size], "little")
        for _, size, offset in parameters
        if size == _POINTER_BYTES
    ]


def range_at(device: int, address: int, size: int) -> tuple[int, int] | None:
    """Return the range around an access that kernels of ``device`` may use; None if they may not make the access."""
    found = _runtime.memoryAt(address)
    if found is None:
        return None
    owner, begin, end = found
    if owner >= 0:
        if not _runtime.canAccess(device, owner):
            return None
        block = ledger().block_at(owner, address)
        if block is not None:
            begin, requested, whole, allocated, private = block
            # A graph uses the memory of its pool also after the arrays of the capture are gone. With the late schedule,
            # the program may have freed the memory after the launch, which is legal.
            in_order = private or (_runtime.is_late and not allocated)
            end = begin + (whole if in_order else requested if allocated else 0)
    return (begin, end) if begin <= address and address + size <= end else None


def explain_unreachable(address: int, size: int, reachable: Iterable[tuple[int, int]]) -> str:
    """Return a text about an access to memory of an array that the kernel does not know.

    Args:
        address: The address of the access.
        size: The bytes of the access.
        reachable: The beginning and the end of each block that the kernel knows.
    """
    found = block_at(address)
    assert found is not None
    _, begin, end, _ = found
    other = (
        f"The memory belongs to another array, in {_named(begin, end)}: no argument of the kernel and no pointer in "
        "memory that the kernel can reach leads to this block."
    )
    near = max(
        (block for block in reachable if 0 <= address - block[1] < _NEAR), default=None, key=lambda block: block[1]
    )
    if near is not None:
        return f"{_after(address, size, *near)}\n{other}"
    near = min((block for block in reachable if 0 < block[0] - address <= _NEAR), default=None)
    if near is not None:
        return f"{_before(address, *near)}\n{other}"
    return other


def explain(device: int, address: int, size: int) -> str:
    """Return a text about the memory at ``address``, which kernels of ``device`` may not use."""
    if address < _PAGE:
        return "This is a null pointer."
    found = block_at(address)
    if found is None:
        return _behind(address, address) or (
            "No device has memory at this address. The address may be of the host, or beyond the dynamic shared memory "
            "of the launch."
        )
    owner, begin, end, free = found
    if owner >= 0 and not _runtime.canAccess(device, owner):
        return (
            f"The memory is on device {owner}, and device {device} has no access to it. Copy the array to "
            f"device {device} first, or enable the access with deviceEnablePeerAccess()."
        )
    if free:
        return _behind(begin, address) or "The memory is free: its block was freed before the launch."
    return _after(address, size, begin, end)


def block_at(address: int) -> tuple[int, int, int, bool] | None:
    """Return the device, the beginning and the end of the block at ``address``, and whether the block is free."""
    found = _runtime.memoryAt(address)
    if found is None:
        return None
    owner, begin, end = found
    block = ledger().block_at(owner, address) if owner >= 0 else None
    if block is None:
        return owner, begin, end, False
    return owner, block[0], block[0] + block[1], not block[3]


def _behind(place: int, address: int) -> str | None:
    """Return a text about the block before ``place``, if the block ends near ``address``."""
    # Blocks of the driver begin at whole units, so the second search meets each block.
    for candidate in (place - 1, *range((place - 1) // _UNIT * _UNIT, place - _NEAR - _UNIT, -_UNIT)):
        found = block_at(candidate)
        if found is not None:
            _, begin, end, free = found
            if not free and 0 <= address - end < _NEAR:
                return _after(address, 1, begin, end)
    return None


def _before(address: int, begin: int, end: int) -> str:
    return f"The access is {begin - address} bytes before {_named(begin, end)}."


def _after(address: int, size: int, begin: int, end: int) -> str:
    block = _named(begin, end)
    if address < end:
        return f"The access begins inside {block} and ends {address + size - end} bytes after it."
    distance = f"{address - end} bytes" if address > end else "right"
    return f"The access is {distance} after {block}."


def _named(begin: int, end: int) -> str:
    """Return the words for a block, with the line that has allocated the block if its stack is noted."""
    name = f"the block of {end - begin} bytes at {begin:#x}"
    found = _runtime.memoryAt(begin)
    place = None if found is None or found[0] < 0 else place_of(ledger().stack_of(found[0], begin))
    return name if place is None else f"{name} ({place.filename}:{place.line})"
