"""Streams as CuPy's objects. The current stream is the current stream of tcuda."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from tcuda._process.exit import finalizer
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import CAPTURE_RELAXED, STREAM_DEFAULT, STREAM_NON_BLOCKING, STREAM_PER_THREAD
from tcuda.emulation.cuda import runtime
from tcuda.emulation.cuda.event import Event, get_elapsed_time
from tcuda.emulation.cuda.graph import Graph
from tcuda.emulation.devices.runtime_error import with_cupys_error
from tcuda.graphs._end import end_capture

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from tcuda._backend.streams import CurrentStream


class _BaseStream:
    """A stream.

    Args:
        ptr: The ``cudaStream_t``.
        device_id: The index of the device; -1 if the stream is of no device in particular.

    Attributes:
        ptr: The ``cudaStream_t``.
        device_id: The index of the device; -1 if the stream is of no device in particular.
    """

    def __init__(self, ptr: int, device_id: int) -> None:
        self.ptr = ptr
        self.device_id = device_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BaseStream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return self.ptr

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ptr} (device {self.device_id})>"

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return ``(0, ptr)``, as the CUDA stream protocol demands."""
        return 0, self.ptr

    def __enter__(self) -> Self:
        backend.enter_stream(self._current())
        return self

    def __exit__(self, *error: object) -> None:
        backend.exit_stream()

    def use(self) -> Self:
        """Make the stream the current stream of its device, which must be the current device.

        Raises:
            RuntimeError: The stream is of another device.
        """
        backend.use_stream(self._current())
        return self

    def _current(self) -> CurrentStream:
        """Return the object that stands for this stream where it is current."""
        return backend.default_stream if self is Stream.null else self

    @property
    def done(self) -> bool:
        """Whether all work of the stream is complete."""
        return cuda.streamQuery(self.ptr) == 0

    @with_cupys_error
    def synchronize(self) -> None:
        """Wait until all work of the stream is complete.

        Raises:
            CUDARuntimeError: The stream captures, or a capture forbids to wait.
        """
        cuda.streamSynchronize(self.ptr)

    def add_callback(self, callback: Callable[[Any, int, Any], object], arg: Any) -> None:
        """Call ``callback(stream, 0, arg)`` after the work that the stream has now.

        Raises:
            CUDARuntimeError: The stream captures.
        """
        runtime.streamAddCallback(self.ptr, lambda stream, status, _: callback(self, status, arg), None)

    def launch_host_func(self, callback: Callable[[Any], object], arg: Any) -> None:
        """Call ``callback(arg)`` after the work that the stream has now.

        If the stream captures, each launch of the graph calls the function.
        """
        runtime.launchHostFunc(self.ptr, callback, arg)

    @with_cupys_error
    def record(self, event: Any = None) -> Any:
        """Record ``event`` on the stream, a new event if None, and return the event."""
        if event is None:
            event = Event()
        cuda.eventRecord(event.ptr, self.ptr)
        return event

    @with_cupys_error
    def wait_event(self, event: Any) -> None:
        """Make all later work on the stream wait for ``event``."""
        cuda.streamWaitEvent(self.ptr, event.ptr)

    @with_cupys_error
    def begin_capture(self, mode: int | None = None) -> None:
        """Record the later work on the stream in a graph, until :meth:`end_capture`.

        Args:
            mode: The mode of the capture; ``streamCaptureModeRelaxed`` if None.

        Raises:
            RuntimeError: The stream is the default stream.
        """
        if self.ptr in (0, 1):
            raise RuntimeError("cannot capture on the default (legacy) stream")
        cuda.streamBeginCapture(self.ptr, CAPTURE_RELAXED if mode is None else mode)

    @with_cupys_error
    def end_capture(self) -> Graph:
        """End the capture, and return the graph.

        Raises:
            CUDARuntimeError: The stream does not capture, or the capture was invalidated.
        """
        return Graph._of(end_capture(self.ptr))

    @with_cupys_error
    def is_capturing(self) -> bool:
        """Return whether the stream captures."""
        return cuda.streamIsCapturing(self.ptr)

    @property
    def is_non_blocking(self) -> bool:
        """Whether the default stream does not wait for the stream."""
        return bool(runtime.streamGetFlags(self.ptr) & STREAM_NON_BLOCKING)

    @property
    def priority(self) -> int:
        """The priority; a lower number is a higher priority."""
        priority: int = runtime.streamGetPriority(self.ptr)
        return priority


class Stream(_BaseStream):
    """A stream (``cupy.cuda.Stream``), which is created on the current device.

    Args:
        null: Whether the stream is the default stream.
        non_blocking: Whether the default stream does not wait for the stream.
        ptds: Whether the stream is the default stream of the thread.
        priority: The priority; 0 if None.

    Attributes:
        ptr: The ``cudaStream_t``.
        device_id: The index of the device; -1 for the default streams.
    """

    __module__ = "tcuda.emulation.cuda"

    null: ClassVar[Stream]
    """The default stream."""

    ptds: ClassVar[Stream]
    """The default stream of the thread."""

    _foreign_stream_ref: object = None
    _owned = 0

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None
    ) -> None:
        if null:
            super().__init__(0, -1)
        elif ptds:
            super().__init__(STREAM_PER_THREAD, -1)
        else:
            flags = STREAM_NON_BLOCKING if non_blocking else STREAM_DEFAULT
            handle = with_cupys_error(cuda.streamCreateWithPriority)(flags, priority or 0)
            super().__init__(handle, cuda.getDevice())
            self._owned = handle

    def _destroy(self) -> None:
        if self._owned:
            cuda.streamDestroy(self._owned)

    __del__ = finalizer(_destroy)

    @classmethod
    def from_external(cls, obj: Any) -> Self:
        """Return a stream of another library, which the result keeps alive.

        Args:
            obj: An object with the method ``__cuda_stream__``.

        Raises:
            TypeError: ``obj`` does not have the method, or the method does not return ``(0, handle)``.
        """
        try:
            version, handle = obj.__cuda_stream__()
        except AttributeError as error:
            raise TypeError(
                f"Object of type {type(obj).__name__} does not implement the CUDA stream protocol (__cuda_stream__ "
                "method)"
            ) from error
        except (TypeError, ValueError) as error:
            raise TypeError("__cuda_stream__() must return a 2-tuple of (version, stream_ptr)") from error
        if not isinstance(version, int) or not isinstance(handle, int):
            raise TypeError(
                f"__cuda_stream__() must return (int, int), got ({type(version).__name__}, {type(handle).__name__})"
            )
        if version != 0:
            raise TypeError(f"__cuda_stream__() returned unsupported version {version}, only version 0 is supported")
        made = cls.__new__(cls)
        _BaseStream.__init__(made, handle, -1)
        made._foreign_stream_ref = obj
        return made


class ExternalStream(_BaseStream):
    """A stream that another library made (``cupy.cuda.ExternalStream``).

    Args:
        ptr: The ``cudaStream_t``.
        device_id: The index of the device; -1 if the device is not known.
    """

    __module__ = "tcuda.emulation.cuda"

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        warnings.warn(
            "ExternalStream is deprecated. Use Stream.from_external() instead to interoperate with external streams "
            "that implement the CUDA stream protocol.",
            DeprecationWarning,
            stacklevel=2,
        )
        super().__init__(ptr, device_id)


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)


def get_current_stream(device_id: int = -1) -> Any:
    """Return the current stream of a device.

    Args:
        device_id: The index of the device; the current device if -1.

    Returns:
        The stream: a stream of this module, or a stream of tcuda that a program has made current.
    """
    current = backend.current_stream(device_id)
    return Stream.null if current is backend.default_stream else current


__all__ = ["Event", "ExternalStream", "Stream", "get_current_stream", "get_elapsed_time"]
