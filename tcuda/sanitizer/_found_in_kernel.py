"""A race inside a kernel, or a read of unwritten memory, as a launch finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcuda.sanitizer._description import Stacks

if TYPE_CHECKING:
    from tcuda.sanitizer._kernel_race import KernelFinding, KernelRaceAccess
    from tcuda.sanitizer._stacks import Frame


@dataclass(frozen=True)
class FoundInKernel:
    """A race inside a kernel or a read of unwritten memory, and how often a launch has found it.

    Attributes:
        finding: The race or the read.
        count: The number of times.
    """

    finding: KernelFinding
    count: int

    @property
    def current(self) -> KernelRaceAccess:
        """The later access."""
        return self.finding.current

    @property
    def previous(self) -> KernelRaceAccess:
        """The first access, which is the only one of a read of unwritten memory."""
        return self.finding.accesses[0]

    @property
    def overlap(self) -> tuple[int, int]:
        """The address of the first common byte, and the number of bytes."""
        return self.finding.overlap

    @property
    def pair(self) -> Any:
        """A value that is equal for findings of the same lines. A line that is not known has no equal line."""
        accesses = self.finding.accesses
        known = all(access.line is not None for access in accesses)
        lines = sorted((str(access.line), access.source) for access in accesses)
        return self.finding.kernel, self.finding.memory.name, *lines, () if known else accesses

    @property
    def stacks(self) -> Stacks:
        """The frames by which a suppression knows the finding, and the key of the finding in a report."""
        frames = [
            frame for access in self.finding.accesses for frame in (*_frames(access), *(access.launch_stack or ()))
        ]
        return Stacks((tuple(frames),), (self.finding.kind, self.pair))

    def describe(self) -> KernelFinding:
        """Return the race or the read."""
        return self.finding


def _frames(access: KernelRaceAccess) -> tuple[Frame, ...]:
    return access.stack if access.line is None else (access.line, *access.stack)
