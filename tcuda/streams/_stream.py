"""CUDA streams."""

from __future__ import annotations

import ctypes
import operator
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._base.arguments import MOST_DEVICES, integer
from tcuda._base.arguments import handle as checked_handle
from tcuda._base.copying import refusing
from tcuda._base.cupy_names import CupyName
from tcuda._device import device
from tcuda._process.captures import captures, number_on, require_no_capture, require_same_capture
from tcuda._process.device_rules import existing_device
from tcuda._process.devices import Device, _get_device_index
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda
from tcuda._process.spare_events import spare_events
from tcuda._process.streams import handle_and_device, is_complete, make_current
from tcuda._runtime.protocol import EVENT_DISABLE_TIMING, STREAM_PER_THREAD
from tcuda.streams._event import Event
from tcuda.streams._foreign_events import foreign_handle, refuse_event
from tcuda.streams._rings import LAST, StreamRing

if TYPE_CHECKING:
    from typing import TypedDict

    from typing_extensions import Self, Unpack

    from tcuda._process.devices import DeviceArgument
    from tcuda._process.streams import StreamLike

    class ExternalStreamKeywords(TypedDict, total=False):
        """The keywords of ``ExternalStream``, which are there for compatibility with torch."""

        stream_id: int | None
        device_index: int | None
        device_type: int

    class StreamKeywords(ExternalStreamKeywords, total=False):
        """The keywords of ``Stream`` that name an existing stream."""

        stream_ptr: int | None


_new_object = object.__new__  # one look-up less for each stream
_PRIORITIES = 4  # as many levels as torch has; an H200 has six
_CUDA_DEVICE_TYPE = 1  # torch's number for device type "cuda"

_NON_BLOCKING = " CuPy has this keyword. Leave the keyword out: every tcuda.Stream() is non-blocking."
_OF_CUPY = {
    "non_blocking": _NON_BLOCKING,
    "nonblocking": _NON_BLOCKING,
    "null": " CuPy has this keyword. Write tcuda.default_stream() for the default stream.",
    "ptds": " CuPy has this keyword. Write tcuda.xp.cuda.Stream(ptds=True): tcuda takes streams of CuPy everywhere.",
    "device_id": " CuPy has this keyword. Write device=, with the same number.",
    "ptr": " CuPy has this keyword. Write stream_ptr=, with the same number.",
}
"""What to write in place of keywords of CuPy's streams."""


class Stream(_core.StreamMethods):
    """A CUDA stream (``torch.cuda.Stream``).

    Streams come in turn from a ring of 32 CUDA streams for each device and priority, as in torch. So a new stream is
    cheap, and the 33rd stream is the first CUDA stream again. The streams are non-blocking: only an event or a wait
    orders a stream and the default stream.

    CuPy accepts such a stream wherever CuPy accepts its own streams. Every library that reads ``__cuda_stream__``
    accepts the stream too.

    Args:
        device: The device; the current device if None or a negative integer.
        priority: The priority. A lower number is a higher priority. A number outside of :meth:`priority_range` means
            the nearest priority in that range.
        **kwargs: ``stream_ptr`` wraps a ``cudaStream_t``, as :class:`ExternalStream` does. ``stream_id``,
            ``device_index`` and ``device_type`` name an existing stream, as in torch.

    Attributes:
        cuda_stream: The ``cudaStream_t``.
        device_index: The index of the device of the stream.

    Raises:
        AcceleratorError: ``device`` does not exist.
        TypeError: ``priority`` or a handle is not an integer, or a keyword is unknown.
        ValueError: A handle is negative or larger than any address, or ``device`` is not a CUDA device.

    Example:
        >>> side = tcuda.Stream()
        >>> with tcuda.stream(side):
        ...     x = xp.ones(1000)  # the kernel runs on side
        >>> tcuda.current_stream().wait_stream(side)  # later work here waits for x
        >>> float(x.sum())
        1000.0
    """

    __slots__ = ("__dict__", "__weakref__", "cuda_stream", "device_index")

    cuda_stream: int
    device_index: int

    ptr: int  # CuPy's names for cuda_stream and device_index; set below the class
    device_id: int

    null = CupyName("Write tcuda.default_stream().")
    ptds = CupyName("Write tcuda.xp.cuda.Stream.ptds: tcuda takes streams of CuPy everywhere.")
    begin_capture = CupyName("Write a block of tcuda.graph().")
    end_capture = CupyName("Write a block of tcuda.graph().")
    launch_host_func = CupyName("Write tcuda.xp.cuda.Stream.from_external(stream).launch_host_func.")
    add_callback = CupyName("Write tcuda.xp.cuda.Stream.from_external(stream).add_callback.")

    def __new__(cls, device: DeviceArgument = None, priority: int = 0, **kwargs: Unpack[StreamKeywords]) -> Self:
        if kwargs:
            return cls._from_keywords(device, **kwargs)
        if device is None:
            index = cuda.getDevice()
        else:
            index = _get_device_index(device, optional=True)
            if index < 0:
                index = cuda.getDevice()
        if type(priority) is not int:
            priority = operator.index(priority)
        self = _new_object(cls)
        ring = _rings.get((index, priority)) or _ring(index, priority)
        turn = ring.next_turn() & LAST
        self.cuda_stream = ring.handles[turn] or ring.create(turn)
        self.device_index = index
        return self

    @classmethod
    def _from_keywords(
        cls,
        device: DeviceArgument,
        stream_ptr: int | None = None,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int = _CUDA_DEVICE_TYPE,
        **unknown: object,
    ) -> Self:
        if unknown:
            name = next(iter(unknown))
            raise TypeError(
                f"{cls.__name__}() got an unexpected keyword argument {name!r}; the keywords are device, priority, "
                f"stream_ptr, stream_id, device_index and device_type.{_OF_CUPY.get(name, '')}"
            )
        if stream_id is not None and device_index is not None and stream_ptr is None:
            if device_type != _CUDA_DEVICE_TYPE:
                raise ValueError(
                    f"device_type must be {_CUDA_DEVICE_TYPE}, torch's number for CUDA; got {device_type!r}."
                )
            index = existing_device(integer(device_index, "device_index", 0, MOST_DEVICES))
            return cls._wrap(checked_handle(stream_id, "stream_id"), index)
        if stream_ptr is None:
            raise TypeError("Stream() takes stream_ptr, or stream_id and device_index together")
        return cls._wrap(checked_handle(stream_ptr, "stream_ptr"), existing_device(device))

    @classmethod
    def _wrap(cls, handle: int, device_index: int) -> Self:
        self = object.__new__(cls)
        self.cuda_stream = handle
        self.device_index = device_index
        return self

    @property
    def device(self) -> Device:
        """The device of the stream."""
        return Device("cuda", self.device_index)

    @property
    def device_type(self) -> int:
        """The number of the device type "cuda" in torch, 1."""
        return _CUDA_DEVICE_TYPE

    @property
    def stream_id(self) -> int:
        """The handle of the stream; together with ``device_index``, the handle names the stream."""
        return self.cuda_stream

    @property
    def priority(self) -> int:
        """The priority of the stream (``cudaStreamGetPriority``)."""
        return cuda.streamGetPriority(self.cuda_stream)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the lowest and the highest priority, such as ``(0, -3)``.

        Example:
            >>> low, high = tcuda.Stream.priority_range()
            >>> tcuda.Stream(priority=high).priority == high
            True
        """
        least, greatest = cuda.deviceGetStreamPriorityRange()
        return least, max(greatest, least - _PRIORITIES + 1)

    def query(self) -> bool:
        """Return whether all work that was submitted to the stream is complete (``cudaStreamQuery``).

        Example:
            >>> side = tcuda.Stream()
            >>> side.synchronize()
            >>> side.query()
            True
        """
        handle = self.cuda_stream
        if captures:
            require_no_capture("Stream.query()", stream=handle)
        if handle > STREAM_PER_THREAD:
            status = cuda.streamQuery(handle)
            return status == 0 or is_complete(status, "cudaStreamQuery", handle)
        with device(self.device_index):
            return is_complete(cuda.streamQuery(handle), "cudaStreamQuery", handle)

    def synchronize(self) -> None:
        """Wait until all work that was submitted to the stream is complete (``cudaStreamSynchronize``).

        Example:
            >>> side = tcuda.Stream()
            >>> with tcuda.stream(side):
            ...     x = xp.ones(3)
            >>> side.synchronize()
            >>> side.query()
            True
        """
        handle = self.cuda_stream
        if captures:
            require_no_capture("Stream.synchronize()", stream=handle)
        if handle > STREAM_PER_THREAD:
            cuda.streamSynchronize(handle)
            return
        with device(self.device_index):
            cuda.streamSynchronize(handle)

    def is_capturing(self) -> bool:
        """Return whether a graph is being captured on the stream (``cudaStreamIsCapturing``).

        Example:
            >>> tcuda.Stream().is_capturing()
            False
        """
        return cuda.streamIsCapturing(self.cuda_stream)

    def wait_event(self, event: Any) -> None:
        """Make all later work on the stream wait for ``event`` (``cudaStreamWaitEvent``). The call returns at once.

        Args:
            event: An event of tcuda, PyTorch, CuPy, cuda.core or Numba.

        Raises:
            RuntimeError: ``event`` is not an event, or an event of cuda.core that was closed.

        Example:
            >>> side, ready = tcuda.Stream(), tcuda.Event()
            >>> x = xp.ones(1000)
            >>> ready.record()
            >>> side.wait_event(ready)
            >>> with tcuda.stream(side):
            ...     y = x + 1  # begins when x is complete
        """
        if isinstance(event, Event):
            event.wait(self)
            return
        handle = foreign_handle(event)
        if handle:  # 0 is the handle of an event of PyTorch that was never recorded
            with device(self.device_index):
                cuda.streamWaitEvent(self.cuda_stream, handle)

    def wait_stream(self, stream: StreamLike) -> None:
        """Make all later work on this stream wait for the work that ``stream`` has now. The call returns at once.

        Args:
            stream: A stream of tcuda, of CuPy, or of any library with ``__cuda_stream__``.

        Raises:
            RuntimeError: ``stream`` is not a stream.
            AcceleratorError: This stream is capturing, and ``stream`` does not take part in the capture (905).

        Example:
            >>> side = tcuda.Stream()
            >>> x = xp.ones(1000)
            >>> side.wait_stream(tcuda.current_stream())
            >>> with tcuda.stream(side):
            ...     y = x + 1  # begins when x is complete
        """
        other, index = handle_and_device(stream)
        handle = self.cuda_stream
        if captures:
            require_same_capture("Stream.wait_stream()", handle, number_on(other))
        spares = spare_events(index, EVENT_DISABLE_TIMING)
        mark = spares.take()
        try:
            if other > STREAM_PER_THREAD < handle:
                cuda.eventRecord(mark, other)
                cuda.streamWaitEvent(handle, mark)
            else:  # the handle of a default stream means the default stream of the current device
                with device(index):
                    cuda.eventRecord(mark, other)
                with device(self.device_index):
                    cuda.streamWaitEvent(handle, mark)
        finally:
            spares.give_back(mark)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event on the stream, and return the event (``cudaEventRecord``).

        Args:
            event: The event; a new event if None.

        Raises:
            RuntimeError: ``event`` is not an event.

        Example:
            >>> side = tcuda.Stream()
            >>> with tcuda.stream(side):
            ...     x = xp.ones(1000)
            >>> ready = side.record_event()
            >>> ready.synchronize()  # x is complete
        """
        if event is None:
            event = Event()
        try:
            record = event.record
        except AttributeError:
            refuse_event(event)
        if hasattr(event, "wait_event"):  # streams have record() too
            refuse_event(event)
        record(self)
        return event

    # Methods under CuPy's names, because CuPy calls them on the current stream.

    def use(self) -> Self:
        """Make the stream the current stream: :func:`set_stream` under CuPy's name.

        Prefer the context manager :func:`stream`.

        Example:
            >>> before = tcuda.current_stream()
            >>> side = tcuda.Stream().use()
            >>> tcuda.current_stream() == side
            True
            >>> tcuda.set_stream(before)
        """
        make_current(self)
        return self

    def record(self, event: Event | None = None) -> Event:
        """Record an event on the stream, and return the event: :meth:`record_event` under CuPy's name.

        Args:
            event: The event; a new event if None.

        Raises:
            RuntimeError: ``event`` is not an event.

        Example:
            >>> event = tcuda.Stream().record()
            >>> event.query()
            True
        """
        return self.record_event(event)

    @property
    def done(self) -> bool:
        """Whether all work that was submitted to the stream is complete: :meth:`query` under CuPy's name."""
        return self.query()

    # A copy is the stream itself: a Stream does not own its CUDA stream, and streams are compared by their handles.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    __reduce__ = refusing(
        "pickle", "its handle means nothing in another process. Make a tcuda.Stream(device, priority) there."
    )

    def __eq__(self, o: object) -> bool:
        if not isinstance(o, Stream):
            return False
        return self.cuda_stream == o.cuda_stream and self.device_index == o.device_index

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device_index))

    def __repr__(self) -> str:
        return f"<tcuda.{type(self).__name__} device={self.device} cuda_stream={self.cuda_stream:#x}>"

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return ``(0, handle)``, as the CUDA stream protocol demands."""
        return 0, self.cuda_stream

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_stream)


# CuPy reads `ptr` and `device_id` at each launch, so they are the slots themselves and not properties.
setattr(Stream, "ptr", Stream.__dict__["cuda_stream"])  # noqa: B010
setattr(Stream, "device_id", Stream.__dict__["device_index"])  # noqa: B010


class ExternalStream(Stream):
    """A stream that another library made (``torch.cuda.ExternalStream``).

    The caller must keep the ``cudaStream_t`` alive as long as this object is in use.

    Args:
        stream_ptr: The ``cudaStream_t``.
        device: The device on which the ``cudaStream_t`` was created; the current device if None.
        **kwargs: Accepted for compatibility with torch: see :class:`Stream`.

    Raises:
        AcceleratorError: ``device`` does not exist.
        TypeError: ``stream_ptr`` is not an integer, or a keyword is unknown.
        ValueError: ``stream_ptr`` is negative or larger than any address, or ``device`` is not a CUDA device.

    Example:
        >>> other = tcuda.Stream()  # stands for a stream of another library
        >>> wrapped = tcuda.ExternalStream(other.cuda_stream, device=other.device)
        >>> wrapped == other
        True
    """

    __slots__ = ()

    def __new__(cls, stream_ptr: int, device: DeviceArgument = None, **kwargs: Unpack[ExternalStreamKeywords]) -> Self:
        return super().__new__(cls, device, stream_ptr=stream_ptr, **kwargs)


_rings: dict[tuple[int, int], StreamRing] = {}
"""The rings by device and priority. A priority out of range has no entry, so that the dictionary stays small."""

call_in_child(_rings.clear)  # a forked child cannot use the streams of its parent


def _ring(device_index: int, priority: int) -> StreamRing:
    """Return the ring of the priority in range that is nearest to ``priority``."""
    priority = operator.index(priority)
    least, greatest = Stream.priority_range()
    existing_device(device_index)
    key = (device_index, min(least, max(greatest, priority)))
    return _rings.get(key) or _rings.setdefault(key, StreamRing(*key))


def as_stream(stream: StreamLike) -> Stream:
    """Return a :class:`Stream` for a stream of another library. The result keeps that stream alive."""
    ours = Stream._wrap(*handle_and_device(stream))
    ours.__dict__["_owner"] = stream
    return ours
