"""The picture of a graph: a file in the DOT language, and the cell of a notebook."""

from __future__ import annotations

import os
from typing import Any

from tcuda._process.lazy import cuda
from tcuda._runtime.protocol import GRAPH_DOT_VERBOSE


def write(graph: int, path: Any, *, verbose: bool) -> None:
    """Write the file of :meth:`tcuda.CUDAGraph.debug_dump`.

    Args:
        graph: The ``cudaGraph_t``; 0 if there is none.
        path: The path of the file.
        verbose: Whether the file has all that CUDA knows of each node.

    Raises:
        AcceleratorError: The file cannot be written.
        RuntimeError: ``graph`` is 0.
        TypeError: ``path`` is not a path.
        ValueError: ``path`` has a null character.
    """
    if not graph:
        raise RuntimeError(
            "There is no graph to dump: call enable_debug_mode() before the capture, or make the graph with "
            "keep_graph=True."
        )
    checked = os.fsdecode(path)
    if b"\0" in os.fsencode(checked):
        raise ValueError(f"debug_path has a null character, which no path can have: {checked!r}.")
    cuda.graphDebugDotPrint(graph, checked, GRAPH_DOT_VERBOSE if verbose else 0)


def html(graph: int, text: str, *, captured: bool) -> str:
    """Return the cell of a notebook: a picture if the nodes are kept and Graphviz is there, or else a line of text.

    Args:
        graph: The ``cudaGraph_t``; 0 if there is none.
        text: The line.
        captured: Whether work was captured.
    """
    # These imports are here, because few programs need the modules.
    import tempfile
    from pathlib import Path

    from tcuda._viz import graphs
    from tcuda._viz.shared import notebook

    if not graph:
        hint = "\nA picture needs CUDAGraph(keep_graph=True)." if captured else ""
        return notebook.preformatted(f"{text}{hint}")
    if not graphs.is_possible():
        return notebook.preformatted(f"{text}\nA picture needs the program dot of Graphviz.")
    with tempfile.TemporaryDirectory(prefix="tcuda-graph-") as folder:
        file = Path(folder, "graph.dot")
        write(graph, file, verbose=False)
        return graphs.svg(file.read_bytes())


__all__ = ["html", "write"]
