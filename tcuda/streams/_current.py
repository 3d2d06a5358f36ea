"""The current stream and the default stream of a device.

This module stores no current stream. On CUDA, CuPy's thread-local current stream is the only current stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.arguments import a_kind
from tcuda._base.arguments import handle as checked_handle
from tcuda._process.device_rules import OF_STREAMS, existing_device, resolve
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import backend, cuda
from tcuda._process.streams import make_current
from tcuda.streams._scope import StreamContext
from tcuda.streams._stream import Stream, as_stream

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument
    from tcuda._process.streams import StreamLike

_MOST_CYCLES = (1 << 63) - 1

_default_streams: dict[int, Stream] = {}
call_in_child(_default_streams.clear)  # so that current_stream() and default_stream() raise in a forked child


def current_stream(device: DeviceArgument = None) -> Stream:
    """Return this thread's current stream of ``device`` (``torch.cuda.current_stream``).

    The current stream is CuPy's current stream. If a stream of tcuda is current, the same object is returned. Inside
    ``with cupy_stream:``, the result is a :class:`Stream` with the handle of ``cupy_stream``.

    Args:
        device: The device; the current device if None or a negative integer.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> side = tcuda.Stream()
        >>> with tcuda.stream(side):
        ...     tcuda.current_stream() is side
        True
    """
    if device is None:
        index = cuda.getDevice()
        current = backend.current_stream(index)  # with the index, CuPy asks nobody for the device
        if current is backend.default_stream:
            return _default_streams.get(index) or default_stream()
    else:
        current = backend.current_stream(resolve(device, OF_STREAMS))
        if current is backend.default_stream:
            return default_stream(device)
    return current if isinstance(current, Stream) else as_stream(current)


def default_stream(device: DeviceArgument = None) -> Stream:
    """Return the default stream of ``device`` (``torch.cuda.default_stream``).

    The default stream is the legacy default stream. With ``CUPY_CUDA_PER_THREAD_DEFAULT_STREAM=1``, the default stream
    of CuPy and of tcuda is the per-thread default stream.

    Args:
        device: The device; the current device if None or a negative integer.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.default_stream().device
        device(type='cuda', index=0)
        >>> tcuda.default_stream() == tcuda.Stream()
        False
    """
    index = cuda.getDevice() if device is None else resolve(device, OF_STREAMS)
    stream = _default_streams.get(index)
    if stream is None:
        stream = _default_streams.setdefault(index, Stream._wrap(backend.default_stream.ptr, index))
    return stream


def set_stream(stream: StreamLike | None) -> None:
    """Make ``stream`` this thread's current stream, and its device the current device (``torch.cuda.set_stream``).

    Prefer the context manager :func:`stream`. CuPy's name for this call is ``stream.use()``. The end of a
    ``with cupy_stream:`` block restores the stream of the enclosing block, and not a stream that was set.

    Args:
        stream: A stream of tcuda, of CuPy, or of any library with ``__cuda_stream__``; nothing happens if ``stream`` is
            None.

    Raises:
        RuntimeError: ``stream`` is not a stream.

    Example:
        >>> before = tcuda.current_stream()
        >>> side = tcuda.Stream()
        >>> tcuda.set_stream(side)
        >>> tcuda.current_stream() == side
        True
        >>> tcuda.set_stream(before)
    """
    if stream is not None:
        make_current(stream if isinstance(stream, Stream) else as_stream(stream))


def stream(stream: StreamLike | None) -> StreamContext:
    """Return a context manager in whose block ``stream`` is current (``torch.cuda.stream``).

    Args:
        stream: A stream of tcuda, of CuPy, or of any library with ``__cuda_stream__``; nothing happens if ``stream`` is
            None.

    Raises:
        RuntimeError: ``stream`` is not a stream.

    Example:
        >>> side = tcuda.Stream()
        >>> x = xp.arange(4)
        >>> side.wait_stream(tcuda.current_stream())
        >>> with tcuda.stream(side):
        ...     y = xp.square(x)  # the kernel runs on side
        >>> side.synchronize()
    """
    return StreamContext(stream if stream is None or isinstance(stream, Stream) else as_stream(stream))


def get_stream_from_external(data_ptr: int, device: DeviceArgument = None) -> Stream:
    """Return a stream that another library made (``torch.cuda.get_stream_from_external``).

    The caller must keep the ``cudaStream_t`` alive as long as the returned stream is in use.

    Args:
        data_ptr: The ``cudaStream_t``.
        device: The device on which the ``cudaStream_t`` was created; the current device if None.

    Raises:
        AcceleratorError: ``device`` does not exist.
        TypeError: ``data_ptr`` is not an integer.
        ValueError: ``data_ptr`` is negative or larger than any address, or ``device`` is not a CUDA device.

    Example:
        >>> other = tcuda.Stream()  # stands for a stream of another library
        >>> tcuda.get_stream_from_external(other.cuda_stream) == other
        True
    """
    return Stream._wrap(checked_handle(data_ptr, "data_ptr"), existing_device(device))


def _sleep(cycles: int) -> None:
    """Keep the current stream busy for ``cycles`` clock cycles of the device (``torch.cuda._sleep``)."""
    if not isinstance(cycles, int) or cycles is True or cycles is False:
        raise RuntimeError(f"torch.cuda._sleep(): expected 'int', got {a_kind(cycles)}")
    if not -_MOST_CYCLES <= cycles <= _MOST_CYCLES:
        raise ValueError(
            f"Overflow when unpacking long long: _sleep() takes a number of cycles up to 2**63 - 1; got {cycles}."
        )
    backend.sleep(cycles, backend.current_stream().ptr)
