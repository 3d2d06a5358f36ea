"""Graphs as CuPy's objects."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcuda._process.exit import finalizer
from tcuda._process.lazy import backend, cuda
from tcuda.emulation.devices.runtime_error import with_cupys_error

if TYPE_CHECKING:
    from tcuda._backend.streams import CurrentStream


class Graph:
    """A graph (``cupy.cuda.Graph``), which only ``Stream.end_capture()`` makes.

    Attributes:
        graph: The ``cudaGraph_t``.
        graphExec: The ``cudaGraphExec_t``.
    """

    __module__ = "tcuda.emulation.cuda"

    graph = graphExec = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "currently this class cannot be initiated by the user and must be created via stream capture"
        )

    @classmethod
    def _of(cls, graph: int) -> Graph:
        """Return the object that owns the captured ``graph``."""
        made = cls.__new__(cls)
        made.graph = graph
        made.graphExec = cuda.graphInstantiate(graph, 0)
        return made

    def _destroy(self) -> None:
        if self.graph:
            cuda.graphDestroy(self.graph)
        if self.graphExec:
            cuda.graphExecDestroy(self.graphExec)

    __del__ = finalizer(_destroy)

    @with_cupys_error
    def launch(self, stream: CurrentStream | None = None) -> None:
        """Do the work of the graph on ``stream``; on the current stream if None."""
        cuda.graphLaunch(self.graphExec, (backend.current_stream() if stream is None else stream).ptr)

    def upload(self, stream: CurrentStream | None = None) -> None:
        """Do nothing: emulated devices load nothing before a launch."""

    @with_cupys_error
    def debug_dot_str(self, flags: int = 0) -> str:
        """Return a drawing of the graph in the DOT language.

        Args:
            flags: The flags of ``cudaGraphDebugDotPrint``.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph.dot"
            cuda.graphDebugDotPrint(self.graph, str(path), flags)
            return path.read_text()
