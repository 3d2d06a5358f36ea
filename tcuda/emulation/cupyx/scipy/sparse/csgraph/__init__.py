"""Graphs on emulated devices (``cupyx.scipy.sparse.csgraph``), by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcuda.emulation.cupyx.scipy.host_modules import scipy_module
from tcuda.emulation.cupyx.scipy.sparse.base import _spbase
from tcuda.emulation.cupyx.scipy.sparse.calls import Plain, call
from tcuda.emulation.cupyx.scipy.sparse.compressed import csr_matrix

_HOST = scipy_module("sparse.csgraph")

__all__ = ["connected_components"]


def connected_components(
    csgraph: Any, directed: bool = True, connection: str = "weak", return_labels: bool = True
) -> Any:
    """Return the number of the connected components of a graph, and the component of each node.

    Args:
        csgraph: The matrix of the graph, sparse or an array.
        directed: Whether the edges have directions.
        connection: ``"weak"`` or ``"strong"``: whether nodes are connected by a path in some direction or in both.
        return_labels: Whether the components of the nodes are returned, too.

    Raises:
        ValueError: The matrix is not square, or ``connection`` is another text.
    """
    kind = connection.lower()
    if kind not in ("weak", "strong"):
        raise ValueError("connection must be 'weak' or 'strong'")
    if csgraph.ndim != 2:
        raise ValueError("graph should have two dimensions")
    graph = csgraph if isinstance(csgraph, _spbase) else csr_matrix(csgraph)
    if graph.shape[0] != graph.shape[1]:
        raise ValueError("graph should be a square array")

    def work(matrix: Any) -> Any:
        count, labels = _HOST.connected_components(matrix, directed, kind)
        return Plain(int(count)), labels.astype(np.int32)

    count, labels = call(work, (graph,), name="connected_components")
    return (count, labels) if return_labels else count


def __dir__() -> list[str]:
    return sorted(__all__)
