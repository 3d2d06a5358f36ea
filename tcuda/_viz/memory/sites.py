"""Allocation sites: sums of allocations, by the line that allocated and by the whole stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda._viz.memory.history import History
    from tcuda._viz.shared.stacks import Stacks


@dataclass(slots=True)
class Usage:
    """Sums over some allocations."""

    at_peak: int = 0
    at_end: int = 0
    alive: int = 0
    """The number of allocations that were in use at the end."""
    count: int = 0
    total: int = 0

    def add(self, other: Usage) -> None:
        """Add the sums of ``other``."""
        self.at_peak += other.at_peak
        self.at_end += other.at_end
        self.alive += other.alive
        self.count += other.count
        self.total += other.total

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """A key for sorting, by which the largest usage comes last."""
        return self.at_peak, self.at_end, self.total, self.count


@dataclass(slots=True)
class Site:
    """A line of code that allocated."""

    frame: int | None
    """The number of the frame; None for the site of all allocations without a stack."""
    usage: Usage = field(default_factory=Usage)
    stacks: dict[int, Usage] = field(default_factory=dict)
    """The usage of each stack that ends at this site, the largest first."""


def sites(history: History, stacks: Stacks) -> list[Site]:
    """Return the sites of all allocations, the largest at the peak first."""
    by_frame: dict[int | None, Site] = {}
    for stack, usage in sorted(_by_stack(history).items(), key=lambda item: item[1].rank, reverse=True):
        site = by_frame.setdefault(stacks.site(stack), Site(stacks.site(stack)))
        site.usage.add(usage)
        site.stacks[stack] = usage
    return sorted(by_frame.values(), key=lambda site: site.usage.rank, reverse=True)


def _by_stack(history: History) -> dict[int, Usage]:
    peak = history.peak
    found: dict[int, Usage] = {}
    for allocation in history.allocations:
        size = allocation.size
        at_peak = size if allocation.is_live(peak) else 0
        at_end = size if allocation.end is None else 0
        found.setdefault(allocation.stack, Usage()).add(Usage(at_peak, at_end, int(allocation.end is None), 1, size))
    return found


__all__ = ["Site", "Usage", "sites"]
