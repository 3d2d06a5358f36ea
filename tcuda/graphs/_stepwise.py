"""A replay that runs the nodes of a graph one at a time, and names the node that fails."""

from __future__ import annotations

import contextlib
import gc
import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base.errors import AcceleratorError, UnwrittenMemoryError, add_sentence
from tcuda._device import device
from tcuda._process.lazy import backend, cuda
from tcuda.graphs._array_layout import layout_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tcuda._runtime.protocol import GraphNode
    from tcuda.graphs._captured_work import CapturedWork

_CALL = "CUDAGraph.replay_stepwise()"

_ALONE = ("kernel", "memcpy", "memset", "host", "empty", "event_record", "wait_event")
"""The types of nodes that can run without the rest of the graph."""

_REASONS = {
    "conditional": "the value of the condition belongs to the graph",
    "mem_alloc": "the memory that the node allocates belongs to the graph",
    "mem_free": "the memory that the node frees belongs to the graph",
}
"""Why nodes of other types cannot run without the rest."""

_COLLECTIVE = "nccl"
"""A part of the names of the kernels that wait for other devices."""

_MOST_WORDS = 3
"""The most arrays that an error describes."""


class _Place(NamedTuple):
    """A node, its graph, its place in the graph, and its name: ``2.0`` is node 0 of the child graph at place 2."""

    node: GraphNode
    graph: int
    place: int
    name: str

    def in_words(self) -> str:
        return self.node.in_words(self.name)


def replay_stepwise(work: CapturedWork, stream: int, check: Callable[[Any], Any] | None) -> None:
    """Run the nodes of ``work`` on ``stream``; see :meth:`tcuda.CUDAGraph.replay_stepwise`."""
    places = list(_places(work.graph, "", work))
    cuda.deviceSynchronize()  # an error of earlier work is not an error of a node
    for state in work.states:
        if status := state.prepare_node():
            raise AcceleratorError(status, "cuGraphKernelNodeSetParams")
    made: list[tuple[int, int]] = []
    try:
        for place in places:
            made.append(_alone(place))
        arrays = None if check is None else _Arrays(check)
        for place, (graph, executable) in zip(places, made, strict=True):
            if arrays is not None:
                arrays.prepare(graph)
            try:
                cuda.graphLaunch(executable, stream)
                cuda.streamSynchronize(stream)
            except Exception as error:
                add_sentence(error, f"{_CALL} ran {place.in_words()}.")
                raise
            if arrays is not None:
                arrays.examine(place, graph)
    finally:
        for graph, executable in made:
            with contextlib.suppress(AcceleratorError):  # after some errors, CUDA refuses all calls
                cuda.graphExecDestroy(executable)
                cuda.graphDestroy(graph)


def _places(graph: int, prefix: str, work: CapturedWork | None) -> Iterator[_Place]:
    """Yield the nodes of ``graph``, and those of its child graphs, in an order that the graph allows.

    Args:
        graph: The graph.
        prefix: The beginning of the names of the nodes.
        work: The work whose disabled nodes are left out; None for a child graph.

    Raises:
        RuntimeError: A node cannot be run alone.
    """
    nodes = cuda.graphNodes(graph)
    for place in order([node.before for node in nodes]):
        found = _Place(nodes[place], graph, place, f"{prefix}{place}")
        kind = found.node.kind
        if kind == "child_graph":
            yield from _places(cuda.graphChild(graph, place), f"{found.name}.", None)
        elif kind not in _ALONE:
            raise _refusal(found, _REASONS.get(kind, "CUDA has no call that copies such a node"))
        elif _COLLECTIVE in (found.node.kernel or ""):
            raise _refusal(found, "the kernel waits for the work of other devices")
        elif kind != "kernel" or work is None or not work.executable or work.is_enabled(place):
            yield found


def order(before: Sequence[Iterable[int]]) -> list[int]:
    """Return an order in which each node comes after those that it waits for, as near to the given order as possible.

    Args:
        before: For each node the nodes that it waits for.
    """
    waiting = [set(places) for places in before]
    after: list[list[int]] = [[] for _ in before]
    for place, places in enumerate(waiting):
        for earlier in places:
            after[earlier].append(place)
    ready = [place for place, places in enumerate(waiting) if not places]
    found = []
    while ready:
        place = heapq.heappop(ready)
        found.append(place)
        for later in after[place]:
            waiting[later].discard(place)
            if not waiting[later]:
                heapq.heappush(ready, later)
    return found


def _alone(place: _Place) -> tuple[int, int]:
    """Return a graph that has only a copy of a node, and the executable graph of that graph."""
    try:
        graph = cuda.graphNodeAlone(place.graph, place.place)
        try:
            return graph, cuda.graphInstantiate(graph, 0)
        except BaseException:
            cuda.graphDestroy(graph)
            raise
    except AcceleratorError as error:
        raise _refusal(place, f"CUDA cannot copy the node ({str(error).splitlines()[0]})") from error


def _refusal(place: _Place, reason: str) -> RuntimeError:
    return RuntimeError(f"{_CALL}: {place.in_words()} cannot be run alone: {reason}. No node was run.")


class _Array(NamedTuple):
    """An array of the program, and the addresses of its memory."""

    array: Any
    device: int
    begin: int
    end: int

    def is_in(self, ranges: Iterable[tuple[int, int]]) -> bool:
        """Return whether the array has a byte of ``ranges``."""
        return any(begin < self.end and self.begin < end for begin, end in ranges)


class _Arrays:
    """The arrays that the program holds, and a check of those that a node has written.

    Args:
        check: Returns an array of bool, or a bool, for an array.
    """

    def __init__(self, check: Callable[[Any], Any]) -> None:
        self._check = check
        self._known = list(_arrays_of_program())
        self._wrong: set[int] = set()
        """The arrays that the next node perhaps writes, and that do not pass before, by their places in the list."""

    def prepare(self, graph: int) -> None:
        """Check the arrays that the launch of ``graph``, which has one node, perhaps writes next."""
        possible = cuda.graphWrites(graph).possible
        self._wrong.clear()
        for number, known in enumerate(self._known):
            # An array with elements that nothing has written is no input of the node.
            with contextlib.suppress(UnwrittenMemoryError):
                if known.is_in(possible) and self._words(known):
                    self._wrong.add(number)

    def examine(self, place: _Place, graph: int) -> None:
        """Check the arrays that the last launch of ``graph``, which has the node of ``place``, has written.

        Raises:
            RuntimeError: An array does not pass the check.
        """
        writes = cuda.graphWrites(graph)
        found = []
        for number, known in enumerate(self._known):
            # An array that did not pass before may be an input of the node.
            is_output = known.is_in(writes.sure) or (known.is_in(writes.possible) and number not in self._wrong)
            if is_output and (words := self._words(known)):
                found.append(words)
        if found:
            name = (getattr(self._check, "__name__", None) or repr(self._check)).removeprefix("cupy_")
            more = "" if len(found) <= _MOST_WORDS else f", and {len(found) - _MOST_WORDS} more"
            raise RuntimeError(
                f"{_CALL}: {place.in_words()} has written values that {name} refuses: "
                f"{', '.join(found[:_MOST_WORDS])}{more}. The nodes before have written no such values, as far as "
                "their arrays are known."
            )

    def _words(self, known: _Array) -> str:
        """Return words for an array that does not pass the check; an empty text if the array passes."""
        array = known.array
        shape = f"an array of shape {array.shape} and dtype {array.dtype}"
        with device(known.device):
            passed = self._check(array)
            if not isinstance(passed, backend.array_type()):
                return "" if passed else shape
            if bool(passed.all()):
                return ""
            refused = passed.size - int(passed.astype(bool).sum())
        return f"{refused} of {passed.size} elements of {shape}" if passed.size > 1 else shape


def _arrays_of_program() -> Iterator[_Array]:
    """Yield the live arrays of devices, but only the first of several arrays with the same elements."""
    kind = backend.array_type()
    seen = set()
    found: list[Any] = gc.get_objects()
    for array in found:
        # isinstance() asks an object of another type for its class, which may run code of a program.
        if issubclass(type(array), kind) and array.size:
            try:
                layout = layout_of(array, "an array")
            except RuntimeError:  # the array is in memory of the host
                continue
            if layout not in seen:
                seen.add(layout)
                yield _Array(array, layout.device, *layout.bounds)


__all__ = ["order", "replay_stepwise"]
