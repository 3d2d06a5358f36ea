"""The protocol :class:`~tcuda._backend.Backend` over CuPy.

CuPy keeps the current stream of each thread, and tcuda keeps no current stream of its own. CuPy's own code makes
streams current (``_BaseStream.use`` and its context manager), and reads only ``ptr`` and ``device_id`` of a stream. So
CuPy launches on a ``tcuda.Stream``, and returns the same object as the current stream.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cupy
from cupy.cuda import runtime as cupy_runtime
from cupy.cuda import stream as cupy_streams
from cupy_backends.cuda.stream import __pyx_capi__ as stream_functions
from cupy_backends.cuda.stream import get_default_stream_ptr

from tcuda import _core
from tcuda._base import log
from tcuda._base.errors import AcceleratorError
from tcuda._cupy import captured_blas, memory, peer_copies, spin, takeover
from tcuda._cupy.blas_handles import BlasHandles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda._backend.nccl import Nccl
    from tcuda._backend.streams import CurrentStream
    from tcuda._backend.transfers import Transfers
    from tcuda._base.errors import OutOfMemoryError
    from tcuda._runtime.protocol import Runtime

_CURRENT_STREAM = stream_functions["get_current_stream_ptr"]
"""The C function of CuPy that returns the handle of the current stream."""


def _begin_runtime(device: int) -> None:
    """Begin the CUDA runtime of ``device``, which is current.

    The ledger calls the driver. Until a call of the runtime has needed the device, the runtime takes 1 us more for each
    call such as ``cudaGetDevice``. No capture forbids this call, in contrast to ``cudaFree(0)``.
    """
    cupy_runtime.memGetInfo()


class Backend:
    """CuPy on the devices of ``runtime``."""

    array_module = "cupy"
    memory_hint = ""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._ledger: _core.Ledger | None = None
        self._has_generators = False
        self._nccl: Nccl | None = None
        self._captures_products = False
        self._blas_handles = BlasHandles()
        self.OutOfMemoryError: type[OutOfMemoryError] = memory.out_of_memory_error(cupy.cuda.memory.OutOfMemoryError)
        # These are CuPy's own functions, and not methods around them, because every `with stream(s):` calls them.
        self.current_stream: Callable[..., CurrentStream] = cupy_streams.get_current_stream
        self.use_stream: Callable[[CurrentStream], None] = cupy_streams._BaseStream.use
        self.enter_stream: Callable[[CurrentStream], None] = cupy_streams._BaseStream.__enter__
        # In a Python method, a signal handler could raise after CuPy has left the stream and before the method returns.
        self.exit_stream: Callable[[], None] = functools.partial(cupy_streams._BaseStream.__exit__, None)
        per_thread = get_default_stream_ptr() == cupy_runtime.streamPerThread
        self.default_stream: CurrentStream = cupy_streams.Stream.ptds if per_thread else cupy_streams.Stream.null
        self.sleep: Callable[[int, int], None] = spin.sleep

    def watch_waits(self, watched: bool) -> None:
        """Put functions that report waits in the places of CuPy's own, or CuPy's functions back."""
        from tcuda._cupy import waits

        if watched:
            waits.begin(cupy)
        else:
            waits.end()

    def use_ledger(self, ledger: _core.Ledger) -> None:
        """Make ``ledger`` CuPy's allocator, through C functions, so that an allocation runs no Python code."""
        if self._ledger is ledger:
            return
        self._ledger = ledger
        functions = cupy.cuda.memory
        malloc = functions.CFunctionAllocator(*ledger.cupy_functions(_CURRENT_STREAM, _begin_runtime), ledger).malloc
        allocate = _core.block_allocator(malloc, functions.MemoryPointer.mem, functions.BaseMemory.size)
        takeover.take_over(cupy, allocate, ledger)
        log.debug("CuPy %s takes its memory from tcuda: %s.", cupy.__version__, takeover.is_allowed())
        if cupy_runtime.getDeviceCount() > 1:
            peer_copies.order(cupy)

    def expose(self, ptr: int, size: int, stream: int) -> None:
        """Do nothing: nobody asks which memory is written."""

    def memory_source(self, name: str, ledger: _core.Ledger) -> _core.Source:
        """Return CuPy's ``MemoryPool`` (``"cupy"``) or ``MemoryAsyncPool`` (``"cudaMallocAsync"``)."""
        return memory.source(cupy, name, ledger, _CURRENT_STREAM)

    def array_type(self) -> type[Any]:
        """Return ``cupy.ndarray``."""
        implementation: type[Any] = cupy.ndarray
        return implementation

    def foreign_memory(self, owner: object, ptr: int, size: int, device: int) -> Any:
        """Return a ``cupy.cuda.UnownedMemory``."""
        return cupy.cuda.UnownedMemory(ptr, size, owner, device)

    def owner_of(self, memory: Any) -> object:
        """Return the owner that a ``cupy.cuda.UnownedMemory`` keeps."""
        return getattr(memory, "_owner", None)

    def array_in(self, memory: Any, offset: int, shape: Any, dtype: Any, strides: Any) -> Any:
        """Return a ``cupy.ndarray`` in ``memory``."""
        return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, offset), strides)

    def prepare_capture(self) -> None:
        """Make the cuBLAS handle of this thread, and let CuPy's matrix products call cuBLAS in a capture.

        The handle is made now because cuBLAS cannot make a handle during a capture.
        """
        if not self._captures_products:
            captured_blas.capture_products(self._has_pool)
            self._captures_products = True
        self._blas_handles.keep_handle_of_thread()

    def _has_pool(self, stream: int) -> bool:
        """Return whether the capture of ``stream`` has a pool; a capture that CuPy has begun has no pool."""
        return self._ledger is not None and self._ledger.has_capture(self._runtime.streamGetCaptureInfo(stream)[1])

    def graph_launcher(self, executable: int) -> _core.GraphLauncher:
        """Return a launcher of the core, which launches the graph through the driver."""
        return _core.GraphLauncher(executable, _CURRENT_STREAM)

    def compile_kernel(self, source: str, name: str, arch: str | None, options: Sequence[str]) -> _core.KernelFunction:
        """Compile with CuPy's NVRTC; the core launches the kernel."""
        from tcuda._cupy.kernels import compile_kernel

        return compile_kernel(source, name, arch, options)

    def launch_raw(self, kernel: Any, blocks: int, threads: int, arguments: tuple[Any, ...]) -> None:
        """Launch ``kernel``, a ``cupy.cuda.Function``, with tcuda's error for a failure."""
        try:
            kernel((blocks,), (threads,), arguments)
        except cupy.cuda.driver.CUDADriverError as error:
            raise AcceleratorError(error.status, "cuLaunchKernel") from error

    def teach_elementwise(
        self,
        state: _core.ElementwiseState,
        kernels: tuple[Any, Any],
        device: int,
        dtypes: tuple[Any, ...],
        kinds: tuple[int, ...],
        result: Any,
    ) -> None:
        """Let the core launch ``kernels``, which are ``cupy.cuda.Function`` objects."""
        from tcuda._cupy.arrays import array_type, scalar_type

        functions = kernels[0].ptr, kernels[1].ptr
        made_as = scalar_type(result)
        state.learn(array_type(), _CURRENT_STREAM, dtypes, kinds, made_as, *functions, device, kernels)

    @staticmethod
    @functools.cache
    def transfers() -> Transfers:
        """Return the object that works on arrays of several devices."""
        from tcuda._cupy.transfers import Transfers

        return Transfers()

    def generator_type(self) -> type[Any]:
        """Return the class of generators for CuPy's arrays."""
        from tcuda._cupy.random import DeviceGenerator

        return DeviceGenerator

    def install_generators(self, make: Callable[[], Sequence[Any]]) -> None:
        """Let the functions of ``cupy.random`` draw from the generators that ``make`` returns."""
        from tcuda._cupy.random import install

        if not self._has_generators:
            install(make())
            self._has_generators = True

    def nccl(self) -> Nccl:
        """Return NCCL, which the first call loads."""
        if self._nccl is None:
            from tcuda._cupy.nccl import load

            self._nccl = load()
        return self._nccl

    def supported_archs(self) -> list[int]:
        """Return the compute capabilities that CuPy's NVRTC compiles for (``nvrtcGetSupportedArchs``)."""
        from cupy_backends.cuda.libs import nvrtc

        return [int(arch) for arch in nvrtc.getSupportedArchs()]

    def blas_handle(self) -> int:
        """Return CuPy's cuBLAS handle of this thread and device."""
        return int(cupy.cuda.device.get_cublas_handle())

    def solver_handle(self) -> int:
        """Return CuPy's cuSOLVER handle of this thread and device."""
        return int(cupy.cuda.device.get_cusolver_handle())
