"""The cache and the limit of the allocator, memory without arrays, and the streams that use an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import MOST_BYTES, a_kind, handle, integer
from tcuda._base.scope import Scope
from tcuda._process.borrowed import Borrowed
from tcuda._process.device_rules import OF_MEMORY, device_count, resolve
from tcuda._process.devices import exchange_device
from tcuda._process.lazy import _lazy_call, backend, cuda
from tcuda._process.ledger import ledger, ledger_if_any, set_memory_fraction
from tcuda._process.streams import handle_and_device

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument
    from tcuda._process.streams import StreamLike


def empty_cache() -> None:
    """Give memory that no array uses back to the devices (``torch.cuda.empty_cache``).

    The call waits for the streams that used the memory. Before tcuda is initialised, the call does nothing. The call
    helps other processes, but not this process: the allocator reuses free memory anyway.

    Raises:
        AcceleratorError: The driver failed to take the memory back.

    Example:
        >>> x = xp.zeros(10_000_000)
        >>> del x
        >>> held = tcuda.memory_reserved()
        >>> tcuda.empty_cache()
        >>> tcuda.memory_reserved() < held
        True
    """
    _empty(keep_spare=False)


def empty_before_capture() -> None:
    """Do what :func:`empty_cache` does, but keep the small pool of released graphs that the next capture takes."""
    _empty(keep_spare=True)


def _empty(*, keep_spare: bool) -> None:
    known = ledger_if_any()
    if known is not None:
        for device in range(cuda.getDeviceCount()):
            known.empty_cache(device, keep_spare)


def set_per_process_memory_fraction(fraction: float, device: DeviceArgument = None) -> None:
    """Limit the memory that the allocator may hold on ``device`` (``torch.cuda.set_per_process_memory_fraction``).

    An allocation beyond the limit raises :class:`tcuda.OutOfMemoryError`. The allocator keeps all memory that the
    allocator holds already.

    Args:
        fraction: The limit as a fraction of the total memory of the device, from 0 to 1.
        device: The device; the current device if None.

    Raises:
        TypeError: ``fraction`` is not a ``float``.
        RuntimeError: ``device`` does not exist.
        ValueError: ``fraction`` is out of range, or ``device`` is not a CUDA device.

    Example:
        >>> tcuda.set_per_process_memory_fraction(0.5)
        >>> half = tcuda.mem_get_info()[1] // 2  # bytes
        >>> x = xp.zeros(half + 512, dtype="uint8")
        Traceback (most recent call last):
            ...
        tcuda.OutOfMemoryError: CUDA out of memory...
        >>> tcuda.set_per_process_memory_fraction(1.0)
    """
    if not isinstance(fraction, float):
        raise TypeError(f"Invalid type for fraction argument, must be `float`; got {fraction!r}")
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"Invalid fraction value: {fraction}. Allowed range: 0~1, a part of all memory of the device: 0.5 is half."
        )
    set_memory_fraction(resolve(device, OF_MEMORY), fraction)


def get_per_process_memory_fraction(device: DeviceArgument = None) -> float:
    """Return the fraction of the memory of ``device`` that the allocator may hold.

    The function of torch is ``torch.cuda.get_per_process_memory_fraction``.

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.set_per_process_memory_fraction(0.5)
        >>> tcuda.get_per_process_memory_fraction()
        0.5
        >>> tcuda.set_per_process_memory_fraction(1.0)
    """
    in_use = ledger()
    return in_use.memory_fraction(resolve(device, OF_MEMORY))


def caching_allocator_alloc(size: int, device: DeviceArgument = None, stream: StreamLike | int | None = None) -> int:
    """Allocate memory without an array (``torch.cuda.caching_allocator_alloc``).

    Libraries use this function to get a buffer from the same memory as the arrays.

    Args:
        size: The size in bytes; nothing is allocated for 0.
        device: The device; the current device if None.
        stream: The stream that will use the memory, or the handle of this stream; the current stream of ``device`` if
            None.

    Returns:
        The address of the memory; 0 if ``size`` is 0. :func:`caching_allocator_delete` frees the memory.

    Raises:
        OutOfMemoryError: The device does not have ``size`` bytes of free memory.
        RuntimeError: ``device`` does not exist.
        TypeError: ``size`` is not an integer, or ``stream`` is neither a stream nor an integer.
        ValueError: ``size`` or the handle is out of range, or ``device`` is not a CUDA device.

    Example:
        >>> address = tcuda.caching_allocator_alloc(4096)  # bytes
        >>> address % 512
        0
        >>> tcuda.caching_allocator_delete(address)
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
        address = in_use.allocate(index, size, used_by)
    else:
        exchange_device(index)  # as with torch, the library of a pluggable allocator may rely on the current device
        try:
            address = in_use.allocate(index, size, used_by)
        finally:
            exchange_device(current)
    backend.expose(address, size, used_by)
    return address


def _handle(stream: StreamLike | int) -> int:
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
    """Free memory of :func:`caching_allocator_alloc` (``torch.cuda.caching_allocator_delete``).

    Args:
        mem_ptr: The address of the memory; nothing is freed for 0.

    Raises:
        RuntimeError: No allocated memory begins at ``mem_ptr``.
        TypeError: ``mem_ptr`` is not an integer.

    Example:
        >>> address = tcuda.caching_allocator_alloc(4096)
        >>> tcuda.caching_allocator_delete(address)
        >>> tcuda.caching_allocator_delete(address)  # the memory is free already
        Traceback (most recent call last):
            ...
        RuntimeError: invalid device pointer...
    """
    if not isinstance(mem_ptr, int):
        raise TypeError(f"mem_ptr must be an integer, from caching_allocator_alloc(); got {a_kind(mem_ptr)}.")
    if mem_ptr != 0 and not (0 < mem_ptr < 1 << 64 and ledger().free(mem_ptr)):
        raise RuntimeError(
            f"invalid device pointer: {mem_ptr:#x}. It is not what caching_allocator_alloc() returned, or was deleted "
            "before."
        )


def caching_allocator_enable(value: bool = True) -> None:
    """Switch the cache of the allocator on or off (``torch.cuda.caching_allocator_enable``).

    Without the cache, every allocation takes memory from the driver, and every free gives the memory back. Tools such
    as ``compute-sanitizer`` then see every array, and every allocation is slow.

    Args:
        value: Whether to cache from now on. Memory in use does not move. Before tcuda is initialised, ``value`` is
            remembered until then.

    Raises:
        RuntimeError: ``value`` is not a ``bool``.

    Example:
        >>> tcuda.caching_allocator_enable(False)
        >>> x = xp.zeros(1000)  # memory of the driver
        >>> del x  # the driver has the memory again
        >>> tcuda.caching_allocator_enable()
    """
    if not isinstance(value, bool):
        raise RuntimeError(f"caching_allocator_enable() expects a bool, but got {a_kind(value)}")

    def enable() -> None:
        ledger().caching = value

    _lazy_call(enable)


def caching_allocator_disabled() -> Scope:
    """Return a context manager that switches the cache off (``torch.cuda.caching_allocator_disabled``).

    The end of the block restores the setting of :func:`caching_allocator_enable` from before the block. If no device
    exists, nothing happens.

    Example:
        >>> held = tcuda.memory_reserved()
        >>> with tcuda.caching_allocator_disabled():
        ...     x = xp.zeros(1000)  # memory of the driver
        ...     del x  # the driver has the memory again
        >>> tcuda.memory_reserved() == held
        True
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
        in_use = ledger_if_any()  # None in a forked child
        if self._before is not None and in_use is not None:
            in_use.caching = self._before

    def again(self) -> _NoCaching:
        return _NoCaching()


def record_stream(array: Any, stream: StreamLike) -> None:
    """Tell the allocator that ``stream`` uses the memory of ``array`` (``torch.Tensor.record_stream``).

    When the array dies, the memory becomes free only after ``stream`` has finished the work that ``stream`` then has.
    The allocator already knows the stream that was current when the array was made. If another stream uses the array,
    call this function, or make the streams wait for each other.

    Args:
        array: An array of ``tcuda.xp``. For a view, the call is about the whole memory of the original array.
        stream: A stream of tcuda, CuPy or PyTorch on the same device.

    Raises:
        RuntimeError: ``stream`` is not a stream.
        TypeError: ``array`` is not an array on a device.
        ValueError: ``stream`` is of another device, or tcuda did not allocate the memory of ``array``.

    Example:
        >>> side = tcuda.Stream()
        >>> x = xp.ones(1000)
        >>> side.wait_stream(tcuda.current_stream())
        >>> with tcuda.stream(side):
        ...     total = x.sum()
        >>> tcuda.memory.record_stream(x, side)
        >>> del x  # the memory becomes free when side has computed the sum
    """
    pointer: Any = getattr(array, "data", None)
    memory = getattr(pointer, "mem", None)
    if memory is None:
        raise TypeError(f"record_stream() takes an array of tcuda.xp; got {a_kind(array)}.")
    handle, device = handle_and_device(stream)
    if device != pointer.device_id:
        raise ValueError(
            f"The array is on device {pointer.device_id} and the stream on device {device}: let the array's own stream "
            "wait for the other, by stream.wait_stream(other), before the array dies."
        )
    if not memory.ptr or ledger().record_stream(pointer.device_id, memory.ptr, handle):
        return
    owner = backend.owner_of(memory)
    if isinstance(owner, Borrowed):
        owner.record_stream(handle, stream)
    else:
        raise ValueError(
            f"The memory of the array, at {memory.ptr:#x}, was not allocated by tcuda: tell the library that allocated "
            "the memory which streams use the array."
        )
