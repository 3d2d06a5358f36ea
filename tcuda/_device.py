"""Devices: how many there are, which one is current, what they are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._captures import captures, require_no_capture
from tcuda._device_index import DeviceArgument, _get_device_index
from tcuda._lazy import _lazy_init, cuda, init, is_initialized
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from tcuda._device_properties import _CudaDeviceProperties

has_half = True
"""Whether half precision arrays exist; always true (``torch.cuda.has_half``)."""


def is_available() -> bool:
    """Return whether there is a device to use; never raises for want of one (``torch.cuda.is_available``).

    Creates no context, so that a process may still fork afterwards.
    """
    return device_count() > 0


def device_count() -> int:
    """Return the number of devices, 0 where there is none (``torch.cuda.device_count``).

    Creates no context, so that a process may still fork afterwards. The answer is kept once tcuda is initialised,
    because ``CUDA_VISIBLE_DEVICES`` may change until then.
    """
    return _count if _count is not None else _count_devices()


_count: int | None = None


def _count_devices() -> int:
    global _count
    if is_initialized():
        _count = cuda.getDeviceCount()
        return _count
    try:
        return runtime().visibleDeviceCount()
    except RuntimeError:  # no CuPy, hence no device
        return 0


def current_device() -> int:
    """Return the index of the current device (``cudaGetDevice``)."""
    return cuda.getDevice()


def set_device(device: DeviceArgument) -> None:
    """Make ``device`` this thread's current device (``torch.cuda.set_device``, ``cudaSetDevice``).

    :class:`device` is to be preferred, or ``CUDA_VISIBLE_DEVICES``.

    Args:
        device: The device; nothing happens if it is a negative integer.

    Raises:
        ValueError: ``device`` names no index.
        AcceleratorError: There is no such device.
    """
    index = device if type(device) is int else _get_device_index(device)
    if index >= 0:
        cuda.setDevice(index)


def _exchange_device(index: int) -> int:
    """Make the device ``index`` current and return the one that was; nothing happens if it is negative."""
    if index < 0:
        return -1
    previous = cuda.getDevice()
    if previous != index:
        cuda.setDevice(index)
    return previous


def existing_device(device: DeviceArgument) -> int:
    """Return the index of ``device``, the current one for None and negative integers.

    Raises:
        AcceleratorError: There is no such device.
    """
    index = _get_device_index(device, optional=True)
    if index < 0:
        return cuda.getDevice()
    _exchange_device(_exchange_device(index))
    return index


class device(_core.DeviceScope):
    """Context manager that makes a device the current one (``torch.cuda.device``).

    A block that another thread leaves, as the generator does that is closed there, changes nothing in that thread.

    Args:
        device: The device to select; nothing happens if it is a negative integer.

    Attributes:
        idx: The index of that device.
        prev_idx: The index of the device that was current at the last entry.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, device: DeviceArgument) -> None:
        self.idx = device if type(device) is int else _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.idx,)


def _find_calls() -> tuple[tuple[Any, ...], bool]:
    """Initialise, and return the calls that blocks make, and whether they may be kept."""
    in_use = _lazy_init()
    calls = (
        in_use.getDevice,
        in_use.setDevice,
        in_use.currentStream,
        in_use.useStream,
        in_use.enterStream,
        in_use.exitStream,
        in_use.defaultStream,
    )
    return calls, is_initialized()


_core.find_calls_by(_find_calls)
os.register_at_fork(after_in_child=_core.forget_scopes)


class device_of(device):
    """Context manager that makes the device of an object the current one (``torch.cuda.device_of``).

    Args:
        obj: A ``cupy.ndarray``, an emulated array, or anything that says where it lies by ``device``, ``is_cuda`` and
            ``get_device()``, or ``__cuda_array_interface__``. Nothing happens if it does not lie on a device.

    Raises:
        TypeError: ``obj`` says nothing of a device.
    """

    __slots__ = ()

    def __init__(self, obj: object) -> None:
        self.idx = _index_where(obj)
        self.prev_idx = -1


def _index_where(obj: Any) -> int:
    """Return the index of the device on which ``obj`` lies, -1 if it lies on none."""
    where = getattr(obj, "device", None)
    index = getattr(where, "id", None)  # CuPy's and emulated arrays
    if type(index) is int:
        return index
    if isinstance(getattr(obj, "is_cuda", None), bool):  # PyTorch's tensors
        return int(obj.get_device()) if obj.is_cuda else -1
    if where is not None:
        on_host = where == "cpu" or getattr(where, "type", None) == "cpu"  # NumPy says "cpu"
        return -1 if on_host else _get_device_index(where)
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is not None:
        return cuda.pointerGetDevice(interface["data"][0])
    if hasattr(obj, "__array_interface__"):
        return -1
    raise TypeError(
        f"Cannot tell the device of a {type(obj).__name__}; device_of() takes an array with a device attribute or "
        "__cuda_array_interface__."
    )


_properties: dict[int, _CudaDeviceProperties] = {}
os.register_at_fork(after_in_child=_properties.clear)  # so that a question in a forked child is an error there too


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
    found = _properties.get(index)
    if found is None:
        init()
        _check_device_id(index, "device")
        # Two threads may both ask; they get the same answer.
        from tcuda._device_properties import _CudaDeviceProperties  # which takes long to import

        found = _properties[index] = _CudaDeviceProperties._from_cuda(cuda.getDeviceProperties(index))
    return found


def _check_device_id(index: int, what: str) -> None:
    if not 0 <= index < device_count():
        raise AssertionError(f"Invalid {what} id: {index}; there are {device_count()} devices, counted from 0.")


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
    index = _get_device_index(device, optional=True)
    peer = _get_device_index(peer_device)
    _check_device_id(index, "device")
    _check_device_id(peer, "peer device")
    return bool(cuda.deviceCanAccessPeer(index, peer))


def synchronize(device: DeviceArgument = None) -> None:
    """Wait for all work in all streams of ``device`` (``torch.cuda.synchronize``, ``cudaDeviceSynchronize``).

    Args:
        device: The device; the current one if None or a negative integer.
    """
    if captures:
        index = cuda.getDevice() if device is None else _get_device_index(device, optional=True)
        require_no_capture("tcuda.synchronize()", device=cuda.getDevice() if index < 0 else index)
    if device is None:
        cuda.deviceSynchronize()
        return
    previous = _exchange_device(_get_device_index(device, optional=True))
    try:
        cuda.deviceSynchronize()
    finally:
        _exchange_device(previous)


def mem_get_info(device: DeviceArgument = None) -> tuple[int, int]:
    """Return the free and the total memory of ``device`` in bytes (``torch.cuda.mem_get_info``, ``cudaMemGetInfo``).

    Args:
        device: The device; the current one if None or a negative integer.

    Raises:
        AcceleratorError: There is no such device.
    """
    previous = _exchange_device(_get_device_index(device, optional=True))
    try:
        free, total = cuda.memGetInfo()
    finally:
        _exchange_device(previous)
    return free, total


def get_arch_list() -> list[str]:
    """Return the architectures that run-time compiled kernels can target, such as ``["sm_80", "sm_90"]``.

    ``torch.cuda.get_arch_list`` gives those that its own kernels were built for; CuPy compiles at run time, so that
    here it is what the NVRTC in use can target (``nvrtcGetSupportedArchs``). Empty where there is no device.
    """
    return [f"sm_{arch}" for arch in runtime().supportedArchs()] if is_available() else []


def get_gencode_flags() -> str:
    """Return :func:`get_arch_list` as flags for ``nvcc`` (``torch.cuda.get_gencode_flags``)."""
    archs = [arch.partition("_")[2] for arch in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{arch},code=sm_{arch}" for arch in archs)


def current_blas_handle() -> int:
    """Return the ``cublasHandle_t`` that CuPy uses in this thread on the current device.

    On an emulated device it is a number that identifies thread and device, and no library takes it.
    """
    return cuda.blasHandle()


def current_solver_handle() -> int:
    """Return the ``cusolverDnHandle_t`` that CuPy uses in this thread on the current device.

    On an emulated device it is a number that identifies thread and device, and no library takes it.
    """
    return cuda.solverHandle()


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
