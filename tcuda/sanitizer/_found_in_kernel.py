"""A race inside a kernel as a launch finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcuda.sanitizer._description import Stacks

if TYPE_CHECKING:
    from tcuda.sanitizer._kernel_race import KernelRace, KernelRaceAccess
    from tcuda.sanitizer._stacks import Frame


@dataclass(frozen=True)
class FoundInKernel:
    """A race inside a kernel, and how often a launch has found the race.

    Attributes:
        race: The race.
        count: The number of times.
    """

    race: KernelRace
    count: int

    @property
    def current(self) -> KernelRaceAccess:
        """The later access."""
        return self.race.current

    @property
    def previous(self) -> KernelRaceAccess:
        """The earlier access."""
        return self.race.previous

    @property
    def overlap(self) -> tuple[int, int]:
        """The address of the first common byte, and the number of bytes."""
        return self.race.overlap

    @property
    def pair(self) -> Any:
        """A value that is equal for races of the same two lines. A line that is not known has no equal line."""
        race = self.race
        known = race.previous.line is not None and race.current.line is not None
        lines = sorted((str(access.line), access.source) for access in (race.previous, race.current))
        return race.kernel, race.memory.name, *lines, () if known else (race.previous, race.current)

    @property
    def stacks(self) -> Stacks:
        """The frames by which a suppression knows the race, and the key of the race in a report."""
        race = self.race
        frames = [
            frame
            for access in (race.previous, race.current)
            for frame in (*_frames(access), *(access.launch_stack or ()))
        ]
        return Stacks((tuple(frames),), (race.kind, self.pair))

    def describe(self) -> KernelRace:
        """Return the race."""
        return self.race


def _frames(access: KernelRaceAccess) -> tuple[Frame, ...]:
    return access.stack if access.line is None else (access.line, *access.stack)
