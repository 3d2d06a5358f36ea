"""The protocol of a CUDA runtime: the calls that tcuda makes, in the CUDA runtime's own spelling.

Names, argument order and units are those of ``cupy.cuda.runtime``; handles and addresses are ``int``. A call that
fails raises :class:`tcuda.AcceleratorError` with the CUDA status. ``streamQuery`` and ``eventQuery`` return the status
(0 or 600), as in CuPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcuda._base.user_code import Place
    from tcuda._core import Driver, Ledger

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

CONDITIONAL_IF = 0
CONDITIONAL_WHILE = 1

GRAPH_AUTO_FREE_ON_LAUNCH = 1
GRAPH_DOT_VERBOSE = 1

EVENT_DEFAULT = 0
EVENT_BLOCKING_SYNC = 1
EVENT_DISABLE_TIMING = 2
EVENT_INTERPROCESS = 4

IPC_LAZY_ENABLE_PEER_ACCESS = 1

EVENT_RECORD_EXTERNAL = 1
EVENT_WAIT_EXTERNAL = 1


class GraphContents(NamedTuple):
    """The contents of a graph.

    Attributes:
        nodes: The number of nodes.
        addresses: The addresses of device memory and of page-locked memory that the nodes work on, as far as the
            runtime can tell. Other numbers, which only look like addresses, may be among them.
    """

    nodes: int
    addresses: list[int]


class TracedWork(NamedTuple):
    """Work of a stream, or a wait, in a trace.

    Attributes:
        kind: ``"kernel"``, ``"memcpy"`` or ``"memset"`` for work, ``"wait_event"`` for the wait of a stream for an
            event, and ``"wait"`` for a wait of the host.
        name: The name of the kernel, or a name of the work.
        device: The device of the stream; -1 for a wait of the host.
        stream: The number of the stream, as the runtime tells streams apart; for a wait of the host, that of the thread
            if the runtime knows the thread, else 0.
        start: The beginning in nanoseconds, on the clock of the trace.
        end: The end in nanoseconds.
        nbytes: The bytes that the work moves; 0 if the runtime does not know them.
    """

    kind: str
    name: str
    device: int
    stream: int
    start: int
    end: int
    nbytes: int = 0


class Trace(Protocol):
    """A record of the work of all streams, and of the waits of the host, from the moment that the record began."""

    def now(self) -> int:
        """Return the time in nanoseconds on the clock of the trace."""

    def moments(self, host_times: Sequence[int]) -> list[int]:
        """Return the times on the clock of the trace at which the host's clock showed ``host_times``.

        Args:
            host_times: Times of ``time.time_ns()``, in their order.
        """

    def wait(self, devices: Sequence[int]) -> None:
        """Wait until the record has all work that was launched.

        Args:
            devices: The devices that the program uses. The record of GPUs is complete when they have no work.

        Raises:
            AcceleratorError: Work of a device has failed.
        """

    def end(self) -> list[TracedWork]:
        """End the record, and return what the record has."""


class GraphNode(NamedTuple):
    """A node of a graph.

    Attributes:
        kind: The type of the node: ``"kernel"``, ``"memcpy"``, ``"memset"``, ``"host"``, ``"child_graph"``,
            ``"empty"``, ``"wait_event"``, ``"event_record"``, ``"mem_alloc"``, ``"mem_free"``, ``"conditional"``, or
            another name for types of newer drivers.
        number: The number by which profilers name the node; 0 if the driver has no such numbers.
        kernel: The name of the kernel; None if the node is no kernel, or the driver does not know the name.
        event: The event that the node records or waits for; 0 for other nodes.
        before: The places of the nodes that the node waits for.
        line: The line of the program that captured the node; None if the line is not known.
    """

    kind: str
    number: int
    kernel: str | None
    event: int
    before: list[int]
    line: Place | None = None

    def in_words(self, place: int | str) -> str:
        """Return words for the node, which is at ``place`` of its graph."""
        captured = "" if self.line is None else f", captured at {self.line}"
        return f"node {place} ({self.kernel or self.kind}{captured})"


class Writes(NamedTuple):
    """The memory that a node writes, as ranges of addresses from the first byte to the byte behind the last.

    Attributes:
        sure: The memory that the node writes.
        possible: The memory that the node uses, and of which the runtime cannot tell whether the node writes it.
    """

    sure: list[tuple[int, int]]
    possible: list[tuple[int, int]]


class Move(NamedTuple):
    """A move of the addresses of an array to another array of the same layout.

    Attributes:
        begin: The first address that moves.
        end: The first address behind those that move.
        offset: The number that is added to the addresses.
        block_begin: The begin of the allocation. Its other addresses may reach the array, too.
        block_end: The end of the allocation.
    """

    begin: int
    end: int
    offset: int
    block_begin: int
    block_end: int


class Moved(NamedTuple):
    """What a move has changed in a graph.

    Attributes:
        nodes: The number of nodes that have addresses which move.
        addresses: The addresses of all nodes after the move, as :class:`GraphContents` has them.
        doubtful: A node that has another address of the allocation, in words; an empty text if there is none.
    """

    nodes: int
    addresses: list[int]
    doubtful: str


class Conditional(NamedTuple):
    """A conditional node.

    Attributes:
        handle: The ``cudaGraphConditionalHandle``, which stands for the value of the node.
        body: The ``cudaGraph_t`` of the body, which belongs to the node.
    """

    handle: int
    body: int


class GraphCapture(Protocol):
    """A capture whose work becomes a graph. The runtime sets ``number`` and ``ended``.

    Attributes:
        stream: The handle of the stream on which the capture begins.
        device: The device of that stream.
        mode: The ``CAPTURE_...`` mode.
        bodies: The ``cudaGraph_t`` of the bodies of all conditional nodes, nested ones too.
        lines: Whether the runtime records the line of the program that captures each node.
        number: The number of the capture; 0 before the start.
        ended: What the end of the capture has made: the ``cudaGraph_t`` or 0, the ``cudaGraphExec_t`` or 0, the number
            of nodes, and the memory that the ledger keeps for the graph. None before the end.
    """

    stream: int
    device: int
    mode: int
    bodies: list[int]
    lines: bool
    number: int
    ended: tuple[int, int, int, list[int]] | None


class Runtime(Protocol):
    """A CUDA runtime: CuPy's runtime, or an emulated one."""

    name: str
    """``"cuda"`` or ``"emulated"``: the name in messages, and the key of the table in ``_backend``."""

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
    def memcpy2DAsync(
        self, dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, stream: int
    ) -> None: ...
    def memcpyPeerAsync(self, dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int) -> None: ...
    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None: ...

    # Memory of other processes. The handle of an address is that of the whole allocation. A handle that a process opens
    # twice gives the same address, and must be closed twice.

    def ipcGetMemHandle(self, ptr: int) -> bytes: ...
    def ipcOpenMemHandle(self, handle: bytes, flags: int = IPC_LAZY_ENABLE_PEER_ACCESS) -> int: ...
    def ipcCloseMemHandle(self, ptr: int) -> None: ...

    # Streams

    def streamCreateWithPriority(self, flags: int, priority: int) -> int: ...
    def streamDestroy(self, stream: int) -> None: ...
    def streamGetFlags(self, stream: int) -> int: ...
    def streamGetPriority(self, stream: int) -> int: ...
    def streamQuery(self, stream: int) -> int: ...
    def streamSynchronize(self, stream: int) -> None: ...
    def streamWaitEvent(self, stream: int, event: int, flags: int = 0) -> None: ...

    # Green contexts: contexts with a share of a device. The multiprocessors and the limit may be 0 for all, and the
    # scope -1 for none. The results of greenCtxCreate are the context and the number of its multiprocessors.

    def deviceGetWorkQueueConcurrency(self, device: int) -> int: ...
    def greenCtxCreate(self, device: int, multiprocessors: int, scope: int, limit: int) -> tuple[int, int]: ...
    def greenCtxDestroy(self, context: int) -> None: ...
    def greenCtxStreamCreate(self, context: int, flags: int, priority: int) -> int: ...

    # Graphs. CUDA forbids graphInstantiate and graphExecDestroy during some captures. A runtime must allow both calls,
    # because a graph may die at any time.

    def streamBeginCapture(self, stream: int, mode: int) -> None: ...
    def streamEndCapture(self, stream: int) -> int: ...
    def streamBeginCaptureToGraph(self, stream: int, graph: int, mode: int) -> None: ...

    def graphAbandon(self, graph: int) -> None:
        """Forget a captured graph that has a conditional node whose body failed at the end of its capture."""

    def beginGraph(self, ledger: Ledger, pool: tuple[int, int], capture: GraphCapture) -> None:
        """Begin ``capture`` (``cudaStreamBeginCapture``), and let its memory come from a pool of ``ledger``.

        CUDA has no such call. The call exists because several calls cost more than this one, and
        because a signal handler may raise between two calls. If the call fails and the number of the capture is set,
        the capture may have begun, and must be ended.

        Raises:
            AcceleratorError: The stream captures already (401), or is a default stream (900).
        """

    def endGraph(self, ledger: Ledger, capture: GraphCapture, flags: int | None, keep: bool) -> None:
        """End ``capture`` (``cudaStreamEndCapture``), and let ``ledger`` keep the memory that the graph uses.

        CUDA has no such call, for the same reasons. After a failure, the stream does not capture, and the capture of
        the ledger goes on. ``capture.ended`` has what must be released then.

        Args:
            ledger: The ledger.
            capture: The capture, which :meth:`beginGraph` has begun.
            flags: The flags of the ``cudaGraphExec_t``; None for no ``cudaGraphExec_t``.
            keep: Whether the ``cudaGraph_t`` is kept.

        Raises:
            AcceleratorError: The capture cannot be ended (401, 901, 904), or the graph cannot be instantiated.
        """

    def streamIsCapturing(self, stream: int) -> bool: ...
    def streamGetCaptureInfo(self, stream: int) -> tuple[int, int]: ...  # status, and the number of the capture
    def graphDestroy(self, graph: int) -> None: ...
    def graphInstantiate(self, graph: int, flags: int) -> int: ...
    def graphLaunch(self, graphExec: int, stream: int) -> None: ...
    def graphExecDestroy(self, graphExec: int) -> None: ...
    def graphDebugDotPrint(self, graph: int, path: str, flags: int) -> None: ...

    # Conditional nodes. A launch runs the body of such a node once if its value is not 0 (CONDITIONAL_IF), or repeats
    # the body while its value is not 0 (CONDITIONAL_WHILE).

    def streamAddConditional(self, stream: int, kind: int, flag: int, size: int) -> Conditional:
        """Add a kernel that reads a flag, and a conditional node with its value, to the capture of ``stream``.

        The operations that ``stream`` captures later come after the node.

        Args:
            stream: The stream.
            kind: ``CONDITIONAL_IF`` or ``CONDITIONAL_WHILE``.
            flag: The address of the flag in the memory of the device.
            size: The bytes of the flag: 1 or 4.
        """

    def streamSetConditional(self, stream: int, handle: int, flag: int, size: int) -> None:
        """Add a kernel that makes the flag the value of the node of ``handle`` to the capture of ``stream``."""

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

    # Calls of the driver and of NVML

    def visibleDeviceCount(self) -> int:
        """Return the number of devices, 0 without any; the call creates no context and never raises."""

    def pointerGetDevice(self, ptr: int) -> int:
        """Return the device of the memory at ``ptr``; -1 for host memory (``cudaPointerGetAttributes``)."""

    def pointerIsPageLocked(self, ptr: int) -> bool:
        """Return whether ``ptr`` is in page-locked memory of the host (``cudaPointerGetAttributes``)."""

    def graphContents(self, graph: int) -> GraphContents:
        """Return the number of nodes of ``graph`` and the addresses in their parameters (``cuGraphGetNodes``)."""

    def graphNodes(self, graph: int) -> list[GraphNode]:
        """Return the nodes of ``graph`` in the order of ``cudaGraphGetNodes``."""

    def graphChild(self, graph: int, place: int) -> int:
        """Return the graph of a child graph, which is the node at ``place`` and keeps the graph."""

    def graphNodeAlone(self, graph: int, place: int) -> int:
        """Return a new graph, which has only a copy of the node at ``place`` of ``graph``.

        Raises:
            AcceleratorError: The runtime cannot copy the node (801 for a type that belongs to its graph).
        """

    def graphWrites(self, graph: int) -> Writes:
        """Return the memory that the last launch of ``graph``, which has one node, has written in this thread."""

    def graphExecGetId(self, graphExec: int) -> int:
        """Return the number by which profilers name ``graphExec``; 0 if the driver has no such numbers."""

    # Changes of executable graphs. A failure leaves the graph and the executable graph as they were. The calls are
    # allowed during captures.

    def graphExecUpdate(self, graphExec: int, graph: int) -> None:
        """Give ``graphExec`` the parameters of the nodes of ``graph``, which has the same shape.

        Raises:
            AcceleratorError: The shapes differ (910). The details name the node.
        """

    def graphMove(self, graphs: Sequence[int], graphExec: int, move: Move) -> Moved:
        """Move addresses in the parameters of all nodes. Nothing is changed if a node is doubtful.

        Args:
            graphs: The graph, and the bodies of its conditional nodes.
            graphExec: The executable graph of the graph; 0 for none.
            move: The move.

        Raises:
            AcceleratorError: The nodes cannot work on the other memory (910). The details name the node.
        """

    def graphNodeSetEnabled(self, graphExec: int, graph: int, place: int, enabled: bool) -> None:
        """Let launches of ``graphExec`` do or skip the node at ``place`` of ``graph``, of which it was made."""

    def graphNodeGetEnabled(self, graphExec: int, graph: int, place: int) -> bool:
        """Return whether launches of ``graphExec`` do the node at ``place`` of ``graph``."""

    def beginTrace(self) -> Trace:
        """Begin a record of the work of all streams.

        Raises:
            RuntimeError: The devices are GPUs, and the package that records their work is missing or in use.
        """

    def environment(self) -> dict[str, str]:
        """Return the environment variables that give another process the same kind of devices."""

    def memoryDriver(self) -> Driver:
        """Return the driver table through which the allocator takes memory of these devices."""

    def nvml(self) -> Any:
        """Return the NVML of these devices: ``pynvml``, or an object with the same functions."""
