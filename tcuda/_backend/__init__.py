"""The array library: the protocol of the calls that tcuda makes, and the module that implements the protocol.

CuPy is the array library on CUDA. On emulated devices ``tcuda.emulation`` takes its place.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from tcuda._backend.graphs import GraphLauncher
    from tcuda._backend.nccl import Nccl
    from tcuda._backend.streams import CurrentStream
    from tcuda._backend.transfers import Transfers
    from tcuda._base.errors import OutOfMemoryError
    from tcuda._core import ElementwiseState, KernelFunction, Ledger, Source
    from tcuda._runtime.protocol import Runtime


class Backend(Protocol):
    """An array library on the devices of one runtime."""

    array_module: str
    """The name of the module that makes arrays, such as ``"cupy"``."""

    OutOfMemoryError: type[OutOfMemoryError]
    """The exception for a lack of memory, a subclass of tcuda's exception and of the library's own."""

    memory_hint: str
    """A sentence about the size of a device's memory, for an out-of-memory message; may be empty."""

    default_stream: CurrentStream
    """The default stream of every device; its ``device_id`` is -1."""

    # The current stream of a thread

    def current_stream(self, device: int = -1) -> CurrentStream:
        """Return the current stream of this thread on ``device``; -1 means the current device."""

    def use_stream(self, stream: CurrentStream) -> None:
        """Make ``stream``, which is of the current device, the current stream of this thread."""

    def enter_stream(self, stream: CurrentStream) -> None:
        """Make ``stream`` current until the matching :meth:`exit_stream`, as ``with stream:`` does in CuPy."""

    def exit_stream(self) -> None:
        """Make the stream current that was current before the last :meth:`enter_stream`."""

    # Waits of the host

    def watch_waits(self, watched: bool) -> None:
        """Tell ``tcuda._process.waits`` of the waits that the library begins, as far as the library shows them.

        Args:
            watched: False to tell nothing any more.
        """

    # Memory

    def use_ledger(self, ledger: Ledger) -> None:
        """Let arrays take their memory from ``ledger``; a second call does nothing."""

    def memory_source(self, name: str, ledger: Ledger) -> Source:
        """Return the library's own pool ``name`` (``"cupy"`` or ``"cudaMallocAsync"``) as a source."""

    def expose(self, ptr: int, size: int, stream: int) -> None:
        """Take note that code may write memory which the library does not see: a program, or another process.

        Args:
            ptr: The address.
            size: The bytes.
            stream: The stream whose work uses the memory.
        """

    # Arrays in memory of other processes

    def array_type(self) -> type[Any]:
        """Return the class of the library's arrays."""

    def foreign_memory(self, owner: object, ptr: int, size: int, device: int) -> Any:
        """Return memory that arrays can use, and that keeps ``owner`` alive.

        Args:
            owner: The object to which the memory belongs.
            ptr: The address of the memory.
            size: The size in bytes.
            device: The index of the device of the memory.
        """

    def owner_of(self, memory: Any) -> object:
        """Return the owner of ``memory``, the ``data.mem`` of an array; None if the memory has no owner."""

    def array_in(self, memory: Any, offset: int, shape: Any, dtype: Any, strides: Any) -> Any:
        """Return an array in ``memory``, whose first element is ``offset`` bytes after the start of the memory."""

    # Work on a device

    def sleep(self, cycles: int, stream: int) -> None:
        """Keep ``stream``, which is of the current device, busy for ``cycles`` clock cycles."""

    def prepare_capture(self) -> None:
        """Let the work of later captures multiply matrices; the caller makes sure that no capture is in progress."""

    def graph_launcher(self, executable: int) -> GraphLauncher:
        """Return a launcher of ``executable``, a ``cudaGraphExec_t``, for the device that is current now."""

    # Kernels that are compiled at run time

    def compile_kernel(self, source: str, name: str, arch: str | None, options: Sequence[str]) -> KernelFunction:
        """Compile ``source``, and return the kernel ``name``.

        Args:
            source: The source in CUDA C++.
            name: The name of the kernel; for a template, with the arguments of the template.
            arch: The compute capability, such as ``"90"``; None for that of the current device.
            options: Options of the compiler.

        Raises:
            RuntimeError: The source cannot be compiled, or has no kernel of that name.
        """

    def launch_raw(self, kernel: Any, blocks: int, threads: int, arguments: tuple[Any, ...]) -> None:
        """Launch ``kernel``, which a ``RawModule`` of the library has, on the current stream.

        Raises:
            AcceleratorError: The launch failed.
        """

    def teach_elementwise(
        self,
        state: ElementwiseState,
        kernels: tuple[Any, Any],
        device: int,
        dtypes: tuple[Any, ...],
        kinds: tuple[int, ...],
        result: Any,
    ) -> None:
        """Let the core launch ``kernels`` where the core can launch kernels of the library.

        Args:
            state: The state of the jiterator function that has the kernels.
            kernels: The kernel for elements side by side, and the kernel for inputs with strides.
            device: The index of the device of the kernels, which is current.
            dtypes: The dtypes of the inputs.
            kinds: The kinds of the scalars.
            result: The dtype of the outputs.
        """

    # Several devices

    def transfers(self) -> Transfers:
        """Return the object that works on arrays of several devices; a process has one."""

    # Random numbers

    def generator_type(self) -> type[Any]:
        """Return the class whose instances fill arrays of the library with random numbers."""

    def install_generators(self, make: Callable[[], Sequence[Any]]) -> None:
        """Let the library's random functions draw from the generators that ``make`` returns, one for each device."""

    # Libraries of CUDA

    def nccl(self) -> Nccl:
        """Return the library of collectives; no device is needed.

        Raises:
            NcclNotFoundError: The library is not installed.
        """

    def supported_archs(self) -> list[int]:
        """Return the compute capabilities that the run-time compiler targets, such as ``[75, 80, 90]``."""

    def blas_handle(self) -> int:
        """Return the ``cublasHandle_t`` of this thread on the current device."""

    def solver_handle(self) -> int:
        """Return the ``cusolverDnHandle_t`` of this thread on the current device."""


_IMPLEMENTATIONS = {"cuda": "tcuda._cupy.backend", "emulated": "tcuda.emulation.backend.backend"}
"""The module that implements the protocol for each runtime, by the name of the runtime."""

_made: dict[Runtime, Backend] = {}


def backend_of(runtime: Runtime) -> Backend:
    """Import the array library on the devices of ``runtime``, and return it; nothing is initialised."""
    return _made.get(runtime) or _made.setdefault(runtime, _make(runtime))


def _make(runtime: Runtime) -> Backend:
    implementation = importlib.import_module(_IMPLEMENTATIONS[runtime.name])
    made: Backend = implementation.Backend(runtime)
    return made


def array_module(runtime: Runtime) -> ModuleType:
    """Import and return the module that makes arrays on the devices of ``runtime``."""
    return importlib.import_module(backend_of(runtime).array_module)
