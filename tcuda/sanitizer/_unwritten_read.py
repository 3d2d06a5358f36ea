"""A read of memory that nothing has written, in plain values, beside the races of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcuda.sanitizer._kernel_race import KernelFinding

if TYPE_CHECKING:
    from tcuda.sanitizer._kernel_race import KernelMemory, KernelRaceAccess
    from tcuda.sanitizer._race import RaceAllocation

UNWRITTEN = "read of unwritten memory in a kernel"

_ADVICE = "Write the memory first, or let the kernel leave the memory out."


@dataclass(frozen=True, kw_only=True)
class UnwrittenRead(KernelFinding):
    """A read in a kernel of memory that nothing has written since the memory was allocated.

    A report has such reads beside the races. The attributes of :class:`Finding` are there too. ``kind`` is
    ``"read of unwritten memory in a kernel"``, and ``current`` is the first such read of its line. ``allocation`` has
    the line that allocated the memory.

    Attributes:
        kernel: The name of the kernel.
        memory: The memory that is read.

    Example:
        >>> import tcuda.emulation
        >>> tcuda.emulation.enable(checks="memory,init")
        >>> xp = tcuda.emulation.xp
        >>> code = 'extern "C" __global__ void twice(int* x) { x[threadIdx.x] *= 2; }'
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     xp.RawKernel(code, "twice")((1,), (2,), (xp.empty(2, "i"),))
        >>> read = report.unwritten_reads[0]
        >>> read.kernel, read.memory.expression, read.current.line.line, report.count(read)
        ('twice', 'x[0]', 1, 2)
    """

    @property
    def details(self) -> str:
        """The read in words, without the heading."""
        return self._lines(self.as_dict()["words"])

    def __str__(self) -> str:
        return f"{self._first_line}\n{self.details}\n  {self.as_dict()['words']['missing']['sentence']}"

    def _data(self) -> dict[str, Any]:
        return {**super()._data(), "advice": _ADVICE}


def unwritten_read(
    kernel: str,
    access: KernelRaceAccess,
    memory: KernelMemory,
    overlap: tuple[int, int],
    allocation: RaceAllocation | None,
) -> UnwrittenRead:
    """Return a read of unwritten memory.

    Args:
        kernel: The name of the kernel.
        access: The read.
        memory: The memory.
        overlap: The address and the number of the bytes.
        allocation: The allocation of the memory; None for shared memory.
    """
    return UnwrittenRead(
        kind=UNWRITTEN,
        current=access,
        overlap=overlap,
        allocation=allocation,
        kernel=kernel,
        memory=memory,
    )
