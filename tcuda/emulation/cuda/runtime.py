"""The CUDA runtime of emulated devices, with the names, the arguments and the error of ``cupy.cuda.runtime``.

The module has only the calls that emulated devices know.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tcuda._base.statuses import Status
from tcuda._process.lazy import cuda
from tcuda._runtime.protocol import (
    CAPTURE_GLOBAL,
    CAPTURE_RELAXED,
    CAPTURE_STATUS_ACTIVE,
    CAPTURE_STATUS_INVALIDATED,
    CAPTURE_STATUS_NONE,
    CAPTURE_THREAD_LOCAL,
    EVENT_BLOCKING_SYNC,
    EVENT_DEFAULT,
    EVENT_DISABLE_TIMING,
    EVENT_INTERPROCESS,
    GRAPH_DOT_VERBOSE,
    IPC_LAZY_ENABLE_PEER_ACCESS,
    MEMCPY_DEFAULT,
    MEMCPY_DEVICE_TO_DEVICE,
    MEMCPY_DEVICE_TO_HOST,
    MEMCPY_HOST_TO_DEVICE,
    MEMCPY_HOST_TO_HOST,
    STREAM_DEFAULT,
    STREAM_LEGACY,
    STREAM_NON_BLOCKING,
    STREAM_PER_THREAD,
)
from tcuda.emulation.cuda import host_functions, host_memory
from tcuda.emulation.devices import device_attributes, pci_addresses
from tcuda.emulation.devices.memory import is_managed
from tcuda.emulation.devices.runtime_error import CUDARuntimeError, with_cupys_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.runtime import EmulatedRuntime

    def __getattr__(name: str) -> Any: ...


def _words(text: str) -> list[str]:
    return text.split()


is_hip = False

memcpyHostToHost = MEMCPY_HOST_TO_HOST
memcpyHostToDevice = MEMCPY_HOST_TO_DEVICE
memcpyDeviceToHost = MEMCPY_DEVICE_TO_HOST
memcpyDeviceToDevice = MEMCPY_DEVICE_TO_DEVICE
memcpyDefault = MEMCPY_DEFAULT

streamDefault = STREAM_DEFAULT
streamNonBlocking = STREAM_NON_BLOCKING
streamLegacy = STREAM_LEGACY
streamPerThread = STREAM_PER_THREAD

eventDefault = EVENT_DEFAULT
eventBlockingSync = EVENT_BLOCKING_SYNC
eventDisableTiming = EVENT_DISABLE_TIMING
eventInterprocess = EVENT_INTERPROCESS

streamCaptureModeGlobal = CAPTURE_GLOBAL
streamCaptureModeThreadLocal = CAPTURE_THREAD_LOCAL
streamCaptureModeRelaxed = CAPTURE_RELAXED
streamCaptureStatusNone = CAPTURE_STATUS_NONE
streamCaptureStatusActive = CAPTURE_STATUS_ACTIVE
streamCaptureStatusInvalidated = CAPTURE_STATUS_INVALIDATED

cudaGraphDebugDotFlagsVerbose = GRAPH_DOT_VERBOSE

cudaIpcMemLazyEnablePeerAccess = IPC_LAZY_ENABLE_PEER_ACCESS

hostAllocDefault = 0
hostAllocPortable = 1
hostAllocMapped = 2
hostAllocWriteCombined = 4

memoryTypeUnregistered = 0
memoryTypeHost = 1
memoryTypeDevice = 2
memoryTypeManaged = 3
cudaMemAdviseSetReadMostly = 1
cudaMemAdviseUnsetReadMostly = 2
cudaMemAdviseSetPreferredLocation = 3
cudaMemAdviseUnsetPreferredLocation = 4
cudaMemAdviseSetAccessedBy = 5
cudaMemAdviseUnsetAccessedBy = 6

globals().update(device_attributes.CONSTANTS)

_SHARED = _words("""
driverGetVersion runtimeGetVersion getDeviceCount getDevice setDevice deviceSynchronize deviceCanAccessPeer
deviceEnablePeerAccess deviceDisablePeerAccess profilerStart profilerStop

memGetInfo malloc free mallocAsync freeAsync hostUnregister memcpy memcpyAsync memcpy2DAsync memcpyPeerAsync memsetAsync
ipcGetMemHandle ipcCloseMemHandle

streamCreateWithPriority streamDestroy streamGetFlags streamGetPriority streamQuery streamSynchronize streamWaitEvent
streamBeginCapture streamEndCapture streamIsCapturing

eventCreateWithFlags eventDestroy eventRecord eventQuery eventSynchronize eventElapsedTime ipcGetEventHandle
ipcOpenEventHandle

graphDestroy graphExecDestroy graphLaunch graphDebugDotPrint
""")
"""The calls that the runtime of tcuda has under the same names and with the same arguments."""


def _shared(name: str) -> Callable[..., Any]:
    @with_cupys_error
    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(cuda, name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Call ``cuda{name[0].upper()}{name[1:]}``."
    call.__module__ = __name__
    return call


globals().update({name: _shared(name) for name in _SHARED})
# Libraries and CuPy's tests call this function, and not the public function.
_getLocalRuntimeVersion = _shared("runtimeGetVersion")


def _runtime() -> EmulatedRuntime:
    return cast("EmulatedRuntime", cuda)


# Devices


@with_cupys_error
def getDeviceProperties(device: int) -> dict[str, Any]:
    """Return the properties of a device by the names of their members in ``cudaDeviceProp``."""
    return dict(cuda.getDeviceProperties(device))


@with_cupys_error
def deviceGetAttribute(attrib: int, device: int) -> int:
    """Return the attribute with the number ``attrib`` of a device.

    Raises:
        CUDARuntimeError: There is no such device, or emulated devices have no such attribute.
    """
    value = device_attributes.value(attrib, cuda.getDeviceProperties(device))
    if value is None:
        raise CUDARuntimeError(Status.INVALID_VALUE)
    return value


def deviceGetPCIBusId(device: int) -> str:
    """Return the PCI address of a device."""
    return pci_addresses.address_of(getDeviceProperties(device))


def deviceGetByPCIBusId(pciBusId: str) -> int:
    """Return the index of the device with a PCI address.

    Raises:
        CUDARuntimeError: The text is no address, or no device has the address.
    """
    return pci_addresses.device_at(pciBusId)


# Memory


class PointerAttributes(NamedTuple):
    """What the runtime knows of an address.

    Attributes:
        device: The index of the device; -2 if the address is not known to CUDA.
        devicePointer: The address for kernels; 0 if kernels cannot use the address.
        hostPointer: The address for the host; 0 if the host cannot use the address.
        type: The kind of memory, such as :data:`memoryTypeDevice`.
    """

    device: int
    devicePointer: int
    hostPointer: int
    type: int


def pointerGetAttributes(ptr: int) -> PointerAttributes:
    """Return what the runtime knows of an address."""
    found = _runtime().memoryAt(ptr)
    if found is None:
        return PointerAttributes(-2, 0, ptr, memoryTypeUnregistered)
    if found[0] < 0:
        return PointerAttributes(cuda.getDevice(), ptr, ptr, memoryTypeHost)
    if is_managed(ptr):
        return PointerAttributes(found[0], ptr, ptr, memoryTypeManaged)
    return PointerAttributes(found[0], ptr, 0, memoryTypeDevice)


def pointerGetMemoryType(ptr: int) -> int:
    """Return the kind of memory at an address."""
    return pointerGetAttributes(ptr).type


@with_cupys_error
def memset(ptr: int, value: int, size: int) -> None:
    """Set bytes on the default stream (``cudaMemset``)."""
    cuda.memsetAsync(ptr, value, size, 0)


@with_cupys_error
def memcpyPeer(dst: int, dstDevice: int, src: int, srcDevice: int, size: int) -> None:
    """Copy bytes between devices on the default stream (``cudaMemcpyPeer``)."""
    cuda.memcpyPeerAsync(dst, dstDevice, src, srcDevice, size, 0)


@with_cupys_error
def memcpy2D(dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int) -> None:
    """Copy rows on the default stream and wait for the copy (``cudaMemcpy2D``)."""
    cuda.memcpy2DAsync(dst, dpitch, src, spitch, width, height, kind, 0)
    if kind != MEMCPY_DEVICE_TO_DEVICE:
        cuda.streamSynchronize(0)


@with_cupys_error
def hostRegister(ptr: int, size: int, flags: int) -> None:
    """Page-lock memory of the host (``cudaHostRegister``)."""
    cuda.hostRegister(ptr, size, flags)


@with_cupys_error
def hostAlloc(size: int, flags: int) -> int:
    """Return the address of new page-locked memory of the host (``cudaHostAlloc``)."""
    return host_memory.allocate(size)


@with_cupys_error
def freeHost(ptr: int) -> None:
    """Free memory of :func:`hostAlloc`; waits for all work of all devices (``cudaFreeHost``)."""
    if not host_memory.free(ptr):
        raise CUDARuntimeError(Status.INVALID_VALUE)


@with_cupys_error
def ipcOpenMemHandle(handle: bytes, flags: int = IPC_LAZY_ENABLE_PEER_ACCESS) -> int:
    """Return the address of memory of another process (``cudaIpcOpenMemHandle``)."""
    return cuda.ipcOpenMemHandle(handle, flags)


# Streams and events


@with_cupys_error
def streamCreate() -> int:
    """Return the handle of a new stream (``cudaStreamCreate``)."""
    return cuda.streamCreateWithPriority(STREAM_DEFAULT, 0)


@with_cupys_error
def streamCreateWithFlags(flags: int) -> int:
    """Return the handle of a new stream (``cudaStreamCreateWithFlags``)."""
    return cuda.streamCreateWithPriority(flags, 0)


@with_cupys_error
def eventCreate() -> int:
    """Return the handle of a new event (``cudaEventCreate``)."""
    return cuda.eventCreateWithFlags(EVENT_DEFAULT)


@with_cupys_error
def streamAddCallback(stream: int, callback: Callable[[int, int, Any], object], arg: Any, flags: int = 0) -> None:
    """Call ``callback(stream, status, arg)`` after the work that the stream has now (``cudaStreamAddCallback``).

    Raises:
        CUDARuntimeError: The stream captures.
    """
    if cuda.streamIsCapturing(stream):
        raise CUDARuntimeError(Status.STREAM_CAPTURE_UNSUPPORTED)
    host_functions.launch(_runtime(), stream, functools.partial(callback, stream, 0, arg))


@with_cupys_error
def launchHostFunc(stream: int, callback: Callable[[Any], object], arg: Any) -> None:
    """Call ``callback(arg)`` after the work that the stream has now (``cudaLaunchHostFunc``)."""
    host_functions.launch(_runtime(), stream, functools.partial(callback, arg))


# Graphs


@with_cupys_error
def graphInstantiate(graph: int) -> int:
    """Return the handle of an executable graph (``cudaGraphInstantiate``)."""
    return cuda.graphInstantiate(graph, 0)


@with_cupys_error
def graphUpload(graphExec: int, stream: int) -> None:
    """Do nothing: emulated devices load nothing before a launch (``cudaGraphUpload``)."""


_IMPORTED = frozenset(
    _words("""
    annotations functools cast cuda Status with_cupys_error device_attributes host_functions host_memory
    pci_addresses     TYPE_CHECKING Any NamedTuple
    """)
)
"""The names that the module imports for itself."""


def __dir__() -> list[str]:
    return sorted(name for name in globals() if name[0] != "_" and not name.isupper() and name not in _IMPORTED)
