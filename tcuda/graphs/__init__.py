"""CUDA graphs (``torch.cuda.graphs``): work that a program captures once and launches many times."""

from __future__ import annotations

from tcuda._base.public_names import public_names
from tcuda.graphs._callables import make_graphed_callables
from tcuda.graphs._context import graph, is_current_stream_capturing
from tcuda.graphs._cuda_graph import CUDAGraph
from tcuda.graphs._while_loop import while_loop
from tcuda.memory._pools import graph_pool_handle

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
    "while_loop",
]
__dir__ = public_names(__name__)
