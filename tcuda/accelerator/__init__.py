"""The names of ``torch.accelerator``, for programs that name no kind of device.

A program that was written for ``torch.accelerator`` imports :mod:`tcuda.accelerator` in its place. The accelerator is
always CUDA, on the runtime in use. Each function does what the function of :mod:`tcuda` does under torch.cuda's name.
"""

from tcuda._base.public_names import public_names
from tcuda.accelerator import graphs, memory, random
from tcuda.accelerator._devices import (
    current_accelerator,
    current_device_idx,
    current_device_index,
    current_stream,
    device_count,
    device_index,
    get_device_capability,
    is_available,
    set_device_idx,
    set_device_index,
    set_stream,
    synchronize,
)
from tcuda.accelerator.graphs import Graph
from tcuda.accelerator.memory import (
    empty_cache,
    empty_host_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)

__all__ = [
    "Graph",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "graphs",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "random",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]
__dir__ = public_names(__name__)
