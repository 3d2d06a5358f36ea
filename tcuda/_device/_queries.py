"""Queries for the properties and the abilities of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._device._current import is_available
from tcuda._process.device_rules import OF_PEERS, OF_PROPERTIES, resolve
from tcuda._process.devices import _get_device_index
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda, init

if TYPE_CHECKING:
    from tcuda._device._properties import _CudaDeviceProperties
    from tcuda._process.devices import DeviceArgument

has_half = True
"""Whether arrays of half precision exist (``torch.cuda.has_half``); always True.

Example:
    >>> tcuda.has_half
    True
"""

has_magma = False
"""Whether the library MAGMA is in use (``torch.cuda.has_magma``); always False, because CuPy does not use MAGMA.

Example:
    >>> tcuda.has_magma
    False
"""

_known: dict[int, _CudaDeviceProperties] = {}
call_in_child(_known.clear)  # so that a query in a forked child raises too


def get_device_properties(device: DeviceArgument = None) -> _CudaDeviceProperties:
    """Return the properties of ``device`` (``torch.cuda.get_device_properties``, ``cudaGetDeviceProperties``).

    Args:
        device: The device; the current device if None.

    Returns:
        An object with torch's 23 attributes: ``name``, ``total_memory`` (bytes), ``multi_processor_count``, ...

    Raises:
        AssertionError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> properties = tcuda.get_device_properties("cuda:0")
        >>> properties.total_memory > 2**30  # bytes
        True
        >>> properties.warp_size
        32
    """
    index = cuda.getDevice() if device is None else _get_device_index(device, optional=True)
    found = _known.get(index)
    if found is None:
        init()
        index = resolve(index, OF_PROPERTIES)
        # No lock is needed: two threads that query at the same time get equal properties.
        from tcuda._device._properties import _CudaDeviceProperties  # here, because the import takes long

        found = _known[index] = _CudaDeviceProperties._from_cuda(cuda.getDeviceProperties(index))
    return found


def get_device_name(device: DeviceArgument = None) -> str:
    """Return the name of ``device``, such as ``"NVIDIA H200"`` (``torch.cuda.get_device_name``).

    Args:
        device: The device; the current device if None.

    Raises:
        AssertionError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.get_device_name() == tcuda.get_device_properties().name
        True
    """
    return get_device_properties(device).name


def get_device_capability(device: DeviceArgument = None) -> tuple[int, int]:
    """Return the major and minor compute capability of ``device`` (``torch.cuda.get_device_capability``).

    Args:
        device: The device; the current device if None.

    Raises:
        AssertionError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> major, minor = tcuda.get_device_capability()
        >>> (major, minor) >= (7, 0)
        True
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: DeviceArgument, peer_device: DeviceArgument) -> bool:
    """Return whether ``device`` can access the memory of ``peer_device`` (``cudaDeviceCanAccessPeer``).

    Args:
        device: The device that reads and writes.
        peer_device: The device of the memory.

    Raises:
        AssertionError: ``device`` or ``peer_device`` does not exist.
        ValueError: ``device`` or ``peer_device`` has no index, or is not a CUDA device.

    Example:
        >>> tcuda.can_device_access_peer(0, 0)  # a device is no peer of itself
        False
        >>> if tcuda.can_device_access_peer(0, 1):
        ...     pass  # copies from device 1 to device 0 need no buffer on the host
    """
    init()
    index = resolve(device, OF_PROPERTIES)
    peer = resolve(_get_device_index(peer_device), OF_PEERS)
    return bool(cuda.deviceCanAccessPeer(index, peer))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the current device computes with bfloat16 (``torch.cuda.is_bf16_supported``).

    Args:
        including_emulation: Whether devices below compute capability 8.0 count. Such a device has the type bfloat16,
            but no arithmetic of its own for the type.

    Example:
        >>> tcuda.is_bf16_supported()
        True
    """
    return is_available() and (bool(including_emulation) or get_device_properties().major >= 8)


def is_tf32_supported() -> bool:
    """Return whether the current device computes with TF32 (``torch.cuda.is_tf32_supported``).

    Example:
        >>> tcuda.is_tf32_supported() == (tcuda.get_device_capability() >= (8, 0))
        True
    """
    return is_bf16_supported(including_emulation=False)
