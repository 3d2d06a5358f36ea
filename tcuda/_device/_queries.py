"""Questions about devices: their properties, and what they can do."""

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
"""Whether half precision arrays exist; always true (``torch.cuda.has_half``)."""

_known: dict[int, _CudaDeviceProperties] = {}
call_in_child(_known.clear)  # so that a question in a forked child is an error there too


def get_device_properties(device: DeviceArgument = None) -> _CudaDeviceProperties:
    """Return the properties of ``device`` (``torch.cuda.get_device_properties``, ``cudaGetDeviceProperties``).

    Args:
        device: The device; the current one if None.

    Returns:
        An object with torch's 23 attributes: ``name``, ``total_memory`` (bytes), ``multi_processor_count``, ...

    Raises:
        AssertionError: There is no such device.
    """
    index = cuda.getDevice() if device is None else _get_device_index(device, optional=True)
    found = _known.get(index)
    if found is None:
        init()
        index = resolve(index, OF_PROPERTIES)
        # Two threads may both ask; they get the same answer.
        from tcuda._device._properties import _CudaDeviceProperties  # which takes long to import

        found = _known[index] = _CudaDeviceProperties._from_cuda(cuda.getDeviceProperties(index))
    return found


def get_device_name(device: DeviceArgument = None) -> str:
    """Return the name of ``device``, such as ``"NVIDIA H200"`` (``torch.cuda.get_device_name``).

    Raises:
        AssertionError: There is no such device.
    """
    return get_device_properties(device).name


def get_device_capability(device: DeviceArgument = None) -> tuple[int, int]:
    """Return the major and minor compute capability of ``device`` (``torch.cuda.get_device_capability``).

    Raises:
        AssertionError: There is no such device.
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: DeviceArgument, peer_device: DeviceArgument) -> bool:
    """Return whether ``device`` can access the memory of ``peer_device`` (``cudaDeviceCanAccessPeer``).

    Raises:
        AssertionError: There is no such device.
    """
    init()
    index = resolve(device, OF_PROPERTIES)
    peer = resolve(_get_device_index(peer_device), OF_PEERS)
    return bool(cuda.deviceCanAccessPeer(index, peer))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the current device computes with bfloat16 (``torch.cuda.is_bf16_supported``).

    Args:
        including_emulation: Whether a device older than compute capability 8.0, which has the type but no arithmetic
            of its own for it, counts.
    """
    return is_available() and (including_emulation or get_device_properties().major >= 8)


def is_tf32_supported() -> bool:
    """Return whether the current device computes with TF32 (``torch.cuda.is_tf32_supported``)."""
    return is_bf16_supported(including_emulation=False)
