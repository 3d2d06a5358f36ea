"""The picture of a graph: a file in the DOT language, and the cell of a notebook."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcuda._process.lazy import cuda
from tcuda._runtime.protocol import GRAPH_DOT_VERBOSE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._runtime.protocol import GraphNode

_NODE = re.compile(
    rb'^"graph_(?P<graph>\d+)_node_\d+"\[(?:[^"\]]|"[^"]*")*?label="(?P<label>(?:[^"\\]|\\.)*)"',
    re.MULTILINE | re.DOTALL,
)
"""A node in a drawing of CUDA or of emulated devices."""


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
    nodes = cuda.graphNodes(graph)
    if any(node.line is not None for node in nodes):
        file = Path(checked)
        file.write_bytes(_with_lines(file.read_bytes(), nodes))


def _with_lines(dot: bytes, nodes: Sequence[GraphNode]) -> bytes:
    """Return a drawing in which the labels of nodes have the lines of the program that captured the nodes.

    The first nodes of the drawing are those of the graph; the nodes of bodies and of child graphs follow. If the
    kernels of the drawing are not those of ``nodes``, the drawing stays as it is.
    """
    drawn = list(_NODE.finditer(dot))
    own = [node for node in drawn if node["graph"] == drawn[0]["graph"]]
    if len(own) != len(nodes) or not all(_shows(label["label"], node) for label, node in zip(own, nodes, strict=True)):
        return dot
    parts, place = [], 0
    for found, node in zip(own, nodes, strict=True):
        if node.line is not None:
            label = found["label"]
            end = found.start("label") + (label.rindex(b"}") if label.startswith(b"{") else len(label))
            parts += [dot[place:end], _in_label(str(node.line), is_record=label.startswith(b"{"))]
            place = end
    return b"".join([*parts, dot[place:]])


def _shows(label: bytes, node: GraphNode) -> bool:
    """Return whether a label may be that of ``node``. A name with signs that labels escape is not looked for."""
    return node.kernel is None or not node.kernel.isidentifier() or node.kernel.encode() in label


def _in_label(text: str, *, is_record: bool) -> bytes:
    """Return a line of the program as a part of a label. The fields of a record have signs around them."""
    escaped = re.sub(r'[\\"{}|<>]' if is_record else r'[\\"]', r"\\\g<0>", text).encode()
    return b"| {line | %s}\n" % escaped if is_record else b"%s\\n" % escaped


def html(graph: int, text: str, *, captured: bool) -> str:
    """Return the cell of a notebook: a picture if the nodes are kept and Graphviz is there, or else a line of text.

    Args:
        graph: The ``cudaGraph_t``; 0 if there is none.
        text: The line.
        captured: Whether work was captured.
    """
    # These imports are here, because few programs need the modules.
    import tempfile

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
