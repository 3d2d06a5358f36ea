"""The checks of a run of a kernel. Each check says what the launch must note, reads it, and tells what is wrong."""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any, cast

from tcuda._base.errors import UnwrittenMemoryError
from tcuda._base.warnings import stacklevel
from tcuda._process.lazy import cuda
from tcuda.emulation.kernels import kernel_accesses, memory_access
from tcuda.emulation.kernels.launch_failures import BARRIER
from tcuda.emulation.kernels.other_orders import words
from tcuda.emulation.kernels.reachable_memory import ReachableMemory
from tcuda.emulation.kernels.volatile_races import races_of
from tcuda.sanitizer._errors import KernelRaceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda import _core
    from tcuda.emulation.devices.driver_error import CUDADriverError
    from tcuda.emulation.kernels.launch_findings import LaunchFindings
    from tcuda.emulation.kernels.launched_kernel import LaunchedKernel, RecordedKernel
    from tcuda.emulation.kernels.other_orders import OtherOrders
    from tcuda.emulation.runtime import EmulatedRuntime
    from tcuda.emulation.runtime.accesses import Access
    from tcuda.emulation.runtime.unwritten import Marks, Unwritten

_runtime = cast("EmulatedRuntime", cuda)


class LaunchCheck:
    """A check of one run, whose methods are called in the order in which they stand here."""

    __slots__ = ()

    def options(self) -> dict[str, Any]:
        """Return what ``EmulatedLaunch`` must know in order to note what the check reads."""
        return {}

    def allow(self, launch: _core.EmulatedLaunch, begin: int, end: int) -> None:
        """Prepare memory that the launch is going to be allowed to use, because a pointer leads there."""

    def read(self, launch: _core.EmulatedLaunch, *, failed: bool) -> None:
        """Read what the launch has noted."""

    def end(self, launch: _core.EmulatedLaunch) -> None:
        """Take what must be kept of the launch, even if the launch was interrupted."""

    def tell_cause(self, failure: CUDADriverError | None) -> None:
        """Tell what may have caused the failure of the launch, before the failure is raised.

        Args:
            failure: The failure; None if the launch has not failed.
        """

    def tell(self) -> None:
        """Tell what is wrong with a launch that has not failed."""


class NotedAccesses(LaunchCheck):
    """The accesses of the kernel, for a detector of races between the works of streams.

    Args:
        kernel: The kernel.
        recorded: The form of the kernel that notes its accesses.
        arguments: The bytes of the arguments.
        noted: The accesses by thread, to which the check adds those of the running thread.
    """

    __slots__ = ("_arguments", "_kernel", "_noted", "_recorded")

    def __init__(
        self,
        kernel: LaunchedKernel,
        recorded: RecordedKernel,
        arguments: bytes,
        noted: dict[int, list[Access]],
    ) -> None:
        self._kernel = kernel
        self._recorded = recorded
        self._arguments = arguments
        self._noted = noted

    def options(self) -> dict[str, Any]:
        """Let the launch note the accesses."""
        return {"recorded": True, "finds_changes": not self._recorded.complete}

    def read(self, launch: _core.EmulatedLaunch, *, failed: bool) -> None:
        """Read the accesses, unless nobody looks for races any more."""
        if failed or _runtime.races.detector is None:
            return
        kernel = self._kernel
        self._noted[threading.get_ident()] = kernel_accesses.of_launch(
            launch, kernel.parameters, kernel.parameter_names, self._arguments, self._recorded.variables
        )


class UnwrittenReads(LaunchCheck):
    """The reads of memory that nothing has written.

    Args:
        kernel: The kernel.
        unwritten: The unwritten bytes of the devices.
        ranges: The memory that the launch may use from its beginning on.
        marks_shared: Whether the dynamic shared memory has marks, too.
        findings: The part that tells the reads.
    """

    __slots__ = ("_findings", "_kernel", "_marks", "_marks_shared", "_origins", "_reads", "_unwritten")

    def __init__(
        self,
        kernel: LaunchedKernel,
        unwritten: Unwritten,
        ranges: Sequence[tuple[int, int]],
        findings: LaunchFindings,
        *,
        marks_shared: bool,
    ) -> None:
        self._kernel = kernel
        self._unwritten = unwritten
        self._findings = findings
        self._marks_shared = marks_shared
        self._marks: dict[int, Marks] = {
            begin: marks for piece in ranges for begin, marks in unwritten.open_blocks(*piece)
        }
        self._reads: list[Any] = []
        self._origins: list[Any] = []

    @classmethod
    def of(
        cls, kernel: LaunchedKernel, ranges: Sequence[tuple[int, int]], shared: int, findings: LaunchFindings
    ) -> UnwrittenReads | None:
        """Return the check; None if nobody asks for the check, or if the launch can use no unwritten memory."""
        unwritten = _runtime.contents.unwritten
        if not unwritten:
            return None
        marks_shared = kernel.checks.shared and shared > 0
        if unwritten.open == 0 and not marks_shared and not kernel.module.shared:
            return None
        return cls(kernel, unwritten, ranges, findings, marks_shared=marks_shared)

    def options(self) -> dict[str, Any]:
        """Give the launch the marks of all unwritten bytes that it may use."""
        module = self._kernel.module
        shared = [(begin, end, 0) for _, begin, end in module.shared]
        return {
            "marked": True,
            "strict_marks": not module.has_padding,
            "marks": [*map(_of_block, self._marks.items()), *shared],
            "marks_shared": self._marks_shared,
        }

    def allow(self, launch: _core.EmulatedLaunch, begin: int, end: int) -> None:
        """Give the launch the marks of further unwritten bytes."""
        for block in self._unwritten.open_blocks(begin, end):
            launch.mark(*_of_block(block))
            self._marks[block[0]] = block[1]

    def read(self, launch: _core.EmulatedLaunch, *, failed: bool) -> None:
        """Read the reads, and the allocations of their memory."""
        self._reads = launch.unwritten_reads
        # The launch may have written the bytes after the read.
        self._origins = [self._unwritten.origin_at(*read[:2]) for read in self._reads]

    def end(self, launch: _core.EmulatedLaunch) -> None:
        """Keep the marks of what the launch has written."""
        self._unwritten.changed(self._marks, launch.keep_marks())

    def tell_cause(self, failure: CUDADriverError | None) -> None:
        """Tell the reads: an unwritten number may have caused the failure."""
        if self._reads:
            try:
                self._findings.tell_unwritten(self._reads, self._origins, self._kernel.module, self._kernel.call)
            except UnwrittenMemoryError as error:
                raise error from failure


class RacesOfThreads(LaunchCheck):
    """The races between the threads of the launch.

    Args:
        kernel: The kernel.
        findings: The part that tells the races.
        others: The other orders of the launch; None if no other order can show more.
    """

    __slots__ = ("_findings", "_kernel", "_left_out", "_others", "_races")

    def __init__(self, kernel: LaunchedKernel, findings: LaunchFindings, others: OtherOrders | None) -> None:
        self._kernel = kernel
        self._findings = findings
        self._others = others
        self._races: list[_core.KernelRace] = []
        self._left_out = 0

    def options(self) -> dict[str, Any]:
        """Let the launch look for races."""
        return {"races": True}

    def allow(self, launch: _core.EmulatedLaunch, begin: int, end: int) -> None:
        """Keep the contents of the memory for the other orders."""
        if self._others is not None:
            self._others.keep(begin, end)

    def read(self, launch: _core.EmulatedLaunch, *, failed: bool) -> None:
        """Read the races."""
        self._races = races_of(launch, self._kernel.module)
        self._left_out = launch.races_left_out
        if failed or self._races or not launch.communicates:
            self._others = None

    def tell_cause(self, failure: CUDADriverError | None) -> None:
        """Tell the races of a launch that failed: a race may have caused the failure, unless all write one value."""
        if failure is not None:
            self._races = [race for race in self._races if not race.same_value]
            try:
                self.tell()
            except KernelRaceError as error:
                raise error from failure

    def tell(self) -> None:
        """Tell the races, of another order if the usual one has shown none."""
        order = 0
        if self._others is not None:
            self._races, self._left_out, order = self._others.races()
        if self._races:
            module, call = self._kernel.module, self._kernel.call
            self._findings.tell_races(self._races, self._left_out, module, call, words(order))


class MemoryCheck:
    """The check of an access to memory that the launch has not named. A pointer may lead to this memory.

    Args:
        kernel: The kernel.
        host: The form of the kernel that runs.
        device: The device.
        arguments: The bytes of the arguments.
        ranges: The memory that the launch may use from its beginning on.
    """

    def __init__(
        self,
        kernel: LaunchedKernel,
        host: _core.EmulatedFunction,
        device: int,
        arguments: bytes,
        ranges: list[tuple[int, int]],
    ) -> None:
        self._kernel = kernel
        self._device = device
        self._packed = arguments
        self._reachable = ReachableMemory(device, arguments, ranges, host) if kernel.checks.neighbours else None

    def range_or_reason(self, address: int, size: int) -> tuple[int, int] | str:
        """Return the memory around an access; if the kernel may not use the memory, the reason."""
        allowed = memory_access.range_at(self._device, address, size)
        if allowed is None:
            return memory_access.explain(self._device, address, size, self._arguments())
        if self._reachable is not None and not self._reachable.has(*allowed):
            return memory_access.explain_unreachable(address, size, self._reachable.blocks(), self._arguments())
        return allowed

    def _arguments(self) -> dict[memory_access.Block, str]:
        """Return the name of the first argument in each block of memory."""
        kernel = self._kernel
        found: dict[memory_access.Block, str] = {}
        for place, address in kernel_accesses.pointers_of(kernel.parameters, self._packed):
            block = memory_access.block_at(address)
            if block is not None:
                name = kernel_accesses.name_of(place, kernel.parameters, kernel.parameter_names)
                found.setdefault(block[1:3], name)
        return found


def warn_of_barrier(kernel: LaunchedKernel, waiting: int, returned: int) -> None:
    """Warn of a barrier that not all threads of a block have reached, once for each kernel.

    Args:
        kernel: The kernel.
        waiting: The number of threads at the barrier.
        returned: The number of threads that had returned.
    """
    kernel.warns_of_barriers = False
    warnings.warn(
        f"In a block of the kernel {kernel.name}, {returned} threads had returned when the other {waiting} threads "
        f"reached __syncthreads(). {BARRIER} TCUDA_EMULATED_CHECKS=memory,barriers makes this warning an error.",
        RuntimeWarning,
        stacklevel=stacklevel(),
    )


def _of_block(block: tuple[int, Marks]) -> tuple[int, int, int]:
    """Return the beginning and the end of a block, and the address of its marks."""
    begin, marks = block
    return begin, begin + marks.size, marks.ctypes.data
