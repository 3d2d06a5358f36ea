"""A kernel of a loaded module, like ``cupy.cuda.Function``."""

from __future__ import annotations

import operator
import threading
import warnings
from typing import TYPE_CHECKING, Any, cast

from tcuda import _core
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._base.warnings import stacklevel
from tcuda._process.asleep import asleep, refuse_asleep
from tcuda._process.lazy import backend, cuda
from tcuda.emulation.devices.driver_error import CUDADriverError
from tcuda.emulation.kernels import kernel_accesses, launch_failures, memory_access
from tcuda.emulation.kernels.arguments import KernelArguments, LayoutsCheck, TypesCheck
from tcuda.emulation.kernels.launch_checks import (
    MemoryCheck,
    NotedAccesses,
    RacesOfThreads,
    UnwrittenReads,
    warn_of_barrier,
)
from tcuda.emulation.kernels.launched_kernel import LaunchedKernel
from tcuda.emulation.kernels.other_orders import OtherOrders
from tcuda.emulation.runtime import launch_limits
from tcuda.emulation.runtime.moves import Movable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.devices.strided import Strided
    from tcuda.emulation.kernels.arguments import ElementTypes
    from tcuda.emulation.kernels.launch_checks import LaunchCheck
    from tcuda.emulation.kernels.launch_findings import LaunchFindings
    from tcuda.emulation.kernels.launched_kernel import KernelModule, RecordedKernel
    from tcuda.emulation.rtc.checks import Checks
    from tcuda.emulation.runtime import EmulatedRuntime
    from tcuda.emulation.runtime.accesses import Access
    from tcuda.emulation.runtime.moves import Mover

_runtime = cast("EmulatedRuntime", cuda)
_FLOPS_PER_THREAD = 32


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
        module: KernelModule,
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
        self._kernel = LaunchedKernel(module, host, name, checks)
        self._check_types = TypesCheck(self._kernel, elements)
        self._check_layouts = LayoutsCheck(self._kernel)
        self.max_threads_per_block = max_threads_per_block
        self.shared_size_bytes = shared_size_bytes
        self.max_dynamic_shared_size_bytes = max(0, launch_limits.SHARED - shared_size_bytes)
        self.preferred_shared_memory_carveout = -1

    @property
    def parameters(self) -> list[tuple[str, int, int]]:
        """The kind, the size and the offset of each parameter, as ``EmulatedFunction`` has them."""
        return self._host.parameters

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
            enable_cooperative_groups: Whether the blocks run at the same time, and can meet at a barrier of the grid.

        Raises:
            CUDADriverError: A number is beyond the limits of a launch (1), more blocks shall meet than run at the same
                time on the multiprocessors of the stream (720), the stream is of another device (400), or
                the kernel failed: memory that the kernel may not use (700), a deadlock (702), ``assert()`` (710), a
                misaligned address (716), ``__trap()``, the address 0, and a division by zero (719).
            OverflowError: An integer does not fit in its parameter.
            TypeError: An argument does not fit its parameter, or the number of arguments is wrong. With the check of
                types: an array has other elements than the kernel reads, or is a view whose elements do not lie side by
                side.
            ValueError: More blocks along several axes shall meet than run at the same time on the device.

        Warns:
            UserWarning: More blocks along the first axis shall meet than run at the same time on the device. The grid
                of the launch is smaller.
        """
        blocks, threads = _dimensions("grid", grid), _dimensions("block", block)
        shared = operator.index(shared_mem)
        if shared < 0:
            raise OverflowError("can't convert negative value to size_t")
        if enable_cooperative_groups:
            blocks = _meeting_grid(blocks, launch_limits.most_together(threads, shared + self.shared_size_bytes))
        arguments = KernelArguments(self._host, args)
        self._check_types(args)
        self._check_layouts(args)
        try:
            self.launch(
                blocks,
                threads,
                arguments.packed,
                arguments.arrays,
                shared,
                stream,
                cooperative=bool(enable_cooperative_groups),
            )
        except AcceleratorError as error:
            if type(error) is not AcceleratorError:
                raise
            raise CUDADriverError(error.error_code, error.call, error.details) from None

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
        *,
        cooperative: bool = False,
    ) -> None:
        """Launch the kernel with the bytes of its arguments.

        Args:
            grid: The number of blocks along each axis.
            block: The number of threads of a block along each axis.
            packed: The bytes of the arguments.
            arrays: The arrays among the arguments.
            shared: The bytes of dynamic shared memory of a block.
            stream: The stream, any object with ``ptr``; the current stream if None.
            cooperative: Whether the blocks run at the same time.

        Raises:
            CUDADriverError: The launch is refused or the kernel fails, as described for a call.
        """
        launch_limits.check(
            self.name, grid, block, shared, self.max_dynamic_shared_size_bytes, self.max_threads_per_block
        )
        device = cuda.getDevice()
        if asleep:
            refuse_asleep([array._block.ptr for array in arrays])
            refuse_asleep(memory_access.pointers(self.parameters, packed))
        # A graph may be launched when the arrays are gone, so the memory is looked up at every launch.
        captured = (
            _runtime.capturing(backend.current_stream) if stream is None else _runtime.streamIsCapturing(stream.ptr)
        )
        handle = backend.current_stream(device).ptr if stream is None else stream.ptr
        if cooperative:
            multiprocessors = _runtime.multiprocessors(handle)
            launch_limits.check_cooperative(self.name, grid, block, shared + self.shared_size_bytes, multiprocessors)
        ranges = [] if captured else _ranges_of(arrays, device)
        if _runtime.is_late and not captured:
            ranges += memory_access.ranges_of_pointers(self.parameters, packed, device)
        work = _Work(self._kernel, grid, block, packed, shared, ranges, device, cooperative=cooperative)
        if captured or _runtime.races.detector is not None:
            work.known = kernel_accesses.of_arrays(arrays, self.parameters, self._kernel.parameter_names, packed)
        if self._kernel.checks.races or _runtime.contents.unwritten is not None:
            from tcuda.emulation.kernels.launch_findings import (
                LaunchFindings,
            )  # here, because few programs need the module

            work.findings = LaunchFindings(
                self._kernel,
                arrays,
                packed,
                device,
                handle,
                captured=bool(captured),
                benign=self._kernel.checks.benign,
            )
        _runtime.launch(
            handle,
            work,
            sum(array._host.nbytes for array in arrays),
            _FLOPS_PER_THREAD * grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2],
            name=self.name,
            addresses=[array._block.ptr for array in arrays if array._block.ptr],
            accesses=work.accesses,
        )

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
            enable_cooperative_groups: Whether the blocks run at the same time.
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
    """The work of a launch, which keeps no memory of a device alive.

    Args:
        kernel: The kernel.
        grid: The number of blocks along each axis.
        block: The number of threads of a block along each axis.
        arguments: The bytes of the arguments.
        shared: The bytes of dynamic shared memory of a block.
        ranges: The beginning and the end of the memory that the kernel may use.
        device: The index of the device.
        cooperative: Whether the blocks run at the same time.

    Attributes:
        known: The accesses that are possible, for a run that has noted nothing.
        findings: The part that reports races and unwritten memory of the launch; None if nobody looks for them.
    """

    passes_marks = True
    __slots__ = (
        "_arguments",
        "_block",
        "_cooperative",
        "_device",
        "_grid",
        "_kernel",
        "_noted",
        "_ranges",
        "_shared",
        "findings",
        "known",
    )

    def __init__(
        self,
        kernel: LaunchedKernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: bytes,
        shared: int,
        ranges: list[tuple[int, int]],
        device: int,
        *,
        cooperative: bool,
    ) -> None:
        self._kernel = kernel
        self._cooperative = cooperative
        self._grid = grid
        self._block = block
        self._arguments = arguments
        self._shared = shared
        self._ranges = ranges
        self._device = device
        self._noted: dict[int, list[Access]] = {}
        """The accesses of the last run in each thread, until they are asked for."""
        self.known: list[Access] = []
        self.findings: LaunchFindings | None = None

    def moved(self, mover: Mover) -> _Work:
        """Return a copy of the work with moved addresses in the bytes of its arguments."""
        made: _Work = super().moved(mover)
        made._arguments = mover.packed(self._arguments, self._kernel.parameters)
        return made

    def accesses(self) -> list[Access]:
        """Return what the last run in this thread has read and written, or else what is possible."""
        return self._noted.pop(threading.get_ident(), self.known)

    def __call__(self) -> None:
        """Run the kernel to its end.

        Raises:
            CUDADriverError: The kernel has failed.
            UnwrittenMemoryError: The kernel has read memory that nothing has written.
            KernelRaceError: Two threads of the kernel race.
        """
        recorded, checks = self._checks()
        launch = self._launch(recorded, checks)
        try:
            failure = self._failure(launch, recorded, checks)
            for check in checks:
                check.read(launch, failed=failure is not None)
            unreached = launch.unreached
        finally:
            for check in checks:
                check.end(launch)
            del launch  # The traceback of an error must not keep the launch, which no other launch may overtake.
        for check in checks:
            check.tell_cause(failure)
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # The traceback of the error has this frame, which must not keep the error.
        if unreached is not None and self._kernel.warns_of_barriers:
            warn_of_barrier(self._kernel, *unreached)
        for check in checks:
            check.tell()

    def _checks(self) -> tuple[RecordedKernel | None, Sequence[LaunchCheck]]:
        """Return the checks of a run now, and the form of the kernel that notes accesses; None for the usual form."""
        kernel, findings = self._kernel, self.findings
        watched = _runtime.races.detector is not None
        if not watched and findings is None:
            return None, ()
        unwritten = None if findings is None else UnwrittenReads.of(kernel, self._ranges, self._shared, findings)
        recorded = kernel.module.recorded(kernel.name) if watched or unwritten is not None else None
        checks: list[LaunchCheck] = []
        if recorded is not None and watched:
            checks.append(NotedAccesses(kernel, recorded, self._arguments, self._noted))
        if recorded is not None and unwritten is not None:
            checks.append(unwritten)
        if findings is not None and kernel.checks.races:
            checks.append(RacesOfThreads(kernel, findings, self._other_orders()))
        return recorded, checks

    def _other_orders(self) -> OtherOrders | None:
        """Return the other orders of a run now; None if they can show no more races."""
        kernel = self._kernel
        if kernel.checks.orders < 2 or not OtherOrders.are_possible(kernel):
            return None
        variables = kernel.variables

        def run(order: int, patience: float) -> tuple[_core.EmulatedLaunch, CUDADriverError | None]:
            launch = _core.EmulatedLaunch(
                kernel.host,
                self._grid,
                self._block,
                self._arguments,
                self._shared,
                self._ranges,
                kernel.strict,
                patience,
                variables=variables,
                races=True,
                order=order,
                constants=self._constants(),
                cooperative=self._cooperative,
            )
            return launch, self._failure(launch, None, (), order)

        return OtherOrders(kernel, [*self._ranges, *variables], kernel.checks.orders, run)

    def _launch(self, recorded: RecordedKernel | None, checks: Sequence[LaunchCheck]) -> _core.EmulatedLaunch:
        """Return a launch that notes what the checks read."""
        kernel = self._kernel
        usual = self._grid, self._block, self._arguments, self._shared, self._ranges, kernel.strict
        host = kernel.host if recorded is None else recorded.host
        variables = kernel.variables if recorded is None else [(begin, end) for _, begin, end in recorded.variables]
        if not checks and not variables and not self._cooperative:
            return _core.EmulatedLaunch(host, *usual)
        options: dict[str, Any] = {
            "variables": variables,
            "constants": self._constants(),
            "cooperative": self._cooperative,
        }
        for check in checks:
            options.update(check.options())
        return _core.EmulatedLaunch(host, *usual, **options)

    def _constants(self) -> tuple[int, int]:
        """Return the memory that the kernel can only read. A GPU takes a write if an argument points there."""
        begin, end = self._kernel.module.constants
        if begin == end:
            return 0, 0
        pointers = memory_access.pointers(self._kernel.parameters, self._arguments)
        return (0, 0) if any(begin <= pointer < end for pointer in pointers) else (begin, end)

    def _failure(
        self,
        launch: _core.EmulatedLaunch,
        recorded: RecordedKernel | None,
        checks: Sequence[LaunchCheck],
        order: int = 0,
    ) -> CUDADriverError | None:
        """Run the launch to its end, and return its failure. The launch may use the memory that pointers lead to."""
        kernel = self._kernel
        memory: MemoryCheck | None = None
        while (report := launch.run()) is not None:
            reason = None
            if report[0] == "access":
                if memory is None:
                    host = kernel.host if recorded is None else recorded.host
                    memory = MemoryCheck(kernel, host, self._device, self._arguments, self._ranges)
                found = memory.range_or_reason(*report[1:3])
                if not isinstance(found, str):
                    for check in checks:
                        check.allow(launch, *found)
                    launch.allow(*found)
                    continue
                reason = found
            if report[0] == "unfinished":
                return None
            lines = kernel.module.lines(launch.codes, recorded=recorded is not None)
            if reason is not None:
                return launch_failures.illegal_access(kernel, report, reason, lines, order)
            return launch_failures.failure(kernel, report, lines, order)
        return None


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


def _meeting_grid(grid: tuple[int, int, int], most: int) -> tuple[int, int, int]:
    """Return ``grid`` as CuPy launches it cooperatively where at most ``most`` blocks run at the same time."""
    x, y, z = grid
    if x * y * z <= most or most == 0:  # the launch refuses a block that does not fit
        return grid
    if y != 1 or z != 1:
        raise ValueError(f"The specified grid size ({x} * {y} * {z}) exceeds the limit ({most}).")
    warnings.warn(
        f"The grid size will be reduced from {x} to {most}, as the specified grid size exceeds the limit.",
        stacklevel=stacklevel(),
    )
    return most, 1, 1
