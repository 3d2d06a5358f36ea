"""What tcuda asks of a CUDA runtime: one typed protocol in the CUDA runtime's own spelling.

Names, argument order and units are those of ``cupy.cuda.runtime``; handles and addresses are ``int``. A call that
fails raises :class:`tcuda.AcceleratorError` with the CUDA status; ``streamQuery`` and ``eventQuery`` return theirs
(0 or 600), as in CuPy. The last section holds what the CUDA runtime has no call for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcuda._core import Driver, Ledger, Source
    from tcuda._errors import OutOfMemoryError

MEMCPY_HOST_TO_HOST = 0
MEMCPY_HOST_TO_DEVICE = 1
MEMCPY_DEVICE_TO_HOST = 2
MEMCPY_DEVICE_TO_DEVICE = 3
MEMCPY_DEFAULT = 4

STREAM_DEFAULT = 0
STREAM_NON_BLOCKING = 1

STREAM_LEGACY = 1
STREAM_PER_THREAD = 2

CAPTURE_GLOBAL = 0
CAPTURE_THREAD_LOCAL = 1
CAPTURE_RELAXED = 2

CAPTURE_STATUS_NONE = 0
CAPTURE_STATUS_ACTIVE = 1
CAPTURE_STATUS_INVALIDATED = 2

GRAPH_AUTO_FREE_ON_LAUNCH = 1
GRAPH_DOT_VERBOSE = 1

EVENT_DEFAULT = 0
EVENT_BLOCKING_SYNC = 1
EVENT_DISABLE_TIMING = 2
EVENT_INTERPROCESS = 4

EVENT_RECORD_EXTERNAL = 1
EVENT_WAIT_EXTERNAL = 1


class GraphContents(NamedTuple):
    """What a graph is made of.

    Attributes:
        nodes: How many nodes it has.
        addresses: The addresses of device memory that they work on, as far as the runtime can tell; there may be others
            among them, which only look like addresses.
    """

    nodes: int
    addresses: list[int]


class GraphLauncher(Protocol):
    """What launches a graph."""

    @property
    def launched(self) -> bool:
        """Whether it was asked to."""

    def launch(self) -> int:
        """Launch it and return success; if another device is current, or it would spoil a capture, return why not."""


class CurrentStream(Protocol):
    """What may be a current stream: ``cupy.cuda.Stream``, ``tcuda.Stream``, or anything with these attributes.

    Attributes:
        ptr: The ``cudaStream_t``.
        device_id: The device it was created on; -1 if it is a default stream, which every device has.
    """

    @property
    def ptr(self) -> int: ...
    @property
    def device_id(self) -> int: ...


class Runtime(Protocol):
    """A CUDA runtime: CuPy's, or an emulated one."""

    name: str
    """``"cuda"`` or ``"emulated"``: for people to read, never to branch on."""

    array_module: str
    """The module whose functions make arrays on the current device, such as ``"cupy"``."""

    random_module: str
    """The module whose ``DeviceGenerator`` fills such arrays with random numbers.

    Its ``install`` makes generators the default ones of the array module."""

    OutOfMemoryError: type[OutOfMemoryError]
    """What is raised for want of memory: tcuda's error, and that of the array module too."""

    moreMemory: str
    """Where the size of a device's memory comes from, for a message about the lack of it; empty where it is given."""

    defaultStream: CurrentStream
    """The default stream, which every device has: its ``device_id`` is -1."""

    # Devices

    def driverGetVersion(self) -> int: ...
    def runtimeGetVersion(self) -> int: ...
    def getDeviceCount(self) -> int: ...
    def getDevice(self) -> int: ...
    def setDevice(self, device: int) -> None: ...
    def deviceSynchronize(self) -> None: ...
    def getDeviceProperties(self, device: int) -> Mapping[str, Any]: ...
    def deviceCanAccessPeer(self, device: int, peerDevice: int) -> int: ...
    def deviceEnablePeerAccess(self, peerDevice: int) -> None: ...
    def deviceDisablePeerAccess(self, peerDevice: int) -> None: ...
    def deviceGetStreamPriorityRange(self) -> tuple[int, int]: ...
    def profilerStart(self) -> None: ...
    def profilerStop(self) -> None: ...

    # Memory

    def memGetInfo(self) -> tuple[int, int]: ...
    def malloc(self, size: int) -> int: ...
    def free(self, ptr: int) -> None: ...
    def mallocAsync(self, size: int, stream: int) -> int: ...
    def freeAsync(self, ptr: int, stream: int) -> None: ...
    def hostRegister(self, ptr: int, size: int, flags: int) -> None: ...
    def hostUnregister(self, ptr: int) -> None: ...
    def memcpy(self, dst: int, src: int, size: int, kind: int) -> None: ...
    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None: ...
    def memcpyPeerAsync(self, dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int) -> None: ...
    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None: ...

    # Streams

    def streamCreateWithPriority(self, flags: int, priority: int) -> int: ...
    def streamDestroy(self, stream: int) -> None: ...
    def streamGetFlags(self, stream: int) -> int: ...
    def streamGetPriority(self, stream: int) -> int: ...
    def streamQuery(self, stream: int) -> int: ...
    def streamSynchronize(self, stream: int) -> None: ...
    def streamWaitEvent(self, stream: int, event: int, flags: int = 0) -> None: ...

    # Graphs. Captures forbid neither to instantiate nor to destroy them, as CUDA would: one may die at any time.

    def streamBeginCapture(self, stream: int, mode: int) -> None: ...
    def streamEndCapture(self, stream: int) -> int: ...
    def streamIsCapturing(self, stream: int) -> bool: ...
    def streamGetCaptureInfo(self, stream: int) -> tuple[int, int]: ...  # status, and the number of the capture
    def graphDestroy(self, graph: int) -> None: ...
    def graphInstantiate(self, graph: int, flags: int) -> int: ...
    def graphLaunch(self, graphExec: int, stream: int) -> None: ...
    def graphExecDestroy(self, graphExec: int) -> None: ...
    def graphDebugDotPrint(self, graph: int, path: str, flags: int) -> None: ...

    # Events

    def eventCreateWithFlags(self, flags: int) -> int: ...
    def eventDestroy(self, event: int) -> None: ...
    def eventRecord(self, event: int, stream: int) -> None: ...
    def eventRecordWithFlags(self, event: int, stream: int, flags: int) -> None: ...
    def eventQuery(self, event: int) -> int: ...
    def eventSynchronize(self, event: int) -> None: ...
    def eventElapsedTime(self, start: int, end: int) -> float: ...
    def ipcGetEventHandle(self, event: int) -> bytes: ...
    def ipcOpenEventHandle(self, handle: bytes) -> int: ...

    # Beyond the CUDA runtime

    def visibleDeviceCount(self) -> int:
        """Return the number of devices, 0 where there is none; creates no context and never raises."""

    def currentStream(self, device: int = -1) -> CurrentStream:
        """Return this thread's current stream of ``device`` (-1: the current device)."""

    def useStream(self, stream: CurrentStream) -> None:
        """Make ``stream``, which is of the current device, this thread's current stream of that device."""

    def enterStream(self, stream: CurrentStream) -> None:
        """Make ``stream`` current until the matching :meth:`exitStream`, as ``with stream:`` does in CuPy."""

    def exitStream(self) -> None:
        """Make current again what was before the last :meth:`enterStream`; the device is that of then."""

    def pointerGetDevice(self, ptr: int) -> int:
        """Return the device on which ``ptr`` lies, -1 for host memory."""

    def sleep(self, cycles: int, stream: int) -> None:
        """Keep ``stream``, which is of the current device, busy for ``cycles`` clock cycles."""

    def graphLauncher(self, graphExec: int) -> GraphLauncher:
        """Return the fastest way to launch ``graphExec`` on the current stream of the device that is current now."""

    def graphContents(self, graph: int) -> GraphContents:
        """Return how many nodes ``graph`` has, and which memory they work on."""

    def supportedArchs(self) -> list[int]:
        """Return the compute capabilities that the run-time compiler targets, such as ``[75, 80, 90]``."""

    def blasHandle(self) -> int:
        """Return this thread's ``cublasHandle_t`` on the current device."""

    def solverHandle(self) -> int:
        """Return this thread's ``cusolverDnHandle_t`` on the current device."""

    def memoryDriver(self) -> Driver:
        """Return the driver table by which the allocator takes memory of these devices."""

    def memorySource(self, backend: str, ledger: Ledger) -> Source:
        """Return a source that takes memory from the array module's own pool: ``"cupy"`` or ``"cudaMallocAsync"``."""

    def useLedger(self, ledger: Ledger) -> None:
        """Let arrays get their memory from ``ledger`` from now on; does nothing if they do so already."""

    def nvml(self) -> Any:
        """Return the NVML of these devices: a module, or what answers like one, spelled as ``pynvml``."""
