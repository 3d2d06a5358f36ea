"""The memory that a kernel may use, and the message about an access to other memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tcuda._base.user_code import place_of
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias

    from tcuda.emulation.runtime import EmulatedRuntime

    Block: TypeAlias = tuple[int, int]
    """The beginning and the end of a block of memory."""

_runtime = cast("EmulatedRuntime", cuda)
_PAGE = 4096
_POINTER_BYTES = 8
_UNIT = 512
_NEAR = 4096
"""A block at this distance before or behind a wrong address may be the block that the kernel meant."""


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


def explain_unreachable(address: int, size: int, reachable: Iterable[Block], arguments: Mapping[Block, str]) -> str:
    """Return a text about an access to memory of an array that the kernel does not know.

    Args:
        address: The address of the access.
        size: The bytes of the access.
        reachable: The blocks that the kernel knows.
        arguments: The names of the arguments, by their blocks.
    """
    found = block_at(address)
    assert found is not None
    _, begin, end, _ = found
    other = (
        f"The memory belongs to another array, in {_named((begin, end), {})}: no argument of the kernel and no pointer "
        "in memory that the kernel can reach leads to this block."
    )
    near = _nearest(address, size, reachable, arguments)
    return other if near is None else f"{near}\n{other}"


def explain(device: int, address: int, size: int, arguments: Mapping[Block, str]) -> str:
    """Return a text about the memory at ``address``, which kernels of ``device`` may not use.

    Args:
        device: The index of the device.
        address: The address of the access.
        size: The bytes of the access.
        arguments: The names of the arguments, by their blocks.
    """
    if address < _PAGE:
        return "This is a null pointer."
    found = block_at(address)
    if found is None:
        return _nearest(address, size, _around(address, address), arguments) or (
            "No device has memory at this address. The address may be of the host, or beyond the dynamic shared memory "
            "of the launch."
        )
    owner, begin, end, free = found
    if owner >= 0 and not _runtime.canAccess(device, owner):
        return (
            f"The memory is on device {owner}, and device {device} has no access to it. Copy the array to "
            f"device {device} first, or enable the access with deviceEnablePeerAccess()."
        )
    own = (begin, end)
    if free:
        near = None if own in arguments else _nearest(address, size, _around(begin, end), arguments)
        return near or "The memory is free: its block was freed before the launch."
    # The address is in the rest of a block, behind the bytes of its array.
    blocks = [own] if own in arguments else [own, *_around(begin, address)]
    return _nearest(address, size, blocks, arguments) or _after(address, size, own, arguments)


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


def _around(begin: int, end: int) -> Iterator[Block]:
    """Yield the last block near the addresses before ``begin``, and the first block near those from ``end`` on."""
    # Blocks of the driver begin at whole units, so each search meets each block.
    before = (begin - 1, *range((begin - 1) // _UNIT * _UNIT, begin - _NEAR - _UNIT, -_UNIT))
    behind = range(end // _UNIT * _UNIT + _UNIT * (end % _UNIT > 0), end + _NEAR + 1, _UNIT)
    for places in (before, behind):
        for place in places:
            found = block_at(place)
            if found is not None and not found[3]:
                yield found[1:3]
                break


def _nearest(address: int, size: int, blocks: Iterable[Block], arguments: Mapping[Block, str]) -> str | None:
    """Return a text about the block nearest to an access; None if no block is near."""
    distances = {block: address - block[1] if address >= block[0] else block[0] - address for block in blocks}
    near = [block for block, distance in distances.items() if distance < _NEAR]
    if not near:
        return None
    block = min(near, key=lambda block: (distances[block], block not in arguments))
    if address >= block[0]:
        return _after(address, size, block, arguments)
    return f"The access is {block[0] - address} bytes before {_named(block, arguments)}."


def _after(address: int, size: int, block: Block, arguments: Mapping[Block, str]) -> str:
    name, end = _named(block, arguments), block[1]
    if address < end:
        return f"The access begins inside {name} and ends {address + size - end} bytes after it."
    distance = f"{address - end} bytes" if address > end else "right"
    return f"The access is {distance} after {name}."


def _named(block: Block, arguments: Mapping[Block, str]) -> str:
    """Return the words for a block, with the line that has allocated the block if its stack is noted."""
    begin, end = block
    of = f" of the argument {arguments[block]}" if block in arguments else ""
    name = f"the block of {end - begin} bytes{of} at {begin:#x}"
    found = _runtime.memoryAt(begin)
    place = None if found is None or found[0] < 0 else place_of(ledger().stack_of(found[0], begin))
    return name if place is None else f"{name} ({place.filename}:{place.line})"
