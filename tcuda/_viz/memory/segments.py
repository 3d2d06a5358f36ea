"""The memory that the allocator holds: segments, grouped by pool and stream, with their blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcuda._viz.memory.history import stack_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._viz.shared.stacks import Stacks

ALLOCATED, AWAITING_FREE, FREE = range(3)


@dataclass(slots=True)
class Block:
    """A part of a segment."""

    offset: int
    size: int
    requested: int
    state: int
    stack: int


@dataclass(slots=True)
class Segment:
    """Memory that the allocator got from the driver."""

    address: int
    size: int
    kind: str
    expandable: bool
    stack: int
    blocks: list[Block]


@dataclass(slots=True)
class Group:
    """The segments of one pool and one stream, which can serve the same requests."""

    pool: tuple[int, ...]
    stream: int
    segments: list[Segment]

    @property
    def reserved(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def bytes_in(self, state: int) -> int:
        """Return the bytes of all blocks in ``state``."""
        return sum(block.size for block in self._blocks() if block.state == state)

    @property
    def largest_free(self) -> int:
        """The bytes of the largest free block: a request of at most this size needs no new segment."""
        return max((block.size for block in self._blocks() if block.state == FREE), default=0)

    @property
    def rounding(self) -> int:
        """The bytes of blocks in use that were not requested."""
        return sum(block.size - block.requested for block in self._blocks() if block.state != FREE)

    def _blocks(self) -> list[Block]:
        return [block for segment in self.segments for block in segment.blocks]


def groups(segments: Sequence[dict[str, Any]], stacks: Stacks) -> list[Group]:
    """Return the segments of one device by pool and stream, the largest groups and segments first."""
    found: dict[tuple[tuple[int, ...], int], Group] = {}
    for segment in segments:
        key = tuple(segment.get("segment_pool_id", (0, 0))), segment.get("stream", 0)
        found.setdefault(key, Group(*key, [])).segments.append(_segment(segment, stacks))
    for group in found.values():
        group.segments.sort(key=lambda segment: (-segment.size, segment.address))
    return sorted(found.values(), key=lambda group: (-group.reserved, group.pool, group.stream))


def _segment(segment: dict[str, Any], stacks: Stacks) -> Segment:
    offset = 0
    blocks = []
    for block in segment["blocks"]:
        if "address" in block:  # Blocks of older versions of torch have no address.
            offset = block["address"] - segment["address"]
        size = block["size"]
        state = _state(block["state"])
        requested = 0 if state == FREE else block.get("requested_size") or size
        blocks.append(Block(offset, size, requested, state, stack_of(block, stacks)))
        offset += size
    return Segment(
        segment["address"],
        segment["total_size"],
        str(segment.get("segment_type", "")),
        bool(segment.get("is_expandable", False)),
        stacks.number(segment.get("frames", ())),
        blocks,
    )


def _state(name: str) -> int:
    if name == "active_allocated":
        return ALLOCATED
    return AWAITING_FREE if name.startswith("active") else FREE  # Versions of torch have two names for AWAITING_FREE.


__all__ = ["ALLOCATED", "AWAITING_FREE", "FREE", "Block", "Group", "Segment", "groups"]
