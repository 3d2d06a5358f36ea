"""The graphs and the executable graphs of a program, by their handles."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tcuda._base.statuses import Status
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.conditionals import ConditionalNodes
from tcuda.emulation.runtime.graphs import Executable

if TYPE_CHECKING:
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.graphs import Graph
    from tcuda.emulation.runtime.handles import Handles


class KnownGraphs:
    """The graphs and the executable graphs that exist.

    Args:
        handles: Gives the handles of graphs.

    Attributes:
        by_handle: The graphs, without the bodies of conditional nodes.
        executables: The executable graphs, by handle.
        conditionals: The conditional nodes, whose bodies have handles too.
    """

    def __init__(self, handles: Handles) -> None:
        self.by_handle: dict[int, Graph] = {}
        self.executables: dict[int, Executable] = {}
        self.conditionals = ConditionalNodes(handles)
        self._handles = handles
        self._numbers = itertools.count(1)

    def add(self, graph: Graph) -> int:
        """Add a graph and return its handle."""
        handle = self._handles.new()
        self.by_handle[handle] = graph
        return handle

    def find(self, handle: int, call: Call) -> Graph:
        """Return the graph ``handle``, which may be the body of a conditional node.

        Raises:
            AcceleratorError: No graph has the handle (1).
        """
        graph = self.by_handle.get(handle)
        if graph is not None:
            return graph
        node = self.conditionals.find(handle)
        if node is None:
            raise failure(Status.INVALID_VALUE, call)
        return node.body

    def add_executable(self, graph: Graph) -> int:
        """Add an executable graph of ``graph`` and return its handle."""
        handle = self._handles.new()
        self.executables[handle] = Executable(graph, next(self._numbers))
        return handle

    def executable(self, handle: int, call: Call) -> Executable:
        """Return the executable graph ``handle``.

        Raises:
            AcceleratorError: No executable graph has the handle (1).
        """
        executable = self.executables.get(handle)
        if executable is None:
            raise failure(Status.INVALID_VALUE, call)
        return executable
