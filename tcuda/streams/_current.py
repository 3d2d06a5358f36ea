"""The current stream and the default stream of a device.

No current stream is kept here: on CUDA, CuPy's thread-local current stream is the only one there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._arguments import a_kind
from tcuda._arguments import handle as checked_handle
from tcuda._process.device_rules import OF_STREAMS, existing_device, resolve
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import backend, cuda
from tcuda._process.streams import make_current
from tcuda.streams._scope import StreamContext
from tcuda.streams._stream import Stream, as_stream

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument

_MOST_CYCLES = (1 << 63) - 1

_default_streams: dict[int, Stream] = {}
call_in_child(_default_streams.clear)  # so that a question in a forked child is an error there


def current_stream(device: DeviceArgument = None) -> Stream:
    """Return this thread's current stream of ``device`` (``torch.cuda.current_stream``).

    It is CuPy's current stream: inside ``with cupy_stream:`` it is that stream.

    Args:
        device: The device; the current one if None or a negative integer.

    Raises:
        RuntimeError: There is no such device.
    """
    if device is None:
        current = backend.current_stream()
        if current is backend.default_stream:
            return _default_streams.get(cuda.getDevice()) or default_stream()
    else:
        current = backend.current_stream(resolve(device, OF_STREAMS))
        if current is backend.default_stream:
            return default_stream(device)
    return current if isinstance(current, Stream) else as_stream(current)


def default_stream(device: DeviceArgument = None) -> Stream:
    """Return the default stream of ``device`` (``torch.cuda.default_stream``).

    It is the legacy default stream, or the per-thread one where ``CUPY_CUDA_PER_THREAD_DEFAULT_STREAM=1`` makes that
    CuPy's.

    Args:
        device: The device; the current one if None or a negative integer.

    Raises:
        RuntimeError: There is no such device.
    """
    index = cuda.getDevice() if device is None else resolve(device, OF_STREAMS)
    stream = _default_streams.get(index)
    if stream is None:
        stream = _default_streams.setdefault(index, Stream._wrap(backend.default_stream.ptr, index))
    return stream


def set_stream(stream: Stream | None) -> None:
    """Make ``stream`` this thread's current stream, and its device the current one (``torch.cuda.set_stream``).

    :func:`stream` is to be preferred. CuPy calls this ``stream.use()``, and a ``with cupy_stream:`` that is left
    afterwards goes back to what was entered last, not to what was set.

    Args:
        stream: The stream; nothing happens if it is None.
    """
    if stream is not None:
        make_current(stream if isinstance(stream, Stream) else as_stream(stream))


def stream(stream: Stream | None) -> StreamContext:
    """Return a context manager in whose block ``stream`` is current (``torch.cuda.stream``).

    Args:
        stream: A stream of tcuda, CuPy or any library that knows ``__cuda_stream__``; nothing happens if it is None.

    Example:
        >>> side = tcuda.Stream()
        >>> with tcuda.stream(side):
        ...     y = cupy.square(x)  # CuPy launches on side
    """
    return StreamContext(stream if stream is None or isinstance(stream, Stream) else as_stream(stream))


def get_stream_from_external(data_ptr: int, device: DeviceArgument = None) -> Stream:
    """Return a stream that another library made (``torch.cuda.get_stream_from_external``); keep that one alive.

    Args:
        data_ptr: The ``cudaStream_t``.
        device: The device it was created on; the current one if None.

    Raises:
        AcceleratorError: There is no such device.
        TypeError: ``data_ptr`` is no integer.
        ValueError: ``data_ptr`` is negative, or more than any address.
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
