"""The CUDA runtime through CuPy.

CuPy's thread-local current stream is the only truth about current streams: tcuda keeps none of its own. Streams are
made current by CuPy's own code (``_BaseStream.use`` and its context manager), which asks of a stream only ``ptr`` and
``device_id``; so CuPy launches on a ``tcuda.Stream``, and gives the very object back when asked for the current one.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tcuda import _core
from tcuda._core import translated
from tcuda._errors import AcceleratorError, OutOfMemoryError
from tcuda._runtime import captured_blas, cupy_takeover, visible_devices
from tcuda._runtime.protocol import GraphContents
from tcuda._status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._runtime.protocol import CurrentStream

# The calls that CuPy has under the same name with the same meaning.
_FROM_CUPY = (
    "deviceCanAccessPeer",
    "deviceDisablePeerAccess",
    "deviceEnablePeerAccess",
    "deviceSynchronize",
    "driverGetVersion",
    "eventCreateWithFlags",
    "eventDestroy",
    "eventElapsedTime",
    "eventRecord",
    "eventSynchronize",
    "free",
    "freeAsync",
    "getDevice",
    "getDeviceCount",
    "graphDebugDotPrint",
    "graphDestroy",
    "graphLaunch",
    "hostRegister",
    "hostUnregister",
    "ipcGetEventHandle",
    "ipcOpenEventHandle",
    "malloc",
    "mallocAsync",
    "memGetInfo",
    "memcpy",
    "memcpyAsync",
    "memcpyPeerAsync",
    "memsetAsync",
    "profilerStart",
    "profilerStop",
    "runtimeGetVersion",
    "streamCreateWithPriority",
    "streamDestroy",
    "streamEndCapture",
    "streamGetFlags",
    "streamGetPriority",
    "streamSynchronize",
    "streamWaitEvent",
)

_SPIN_SOURCE = """
extern "C" __global__ void tcuda_spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""


class _Handle:
    """A stream as CuPy wants one that it launches on, makes current, or refers to weakly."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr = ptr
        self.device_id = device_id


class _Held(NamedTuple):
    """Memory, and the stream on which CuPy frees it, which has to live longer: Python drops the last field first."""

    ptr: int
    stream: Any
    memory: Any


class CudaRuntime:
    """The protocol :class:`~tcuda._runtime.protocol.Runtime` over ``cupy.cuda``."""

    name = "cuda"
    array_module = "cupy"
    random_module = "tcuda.random._cupy"
    moreMemory = ""

    if TYPE_CHECKING:  # bound in __init__, one by one, from _FROM_CUPY

        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def __init__(self) -> None:
        try:
            import cupy
            from cupy.cuda import driver, runtime, stream
            from cupy.cuda.memory import OutOfMemoryError as CupyOutOfMemoryError
            from cupy_backends.cuda.stream import __pyx_capi__ as stream_functions
            from cupy_backends.cuda.stream import get_default_stream_ptr
        except ImportError as error:
            raise RuntimeError(
                f"CuPy cannot be imported ({error}). On a machine with an NVIDIA GPU, install tcuda[cuda12] or "
                "tcuda[cuda13]; without one, set TCUDA_RUNTIME=emulated or call tcuda.emulation.enable() first."
            ) from error
        self._cupy = cupy
        self._runtime = runtime
        self._cuda_major = driver.get_build_version() // 1000
        for name in _FROM_CUPY:
            setattr(self, name, _translating(runtime.CUDARuntimeError, name, getattr(runtime, name)))
        # CuPy raises OverflowError for an index that CUDA's int cannot hold, and so there is no such device.
        self.setDevice: Callable[[int], None] = _translating(
            (runtime.CUDARuntimeError, OverflowError), "setDevice", runtime.setDevice, Status.INVALID_DEVICE
        )
        self._begin_capture = _translating(runtime.CUDARuntimeError, "streamBeginCapture", runtime.streamBeginCapture)
        self._products_captured = False
        self._ledger: _core.Ledger | None = None
        # By RuntimeError alone CuPy says of a capture that an error has invalidated it.
        self.streamIsCapturing: Callable[[int], bool] = _translating(
            RuntimeError, "streamIsCapturing", runtime.streamIsCapturing, Status.STREAM_CAPTURE_INVALIDATED
        )
        # These two return their status, and raise nothing that wants translation.
        self.eventQuery: Callable[[int], int] = runtime.eventQuery
        self.streamQuery: Callable[[int], int] = runtime.streamQuery
        # Plain CuPy functions, not methods: these four are on the path of every `with stream(s):`.
        self.currentStream: Callable[..., CurrentStream] = stream.get_current_stream
        self.useStream: Callable[[CurrentStream], None] = stream._BaseStream.use
        self.enterStream: Callable[[CurrentStream], None] = stream._BaseStream.__enter__
        per_thread = get_default_stream_ptr() == runtime.streamPerThread
        self.defaultStream: CurrentStream = stream.Stream.ptds if per_thread else stream.Stream.null
        self._current_stream = stream_functions["get_current_stream_ptr"]
        self.OutOfMemoryError = _joined(CupyOutOfMemoryError)
        # No method in Python, where a signal handler may raise when CuPy has left the stream and before the return.
        self.exitStream: Callable[[], None] = functools.partial(stream._BaseStream.__exit__, None)

    def getDeviceProperties(self, device: int) -> dict[str, Any]:
        """Return CuPy's properties with all of the UUID, which CuPy cuts at its first zero byte."""
        call = _translating(self._runtime.CUDARuntimeError, "getDeviceProperties", self._runtime.getDeviceProperties)
        properties: dict[str, Any] = call(device)
        handle, uuid = ctypes.c_int(), ctypes.create_string_buffer(16)
        _drive("cuDeviceGet", ctypes.byref(handle), ctypes.c_int(device))
        _drive("cuDeviceGetUuid_v2", uuid, handle)
        return properties | {"uuid": uuid.raw}

    def visibleDeviceCount(self) -> int:
        """Ask NVML, which makes no context that a later fork would inherit; ask CUDA where NVML cannot say."""
        count = visible_devices.count(self._cuda_major)
        if count is not None:
            return count
        try:
            return int(self._runtime.getDeviceCount())
        except self._runtime.CUDARuntimeError:
            return 0

    def deviceGetStreamPriorityRange(self) -> tuple[int, int]:
        """Return (least, greatest) priority of the current device (``cuCtxGetStreamPriorityRange``)."""
        self._runtime.free(0)  # the driver's call needs the context that this makes
        least, greatest = ctypes.c_int(), ctypes.c_int()
        _drive("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
        return least.value, greatest.value

    def eventRecordWithFlags(self, event: int, stream: int, flags: int) -> None:
        """Record ``event`` on ``stream`` (``cuEventRecordWithFlags``)."""
        _drive("cuEventRecordWithFlags", ctypes.c_void_p(event), ctypes.c_void_p(stream), ctypes.c_uint(flags))

    def pointerGetDevice(self, ptr: int) -> int:
        """Return the device that ``cudaPointerGetAttributes`` tells."""
        attributes = self._runtime.pointerGetAttributes(ptr)
        on_device = attributes.type in (self._runtime.memoryTypeDevice, self._runtime.memoryTypeManaged)
        return int(attributes.device) if on_device else -1

    def sleep(self, cycles: int, stream: int) -> None:
        """Launch one thread that reads the clock until ``cycles`` have passed."""
        try:
            self._spin((1,), (1,), (cycles,), stream=_Handle(stream))
        except self._cupy.cuda.driver.CUDADriverError as error:
            raise AcceleratorError(error.status, f"tcuda_spin({cycles}, {stream:#x})") from error

    @functools.cached_property
    def _spin(self) -> Any:
        return self._cupy.RawKernel(_SPIN_SOURCE, "tcuda_spin")

    def streamBeginCapture(self, stream: int, mode: int) -> None:
        """Begin a capture, in which matrices can be multiplied (``cudaStreamBeginCapture``)."""
        if not self._products_captured:
            captured_blas.capture_products(self._has_pool)
            self._products_captured = True
        self._begin_capture(stream, mode)

    def _has_pool(self, stream: int) -> bool:
        """Return whether the capture of ``stream`` has a pool of its own: it has none if CuPy has begun it."""
        return self._ledger is not None and self._ledger.has_capture(self.streamGetCaptureInfo(stream)[1])

    def streamGetCaptureInfo(self, stream: int) -> tuple[int, int]:
        """Return the status and the number of the capture of ``stream`` (``cuStreamGetCaptureInfo``)."""
        status, state, number = self._graphs.capture_info(stream)
        _check(status, "cuStreamGetCaptureInfo", stream)
        return state, number

    def graphInstantiate(self, graph: int, flags: int) -> int:
        """Return a ``cudaGraphExec_t`` (``cuGraphInstantiateWithFlags``)."""
        status, executable = self._graphs.instantiate(graph, flags)
        _check(status, "cuGraphInstantiateWithFlags", graph)
        return executable

    def graphExecDestroy(self, graphExec: int) -> None:
        """Destroy a ``cudaGraphExec_t`` (``cuGraphExecDestroy``)."""
        _check(self._graphs.destroy_exec(graphExec), "cuGraphExecDestroy", graphExec)

    def graphLauncher(self, graphExec: int) -> _core.GraphLauncher:
        """Return one of the core's, which calls the driver."""
        return _core.GraphLauncher(graphExec, self._current_stream)

    def graphContents(self, graph: int) -> GraphContents:
        """Count the nodes of ``graph``, and read their parameters (``cuGraphKernelNodeGetParams`` and others)."""
        status, nodes, addresses = self._graphs.contents(graph)
        _check(status, "cuGraphGetNodes", graph)
        return GraphContents(nodes, addresses)

    @functools.cached_property
    def _graphs(self) -> _core.CudaGraphs:
        return _core.CudaGraphs()

    def supportedArchs(self) -> list[int]:
        """Return what the NVRTC that CuPy loads can target (``nvrtcGetSupportedArchs``)."""
        from cupy_backends.cuda.libs import nvrtc

        return [int(arch) for arch in nvrtc.getSupportedArchs()]

    def blasHandle(self) -> int:
        """Return CuPy's cuBLAS handle of this thread and device."""
        return int(self._cupy.cuda.device.get_cublas_handle())

    def solverHandle(self) -> int:
        """Return CuPy's cuSOLVER handle of this thread and device."""
        return int(self._cupy.cuda.device.get_cusolver_handle())

    def memoryDriver(self) -> _core.Driver:
        """Return the table of ``libcuda.so.1``."""
        return _core.CudaDriver()

    def memorySource(self, backend: str, ledger: _core.Ledger) -> _core.Source:
        """Return CuPy's ``MemoryPool``, which takes its segments from ``ledger``, or its ``MemoryAsyncPool``."""
        cuda = self._cupy.cuda
        if backend == "cudaMallocAsync":
            return _core.PythonSource(_Pool(cuda, cuda.MemoryAsyncPool()), reports_segments=False, unit=_CUPY_UNIT)

        def refuse() -> NoReturn:  # CuPy's pool then gives back what it keeps, and tries again
            raise self._runtime.CUDARuntimeError(int(Status.MEMORY_ALLOCATION))

        segments = cuda.CFunctionAllocator(*ledger.cupy_segment_functions(self._current_stream, refuse), ledger)
        pool = _Pool(cuda, cuda.MemoryPool(segments.malloc))
        return _core.PythonSource(pool, reports_segments=True, unit=_CUPY_UNIT)

    def useLedger(self, ledger: _core.Ledger) -> None:
        """Make ``ledger`` CuPy's allocator, by C functions: an allocation crosses no Python frame."""
        if self._ledger is ledger:
            return
        self._ledger = ledger
        memory = self._cupy.cuda.memory
        malloc = memory.CFunctionAllocator(*ledger.cupy_functions(self._current_stream), ledger).malloc
        allocate = _core.block_allocator(malloc, memory.MemoryPointer.mem, memory.BaseMemory.size)
        cupy_takeover.take_over(self._cupy, allocate, ledger)

    def nvml(self) -> Any:
        """Return ``pynvml``."""
        import pynvml

        return pynvml


_CUPY_UNIT = 512  # what CuPy's pools round sizes up to


class _Pool:
    """A pool of CuPy's, for a given device and stream instead of the current ones."""

    def __init__(self, cuda: Any, pool: Any) -> None:
        self._cuda = cuda
        self._pool = pool

    def allocate(self, size: int, device: int, stream: int) -> Any:
        with self._cuda.Device(device):
            if self._cuda.get_current_stream().ptr == stream:
                return self._pool.malloc(size)
            base = self._cuda.stream._BaseStream
            other = _Handle(stream, device) if stream else self._cuda.Stream.null
            base.__enter__(other)
            try:
                memory = self._pool.malloc(size)
            finally:
                base.__exit__(None)
            return _Held(memory.ptr, other, memory)

    def empty_cache(self, device: int) -> None:
        with self._cuda.Device(device):
            self._pool.free_all_blocks()


def _joined(cupy_error: type[MemoryError]) -> type[OutOfMemoryError]:
    """Return an error that is tcuda's and CuPy's."""

    class CupyOutOfMemoryError(OutOfMemoryError, cupy_error):  # type: ignore[misc, valid-type]
        __doc__ = OutOfMemoryError.__doc__

        # CuPy's takes numbers, of which it makes a message.
        def __init__(self, message: str) -> None:
            RuntimeError.__init__(self, message)

        def __reduce__(self) -> tuple[type[OutOfMemoryError], tuple[Any, ...]]:
            return OutOfMemoryError, self.args  # CuPy may be missing where it is unpickled

    CupyOutOfMemoryError.__name__ = CupyOutOfMemoryError.__qualname__ = OutOfMemoryError.__name__
    CupyOutOfMemoryError.__module__ = OutOfMemoryError.__module__
    return CupyOutOfMemoryError


def _translating(
    failure: type[Exception] | tuple[type[Exception], ...],
    name: str,
    function: Callable[..., Any],
    otherwise: int = Status.UNKNOWN,
) -> Callable[..., Any]:
    """Return ``function`` with CuPy's ``failure`` raised as :class:`AcceleratorError`.

    By a callable of the core, for it is on the path of every call: a frame of Python's would cost 20 to 40 ns.

    Args:
        failure: The exception, or several.
        name: The name of the function in the CUDA runtime, without its prefix.
        function: The function.
        otherwise: The status of an exception that has none.
    """

    def raise_translated(error: Exception, *args: Any) -> NoReturn:
        status = getattr(error, "status", otherwise)
        call = f"cuda{name[0].upper()}{name[1:]}({', '.join(map(repr, args))})"
        raise AcceleratorError(status, call) from error

    return translated(function, failure, raise_translated)


def _check(status: int, name: str, handle: int) -> None:
    if status:
        raise AcceleratorError(status, f"{name}({handle:#x})")


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _drive(name: str, *args: Any) -> None:
    status = getattr(_driver(), name)(*args)
    if status:
        raise AcceleratorError(status, name)
