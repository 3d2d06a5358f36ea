"""The difference of two snapshots, by allocation site."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcuda._viz.memory.sites import Site, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._viz.memory.device import Device


@dataclass(slots=True)
class Difference:
    """The usage of one site in the first and in the second snapshot."""

    frame: int | None
    """The number of the frame; None for the site of all allocations without a stack."""
    first: Usage
    second: Usage
    stacks: list[int]
    """The largest stack of the site in each snapshot that has the site."""

    @property
    def at_peak(self) -> int:
        """The bytes at the peak that the second snapshot has more than the first."""
        return self.second.at_peak - self.first.at_peak

    @property
    def at_end(self) -> int:
        """The bytes at the end that the second snapshot has more than the first."""
        return self.second.at_end - self.first.at_end


@dataclass(slots=True)
class Comparison:
    """The differences of two snapshots on one device."""

    name: str
    """The name of the second snapshot."""
    peak_bytes: tuple[int, int]
    bytes_at_end: tuple[int, int]
    differences: list[Difference] = field(default_factory=list)
    """One entry for each site of the two snapshots, the largest difference first."""


def compare(first: Device | None, second: Device | None, name: str) -> Comparison:
    """Return the differences between two snapshots of one device, whose stacks have the same numbers.

    Args:
        first: The device in the first snapshot; None if the snapshot has no such device.
        second: The device in the second snapshot; None if the snapshot has no such device.
        name: The name of the second snapshot.
    """
    sites = [{site.frame: site for site in device.sites} if device else {} for device in (first, second)]
    differences = [_difference(frame, [part.get(frame) for part in sites]) for frame in {**sites[0], **sites[1]}]
    differences.sort(key=lambda found: (-abs(found.at_peak), -abs(found.at_end), -found.first.at_peak))
    return Comparison(
        name,
        (first.peak_bytes if first else 0, second.peak_bytes if second else 0),
        (first.bytes_at_end if first else 0, second.bytes_at_end if second else 0),
        differences,
    )


def _difference(frame: int | None, sites: Sequence[Site | None]) -> Difference:
    first, second = (site.usage if site else Usage() for site in sites)
    return Difference(frame, first, second, list(dict.fromkeys(next(iter(site.stacks)) for site in sites if site)))


__all__ = ["Comparison", "Difference", "compare"]
