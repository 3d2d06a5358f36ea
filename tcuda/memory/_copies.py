"""Copies between the host and a device, and between devices, that run while the host does other work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._core import buffer_address
from tcuda._device import device
from tcuda._process.asleep import asleep, refuse_asleep
from tcuda._process.borrowed import Borrowed
from tcuda._process.captures import capture_on, captures, pageable_copy
from tcuda._process.lazy import backend, cuda
from tcuda._process.ledger import ledger
from tcuda._process.streams import handle_and_device
from tcuda._runtime.protocol import MEMCPY_DEVICE_TO_DEVICE, MEMCPY_DEVICE_TO_HOST, MEMCPY_HOST_TO_DEVICE
from tcuda.comm._kept_memory import is_page_locked, keep, needs_keeping
from tcuda.comm._order import Queue, queue, settle
from tcuda.streams import Event

if TYPE_CHECKING:
    from tcuda._process.streams import StreamLike


def copy_async(dst: Any, src: Any, stream: StreamLike | None = None) -> Event:
    """Copy ``src`` to ``dst`` on a stream, and return at once if the host's memory is page-locked.

    The function is ``torch.Tensor.copy_(src, non_blocking=True)`` (``cudaMemcpyAsync``), with all waits of streams.
    The copy waits for the work that the current streams of the devices of both arrays have now. The program may drop
    both arrays at once: their memory is not handed out again before the copy is complete.

    If the memory of the host is pageable, the call waits: for the copy to the host, or until CUDA has read the memory.
    Use :func:`tcuda.memory.empty_pinned` to avoid both waits.

    Work of other streams that reads ``dst`` waits for the copy by the event that the function returns. Two waits are
    made already: if the arrays are on two devices, the current stream of the device without ``stream`` waits for the
    copy.

    Args:
        dst: The array to which the elements are copied: a NumPy array, or an array of ``tcuda.xp``.
        src: The array from which the elements are copied. At least one of the arrays is on a device.
        stream: A stream of tcuda, CuPy or PyTorch on the device of ``src`` or of ``dst``. None stands for the current
            stream of the device of ``src``, or of ``dst`` if ``src`` is on the host.

    Returns:
        An event that is complete after the copy.

    Raises:
        TypeError: An argument is not an array, both arrays are on the host, or their dtypes differ.
        ValueError: The shapes differ, ``dst`` is read-only, the arrays have gaps or another order of their elements, or
            ``stream`` is of another device.
        RuntimeError: ``stream`` is not a stream, or the memory of an array is asleep.
        AcceleratorError: The stream captures, and the memory of the host is not page-locked (900).

    Example:
        >>> host = tcuda.memory.empty_pinned(1000)
        >>> host[...] = 2
        >>> x = xp.empty(1000)
        >>> side = tcuda.Stream()
        >>> copied = tcuda.memory.copy_async(x, host, side)
        >>> del host  # the memory stays until the copy is complete
        >>> tcuda.current_stream().wait_event(copied)
        >>> float(x.sum())
        2000.0
    """
    devices = _checked(dst, src)
    target, source = devices
    if asleep:
        refuse_asleep(array.data.ptr for array, index in ((dst, target), (src, source)) if index is not None)
    used = [index for index in dict.fromkeys((source, target)) if index is not None]
    here = queue(used[0]) if stream is None else _queue_of(stream, used)
    others = [queue(index) for index in used]
    host = dst if target is None else src if source is None else None
    with device(here.device):
        capture = capture_on(here.handle) if captures else None
        locked = host is not None and host.size > 0 and is_page_locked(host)
        if capture is not None and host is not None and host.size and not locked:
            raise pageable_copy("copy_async() with memory of the host that is not page-locked")
        for other in others:
            here.wait(other)
        try:
            if dst.nbytes:
                _copy(dst, src, devices, here)
            current = stream if stream is not None else backend.current_stream()
            for array, index in ((dst, target), (src, source)):
                if index == here.device:
                    _record(array, here, current)
            for other in others:
                if other.device != here.device:
                    other.wait(here)
            if capture is not None and host is not None:
                capture.host_memory.append(host)
            elif host is not None and host.size and needs_keeping(host):
                keep(host, here.device, here.handle)
        except BaseException:
            settle([here])
            raise
        copied = Event()
        copied.record(stream)
    return copied


def _checked(dst: Any, src: Any) -> tuple[int | None, int | None]:
    """Return the devices of the arrays, None for the host, or refuse the arrays."""
    target, source = _device_of(dst, "dst"), _device_of(src, "src")
    if target is None and source is None:
        raise TypeError("copy_async() copies to or from a device, but both arrays are on the host: use dst[...] = src")
    if dst.dtype != src.dtype:
        raise TypeError(f"copy_async() converts no elements: dst has dtype {dst.dtype}, and src has dtype {src.dtype}")
    if dst.shape != src.shape:
        raise ValueError(f"copy_async() needs arrays of one shape: dst has {dst.shape}, and src has {src.shape}")
    same = dst.flags.c_contiguous and src.flags.c_contiguous
    if not same and not (dst.flags.f_contiguous and src.flags.f_contiguous):
        raise ValueError(
            "copy_async() needs arrays without gaps, whose elements have the same order. Copy the array first, by "
            "xp.ascontiguousarray() or numpy.ascontiguousarray()."
        )
    if target is None and not dst.flags.writeable:
        raise ValueError("dst is read-only")
    return target, source


def _device_of(array: Any, name: str) -> int | None:
    import numpy as np

    if isinstance(array, np.ndarray):
        if array.dtype.hasobject:
            raise TypeError(f"{name} has Python objects, which a device cannot copy")
        return None
    if not isinstance(array, backend.array_type()):
        raise TypeError(f"{name} must be an array of NumPy or of tcuda.xp, not {type(array).__name__}")
    index: int = array.data.device_id
    return index


def _queue_of(stream: StreamLike, devices: list[int]) -> Queue:
    handle, index = handle_and_device(stream)
    if index not in devices:
        names = " and ".join(f"cuda:{each}" for each in devices)
        raise ValueError(f"the stream is on cuda:{index}, and the arrays are on {names}")
    return Queue(index, handle)


def _copy(dst: Any, src: Any, devices: tuple[int | None, int | None], here: Queue) -> None:
    target, source = devices
    if target is not None and source is not None and target != source:
        cuda.memcpyPeerAsync(dst.data.ptr, target, src.data.ptr, source, src.nbytes, here.handle)
        return
    if source is None:
        kind = MEMCPY_HOST_TO_DEVICE
    else:
        kind = MEMCPY_DEVICE_TO_HOST if target is None else MEMCPY_DEVICE_TO_DEVICE
    cuda.memcpyAsync(_address(dst), _address(src), src.nbytes, kind, here.handle)


def _address(array: Any) -> int:
    import numpy as np

    address: int = buffer_address(array) if isinstance(array, np.ndarray) else array.data.ptr
    return address


def _record(array: Any, here: Queue, stream: Any) -> None:
    """Keep the memory of ``array`` for the work of ``stream``, as far as tcuda has the memory."""
    memory = array.data.mem
    if memory.ptr and not ledger().record_stream(here.device, memory.ptr, here.handle):
        owner = backend.owner_of(memory)
        if isinstance(owner, Borrowed):
            owner.record_stream(here.handle, stream)
