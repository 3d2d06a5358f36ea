"""Why an executable graph cannot be updated, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.errors import AcceleratorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._runtime.protocol import GraphNode

TOPOLOGY_CHANGED = 2
NODE_TYPE_CHANGED = 3
PARAMETERS_CHANGED = 5

_REASONS = {
    TOPOLOGY_CHANGED: "the graphs differ in the number of their nodes, or in what the nodes wait for",
    NODE_TYPE_CHANGED: "the type of the node differs",
    4: "the kernel has another context, or launches other kernels",
    PARAMETERS_CHANGED: "the parameters of the node differ in a way that CUDA cannot update, such as the device or the "
    "kind of the memory",
    6: "CUDA cannot update a node of this type",
    7: "the kernel differs in a way that CUDA cannot update",
    8: "the attributes of the launch differ",
}
"""The values of ``cudaGraphExecUpdateResult``."""


def update_failure(status: int, call: str, result: int, place: int, nodes: Sequence[GraphNode]) -> AcceleratorError:
    """Return the error for an executable graph that cannot be updated.

    Args:
        status: The status of the call.
        call: The call.
        result: The ``cudaGraphExecUpdateResult``.
        place: The place of the node that cannot be updated; -1 if the node is not known.
        nodes: The nodes of the graph from which the update was tried.
    """
    reason = _REASONS.get(result, "")
    where = nodes[place].in_words(place) if 0 <= place < len(nodes) else ""
    known = ": ".join(filter(None, (where, reason)))
    return AcceleratorError(status, call, f"{known}. The graph is unchanged." if known else "")


__all__ = ["NODE_TYPE_CHANGED", "PARAMETERS_CHANGED", "TOPOLOGY_CHANGED", "update_failure"]
