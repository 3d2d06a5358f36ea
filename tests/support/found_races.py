"""Races as the core hands them out, made by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Stack = list[dict[str, Any]]


def stack(*places: tuple[str, str, int]) -> Stack:
    """Return a stack of (function, file, line), innermost first."""
    return [{"name": name, "filename": file, "line": line} for name, file, line in places]


@dataclass
class FoundAccess:
    operation: str = "fill"
    label: str = ""
    kind: str = "write"
    device: int = 0
    stream: int = 0x10
    region: tuple[int, int, tuple[int, ...], tuple[int, ...]] = (0x1000, 4, (64,), (4,))
    stack: Stack = field(default_factory=list)
    launch_stack: Stack | None = None
    confidence: str = "exact"
    number: int = 1
    host: bool = False


@dataclass
class FoundAllocation:
    address: int = 0x1000
    size: int = 512
    device: int = 0
    stream: int = 0x10
    stack: Stack = field(default_factory=list)
    freed_stack: Stack | None = None


@dataclass
class FoundRace:
    current: FoundAccess
    previous: FoundAccess
    kind: str = "read after write"
    use_after_free: bool = False
    overlap: tuple[int, int] = (0x1000, 256)
    allocation: FoundAllocation | None = None
    previous_allocation: FoundAllocation | None = None
    count: int = 1
    recent: tuple[Any, ...] = ()
    is_overlap_exact: bool = True
