"""The description of a graph: its nodes and their dependencies, under torch's names."""

from __future__ import annotations

from typing import Any

from tcuda._process.lazy import cuda


def graph_data(graph: int, executable: int) -> dict[str, Any]:
    """Return the dictionary of :meth:`tcuda.CUDAGraph.get_graph_data`.

    Args:
        graph: The ``cudaGraph_t``.
        executable: The ``cudaGraphExec_t``.
    """
    number = cuda.graphExecGetId(executable)
    nodes: list[dict[str, Any]] = []
    for place, node in enumerate(cuda.graphNodes(graph)):
        node_id = node.number & 0xFFFFFFFF
        nodes.append(
            {
                "index": place,
                "node_type": node.kind,
                "tools_id": number << 32 | node_id,
                "graph_id": number,
                "node_id": node_id,
                "kernel_name": node.kernel,
                "event_ptr": node.event,
                "dependencies": node.before,
                "dependents": [],
            }
        )
    for place, described in enumerate(nodes):
        for before in described["dependencies"]:
            nodes[before]["dependents"].append(place)
    return {"exec_graph_id": number, "nodes": nodes}
