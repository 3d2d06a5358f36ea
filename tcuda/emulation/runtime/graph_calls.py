"""The calls for graphs and executable graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.statuses import Status
from tcuda._base.strides import byte_bounds
from tcuda._runtime.protocol import GRAPH_DOT_VERBOSE, Moved, Writes
from tcuda._runtime.update_failures import update_failure
from tcuda.emulation.runtime.accesses import POSSIBLE, WRITE, listed
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.conditionals import has_legal_bodies
from tcuda.emulation.runtime.graph_changes import MovedGraph, can_be_disabled, difference, without

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda._runtime.protocol import GraphContents, GraphNode, Move
    from tcuda.emulation.runtime.graphs import Executable, Graph, Places
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.timeline import Timeline
    from tcuda.emulation.runtime.work import Work


_ALONE = ("kernel", "memcpy", "memset", "host", "empty", "event_record", "wait_event")
"""The types of nodes that CUDA lets a program copy to another graph."""


class GraphCalls:
    """The calls for graphs.

    Args:
        machine: The state of the devices.
        work: Does the work of the graphs.
    """

    def __init__(self, machine: Machine, work: Work) -> None:
        self._lock = machine.lock
        self._races = machine.races
        self._devices = machine.devices
        self._captures = machine.captures
        self._streams = machine.streams
        self._memory = machine.memory
        self._host_uses = machine.host_uses
        self._graphs = machine.graphs
        self._work = work

    def graphDestroy(self, graph: int) -> None:
        if self._graphs.by_handle.pop(graph, None) is None:
            raise failure(Status.INVALID_VALUE, ("cudaGraphDestroy({:#x})", graph))

    def graphInstantiate(self, graph: int, flags: int) -> int:
        with self._lock:
            call = "cudaGraphInstantiate({:#x}, {})", graph, flags
            captured = self._graphs.find(graph, call)
            executables = list(self._graphs.executables.values())
            if any(captured.bodies()) and any(known.source is captured for known in executables):
                raise failure(Status.INVALID_VALUE, call)  # only one executable of such a graph may exist
            if not has_legal_bodies(captured, self._can_use):
                raise failure(Status.INVALID_VALUE, call)
            return self._graphs.add_executable(captured)

    def graphLaunch(self, graphExec: int, stream: int) -> None:
        call = "cudaGraphLaunch({:#x}, {:#x})", graphExec, stream
        with self._lock:
            executable = self._graphs.executables.get(graphExec)
            if executable is None:
                raise failure(Status.INVALID_VALUE, call)
            timeline = self._streams.find(stream, call)
            if timeline.capture is not None:
                raise timeline.capture.invalidate(call)
            if self._captures.in_progress:
                self._streams.forbid_implicit(timeline, call)
        self._replay(executable, timeline)

    def tryGraphLaunch(self, graphExec: int, stream: int) -> int:
        """Launch an executable graph on ``stream`` if no capture forbids it, and return a status.

        In contrast to :meth:`graphLaunch`, a launch that is refused invalidates no capture.
        """
        with self._lock:
            executable = self._graphs.executables.get(graphExec)
            if executable is None:
                return Status.INVALID_VALUE
            timeline = self._streams.find(stream, ("cudaGraphLaunch({:#x}, {:#x})", graphExec, stream))
            if self._captures.in_progress:
                if timeline.capture is not None:
                    return Status.STREAM_CAPTURE_UNSUPPORTED
                if self._streams.capture_beside(timeline) is not None:
                    return Status.STREAM_CAPTURE_IMPLICIT
        self._replay(executable, timeline)
        return Status.SUCCESS

    def prepareLaunch(self, graphExec: int, owner: object, prepare: Callable[[], object]) -> None:
        """Let the next launches of an executable graph call ``prepare`` first, once for each owner."""
        prepare()

    def graphExecDestroy(self, graphExec: int) -> None:
        if self._graphs.executables.pop(graphExec, None) is None:
            raise failure(Status.INVALID_VALUE, ("cudaGraphExecDestroy({:#x})", graphExec))

    def graphDebugDotPrint(self, graph: int, path: str, flags: int) -> None:
        call = "cudaGraphDebugDotPrint({:#x}, {!r}, {})", graph, path, flags
        drawing = self._graphs.find(graph, call).dot(verbose=bool(flags & GRAPH_DOT_VERBOSE))
        try:
            Path(path).write_text(drawing)
        except OSError:
            raise failure(Status.OPERATING_SYSTEM, call) from None

    def graphContents(self, graph: int) -> GraphContents:
        return self._graphs.find(graph, ("cudaGraphGetNodes({:#x})", graph)).contents()

    def graphNodes(self, graph: int) -> list[GraphNode]:
        return self._graphs.find(graph, ("cudaGraphGetNodes({:#x})", graph)).described()

    def graphChild(self, graph: int, place: int) -> int:
        """Refuse the call: no graph of emulated devices has a child graph."""
        raise failure(Status.INVALID_VALUE, ("cudaGraphChildGraphNodeGetGraph({:#x}, {})", graph, place))

    def graphNodeAlone(self, graph: int, place: int) -> int:
        call = "cudaGraphAddNode({:#x}, {})", graph, place
        source = self._graphs.find(graph, call)
        if not 0 <= place < len(source.nodes):
            raise failure(Status.INVALID_VALUE, call)
        node = source.nodes[place]
        if node.kind not in _ALONE:
            raise failure(Status.NOT_SUPPORTED, call)
        alone = self._captures.new_body()
        alone.add(node, frozenset())
        return self._graphs.add(alone)

    def graphWrites(self, graph: int) -> Writes:
        (node,) = self._graphs.find(graph, ("cudaGraphGetNodes({:#x})", graph)).nodes
        writes = Writes([], [])
        for access in listed(node.accesses):
            address, itemsize, shape, strides, kind, _, *marks = access
            if kind & WRITE:
                found = writes.possible if POSSIBLE in marks else writes.sure
                found.append(byte_bounds(address, itemsize, shape, strides))
        return writes

    def graphExecGetId(self, graphExec: int) -> int:
        return self._graphs.executable(graphExec, ("cudaGraphExecGetId({:#x})", graphExec)).number

    def graphExecUpdate(self, graphExec: int, graph: int) -> None:
        call = "cudaGraphExecUpdate({:#x}, {:#x})", graphExec, graph
        with self._lock:
            executable, other = self._graphs.executable(graphExec, call), self._graphs.find(graph, call)
            found = difference(executable.source, other, self._memory.owner)
            if found is not None:
                text = call[0].format(*call[1:])
                status = Status.GRAPH_EXEC_UPDATE_FAILURE
                raise update_failure(status, text, found.result, found.place, other.described())
            self._change(executable, other, executable.disabled)
            executable.preparations.clear()

    def graphMove(self, graphs: Sequence[int], graphExec: int, move: Move) -> Moved:
        call = "cudaGraphKernelNodeSetParams({:#x})", graphs[0]
        with self._lock:
            executable = self._graphs.executable(graphExec, call) if graphExec else None
            moved = MovedGraph(self._graphs.find(graphs[0], call), move)
            if moved.nodes and not moved.doubtful:
                self._graphs.by_handle[graphs[0]] = moved.graph
                self._graphs.conditionals.replace(moved.conditionals)
                if executable is not None:
                    self._change(executable, moved.graph, executable.disabled)
            addresses = [address for graph in graphs for address in self._graphs.find(graph, call).contents().addresses]
            return Moved(moved.nodes, addresses, moved.doubtful)

    def graphNodeSetEnabled(self, graphExec: int, graph: int, place: int, enabled: bool) -> None:
        call = "cudaGraphNodeSetEnabled({:#x}, {}, {:d})", graphExec, place, enabled
        with self._lock:
            executable = self._graphs.executable(graphExec, call)
            if not can_be_disabled(self._graphs.find(graph, call), place):
                raise failure(Status.INVALID_VALUE, call)
            disabled = executable.disabled - {place} if enabled else executable.disabled | {place}
            self._change(executable, executable.source, disabled)

    def graphNodeGetEnabled(self, graphExec: int, graph: int, place: int) -> bool:
        call = "cudaGraphNodeGetEnabled({:#x}, {})", graphExec, place
        with self._lock:
            executable = self._graphs.executable(graphExec, call)
            if not can_be_disabled(self._graphs.find(graph, call), place):
                raise failure(Status.INVALID_VALUE, call)
            return place not in executable.disabled

    def _change(self, executable: Executable, source: Graph, disabled: Places) -> None:
        executable.change(source, disabled, without(source, disabled) if disabled else source)
        self._races.watcher.changed(executable)

    def _can_use(self, device: int, address: int) -> bool:
        """Return whether ``device`` can use the memory at ``address``, which lies on some device."""
        owner = self._memory.owner(address)
        return owner is None or self._devices[device].can_access(owner.index)

    def _replay(self, executable: Executable, timeline: Timeline) -> None:
        """Run ``executable`` on ``timeline``, which does not capture.

        Raises:
            AcceleratorError: A node uses addresses whose memory is unmapped, such as memory that is asleep (700).
        """
        state = executable.graph, self._devices[0].memory.unmaps
        if executable.checked != state:
            if any(map(self._memory.is_unmapped, executable.graph.addresses())):
                raise failure(Status.ILLEGAL_ADDRESS, ("cudaGraphLaunch()",))
            executable.checked = state
        # The lock is not held, because the work may be slow while another thread launches its own.
        if self._work.direct:
            executable.run()
        else:
            self._work.perform_graph(executable, timeline)
        with self._lock:
            start, end = executable.complete(self._streams.times.start(timeline))
            self._streams.times.extend(timeline, end)
            if executable.host:
                self._host_uses.add(executable.host, timeline, end)
            if end > start:
                self._streams.times.note(timeline.device, start, end)
            if self._races.trace is not None:
                self._races.trace.graph(timeline, executable.graph, start)
            self._races.watcher.launched(executable, timeline)
