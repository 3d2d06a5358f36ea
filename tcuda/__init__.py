"""The surface of ``torch.cuda`` for CuPy arrays.

``import tcuda`` is cheap and touches no GPU. The first call that needs a device initialises tcuda. ``tcuda.xp`` is
``cupy``, or the emulated counterpart of ``cupy`` where devices are emulated.
"""

# `requirements` comes first, because it checks whether the other modules can be imported at all.
from tcuda._base import requirements as _requirements

# isort: split
import os as _os
import typing as _typing

from tcuda import graphs, jiterator, memory, nvtx, profiler, random, streams
from tcuda._base import log as _log
from tcuda._base.absent import refuse_absent_modules as _refuse_absent_modules
from tcuda._base.errors import AcceleratorError, CudaError, DeferredCudaCallError, OutOfMemoryError
from tcuda._base.version import __version__
from tcuda._base.wings import lacks as _lacks
from tcuda._base.wings import wing_module as _wing_module
from tcuda._cupy.import_hook import watch_cupy as _watch_cupy
from tcuda._device import (
    can_device_access_peer,
    current_blas_handle,
    current_device,
    current_solver_handle,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    has_half,
    has_magma,
    is_available,
    is_bf16_supported,
    is_tf32_supported,
    mem_get_info,
    set_device,
    synchronize,
)
from tcuda._device._cudart import check_error, cudart, cudaStatus
from tcuda._device._nvml import (
    _HAS_PYNVML,
    _get_pynvml_handler,
    clock_rate,
    device_memory_used,
    list_gpu_processes,
    memory_usage,
    power_draw,
    temperature,
    utilization,
)
from tcuda._device._sync_debug import SyncCounter, get_sync_debug_mode, set_sync_debug_mode, sync_debug_mode
from tcuda._process import initialization as _initialization
from tcuda._process.devices import DeviceArgument
from tcuda._process.ipc import ipc_collect
from tcuda._process.lazy import _lazy_call, _lazy_init, init, is_initialized
from tcuda._process.lazy import read_variables as _read_variables
from tcuda._process.lazy_names import lazy_names as _lazy_names
from tcuda.graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from tcuda.kernels import _compile_kernel
from tcuda.memory import (
    CUDAPluggableAllocator,
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    change_current_allocator,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from tcuda.memory._out_of_memory import raise_out_of_memory as _raise_out_of_memory
from tcuda.memory._relief import relieve as _relieve
from tcuda.random import (
    Generator,
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from tcuda.random._defaults import install_generators as _install_generators
from tcuda.random._seeding import _get_rng_state_offset, _set_rng_state_offset
from tcuda.streams import (
    Event,
    ExternalStream,
    GreenContext,
    Stream,
    StreamContext,
    _sleep,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)

if _typing.TYPE_CHECKING:
    from tcuda import accelerator, comm, emulation, nccl, sanitizer
    from tcuda._backend import xp
else:
    __getattr__, __dir__ = _lazy_names(__name__, ("accelerator", "comm", "emulation", "nccl", "sanitizer"))


def load_ipython_extension(shell: object) -> None:
    """Add the magics ``%%tcuda_sanitize`` and ``%%tcuda_memory`` to a notebook, for IPython's ``%load_ext tcuda``."""
    from tcuda._viz import magics

    magics.add(shell, memory.track, device_count)


def unload_ipython_extension(shell: object) -> None:
    """Remove the magics from a notebook, for IPython's ``%unload_ext tcuda``."""
    from tcuda._viz import magics

    magics.remove(shell)


_initialization.prepare(_raise_out_of_memory, _relieve, _install_generators)
_refuse_absent_modules()
_watch_cupy()
_read_variables(lambda: _log.print_if_asked(_os.environ))
if {"TORCH_CUDA_SANITIZER", "TCUDA_SANITIZER"} & _os.environ.keys():
    _read_variables(lambda: _wing_module("sanitizer._variables").enable_as_asked(_os.environ))

__all__ = [
    "AcceleratorError",
    "CUDAGraph",
    "CUDAPluggableAllocator",
    "CudaError",
    "DeferredCudaCallError",
    "DeviceArgument",
    "Event",
    "ExternalStream",
    "Generator",
    "GreenContext",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "SyncCounter",
    "__version__",
    "accelerator",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "can_device_access_peer",
    "change_current_allocator",
    "check_error",
    "clock_rate",
    "comm",
    "cudaStatus",
    "cudart",
    "current_blas_handle",
    "current_device",
    "current_solver_handle",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "graphs",
    "has_half",
    "has_magma",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "jiterator",
    "list_gpu_processes",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "memory_usage",
    "nccl",
    "nvtx",
    "power_draw",
    "profiler",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "sanitizer",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "streams",
    "sync_debug_mode",
    "synchronize",
    "temperature",
    "use_mem_pool",
    "utilization",
]

if _lacks("sanitizer"):
    __all__.remove("sanitizer")
