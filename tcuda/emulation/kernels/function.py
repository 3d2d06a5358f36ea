"""A kernel of a loaded module, like ``cupy.cuda.Function``."""

from __future__ import annotations

import operator
import threading
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from tcuda import _core
from tcuda._base.errors import UnwrittenMemoryError
from tcuda._base.statuses import Status
from tcuda._base.warnings import stacklevel
from tcuda._process.lazy import backend, cuda
from tcuda.emulation.devices.driver_error import CUDADriverError
from tcuda.emulation.kernels import kernel_accesses, memory_access
from tcuda.emulation.kernels.arguments import KernelArguments, misread_view
from tcuda.emulation.kernels.reachable_memory import ReachableMemory
from tcuda.emulation.kernels.source_facts import SourceFacts
from tcuda.emulation.rtc.parameter_names import parameter_names
from tcuda.emulation.runtime import launch_limits
from tcuda.emulation.runtime.moves import Movable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.devices.strided import Strided
    from tcuda.emulation.kernels.arguments import ElementTypes
    from tcuda.emulation.kernels.launch_findings import LaunchFindings
    from tcuda.emulation.rtc.checks import Checks
    from tcuda.emulation.runtime import EmulatedRuntime
    from tcuda.emulation.runtime.accesses import Access
    from tcuda.emulation.runtime.moves import Mover
    from tcuda.emulation.runtime.unwritten import Marks, Unwritten

_runtime = cast("EmulatedRuntime", cuda)
_FLOPS_PER_THREAD = 32
_STATUSES = {
    "assert": Status.ASSERT,
    "bounds": Status.ILLEGAL_ADDRESS,
    "deadlock": Status.LAUNCH_TIMEOUT,
    "memory": Status.ILLEGAL_ADDRESS,
    "misaligned": Status.MISALIGNED_ADDRESS,
    "timeout": Status.LAUNCH_TIMEOUT,
}
"""The status of each kind of failure; other failures are launch failures, as after ``__trap()``."""

_BARRIER = (
    "CUDA leaves a barrier undefined that not all threads of the block reach. A GPU of today does not wait for the "
    "threads that have returned. Let all threads of the block reach the barrier, or turn this check off with "
    "TCUDA_EMULATED_CHECKS=memory."
)


class RecordedKernel(NamedTuple):
    """A kernel in the form whose launches note what the kernel reads and writes.

    Attributes:
        host: The kernel.
        complete: Whether every access has a check. If not, the check of a write after a read may be missing.
        variables: The name, the beginning and the end of each global variable of the module, by address.
    """

    host: _core.EmulatedFunction
    complete: bool
    variables: list[tuple[str, int, int]]


class _Module(SourceFacts, Protocol):
    """The module of a kernel."""

    @property
    def source(self) -> str:
        """The source."""

    @property
    def shared(self) -> list[tuple[str, int, int]]:
        """The name, the beginning and the end of each static variable in shared memory, for the check of ``init``."""

    @property
    def has_padding(self) -> bool:
        """Whether the source may have structures with bytes that nobody writes."""

    def recorded(self, name: str) -> RecordedKernel | None:
        """Return the kernel ``name`` in the form that notes its accesses; None without such a form."""


class Function:
    """A kernel of a module on one device.

    Args:
        module: The module.
        host: The kernel in the module.
        name: The name by which the program asked for the kernel.
        max_threads_per_block: The most threads of a block, by ``__launch_bounds__`` or by the limit of the device.
        shared_size_bytes: The static shared memory of a block.
        elements: The elements to which the parameters point.
        checks: The checks of the kernel.

    Attributes:
        module: The module.
        name: The name by which the program asked for the kernel.
        max_threads_per_block: The most threads of a block.
        shared_size_bytes: The static shared memory of a block.
        max_dynamic_shared_size_bytes: The most dynamic shared memory for which the kernel has asked.
        preferred_shared_memory_carveout: The preferred share of shared memory, in percent; -1 for no preference.
    """

    def __init__(
        self,
        module: _Module,
        host: _core.EmulatedFunction,
        name: str,
        max_threads_per_block: int,
        shared_size_bytes: int,
        elements: ElementTypes,
        checks: Checks,
    ) -> None:
        self.module = module
        self.name = name
        self._host = host
        self._barriers = checks.barriers
        self._neighbours = checks.neighbours
        self._elements = elements
        self._types = self._layouts = checks.types
        self._checks = checks
        self._marks_shared = checks.shared
        self._parameter_names: list[str] | None = None
        self.max_threads_per_block = max_threads_per_block
        self.shared_size_bytes = shared_size_bytes
        self.max_dynamic_shared_size_bytes = max(0, launch_limits.SHARED - shared_size_bytes)
        self.preferred_shared_memory_carveout = -1

    @property
    def parameters(self) -> list[tuple[str, int, int]]:
        """The kind, the size and the offset of each parameter, as ``EmulatedFunction`` has them."""
        return self._host.parameters

    @property
    def parameter_names(self) -> list[str]:
        """The names of the parameters in the source; empty if they are not known."""
        if self._parameter_names is None:
            self._parameter_names = parameter_names(self.module.source, self.name)
        return self._parameter_names

    @property
    def ptr(self) -> int:
        """A number that no other kernel has."""
        return id(self)

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        shared_mem: int = 0,
        stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        """Launch the kernel.

        Args:
            grid: The number of blocks along each axis.
            block: The number of threads of a block along each axis.
            args: The arguments.
            shared_mem: The bytes of dynamic shared memory of a block.
            stream: The stream, any object with ``ptr``; the current stream if None.
            enable_cooperative_groups: Ignored: barriers of a whole grid do not exist on emulated devices.

        Raises:
            CUDADriverError: A number is beyond the limits of a launch (1), the stream is of another device (400), or
                the kernel failed: memory that the kernel may not use (700), a deadlock (702), ``assert()`` (710), a
                misaligned address (716), ``__trap()``, the address 0, and a division by zero (719).
            OverflowError: An integer does not fit in its parameter.
            TypeError: An argument does not fit its parameter, or the number of arguments is wrong. With the check of
                types: an array has other elements than the kernel reads, or is a view whose elements do not lie side by
                side.
        """
        blocks, threads = _dimensions("grid", grid), _dimensions("block", block)
        shared = operator.index(shared_mem)
        if shared < 0:
            raise OverflowError("can't convert negative value to size_t")
        arguments = KernelArguments(self._host, args)
        if self._types != "nothing":
            self._check_types(args)
        if self._layouts != "nothing":
            self._check_layouts(args)
        self.launch(blocks, threads, arguments.packed, arguments.arrays, shared, stream)

    def launch_unchecked(self, grid: tuple[int, int, int], block: tuple[int, int, int], args: Sequence[Any]) -> None:
        """Launch the kernel on the current stream as a call does, without the check of types."""
        arguments = KernelArguments(self._host, args)
        self.launch(grid, block, arguments.packed, arguments.arrays, 0, None)

    def launch(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        packed: bytes,
        arrays: Sequence[Strided],
        shared: int,
        stream: Any,
    ) -> None:
        """Launch the kernel with the bytes of its arguments.

        Args:
            grid: The number of blocks along each axis.
            block: The number of threads of a block along each axis.
            packed: The bytes of the arguments.
            arrays: The arrays among the arguments.
            shared: The bytes of dynamic shared memory of a block.
            stream: The stream, any object with ``ptr``; the current stream if None.

        Raises:
            CUDADriverError: The launch is refused or the kernel fails, as described for a call.
        """
        launch_limits.check(
            self.name, grid, block, shared, self.max_dynamic_shared_size_bytes, self.max_threads_per_block
        )
        device = cuda.getDevice()
        # A graph may be launched when the arrays are gone, so the memory is looked up at every launch.
        captured = (
            _runtime.capturing(backend.current_stream) if stream is None else _runtime.streamIsCapturing(stream.ptr)
        )
        handle = backend.current_stream(device).ptr if stream is None else stream.ptr
        ranges = [] if captured else _ranges_of(arrays, device)
        if _runtime.is_late and not captured:
            ranges += memory_access.ranges_of_pointers(self.parameters, packed, device)
        work = _Work(self, grid, block, packed, shared, ranges, device)
        if captured or _runtime.races.detector is not None:
            work.known = kernel_accesses.of_arrays(arrays, self.parameters, self.parameter_names, packed)
        if self._checks.races or _runtime.contents.unwritten is not None:
            from tcuda.emulation.kernels.launch_findings import (
                LaunchFindings,
            )  # here, because few programs need the module

            benign = self._checks.benign
            work.findings = LaunchFindings(self, arrays, packed, device, handle, captured=bool(captured), benign=benign)
        _runtime.launch(
            handle,
            work,
            sum(array._host.nbytes for array in arrays),
            _FLOPS_PER_THREAD * grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2],
            name=self.name,
            addresses=[array._block.ptr for array in arrays if array._block.ptr],
            accesses=work.accesses,
        )

    def _check_types(self, args: Sequence[Any]) -> None:
        mismatch = self._elements.mismatch(args)
        if not mismatch:
            return
        message = (
            f"Argument {mismatch}, so that the kernel {self.name} takes the bytes of the array for other numbers, as "
            "on a GPU. Convert the array by astype(). If the kernel means these bytes, pass a view of the array with "
            "the type of the parameter."
        )
        _tell(message, self._types)
        self._types = "nothing"  # one warning for each kernel

    def _check_layouts(self, args: Sequence[Any]) -> None:
        place = misread_view(args)
        if place is None:
            return
        view, names = args[place], self.parameter_names
        name = f" ({names[place]})" if place < len(names) else ""
        message = (
            f"Argument {place}{name} is a view that is not C-contiguous, of shape {view.shape} and strides "
            f"{view.strides}. The kernel {self.name} gets the address of the first element without the strides, and "
            "uses the elements that follow in memory, as on a GPU. Pass a copy by xp.ascontiguousarray(), and copy the "
            "result back if the kernel writes to the view. Or pass all strides as arguments, in bytes or in elements."
        )
        _tell(message, self._layouts)
        self._layouts = "nothing"  # one warning for each kernel

    def linear_launch(
        self,
        size: int,
        args: Sequence[Any],
        shared_mem: int = 0,
        block_max_size: int = 128,
        stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        """Launch the kernel with at least ``size`` threads along the first axis.

        Args:
            size: The number of threads.
            args: The arguments.
            shared_mem: The bytes of dynamic shared memory of a block.
            block_max_size: The most threads of a block.
            stream: The stream, any object with ``ptr``; the current stream if None.
            enable_cooperative_groups: Ignored.
        """
        blocks = min(launch_limits.GRID[0], -(-size // block_max_size))
        self((blocks,), (min(block_max_size, size),), args, shared_mem, stream, enable_cooperative_groups)

    def set_max_dynamic_shared_size_bytes(self, size: int) -> None:
        """Ask for up to ``size`` bytes of dynamic shared memory.

        Raises:
            CUDADriverError: The number is negative, or is more than the device has (1).
        """
        number = operator.index(size)
        most = launch_limits.MOST_SHARED - self.shared_size_bytes
        if not 0 <= number <= most:
            raise self._invalid(f"max_dynamic_shared_size_bytes is {number}; 0 to {most} are possible.")
        self.max_dynamic_shared_size_bytes = number

    def set_preferred_shared_memory_carveout(self, percent: int) -> None:
        """Prefer ``percent`` percent of the memory of a multiprocessor as shared memory; -1 for no preference.

        Raises:
            CUDADriverError: The number is less than -1 or more than 100 (1).
        """
        number = operator.index(percent)
        if not -1 <= number <= 100:
            raise self._invalid(f"preferred_shared_memory_carveout is {number}; -1 to 100 are possible.")
        self.preferred_shared_memory_carveout = number

    def _invalid(self, details: str) -> CUDADriverError:
        return CUDADriverError(Status.INVALID_VALUE, f"cuFuncSetAttribute({self.name})", details)


class _Work(Movable):
    """The work of a launch, which keeps no memory of a device alive."""

    passes_marks = True
    __slots__ = (
        "_arguments",
        "_block",
        "_device",
        "_grid",
        "_kernel",
        "_ranges",
        "_recorded",
        "_shared",
        "findings",
        "known",
    )

    def __init__(
        self,
        kernel: Function,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: bytes,
        shared: int,
        ranges: list[tuple[int, int]],
        device: int,
    ) -> None:
        self._kernel = kernel
        self._grid = grid
        self._block = block
        self._arguments = arguments
        self._shared = shared
        self._ranges = ranges
        self._device = device
        self._recorded: dict[int, list[Access]] = {}
        """The accesses of the last run in each thread, until they are asked for."""
        self.known: list[Access] = []
        """The accesses that are possible, for a run that has noted nothing."""
        self.findings: LaunchFindings | None = None
        """The part that reports races and unwritten memory of the launch; None if nobody looks for them."""

    def moved(self, mover: Mover) -> _Work:
        """Return a copy of the work with moved addresses in the bytes of its arguments."""
        made: _Work = super().moved(mover)
        made._arguments = mover.packed(self._arguments, self._kernel.parameters)
        return made

    def accesses(self) -> list[Access]:
        """Return what the last run in this thread has read and written, or else what is possible."""
        return self._recorded.pop(threading.get_ident(), self.known)

    def __call__(self) -> None:
        kernel = self._kernel
        strict = kernel._barriers == "error"
        unwritten = _runtime.contents.unwritten if _runtime.contents.unwritten and self.findings else None
        watched = _runtime.races.detector is not None
        shared = [] if unwritten is None else kernel.module.shared
        marks_shared = unwritten is not None and kernel._marks_shared and self._shared > 0
        marked = unwritten is not None and (unwritten.open > 0 or bool(shared) or marks_shared)
        recorded = kernel.module.recorded(kernel.name) if watched or marked else None
        marks: dict[int, Marks] = {}
        if recorded is None and not kernel._checks.races:
            launch = _core.EmulatedLaunch(
                kernel._host, self._grid, self._block, self._arguments, self._shared, self._ranges, strict
            )
        else:
            variables = kernel.module.global_variables() if recorded is None else recorded.variables
            marked = marked and recorded is not None
            if unwritten is not None and marked:
                marks = {begin: known for range in self._ranges for begin, known in unwritten.open_blocks(*range)}
            launch = _core.EmulatedLaunch(
                kernel._host if recorded is None else recorded.host,
                self._grid,
                self._block,
                self._arguments,
                self._shared,
                self._ranges,
                strict,
                recorded=recorded is not None and watched,
                finds_changes=recorded is not None and watched and not recorded.complete,
                variables=[(begin, end) for _, begin, end in variables],
                races=kernel._checks.races,
                marked=marked,
                strict_marks=not kernel.module.has_padding,
                marks=[*map(_of_block, marks.items()), *((begin, end, 0) for _, begin, end in shared)],
                marks_shared=marks_shared,
            )
        try:
            failure = self._run(launch, recorded, unwritten if marked else None, marks)
            unreached = launch.unreached
            if failure is None and recorded is not None and _runtime.races.detector is not None:
                found = kernel_accesses.of_launch(
                    launch, kernel.parameters, kernel.parameter_names, self._arguments, recorded.variables
                )
                self._recorded[threading.get_ident()] = found
            races = launch.races() if failure is None and kernel._checks.races else []
            left_out = launch.races_left_out if races else 0
            reads = launch.unwritten_reads if marked else []
            # The launch may have written the bytes after the read.
            origins = [None if unwritten is None else unwritten.origin_at(*read[:2]) for read in reads]
        finally:
            if unwritten is not None and marked:
                unwritten.changed(marks, launch.keep_marks())
            del launch  # The traceback of an error must not keep the launch, which no other launch may overtake.
        if reads and self.findings is not None:
            # The reads come before the failure, because an unwritten number may have caused the failure.
            noting = recorded is not None
            try:
                self.findings.tell_unwritten(reads, origins, kernel.module, self._call, recorded=noting)
            except UnwrittenMemoryError as error:
                raise error from failure
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # The traceback of the error has this frame, which must not keep the error.
        if unreached is not None and kernel._barriers == "warning":
            kernel._barriers = "nothing"  # one warning for each kernel
            self._warn(*unreached)
        if races and self.findings is not None:
            self.findings.tell_races(races, left_out, kernel.module, self._call)

    def _run(
        self,
        launch: _core.EmulatedLaunch,
        recorded: RecordedKernel | None,
        unwritten: Unwritten | None,
        marks: dict[int, Marks],
    ) -> CUDADriverError | None:
        """Run the launch to its end, and return its failure. The launch may use the memory that pointers lead to.

        Args:
            launch: The launch.
            recorded: The kernel in the form that notes its accesses; None if the launch runs the usual form.
            unwritten: The unwritten bytes; None if the launch does not look for them.
            marks: The marks of blocks by address, to which the run adds those of further blocks.
        """
        kernel = self._kernel
        reachable: ReachableMemory | None = None
        while (report := launch.run()) is not None:
            explanation = None
            if report[0] == "access":
                address, size = report[1:3]
                allowed = memory_access.range_at(self._device, address, size)
                if allowed is None:
                    explanation = memory_access.explain(self._device, address, size)
                elif kernel._neighbours:
                    if reachable is None:
                        host = kernel._host if recorded is None else recorded.host
                        reachable = ReachableMemory(self._device, self._arguments, self._ranges, host)
                    if not reachable.has(*allowed):
                        explanation = memory_access.explain_unreachable(address, size, reachable.blocks())
                if allowed is not None and explanation is None:
                    if unwritten is not None:
                        for block in unwritten.open_blocks(*allowed):
                            launch.mark(*_of_block(block))
                            marks[block[0]] = block[1]
                    launch.allow(*allowed)
                    continue
            lines = _lines_text(kernel.module.lines(launch.codes, recorded=recorded is not None))
            if explanation is not None:
                return self._illegal(report, explanation, lines)
            return self._failure(lines, *report)
        return None

    def _warn(self, waiting: int, returned: int) -> None:
        warnings.warn(
            f"In a block of the kernel {self._kernel.name}, {returned} threads had returned when the other {waiting} "
            f"threads reached __syncthreads(). {_BARRIER} TCUDA_EMULATED_CHECKS=memory,barriers makes this "
            "warning an error.",
            RuntimeWarning,
            stacklevel=stacklevel(),
        )

    def _illegal(self, report: tuple[Any, ...], explanation: str, lines: str) -> CUDADriverError:
        _, address, size, write, thread, block = report
        details = (
            f"Invalid __global__ {'write' if write else 'read'} of size {size} bytes at {address:#x}\n"
            f"    in {self._kernel.name}{lines}, by thread {thread} of block {block}.\n"
            f"{explanation}"
        )
        # A GPU reports an access to the address 0 like __trap().
        status = Status.ILLEGAL_ADDRESS if address else Status.LAUNCH_FAILURE
        return CUDADriverError(status, self._call, details)

    def _failure(
        self,
        lines: str,
        kind: str,
        text: str,
        file: str,
        line: int,
        function: str,
        thread: tuple[int, ...],
        block: tuple[int, ...],
    ) -> CUDADriverError:
        where = f"{file}:{line}: " if file else ""
        inside = f"{function}: " if function else ""
        what = f"Assertion `{text}` failed." if kind == "assert" else text
        what = what or "The kernel called __trap()."
        name = f"{self._kernel.name}{'' if file else lines}"
        details = f"{where}{inside}block: {list(block)}, thread: {list(thread)}: {what}\n    in {name}."
        if kind == "deadlock":
            details = f"The block {block} cannot go on: {text}\n    in {name}."
            if "__syncthreads()" in text and " returned" in text:
                details += f"\n{_BARRIER}"
        return CUDADriverError(_STATUSES.get(kind, Status.LAUNCH_FAILURE), self._call, details)

    @property
    def _call(self) -> str:
        return f"cuLaunchKernel({self._kernel.name})"


def _tell(message: str, consequence: str) -> None:
    """Warn of what a check of types has found, or raise ``TypeError`` if ``consequence`` is ``"error"``."""
    if consequence == "error":
        raise TypeError(message)
    warnings.warn(
        f"{message} TCUDA_EMULATED_CHECKS=memory,types makes this warning an error.",
        RuntimeWarning,
        stacklevel=stacklevel(),
    )


def _of_block(block: tuple[int, Marks]) -> tuple[int, int, int]:
    """Return the beginning and the end of a block, and the address of its marks."""
    begin, marks = block
    return begin, begin + marks.size, marks.ctypes.data


def _lines_text(lines: Sequence[tuple[str, int] | None]) -> str:
    """Return the lines in words, behind a comma; an empty text if no line is known."""
    known = dict.fromkeys(f"{file}:{number}" for file, number in filter(None, lines))
    return f" at {' and '.join(known)}" if known else ""


def _ranges_of(arrays: Sequence[Strided], device: int) -> list[tuple[int, int]]:
    """Return the beginning and the end of the blocks of ``arrays`` that kernels of ``device`` may use."""
    blocks = {array._block for array in arrays}
    return [
        (block.ptr, block.ptr + block.requested)
        for block in blocks
        if block.ptr and _runtime.canAccess(device, block.device)
    ]


def _dimensions(name: str, numbers: tuple[int, ...]) -> tuple[int, int, int]:
    """Return ``numbers`` as CuPy takes them: with 1 for axes that are missing and for numbers less than 1."""
    if not isinstance(numbers, tuple):
        raise TypeError(f"Argument '{name}' has incorrect type (expected tuple, got {type(numbers).__name__})")
    x, y, z = (max(1, operator.index(number)) for number in (*numbers, 1, 1, 1)[:3])
    return x, y, z
