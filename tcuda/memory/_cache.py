"""The allocator itself: what it caches, how much it may take, and memory without arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._arguments import MOST_BYTES, a_kind, handle, integer
from tcuda._process.device_rules import OF_MEMORY, device_count, resolve
from tcuda._process.devices import exchange_device
from tcuda._process.lazy import _lazy_call, backend, cuda
from tcuda._process.ledger import ledger, ledger_if_any, set_memory_fraction
from tcuda._process.streams import handle_and_device
from tcuda._scope import Scope

if TYPE_CHECKING:
    from tcuda._backend import CurrentStream
    from tcuda._process.devices import DeviceArgument


def empty_cache() -> None:
    """Give memory that no array uses back to the devices (``torch.cuda.empty_cache``).

    Waits for the streams that used it. Does nothing before tcuda is initialised. It makes room for other processes, and
    none for this one: what is free is handed out again in any case.

    Raises:
        AcceleratorError: The driver failed to take it back.
    """
    known = ledger_if_any()
    if known is not None:
        for device in range(cuda.getDeviceCount()):
            known.empty_cache(device)


def set_per_process_memory_fraction(fraction: float, device: DeviceArgument = None) -> None:
    """Let the allocator hold no more than a share of the memory of ``device``.

    This is ``torch.cuda.set_per_process_memory_fraction``. An allocation that would take more raises
    :class:`tcuda.OutOfMemoryError`; what is held already stays.

    Args:
        fraction: The share of the total memory, 0 to 1.
        device: The device; None for the current one.

    Raises:
        TypeError: ``fraction`` is not a ``float``.
        RuntimeError: There is no such device.
        ValueError: ``fraction`` is out of range, or ``device`` is not a CUDA device.
    """
    if not isinstance(fraction, float):
        raise TypeError(f"Invalid type for fraction argument, must be `float`; got {fraction!r}")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    set_memory_fraction(resolve(device, OF_MEMORY), fraction)


def get_per_process_memory_fraction(device: DeviceArgument = None) -> float:
    """Return the share of the memory of ``device`` that the allocator may hold.

    This is ``torch.cuda.get_per_process_memory_fraction``.

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: There is no such device.
        ValueError: ``device`` is not a CUDA device.
    """
    in_use = ledger()
    return in_use.memory_fraction(resolve(device, OF_MEMORY))


def caching_allocator_alloc(size: int, device: DeviceArgument = None, stream: CurrentStream | int | None = None) -> int:
    """Allocate memory without an array (``torch.cuda.caching_allocator_alloc``).

    For libraries that want a buffer out of the same pool as the arrays.

    Args:
        size: How many bytes; nothing is allocated for 0.
        device: The device; None for the current one.
        stream: The stream that will use it, or its handle; None for the device's current stream.

    Returns:
        The address, to be freed with :func:`caching_allocator_delete`; 0 if ``size`` is 0.

    Raises:
        OutOfMemoryError: There is not that much memory.
        RuntimeError: There is no such device.
        TypeError: ``size`` is no integer, or ``stream`` is neither a stream nor an integer.
        ValueError: ``size`` or the handle is out of range, or ``device`` is not a CUDA device.
    """
    in_use = ledger()
    current = cuda.getDevice()
    index = current if device is None else resolve(device, OF_MEMORY)
    used_by = backend.current_stream(index).ptr if stream is None else _handle(stream)
    if type(size) is not int or not 0 < size <= MOST_BYTES:
        size = integer(size, "Cannot allocate memory: size", 0, MOST_BYTES)
        if size == 0:
            return 0
    if index == current:
        return in_use.allocate(index, size, used_by)
    exchange_device(index)  # a library that allocates goes by the current device, as it may with torch
    try:
        return in_use.allocate(index, size, used_by)
    finally:
        exchange_device(current)


def _handle(stream: Any) -> int:
    if isinstance(stream, int):
        return handle(stream, "Invalid stream argument: the handle")
    try:
        found, _ = handle_and_device(stream)
    except RuntimeError:
        raise TypeError(
            "Invalid type for stream argument, must be `torch.cuda.Stream` or `int` representing a pointer to an "
            f"existing stream, or rather a stream of tcuda, CuPy or a library that knows __cuda_stream__; got "
            f"{a_kind(stream)}."
        ) from None
    return found


def caching_allocator_delete(mem_ptr: int) -> None:
    """Free what :func:`caching_allocator_alloc` gave (``torch.cuda.caching_allocator_delete``).

    Args:
        mem_ptr: The address; 0 frees nothing.

    Raises:
        RuntimeError: Nothing that is in use begins there.
        TypeError: ``mem_ptr`` is no integer.
    """
    if not isinstance(mem_ptr, int):
        raise TypeError(f"mem_ptr must be an integer, what caching_allocator_alloc() returned; got {a_kind(mem_ptr)}.")
    if mem_ptr != 0 and not (0 < mem_ptr < 1 << 64 and ledger().free(mem_ptr)):
        raise RuntimeError(
            f"invalid device pointer: {mem_ptr:#x}. It is not what caching_allocator_alloc() returned, or was deleted "
            "before."
        )


def caching_allocator_enable(value: bool = True) -> None:
    """Cache memory, or take and give back every piece of it by itself (``torch.cuda.caching_allocator_enable``).

    Without a cache, tools such as ``compute-sanitizer`` see every array, and every allocation is slow.

    Args:
        value: Whether to cache, from now on; what is in use stays where it is. Before tcuda is initialised, the value
            is remembered until then.

    Raises:
        RuntimeError: ``value`` is no ``bool``.
    """
    if not isinstance(value, bool):
        raise RuntimeError(f"caching_allocator_enable() expects a bool, but got {a_kind(value)}")

    def enable() -> None:
        ledger().caching = value

    _lazy_call(enable)


def caching_allocator_disabled() -> Scope:
    """Return a context manager in which nothing is cached (``torch.cuda.caching_allocator_disabled``).

    See :func:`caching_allocator_enable`. Afterwards it is as it was before. Without a device, nothing happens.
    """
    return _NoCaching()


class _NoCaching(Scope):
    """The block of :func:`caching_allocator_disabled`."""

    _before: bool | None = None

    def begin(self) -> None:
        if device_count():
            in_use = ledger()
            self._before = in_use.caching
            in_use.caching = False

    def undo(self) -> None:
        in_use = ledger_if_any()  # none in a forked child
        if self._before is not None and in_use is not None:
            in_use.caching = self._before

    def again(self) -> _NoCaching:
        return _NoCaching()


def record_stream(array: Any, stream: CurrentStream) -> None:
    """Let the memory of ``array`` be free only when ``stream`` has done what it has to do when the array dies.

    This is ``torch.Tensor.record_stream`` for the arrays of CuPy. The allocator knows the stream that was current when
    the array was made; of another stream that uses it, it has to be told, unless the program itself waits.

    Args:
        array: An array of ``tcuda.xp``; of a view, all of the array that it is of.
        stream: A stream of tcuda, CuPy or PyTorch on the same device.

    Raises:
        RuntimeError: ``stream`` is no stream.
        TypeError: ``array`` is no array of a device.
        ValueError: The stream is of another device, or the memory of the array is not tcuda's.
    """
    pointer: Any = getattr(array, "data", None)
    memory = getattr(pointer, "mem", None)
    if memory is None:
        raise TypeError(f"record_stream() takes an array of tcuda.xp; got {type(array).__name__}.")
    handle, device = handle_and_device(stream)
    if device != pointer.device_id:
        raise ValueError(
            f"The array is on device {pointer.device_id} and the stream on device {device}: let the array's own stream "
            "wait for the other, by stream.wait_stream(other), before the array dies."
        )
    if memory.ptr and not ledger().record_stream(pointer.device_id, memory.ptr, handle):
        raise ValueError(
            f"The memory of the array, at {memory.ptr:#x}, was not allocated by tcuda: the library that it is of has "
            "to know who uses it."
        )
