"""The number of devices, the current device, and the properties of devices (``torch.cuda``)."""

from tcuda._device._current import current_device, is_available, mem_get_info, set_device, synchronize
from tcuda._device._libraries import current_blas_handle, current_solver_handle, get_arch_list, get_gencode_flags
from tcuda._device._queries import (
    can_device_access_peer,
    get_device_capability,
    get_device_name,
    get_device_properties,
    has_half,
    has_magma,
    is_bf16_supported,
    is_tf32_supported,
)
from tcuda._device._scope import device, device_of
from tcuda._process.device_rules import device_count

__all__ = [
    "can_device_access_peer",
    "current_blas_handle",
    "current_device",
    "current_solver_handle",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "has_half",
    "has_magma",
    "is_available",
    "is_bf16_supported",
    "is_tf32_supported",
    "mem_get_info",
    "set_device",
    "synchronize",
]
