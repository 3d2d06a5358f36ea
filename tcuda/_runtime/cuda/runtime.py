"""The CUDA runtime through ``cupy.cuda.runtime``, and the calls of the driver that CuPy lacks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._base.errors import AcceleratorError
from tcuda._base.messages import WITHOUT_GPU
from tcuda._base.statuses import Status
from tcuda._runtime.cuda import visible_devices
from tcuda._runtime.cuda.captured_lines import CapturedLines
from tcuda._runtime.cuda.trace import CudaTrace
from tcuda._runtime.cuda.translation import translating
from tcuda._runtime.protocol import Conditional, GraphContents, GraphNode, Move, Moved, Writes
from tcuda._runtime.update_failures import update_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda._runtime.protocol import GraphCapture

_CONTEXT_OF_DEVICE = 12_000
"""The first runtime whose ``cudaSetDevice`` makes a context of the device current."""

_GREEN_CONTEXTS = 12_080
"""The first driver for green contexts, as in torch."""

_WORK_QUEUES = 13_010
"""The first driver that has work queues among the resources of a device."""

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
    "graphLaunch",
    "hostRegister",
    "hostUnregister",
    "ipcCloseMemHandle",
    "ipcGetEventHandle",
    "ipcGetMemHandle",
    "ipcOpenEventHandle",
    "ipcOpenMemHandle",
    "malloc",
    "mallocAsync",
    "memGetInfo",
    "memcpy",
    "memcpy2DAsync",
    "memcpyAsync",
    "memcpyPeerAsync",
    "memsetAsync",
    "profilerStart",
    "profilerStop",
    "runtimeGetVersion",
    "streamBeginCapture",
    "streamDestroy",
    "streamSynchronize",
    "streamWaitEvent",
)
"""The calls that CuPy has under the same name and with the same meaning."""

_ENDS = "source", "target"
"""The addresses of a copy, in their order. An array for textures has no address."""

_LAST_ADDRESS = (1 << 56) - 1
"""The last address of a program: processors have no more bits for one."""

_OF_CUPY = "cupy_"
"""The begin of the names of CuPy's own kernels."""

_FROM_LATER_CUPY = ("graphDebugDotPrint", "streamCreateWithPriority", "streamGetFlags", "streamGetPriority")
"""Calls of CuPy 14 and later. With an older CuPy, methods make them through the driver."""

_KINDS_OF_NODES = (
    "kernel",
    "memcpy",
    "memset",
    "host",
    "child_graph",
    "empty",
    "wait_event",
    "event_record",
    "external_semaphores_signal",
    "external_semaphores_wait",
    "mem_alloc",
    "mem_free",
    "batch_mem_op",
    "conditional",
)
"""The types of nodes, in the order of ``CUgraphNodeType``."""


class CudaRuntime:
    """The protocol :class:`~tcuda._runtime.protocol.Runtime` over ``cupy.cuda.runtime``."""

    name = "cuda"

    if TYPE_CHECKING:  # __init__ sets the members of _FROM_CUPY, and replaces those of _FROM_LATER_CUPY

        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def __init__(self) -> None:
        try:
            import cupy  # noqa: F401  # the next import fails in other ways if CuPy cannot be used
            from cupy.cuda import driver, runtime
        except ImportError as error:
            raise RuntimeError(
                f"CuPy cannot be imported ({error}). On a machine with an NVIDIA GPU, install CuPy: "
                f"pip install cupy-cuda13x, or cupy-cuda12x for CUDA 12. Without a GPU, {WITHOUT_GPU}"
            ) from error
        self._runtime = runtime
        self._cuda_major = driver.get_build_version() // 1000
        for name in (*_FROM_CUPY, *(later for later in _FROM_LATER_CUPY if hasattr(runtime, later))):
            setattr(self, name, translating(runtime.CUDARuntimeError, name, getattr(runtime, name)))
        if runtime.runtimeGetVersion() >= _CONTEXT_OF_DEVICE:
            # Until the thread has a context, the runtime takes more than 1 us for this call.
            self.getDevice: Callable[[], int] = _core.current_device_call(self.getDevice)
        # CuPy raises OverflowError for an index that CUDA's int cannot hold. No device has such an index.
        self.setDevice: Callable[[int], None] = translating(
            (runtime.CUDARuntimeError, OverflowError), "setDevice", runtime.setDevice, Status.INVALID_DEVICE
        )
        # CuPy raises a plain RuntimeError for a capture that an error has invalidated.
        self.streamIsCapturing: Callable[[int], bool] = translating(
            RuntimeError, "streamIsCapturing", runtime.streamIsCapturing, Status.STREAM_CAPTURE_INVALIDATED
        )
        # These two calls return their status, and raise no error that must be translated.
        self.eventQuery: Callable[[int], int] = runtime.eventQuery
        self._lines = CapturedLines()
        self._destroy_graph = translating(runtime.CUDARuntimeError, "graphDestroy", runtime.graphDestroy)
        self._end_capture = translating(runtime.CUDARuntimeError, "streamEndCapture", runtime.streamEndCapture)
        self.streamQuery: Callable[[int], int] = runtime.streamQuery

    def getDeviceProperties(self, device: int) -> dict[str, Any]:
        """Return CuPy's properties with the whole UUID, because CuPy cuts the UUID at the first zero byte."""
        call = translating(self._runtime.CUDARuntimeError, "getDeviceProperties", self._runtime.getDeviceProperties)
        properties: dict[str, Any] = call(device)
        status, uuid = self._calls.device_uuid(device)
        _check(status, "cuDeviceGetUuid({})", device)
        return properties | {"uuid": uuid}

    def visibleDeviceCount(self) -> int:
        """Return the number of devices by NVML, which makes no context, or by CUDA if NVML has no answer."""
        count = visible_devices.count(self._cuda_major)
        if count is not None:
            return count
        try:
            return int(self._runtime.getDeviceCount())
        except self._runtime.CUDARuntimeError:
            return 0

    def beginTrace(self) -> CudaTrace:
        return CudaTrace(self._synchronize)

    def _synchronize(self, device: int) -> None:
        current = self.getDevice()
        self.setDevice(device)
        try:
            self.deviceSynchronize()
        finally:
            self.setDevice(current)

    def environment(self) -> dict[str, str]:
        return {"TCUDA_RUNTIME": self.name}

    def deviceGetStreamPriorityRange(self) -> tuple[int, int]:
        """Return (least, greatest) priority of the current device (``cuCtxGetStreamPriorityRange``)."""
        self._runtime.free(0)  # the call makes the context, which the driver's call needs
        status, least, greatest = self._calls.stream_priority_range()
        _check(status, "cuCtxGetStreamPriorityRange()")
        return least, greatest

    def streamCreateWithPriority(self, flags: int, priority: int) -> int:
        """Return a new stream of the current device (``cuStreamCreateWithPriority``)."""
        self._make_context()
        status, stream = self._calls.stream_create_with_priority(flags, priority)
        _check(status, "cuStreamCreateWithPriority({}, {})", flags, priority)
        return stream

    def streamGetFlags(self, stream: int) -> int:
        """Return the flags of ``stream`` (``cuStreamGetFlags``)."""
        self._make_context()
        status, flags = self._calls.stream_flags(stream)
        _check(status, "cuStreamGetFlags({:#x})", stream)
        return flags

    def streamGetPriority(self, stream: int) -> int:
        """Return the priority of ``stream`` (``cuStreamGetPriority``)."""
        self._make_context()
        status, priority = self._calls.stream_priority(stream)
        _check(status, "cuStreamGetPriority({:#x})", stream)
        return priority

    def graphDebugDotPrint(self, graph: int, path: str, flags: int) -> None:
        """Write ``graph`` to a file in the DOT language (``cuGraphDebugDotPrint``)."""
        _check(self._calls.graph_dot_print(graph, path, flags), "cuGraphDebugDotPrint({:#x})", graph)

    def _make_context(self) -> None:
        """Make the context of the current device current, which the driver needs. Every capture allows the call."""
        self._runtime.memGetInfo()

    def eventRecordWithFlags(self, event: int, stream: int, flags: int) -> None:
        """Record ``event`` on ``stream`` (``cuEventRecordWithFlags``)."""
        status = self._calls.event_record_with_flags(event, stream, flags)
        _check(status, "cuEventRecordWithFlags({:#x}, {:#x}, {})", event, stream, flags)

    def deviceGetWorkQueueConcurrency(self, device: int) -> int:
        """Return how many concurrent streams ``device`` has work queues for (``cuDeviceGetDevResource``)."""
        self._require_driver(_WORK_QUEUES, "Work queues")
        status, limit = self._green_contexts.work_queue_concurrency(device)
        _check(status, "cuDeviceGetDevResource({})", device)
        return limit

    def greenCtxCreate(self, device: int, multiprocessors: int, scope: int, limit: int) -> tuple[int, int]:
        """Return a context with a share of ``device``, and the number of multiprocessors (``cuGreenCtxCreate``)."""
        if scope >= 0:
            self._require_driver(_WORK_QUEUES, "Work queues")
        contexts = self._green_contexts
        self._runtime.free(0)  # the call makes the primary context of the current device
        status, context, count = contexts.create(device, multiprocessors, scope, limit)
        _check(status, "cuGreenCtxCreate({}, {}, {}, {})", device, multiprocessors, scope, limit)
        return context, count

    def greenCtxDestroy(self, context: int) -> None:
        """Wait for the streams of ``context``, and destroy them and ``context`` (``cuGreenCtxDestroy``)."""
        _check(self._green_contexts.destroy(context), "cuGreenCtxDestroy({:#x})", context)

    def greenCtxStreamCreate(self, context: int, flags: int, priority: int) -> int:
        """Return a new stream of ``context`` (``cuGreenCtxStreamCreate``)."""
        status, stream = self._green_contexts.create_stream(context, flags, priority)
        _check(status, "cuGreenCtxStreamCreate({:#x}, {}, {})", context, flags, priority)
        return stream

    def pointerGetDevice(self, ptr: int) -> int:
        """Return the device of ``ptr``, -1 for host memory (``cudaPointerGetAttributes``)."""
        if ptr > _LAST_ADDRESS:  # may be a negative number or a float among the arguments of a kernel
            return -1
        attributes = self._runtime.pointerGetAttributes(ptr)
        on_device = attributes.type in (self._runtime.memoryTypeDevice, self._runtime.memoryTypeManaged)
        return int(attributes.device) if on_device else -1

    def pointerIsPageLocked(self, ptr: int) -> bool:
        """Return whether ``ptr`` is in page-locked memory of the host (``cudaPointerGetAttributes``)."""
        return bool(self._runtime.pointerGetAttributes(ptr).type == self._runtime.memoryTypeHost)

    def streamGetCaptureInfo(self, stream: int) -> tuple[int, int]:
        """Return the status and the number of the capture of ``stream`` (``cuStreamGetCaptureInfo``)."""
        status, state, number = self._graphs.capture_info(stream)
        _check(status, "cuStreamGetCaptureInfo({:#x})", stream)
        return state, number

    def streamEndCapture(self, stream: int) -> int:
        """End the capture of ``stream`` and return its ``cudaGraph_t``, whose lines are not known."""
        self._lines.end(stream)
        graph: int = self._end_capture(stream)
        return graph

    def beginGraph(self, ledger: _core.Ledger, pool: tuple[int, int], capture: GraphCapture) -> None:
        """Begin ``capture`` in one call of the core (``cuStreamBeginCapture``)."""
        stream, mode = capture.stream, capture.mode
        if status := self._graphs.begin_graph(ledger, pool, capture, stream, capture.device, mode):
            raise AcceleratorError(status, f"cuStreamBeginCapture({stream:#x}, {mode})")
        if capture.lines:
            self._lines.begin(stream)

    def endGraph(self, ledger: _core.Ledger, capture: GraphCapture, flags: int | None, keep: bool) -> None:
        """End ``capture`` in one call of the core (``cuStreamEndCapture``, ``cuGraphInstantiateWithFlags``)."""
        stream = capture.stream
        noted = self._lines.end(stream)
        status, call = self._graphs.end_graph(
            ledger, capture, capture.number, stream, capture.device, capture.bodies, flags, keep
        )
        if status:
            raise AcceleratorError(status, f"{call}(), at the end of the capture of the stream {stream:#x},")
        if noted is not None and keep and capture.ended is not None:
            self._lines.keep(capture.ended[0], capture.bodies, noted)

    def graphInstantiate(self, graph: int, flags: int) -> int:
        """Return a ``cudaGraphExec_t`` (``cuGraphInstantiateWithFlags``)."""
        status, executable = self._graphs.instantiate(graph, flags)
        _check(status, "cuGraphInstantiateWithFlags({:#x})", graph)
        return executable

    def graphDestroy(self, graph: int) -> None:
        """Destroy a ``cudaGraph_t`` (``cuGraphDestroy``)."""
        self._lines.forget(graph)
        self._destroy_graph(graph)

    def graphExecDestroy(self, graphExec: int) -> None:
        """Destroy a ``cudaGraphExec_t`` (``cuGraphExecDestroy``)."""
        _check(self._graphs.destroy_exec(graphExec), "cuGraphExecDestroy({:#x})", graphExec)

    @functools.cached_property
    def _calls(self) -> _core.CudaCalls:
        return _core.CudaCalls()

    @functools.cached_property
    def _green_contexts(self) -> _core.GreenContexts:
        self._require_driver(_GREEN_CONTEXTS, "Green contexts")
        return _core.GreenContexts()

    def _require_driver(self, version: int, what: str) -> None:
        """Raise an error if the driver is older than ``version``, which ``what`` need."""
        found = self.driverGetVersion()
        if found < version:
            raise RuntimeError(
                f"{what} need a driver of CUDA {_words(version)} or later; the driver here is of CUDA {_words(found)}. "
                "Install a newer driver from NVIDIA."
            )

    @functools.cached_property
    def _graphs(self) -> _core.CudaGraphs:
        return _core.CudaGraphs()

    def graphContents(self, graph: int) -> GraphContents:
        """Count the nodes of ``graph``, and read their parameters (``cuGraphKernelNodeGetParams`` and others)."""
        status, nodes, addresses = self._graphs.contents(graph)
        _check(status, "cuGraphGetNodes({:#x})", graph)
        return GraphContents(nodes, addresses)

    def graphNodes(self, graph: int) -> list[GraphNode]:
        """Return the nodes of ``graph`` (``cuGraphGetNodes``, ``cuGraphGetEdges``, ``cuGraphNodeGetToolsId``)."""
        status, nodes = self._nodes.read(graph)
        _check(status, "cuGraphGetNodes({:#x})", graph)
        lines = self._lines.of(graph, len(nodes))
        return [
            GraphNode(_kind_of(kind), number, kernel.decode(errors="replace") or None, event, before, line)
            for (kind, number, kernel, event, before), line in zip(nodes, lines, strict=True)
        ]

    def graphChild(self, graph: int, place: int) -> int:
        """Return the graph of a child graph (``cuGraphChildGraphNodeGetGraph``)."""
        status, child = self._lone_nodes.child(graph, place)
        _check(status, "cuGraphChildGraphNodeGetGraph({:#x}, {})", graph, place)
        return child

    def graphNodeAlone(self, graph: int, place: int) -> int:
        """Return a graph with a copy of a node (``cuGraphAddKernelNode`` and others)."""
        status, alone = self._lone_nodes.copy(graph, place)
        _check(status, "cuGraphAddNode({:#x}, {})", graph, place)
        return alone

    def graphWrites(self, graph: int) -> Writes:
        """Return the memory that a node writes, as its parameters tell; each range is the first byte only.

        CuPy's own kernels have the output behind the inputs. Other kernels may have any order.
        """
        status, numbers = self._lone_nodes.addresses(graph)
        _check(status, "cuGraphGetNodes({:#x})", graph)
        (node,) = self.graphNodes(graph)
        ranges = [(number, number + 1) for number in numbers if self.pointerGetDevice(number) >= 0]
        if node.kind == "memset" or (node.kind == "memcpy" and len(numbers) == len(_ENDS)):
            return Writes([(numbers[-1], numbers[-1] + 1)], [])
        if (node.kernel or "").startswith(_OF_CUPY):
            return Writes(ranges[-1:], ranges[:-1])
        return Writes([], ranges)

    @functools.cached_property
    def _lone_nodes(self) -> _core.LoneNodes:
        return _core.LoneNodes()

    def graphExecGetId(self, graphExec: int) -> int:
        """Return the number of ``graphExec`` (``cuGraphExecGetId``); 0 if the driver is older than CUDA 13.1."""
        status, number = self._nodes.number_of(graphExec)
        _check(status, "cuGraphExecGetId({:#x})", graphExec)
        return number

    def graphExecUpdate(self, graphExec: int, graph: int) -> None:
        """Give ``graphExec`` the parameters of the nodes of ``graph`` (``cuGraphExecUpdate``)."""
        status, result, place = self._changes.update(graphExec, graph)
        if status:
            raise self._update_failure(status, graph, graphExec, result, place)

    def graphMove(self, graphs: Sequence[int], graphExec: int, move: Move) -> Moved:
        """Move addresses in the parameters of all nodes (``cuGraphKernelNodeSetParams``, ``cuGraphExecUpdate``)."""
        offset = move.offset % 2**64
        status, nodes, doubtful, addresses, result, place = self._changes.move(
            graphs, graphExec, move.begin, move.end, offset, move.block_begin, move.block_end
        )
        if status:
            raise self._update_failure(status, graphs[0], graphExec, result, place)
        return Moved(nodes, addresses, self._words_for(graphs, doubtful))

    def _update_failure(self, status: int, graph: int, graphExec: int, result: int, place: int) -> AcceleratorError:
        call = f"cuGraphExecUpdate({graphExec:#x}, {graph:#x})"
        return update_failure(status, call, result, place, self.graphNodes(graph))

    def _words_for(self, graphs: Sequence[int], number: int) -> str:
        """Return a node, by its number in the nodes of all graphs, in words."""
        if number < 0:
            return ""
        for graph in graphs:
            nodes = self.graphNodes(graph)
            if number < len(nodes):
                break
            number -= len(nodes)
        return nodes[number].in_words(number) + ("" if graph == graphs[0] else " of a body")

    def graphNodeSetEnabled(self, graphExec: int, graph: int, place: int, enabled: bool) -> None:
        """Let launches of ``graphExec`` do or skip a node (``cuGraphNodeSetEnabled``)."""
        status = self._changes.set_enabled(graphExec, graph, place, enabled)
        _check(status, "cuGraphNodeSetEnabled({:#x}, {}, {:d})", graphExec, place, enabled)

    def graphNodeGetEnabled(self, graphExec: int, graph: int, place: int) -> bool:
        """Return whether launches of ``graphExec`` do a node (``cuGraphNodeGetEnabled``)."""
        status, enabled = self._changes.is_enabled(graphExec, graph, place)
        _check(status, "cuGraphNodeGetEnabled({:#x}, {})", graphExec, place)
        return enabled

    @functools.cached_property
    def _changes(self) -> _core.GraphChanges:
        return _core.GraphChanges()

    def streamAddConditional(self, stream: int, kind: int, flag: int, size: int) -> Conditional:
        """Capture a conditional node (``cuGraphConditionalHandleCreate``, ``cuGraphAddNode``)."""
        status, handle, body = self._conditionals.add(stream, kind, flag, size)
        _check(status, "cuGraphAddNode({:#x}, {})", stream, kind)
        return Conditional(handle, body)

    def streamSetConditional(self, stream: int, handle: int, flag: int, size: int) -> None:
        """Capture a kernel that calls ``cudaGraphSetConditional``."""
        _check(self._conditionals.set(stream, handle, flag, size), "cuLaunchKernel({:#x})", stream)
        self._lines.look()  # the kernel is the last one of a body, whose capture ends now

    def streamBeginCaptureToGraph(self, stream: int, graph: int, mode: int) -> None:
        """Capture the work of ``stream`` into ``graph`` (``cuStreamBeginCaptureToGraph``)."""
        status = self._conditionals.begin_capture_to_graph(stream, graph, mode)
        _check(status, "cuStreamBeginCaptureToGraph({:#x}, {:#x}, {})", stream, graph, mode)
        self._lines.begin_body(stream)

    def graphAbandon(self, graph: int) -> None:
        """Leave the graph to the driver for good.

        The driver has destroyed the graph of the body already. With the node, the driver would destroy that graph
        again, which ends the process (seen with the driver of CUDA 13.0).
        """

    @functools.cached_property
    def _conditionals(self) -> _core.ConditionalNodes:
        return _core.ConditionalNodes()

    @functools.cached_property
    def _nodes(self) -> _core.NodeReader:
        return _core.NodeReader()

    def memoryDriver(self) -> _core.Driver:
        """Return the driver table of ``libcuda.so.1``."""
        return _core.CudaDriver()

    def nvml(self) -> Any:
        """Return ``pynvml``."""
        import pynvml

        return pynvml


def _words(version: int) -> str:
    """Return a version of CUDA such as 12080 as a text such as ``12.8``."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _kind_of(kind: int) -> str:
    """Return the name of a ``CUgraphNodeType``."""
    return _KINDS_OF_NODES[kind] if 0 <= kind < len(_KINDS_OF_NODES) else f"CUgraphNodeType({kind})"


def _check(status: int, call: str, *arguments: int) -> None:
    """Raise an error for ``call``, a format string for ``arguments``, if ``status`` is a failure."""
    if status:
        raise AcceleratorError(status, call.format(*arguments))
