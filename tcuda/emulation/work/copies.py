"""Copies between the host and a device, and between devices."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcuda._device import device
from tcuda._process import waits
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import MEMCPY_DEVICE_TO_HOST, MEMCPY_HOST_TO_DEVICE
from tcuda.emulation.devices import synchronization
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import numpy_work, refusals

if TYPE_CHECKING:
    import numpy.typing as npt


class _Stream(NamedTuple):
    """A stream of which only the handle is known."""

    ptr: int
    device_id: int = -1


class _current:
    """Context manager that makes a stream current; its value is the handle of the current stream.

    Args:
        stream: The stream, any object with ``ptr``; if None, the current stream does not change.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __enter__(self) -> int:
        if self._stream is not None:
            backend.enter_stream(_Stream(self._stream.ptr, getattr(self._stream, "device_id", -1)))
        return backend.current_stream().ptr

    def __exit__(self, *error: object) -> None:
        if self._stream is not None:
            backend.exit_stream()


def from_host(source: npt.NDArray[Any], order: str = "C") -> Strided:
    """Return a new array on the current device with the elements of ``source``, copied on the current stream."""
    source = np.asarray(source, order="F" if order == "F" else "C")
    if source.ndim:
        refusals.require_upload()
    target = numpy_work.new(source.shape, source.dtype, order)
    if source.ndim == 0:  # A scalar needs no copy, because it is an argument of a kernel.
        numpy_work.launch(np.copyto, (target, source[()]), fresh=[target])
        return target
    with numpy_work.unfinished(target):
        _upload(target, source, None)
    return target


def to_device(target: Strided, source: Any, stream: Any) -> None:
    """Copy ``source``, a NumPy array, to ``target`` on ``stream``, or on the current stream if ``stream`` is None.

    Raises:
        TypeError: ``source`` is not a NumPy array, or has another dtype.
        ValueError: ``source`` has another shape.
        RuntimeError: ``target`` has gaps between its elements, or the stream captures.
    """
    if not isinstance(source, np.ndarray):
        raise TypeError(f"Only numpy.ndarray can be set to an array of a device, not {type(source)}")
    if source.dtype != target.dtype:
        raise TypeError(f"{source.dtype} array cannot be set to {target.dtype} array")
    if source.shape != target.shape:
        raise ValueError(f"Shape mismatch. Old shape: {target.shape}, new shape: {source.shape}")
    if not target.flags.forc:
        raise RuntimeError("Cannot set to non-contiguous array; assign an array of the device to it instead")
    order = "C" if target.flags.c_contiguous else "F"
    with device(target._block.device):
        _upload(target, np.asarray(source, order=order), stream)  # type: ignore[call-overload]


def to_host(source: Strided, stream: Any, order: str, out: npt.NDArray[Any] | None, blocking: bool) -> npt.NDArray[Any]:
    """Return the elements of ``source`` in a NumPy array, copied on ``stream`` (the current stream if None).

    Raises:
        TypeError: ``out`` is not a NumPy array, or has another dtype.
        ValueError: ``out`` has another shape, or is read-only.
        RuntimeError: ``out`` has gaps between its elements, or the stream captures.
    """
    if out is None:
        out = np.empty(source.shape, source.dtype, _order(source, order))
    else:
        _check_out(source, out)
    if source.size:
        synchronization.declare()
        with device(source._block.device), _current(stream) as handle:
            refusals.require_download(handle)
            copy, wait = cuda.memcpyAsync, cuda.streamSynchronize
            if waits.watched:
                copy, wait = waits.unwatched("memcpyAsync"), waits.unwatched("streamSynchronize")
                if blocking or not cuda.pointerIsPageLocked(out.ctypes.data):
                    waits.announce("ndarray.get")
            contiguous = _laid_out_as(out, source)
            with numpy_work.described(contiguous):
                copy(out.ctypes.data, contiguous.data.ptr, out.nbytes, MEMCPY_DEVICE_TO_HOST, handle)
            if blocking:
                wait(handle)
    return out


def to_current_device(source: Strided, order: str) -> Strided:
    """Return a copy of ``source``, an array of another device, on the current device."""
    order = _order(source, "A" if order == "K" else order)
    if source.flags.c_contiguous if order == "C" else source.flags.f_contiguous:
        return _copied_to_current_device(source, source, order)
    with device(source._block.device):
        # Nothing orders the copy between the devices after the copy that makes the elements contiguous.
        at_once = numpy_work.defers() and not numpy_work.capturing()
        with numpy_work.with_contents() if at_once else contextlib.nullcontext():
            contiguous = numpy_work.call(np.array, (source,), {"order": order})
    copied = _copied_to_current_device(source, contiguous, order)
    if at_once:
        waits.unwatched("streamSynchronize")(backend.current_stream().ptr)  # the memory of `contiguous` is free now
    return copied


def _copied_to_current_device(source: Strided, contiguous: Strided, order: str) -> Strided:
    """Return an array like ``source`` on the current device, with a copy of the memory of ``contiguous``."""
    target = numpy_work.new(source.shape, source.dtype, order)
    with numpy_work.unfinished(target):
        _copy_memory(target, contiguous)
    return target


def is_between_devices(target: Any, source: Any) -> bool:
    """Return whether ``target`` and ``source`` are arrays of different devices."""
    if not isinstance(target, Strided) or not isinstance(source, Strided):
        return False
    return target._block.device != source._block.device


def copy_between_devices(target: Strided, source: Strided) -> bool:
    """Copy ``source`` to ``target``, an array of another device, if a copy of the memory gives the right elements.

    Returns:
        Whether ``source`` was copied. If not, CuPy needs a kernel, which needs both arrays on the current device.
    """
    if target.shape != source.shape or target._host.dtype != source._host.dtype:
        return False
    both = target.flags, source.flags
    if not all(each.c_contiguous for each in both) and not all(each.f_contiguous for each in both):
        return False
    _copy_memory(target, source)
    return True


def _copy_memory(target: Strided, source: Strided) -> None:
    """Copy the memory of ``source`` to ``target`` on the current stream."""
    to, of = target.data, source.data
    cuda.memcpyPeerAsync(to.ptr, to.device_id, of.ptr, of.device_id, source.nbytes, backend.current_stream().ptr)


def synchronize(array: Strided, call: str) -> None:
    """Wait for the current stream of the device of ``array``, in the call of the program named ``call``.

    Raises:
        RuntimeError: The current stream of that device captures.
    """
    with device(array._block.device):
        refusals.require_synchronization()
        _wait(call)


def wait_for_contents(call: str) -> None:
    """Wait for the current stream, which does not capture, in the call of the program named ``call``.

    Raises:
        DeviceSynchronized: A scope of ``cupyx.allow_synchronize()`` forbids the wait.
    """
    synchronization.declare()
    _wait(call)


def _wait(call: str) -> None:
    wait = cuda.streamSynchronize
    if waits.watched:
        waits.announce(call)
        wait = waits.unwatched("streamSynchronize")
    wait(backend.current_stream().ptr)


def _upload(target: Strided, source: npt.NDArray[Any], stream: Any) -> None:
    with _current(stream) as handle:
        refusals.require_upload(handle)
        cuda.memcpyAsync(target.data.ptr, source.ctypes.data, source.nbytes, MEMCPY_HOST_TO_DEVICE, handle)


def _laid_out_as(out: npt.NDArray[Any], source: Strided) -> Strided:
    """Return ``source`` if its elements have the same order as those of ``out``, or else a copy in this order."""
    for flag in ("c_contiguous", "f_contiguous"):
        if getattr(out.flags, flag) and getattr(source.flags, flag):
            return source
    order = "C" if out.flags.c_contiguous else "F"
    copy: Strided = numpy_work.call(np.array, (source,), {"order": order})
    return copy


def _check_out(source: Strided, out: Any) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"Only numpy.ndarray can be obtained from an array of a device, not {type(out)}")
    if out.dtype != source.dtype:
        raise TypeError(f"{out.dtype} array cannot be obtained from {source.dtype} array")
    if out.shape != source.shape:
        raise ValueError(f"Shape mismatch. Expected shape: {source.shape}, actual shape: {out.shape}")
    if not out.flags.writeable:
        raise ValueError("output array is read-only: it cannot be written to; pass a copy of it")
    if not out.flags.forc:
        raise RuntimeError("`out` cannot be specified when copying to non-contiguous ndarray")


def _order(source: Strided, order: str) -> Any:
    """Return ``"C"`` or ``"F"``, the meaning of ``order`` for a copy of ``source``."""
    wanted = order.upper()
    if wanted == "A":
        return "F" if source.flags.fnc else "C"
    if wanted not in ("C", "F"):
        raise ValueError(f"unsupported order: {order}; it can be 'C', 'F' or 'A'")
    return wanted
