"""The protocol :class:`~tcuda._backend.Backend` on emulated devices. No NumPy is imported here."""

from __future__ import annotations

import functools
import itertools
import threading
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._base.errors import OutOfMemoryError
from tcuda._process.ledger import always_want_stacks
from tcuda.emulation import rtc
from tcuda.emulation.backend.launcher import Launcher
from tcuda.emulation.backend.memory_pools import MemoryAsyncPool, MemoryPool
from tcuda.emulation.runtime.default_stream import DEFAULT_STREAM

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda._backend.graphs import GraphLauncher
    from tcuda._backend.nccl import Nccl
    from tcuda._backend.streams import CurrentStream
    from tcuda._backend.transfers import Transfers
    from tcuda.emulation.runtime import EmulatedRuntime

_PADDING = 512
_POOL_UNIT = 512
"""The sizes of the memory that CuPy's pools hand out are multiples of this number of bytes."""

_FIRST_LIBRARY_HANDLE = 0x7C0DB000
"""The first handle of a library. Handles look like addresses, so that a reader does not take them for indices."""


class Backend:
    """Arrays of ``tcuda.emulation`` on the devices of ``runtime``."""

    array_module = "tcuda.emulation.xp"
    OutOfMemoryError = OutOfMemoryError
    memory_hint = (
        "Devices are emulated with as much as TCUDA_EMULATED_MEMORY or tcuda.emulation.enable(memory=...) says."
    )
    default_stream: CurrentStream = DEFAULT_STREAM

    def __init__(self, runtime: EmulatedRuntime) -> None:
        self._runtime = runtime
        self._library_handles = _LibraryHandles()
        self._nccl: Nccl | None = None
        # A bound method is stored directly, because a signal handler may interrupt a wrapper after the change of the
        # current stream. A call must either change the stream or raise.
        self.current_stream: Callable[..., CurrentStream] = runtime.thread.current_stream
        self.use_stream: Callable[[CurrentStream], None] = runtime.thread.use_stream
        self.enter_stream: Callable[[CurrentStream], None] = runtime.thread.enter_stream
        self.exit_stream: Callable[[], None] = runtime.thread.exit_stream
        self.sleep: Callable[[int, int], None] = runtime.sleep

    def watch_waits(self, watched: bool) -> None:
        """Do nothing: the arrays ask ``tcuda._process.waits`` themselves."""

    def use_ledger(self, ledger: _core.Ledger) -> None:
        """Announce the streams to ``ledger``, and do what the checks of kernels need from the beginning on.

        The arrays find the ledger themselves.

        Raises:
            ValueError: The variable for the checks of kernels has no value that it can have.
        """
        checks = rtc.chosen()
        if checks.padding:
            ledger.set_padding(_PADDING)
        if checks.races:
            always_want_stacks()
        if checks.init:
            self._runtime.contents.watch(True)
        self._runtime.announceStreams(ledger)

    def expose(self, ptr: int, size: int, stream: int) -> None:
        """Let the memory count as written."""
        self._runtime.expose(ptr, size, stream)

    def memory_source(self, name: str, ledger: _core.Ledger) -> _core.Source:
        """Return a pool that behaves like CuPy's ``MemoryPool`` (``"cupy"``) or ``MemoryAsyncPool``."""
        if name == "cudaMallocAsync":
            return _core.PythonSource(
                MemoryAsyncPool(self._runtime.devices, self._runtime.races), reports_segments=False, unit=_POOL_UNIT
            )
        return _core.PythonSource(MemoryPool(ledger), reports_segments=True, unit=_POOL_UNIT)

    def array_type(self) -> type[Any]:
        """Import NumPy and return the class of emulated arrays."""
        from tcuda.emulation.arrays.ndarray import ndarray

        implementation: type[Any] = ndarray
        return implementation

    def foreign_memory(self, owner: object, ptr: int, size: int, device: int) -> Any:
        """Return a block that frees nothing."""
        from tcuda.emulation.devices.memory import ForeignBlock

        return ForeignBlock(ptr, size, device, owner)

    def owner_of(self, memory: Any) -> object:
        """Return the owner that a block of :meth:`foreign_memory` keeps."""
        return getattr(memory, "owner", None)

    def array_in(self, memory: Any, offset: int, shape: Any, dtype: Any, strides: Any) -> Any:
        """Return an emulated array in ``memory``."""
        from tcuda.emulation.devices.memory import MemoryPointer

        return self.array_type()(shape, dtype, MemoryPointer(memory, offset), strides)

    def prepare_capture(self) -> None:
        """Do nothing: NumPy needs no preparation to multiply matrices in a capture."""

    def graph_launcher(self, executable: int) -> GraphLauncher:
        """Return a launcher of ``executable`` for the current device."""
        return Launcher(self._runtime, executable, self.current_stream)

    def launch_raw(self, kernel: Any, blocks: int, threads: int, arguments: tuple[Any, ...]) -> None:
        """Launch ``kernel``, which raises tcuda's error itself. tcuda's kernels fit their arguments: no check asks."""
        kernel.launch_unchecked((blocks, 1, 1), (threads, 1, 1), arguments)

    def teach_elementwise(
        self,
        state: _core.ElementwiseState,
        kernels: tuple[Any, Any],
        device: int,
        dtypes: tuple[Any, ...],
        kinds: tuple[int, ...],
        result: Any,
    ) -> None:
        """Do nothing: kernels of emulated devices are launched by Python."""

    def compile_kernel(self, source: str, name: str, arch: str | None, options: Sequence[str]) -> _core.KernelFunction:
        """Compile for the processor of the host. ``arch`` has no meaning for this processor."""
        from tcuda.emulation.kernels.compile_kernel import compile_kernel

        return compile_kernel(source, name, options)

    @staticmethod
    @functools.cache
    def transfers() -> Transfers:
        """Return the object that works on arrays of several devices."""
        from tcuda.emulation.backend.transfers import Transfers

        return Transfers()

    def generator_type(self) -> type[Any]:
        """Import NumPy and return the class of generators for emulated arrays."""
        from tcuda.emulation.random.random_state import DeviceGenerator

        implementation: type[Any] = DeviceGenerator
        return implementation

    def install_generators(self, make: Callable[[], Sequence[Any]]) -> None:
        """Do nothing: the functions of ``xp.random`` ask for the generators at their first draw."""

    def nccl(self) -> Nccl:
        """Return the emulated counterpart of NCCL, which the first call imports."""
        if self._nccl is None:
            from tcuda.emulation.backend.nccl import EmulatedNccl

            self._nccl = EmulatedNccl(self._runtime)
        return self._nccl

    def supported_archs(self) -> list[int]:
        """Return the compute capability of the devices."""
        properties = self._runtime.getDeviceProperties(0)
        return [10 * properties["major"] + properties["minor"]]

    def blas_handle(self) -> int:
        """Return a number for this thread and the current device, which no library accepts as a handle."""
        return self._library_handles.of("cublas", self._runtime.getDevice())

    def solver_handle(self) -> int:
        """Return a number for this thread and the current device, which no library accepts as a handle."""
        return self._library_handles.of("cusolver", self._runtime.getDevice())


class _LibraryHandles(threading.local):
    """The handles of libraries that this thread has, by library and device."""

    _numbers = itertools.count(_FIRST_LIBRARY_HANDLE, 0x10)

    def __init__(self) -> None:
        self._given: dict[tuple[str, int], int] = {}

    def of(self, library: str, device: int) -> int:
        """Return the handle of ``library`` for ``device``."""
        return self._given.get((library, device)) or self._given.setdefault((library, device), next(self._numbers))
