"""A stand-in for the functions of libcuda that the readers of launches and of graphs ask."""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SUCCESS, INVALID_VALUE, NOT_FOUND = 0, 1, 500
KERNEL, MEMCPY, MEMSET, HOST, CHILD, EMPTY, WAIT, RECORD = range(8)
CONDITIONAL = 13
HOST_MEMORY, DEVICE_MEMORY, ARRAY_MEMORY, UNIFIED_MEMORY = 1, 2, 3, 4

_size, _handle = ctypes.c_size_t, ctypes.c_size_t
_out = ctypes.POINTER(ctypes.c_size_t)


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = (
        ("function", _handle),
        ("sizes", ctypes.c_uint * 7),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", _handle),
        ("context", _handle),
    )


class MemcpyEnd(ctypes.Structure):
    """One end of a copy in CUDA_MEMCPY3D."""

    _fields_ = (
        ("x", _size),
        ("y", _size),
        ("z", _size),
        ("level", _size),
        ("memory_type", ctypes.c_int),
        ("host", _handle),
        ("device", _handle),
        ("array", _handle),
        ("reserved", _handle),
        ("pitch", _size),
        ("height", _size),
    )


class MemcpyNode(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = (
        ("source", MemcpyEnd),
        ("target", MemcpyEnd),
        ("width", _size),
        ("height", _size),
        ("depth", _size),
    )


class MemsetNode(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS_v2."""

    _fields_ = (
        ("target", _handle),
        ("pitch", _size),
        ("value", ctypes.c_uint),
        ("element_size", ctypes.c_uint),
        ("width", _size),
        ("height", _size),
        ("context", _handle),
    )


class Arguments:
    """The arguments of a launch: a list of the addresses of the parameters.

    Args:
        values: The bytes of each parameter.

    Attributes:
        address: The address of the list.
    """

    def __init__(self, *values: bytes) -> None:
        self._buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
        self._list = (ctypes.c_void_p * (len(values) or 1))(*map(ctypes.addressof, self._buffers))
        self.address = ctypes.addressof(self._list)


class Extra:
    """The list ``extra`` of a launch, with one block of all parameters.

    Args:
        block: The parameters.

    Attributes:
        address: The address of the list.
        block: The address of the block.
    """

    def __init__(self, block: bytes) -> None:
        self._block = ctypes.create_string_buffer(block, len(block))
        self._size = ctypes.c_size_t(len(block))
        self.block = ctypes.addressof(self._block)
        entries = (1, self.block, 2, ctypes.addressof(self._size), 0)
        self._list = (ctypes.c_size_t * 5)(*entries)
        self.address = ctypes.addressof(self._list)


@dataclass
class Function:
    """A function of a module: its name and the offset and the size of each parameter."""

    module: int
    name: bytes
    parameters: Sequence[tuple[int, int]]
    is_kernel: bool = False


@dataclass
class Node:
    """A node of a graph. ``content`` is the structure of its parameters, an event, or the handle of a child graph."""

    type: int
    content: Any = None
    kept: Any = None


@dataclass
class Graph:
    """The nodes of a graph by their handles, and its edges."""

    nodes: list[int] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)


class StandInDriver:
    """Answers from tables.

    Attributes:
        functions: The functions by their handles.
        graphs: The graphs by their handles.
        nodes: The nodes by their handles.
        captures: The graph, the number of the capture and the last nodes of each capturing stream.
        clones: The clone of a node in a graph.
        asked: How often each function was called.
    """

    def __init__(self) -> None:
        self.functions: dict[int, Function] = {}
        self.graphs: dict[int, Graph] = {}
        self.nodes: dict[int, Node] = {}
        self.captures: dict[int, tuple[int, int, list[int]]] = {}
        self.clones: dict[tuple[int, int], int] = {}
        self.asked: dict[str, int] = {}
        self._handles = itertools.count(0x7000, 16)
        self._calls: dict[str, Any] = {}
        self._arrays: list[Any] = []
        for name, types, answer in self._answers():
            self._calls[name] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._counted(name, answer))

    def addresses(self, *without: str) -> dict[str, int]:
        """Return the addresses of the functions by their names, apart from the functions ``without``."""
        return {
            name: ctypes.cast(call, ctypes.c_void_p).value or 0
            for name, call in self._calls.items()
            if name not in without
        }

    def graph(self) -> int:
        """Make a graph and return its handle."""
        handle = next(self._handles)
        self.graphs[handle] = Graph()
        return handle

    def add(self, graph: int, node: Node, *after: int) -> int:
        """Add a node that depends on the nodes ``after``, and return its handle."""
        handle = next(self._handles)
        self.nodes[handle] = node
        self.graphs[graph].nodes.append(handle)
        self.graphs[graph].edges += [(earlier, handle) for earlier in after]
        return handle

    def add_captured(self, stream: int, node: Node) -> int:
        """Add a node to the capture of a stream, and return its handle."""
        graph, number, last = self.captures[stream]
        handle = self.add(graph, node, *last)
        self.captures[stream] = (graph, number, [handle])
        return handle

    def clone(self, graph: int) -> int:
        """Clone a graph and return the handle of the clone."""
        original, clone = self.graphs[graph], self.graph()
        for node in original.nodes:
            self.clones[node, clone] = self.add(clone, self.nodes[node])
        self.graphs[clone].edges += [(self.clones[a, clone], self.clones[b, clone]) for a, b in original.edges]
        return clone

    def _counted(self, name: str, answer: Callable[..., int]) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.asked[name] = self.asked.get(name, 0) + 1
            return answer(*arguments)

        return call

    def _answers(self) -> list[tuple[str, tuple[Any, ...], Callable[..., int]]]:
        numbers = ctypes.POINTER(ctypes.c_int)
        names = ctypes.POINTER(ctypes.c_char_p)
        lists = ctypes.POINTER(ctypes.c_void_p)
        return [
            ("cuFuncGetParamInfo", (_handle, _size, _out, _out), self._parameter),
            ("cuFuncGetModule", (_out, _handle), self._module),
            ("cuKernelGetLibrary", (_out, _handle), self._library),
            ("cuKernelGetFunction", (_out, _handle), self._function),
            ("cuFuncGetName", (names, _handle), self._name),
            (
                "cuStreamGetCaptureInfo_v3",
                (_handle, numbers, _out, _out, lists, lists, _out),
                lambda stream, status, number, graph, nodes, _edges, count: self._capture(
                    stream, status, number, graph, nodes, count
                ),
            ),
            ("cuStreamGetCaptureInfo_v2", (_handle, numbers, _out, _out, lists, _out), self._capture),
            ("cuGraphGetNodes", (_handle, _out, _out), self._nodes),
            (
                "cuGraphGetEdges_v2",
                (_handle, _out, _out, ctypes.c_void_p, _out),
                lambda graph, before, after, _data, count: self._edges(graph, before, after, count),
            ),
            ("cuGraphGetEdges", (_handle, _out, _out, _out), self._edges),
            ("cuGraphNodeGetType", (_handle, numbers), self._type),
            ("cuGraphKernelNodeGetParams_v2", (_handle, ctypes.POINTER(KernelNode)), self._content(KERNEL)),
            ("cuGraphMemcpyNodeGetParams", (_handle, ctypes.POINTER(MemcpyNode)), self._content(MEMCPY)),
            ("cuGraphMemsetNodeGetParams", (_handle, ctypes.POINTER(MemsetNode)), self._content(MEMSET)),
            ("cuGraphChildGraphNodeGetGraph", (_handle, _out), self._content(CHILD)),
            ("cuGraphEventRecordNodeGetEvent", (_handle, _out), self._content(RECORD)),
            ("cuGraphEventWaitNodeGetEvent", (_handle, _out), self._content(WAIT)),
            ("cuGraphNodeFindInClone", (_out, _handle, _handle), self._clone),
        ]

    def _parameter(self, function: int, place: int, offset: Any, size: Any) -> int:
        known = self.functions.get(function)
        if known is None or known.is_kernel or place >= len(known.parameters):
            return INVALID_VALUE
        offset[0], size[0] = known.parameters[place]
        return SUCCESS

    def _module(self, module: Any, function: int) -> int:
        known = self.functions.get(function)
        if known is None or known.is_kernel:
            return INVALID_VALUE
        module[0] = known.module
        return SUCCESS

    def _library(self, library: Any, kernel: int) -> int:
        known = self.functions.get(kernel)
        if known is None or not known.is_kernel:
            return INVALID_VALUE
        library[0] = known.module
        return SUCCESS

    def _function(self, function: Any, kernel: int) -> int:
        function[0] = kernel + 1  # a kernel and its function lie side by side
        return SUCCESS

    def _name(self, name: Any, function: int) -> int:
        known = self.functions.get(function)
        if known is None:
            return INVALID_VALUE
        name[0] = known.name
        return SUCCESS

    def _capture(self, stream: int, status: Any, number: Any, graph: Any, nodes: Any, count: Any) -> int:
        status[0] = int(stream in self.captures)
        if status[0]:
            graph[0], number[0], last = self.captures[stream]
            array = (ctypes.c_size_t * (len(last) or 1))(*last)
            self._arrays = [array]
            nodes[0] = ctypes.addressof(array)
            count[0] = len(last)
        return SUCCESS

    def _nodes(self, graph: int, nodes: Any, count: Any) -> int:
        if graph not in self.graphs:
            return INVALID_VALUE
        known = self.graphs[graph].nodes
        if nodes:
            for place, node in enumerate(known):
                nodes[place] = node
        count[0] = len(known)
        return SUCCESS

    def _edges(self, graph: int, before: Any, after: Any, count: Any) -> int:
        known = self.graphs[graph].edges
        if before:
            for place, (earlier, later) in enumerate(known):
                before[place], after[place] = earlier, later
        count[0] = len(known)
        return SUCCESS

    def _type(self, node: int, kind: Any) -> int:
        if node not in self.nodes:
            return INVALID_VALUE
        kind[0] = self.nodes[node].type
        return SUCCESS

    def _content(self, kind: int) -> Callable[[int, Any], int]:
        def answer(node: int, content: Any) -> int:
            if self.nodes[node].type != kind:
                return INVALID_VALUE
            content[0] = self.nodes[node].content
            return SUCCESS

        return answer

    def _clone(self, clone: Any, node: int, graph: int) -> int:
        if (node, graph) not in self.clones:
            return NOT_FOUND
        clone[0] = self.clones[node, graph]
        return SUCCESS
