"""Device memory: the allocator, its statistics and its history (``torch.cuda.memory``)."""

from tcuda._base.public_names import public_names
from tcuda._device import mem_get_info
from tcuda._device._nvml import list_gpu_processes
from tcuda.memory._alive import AliveSite
from tcuda.memory._allocators import (
    CUDAPluggableAllocator,
    attach_out_of_memory_observer,
    change_current_allocator,
    get_allocator_backend,
    torch_allocator,
)
from tcuda.memory._allocators import (
    _CUDAAllocator as _CUDAAllocator,
)
from tcuda.memory._allocators import (
    _get_current_allocator as _get_current_allocator,
)
from tcuda.memory._allocators import (
    _set_allocator_settings as _set_allocator_settings,
)
from tcuda.memory._cache import (
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    empty_cache,
    get_per_process_memory_fraction,
    record_stream,
    set_per_process_memory_fraction,
)
from tcuda.memory._copies import copy_async
from tcuda.memory._html import SnapshotPage
from tcuda.memory._html import (
    _save_memory_usage as _save_memory_usage,
)
from tcuda.memory._html import (
    _save_segment_usage as _save_segment_usage,
)
from tcuda.memory._page_locked import (
    empty_host_cache,
    empty_pinned,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    is_pinned,
    pin,
    reset_accumulated_host_memory_stats,
    reset_peak_host_memory_stats,
    zeros_pinned,
)
from tcuda.memory._pools import MemPool, use_mem_pool
from tcuda.memory._relief import on_out_of_memory
from tcuda.memory._scopes import scope
from tcuda.memory._sleep import is_asleep, sleep, wake
from tcuda.memory._snapshots import (
    _dump_snapshot as _dump_snapshot,
)
from tcuda.memory._snapshots import (
    _get_memory_metadata as _get_memory_metadata,
)
from tcuda.memory._snapshots import (
    _memory_metadata_supported as _memory_metadata_supported,
)
from tcuda.memory._snapshots import (
    _record_memory_history as _record_memory_history,
)
from tcuda.memory._snapshots import (
    _set_memory_metadata as _set_memory_metadata,
)
from tcuda.memory._snapshots import (
    _snapshot as _snapshot,
)
from tcuda.memory._snapshots import (
    memory_snapshot,
)
from tcuda.memory._spillable import Spillable, SpillStats
from tcuda.memory._statistics import (
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
)
from tcuda.memory._summary import memory_summary
from tcuda.memory._tracking import Usage, track

__all__ = [
    "AliveSite",
    "CUDAPluggableAllocator",
    "MemPool",
    "SnapshotPage",
    "SpillStats",
    "Spillable",
    "Usage",
    "attach_out_of_memory_observer",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "change_current_allocator",
    "copy_async",
    "empty_cache",
    "empty_host_cache",
    "empty_pinned",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "is_asleep",
    "is_pinned",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "on_out_of_memory",
    "pin",
    "record_stream",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "scope",
    "set_per_process_memory_fraction",
    "sleep",
    "torch_allocator",
    "track",
    "use_mem_pool",
    "wake",
    "zeros_pinned",
]
__dir__ = public_names(__name__)
