"""The context managers that make a device current."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._base.cupy_names import CupyName
from tcuda._process import scope_calls  # noqa: F401  # connects the scopes of the core with the runtime
from tcuda._process.devices import _get_device_index
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument


class device(_core.DeviceScope):
    """Context manager that makes a device the current one (``torch.cuda.device``).

    A generator that pauses inside a block may be closed in another thread. The end of the block then changes nothing in
    that other thread.

    Args:
        device: The device to select; nothing happens if ``device`` is a negative integer.

    Raises:
        AcceleratorError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Attributes:
        idx: The index of the selected device.
        prev_idx: The index of the device that was current at the last entry.

    Example:
        >>> with tcuda.device(1):
        ...     x = xp.zeros(3)
        >>> x.device.id, tcuda.current_device()
        (1, 0)
    """

    __slots__ = ("__weakref__",)

    use = CupyName("Write tcuda.set_device(0), or a block of tcuda.device(0).")
    synchronize = CupyName("Write tcuda.synchronize(0).")
    id = CupyName("Write idx.")
    mem_info = CupyName("Write tcuda.mem_get_info(0).")
    attributes = CupyName("Write tcuda.get_device_properties(0), or tcuda.xp.cuda.Device(0).attributes.")
    compute_capability = CupyName("Write tcuda.get_device_capability(0).")

    def __init__(self, device: DeviceArgument) -> None:
        self.idx = device if type(device) is int else _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __repr__(self) -> str:
        return f"<tcuda.device {self.idx}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.idx,)


class device_of(device):
    """Context manager that makes the device of an object the current one (``torch.cuda.device_of``).

    Args:
        obj: A ``cupy.ndarray``, an emulated array, or an object that names its device by the attribute ``device``, by
            ``is_cuda`` and ``get_device()``, or by ``__cuda_array_interface__``. Nothing happens if ``obj`` is not on a
            device.

    Raises:
        TypeError: ``obj`` does not name its device.

    Example:
        >>> with tcuda.device("cuda:1"):
        ...     x = xp.ones(3)
        >>> with tcuda.device_of(x):
        ...     y = x + 1  # runs on the device of x
        >>> y.device.id
        1
    """

    __slots__ = ()

    def __init__(self, obj: object) -> None:
        self.idx = _index_where(obj)
        self.prev_idx = -1


def _index_where(obj: Any) -> int:
    """Return the index of the device of ``obj``; -1 if ``obj`` is not on a device."""
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
