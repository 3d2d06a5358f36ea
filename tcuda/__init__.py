"""The surface of ``torch.cuda`` for CuPy arrays.

``import tcuda`` is cheap and touches no GPU; the first call that needs a device initialises. ``tcuda.xp`` is ``cupy``,
or its emulated counterpart where devices are emulated.
"""

from typing import TYPE_CHECKING, Any

from tcuda import nvtx, streams
from tcuda._cudart import check_error, cudart, cudaStatus
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
    is_available,
    is_bf16_supported,
    is_tf32_supported,
    mem_get_info,
    set_device,
    synchronize,
)
from tcuda._errors import AcceleratorError, CudaError, DeferredCudaCallError, OutOfMemoryError
from tcuda._lazy import _lazy_call, _lazy_init, init, is_initialized
from tcuda._nvml import (
    clock_rate,
    device_memory_used,
    list_gpu_processes,
    memory_usage,
    power_draw,
    temperature,
    utilization,
)
from tcuda._stream_context import StreamContext
from tcuda._version import __version__
from tcuda.streams import (
    Event,
    ExternalStream,
    Stream,
    _sleep,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)

if TYPE_CHECKING:
    from tcuda import emulation

    xp: Any
else:
    from tcuda._late import __dir__, __getattr__

__all__ = [
    "AcceleratorError",
    "CudaError",
    "DeferredCudaCallError",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "__version__",
    "can_device_access_peer",
    "check_error",
    "clock_rate",
    "cudaStatus",
    "cudart",
    "current_blas_handle",
    "current_device",
    "current_solver_handle",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_stream_from_external",
    "has_half",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "mem_get_info",
    "memory_usage",
    "nvtx",
    "power_draw",
    "set_device",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
    "temperature",
    "utilization",
]
