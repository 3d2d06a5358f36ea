"""Events, which mark points in the work of streams."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._base.arguments import a_kind, flag
from tcuda._base.copying import refusing
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._device import device
from tcuda._process.captures import capture_on, captures, number_on, require_no_capture, require_same_capture
from tcuda._process.device_rules import existing_device
from tcuda._process.devices import Device, exchange_device, is_device
from tcuda._process.lazy import backend, cuda
from tcuda._process.spare_events import SpareEvents, create_event, destroy_event, spare_events
from tcuda._process.streams import handle_and_device, is_complete
from tcuda._runtime.protocol import (
    EVENT_BLOCKING_SYNC,
    EVENT_DEFAULT,
    EVENT_DISABLE_TIMING,
    EVENT_INTERPROCESS,
    EVENT_RECORD_EXTERNAL,
    EVENT_WAIT_EXTERNAL,
    STREAM_LEGACY,
    STREAM_PER_THREAD,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from tcuda._process.devices import DeviceArgument
    from tcuda._process.streams import StreamLike

_IPC_HANDLE_SIZE = 64
_new_object = object.__new__  # saves a look-up for each event


def _flags(enable_timing: int, blocking: int, interprocess: int) -> int:
    """Return the flags for ``cudaEventCreateWithFlags``. As in torch, integers are accepted as truth values."""
    return (
        (EVENT_DEFAULT if flag(enable_timing, "enable_timing") else EVENT_DISABLE_TIMING)
        | (EVENT_BLOCKING_SYNC if flag(blocking, "blocking") else 0)
        | (EVENT_INTERPROCESS if flag(interprocess, "interprocess") else 0)
    )


def _check_ipc_handle(handle: Any) -> None:
    # torch accepts a str too. A str has the length of a handle only by accident, so tcuda refuses every str.
    size = len(handle) if isinstance(handle, (bytes, str)) else -1
    if size < 0 or (size == _IPC_HANDLE_SIZE and isinstance(handle, str)):
        raise TypeError(f"from_ipc_handle(): handle must be the bytes of an ipc_handle(); got {a_kind(handle)}.")
    if size != _IPC_HANDLE_SIZE:
        raise RuntimeError(f"cudaIpcEventHandle_t expects byte-like object of size {_IPC_HANDLE_SIZE}, but got {size}")


class Event(_core.EventFinalizer):
    """A CUDA event (``torch.cuda.Event``).

    The first record or export of the event creates the CUDA event. From then on, only streams of the same device may
    record the event, and streams of any device may wait for the event. The CUDA event of an external event is also
    created when a capturing stream first waits for the event.

    Args:
        enable_timing: Whether :meth:`elapsed_time` may use the event.
        blocking: Whether the thread sleeps instead of spinning in :meth:`synchronize`.
        interprocess: Whether another process can open the event by its IPC handle. ``interprocess`` cannot be combined
            with ``enable_timing``.
        external: Whether the record of the event, or the wait for the event, becomes a node of a captured graph. A
            record or a wait of any other event only orders the captured work. The graph keeps the event alive.

    Raises:
        TypeError: An argument is neither a truth value nor an integer.

    Example:
        >>> begin, end = tcuda.Event(enable_timing=True), tcuda.Event(enable_timing=True)
        >>> begin.record()
        >>> x = xp.ones(1000).sum()
        >>> end.record()
        >>> end.synchronize()
        >>> begin.elapsed_time(end) > 0  # milliseconds
        True
    """

    __slots__ = ("__dict__", "__weakref__", "_device_index", "_flags", "_spares", "cuda_event")

    _device_index: int  # set when the CUDA event is created
    _flags: int
    _spares: SpareEvents | None  # set before the CUDA event is created

    cuda_event: int
    """The ``cudaEvent_t``; 0 until the CUDA event is created."""

    ptr: int  # CuPy's name for cuda_event; set below the class

    _capture = 0  # the number of the capture of the last record; 0 if the last record was not captured

    _external = False

    # __new__ takes the arguments, as in torch: a subclass may have an __init__ with other arguments, and need not call
    # Event.__init__.
    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> Self:
        self = _new_object(cls)
        self.cuda_event = 0
        if enable_timing is blocking is interprocess is external is False:  # the most frequent case
            self._flags = EVENT_DISABLE_TIMING
        else:
            self._flags = _flags(enable_timing, blocking, interprocess)
            if flag(external, "external"):
                self._external = True
        return self

    __reduce__ = refusing(
        "copy or pickle",
        "both would own the same CUDA event. Make another event and record it. Another process opens an event by the "
        "bytes that ipc_handle() returns.",
    )

    @classmethod
    def from_ipc_handle(cls, device: DeviceArgument, handle: bytes) -> Self:
        """Open an event of another process (``cudaIpcOpenEventHandle``).

        Args:
            device: The device of the event.
            handle: The 64 bytes that :meth:`ipc_handle` returned in the other process.

        Raises:
            TypeError: ``handle`` is not ``bytes``, or ``device`` is not a device.
            RuntimeError: ``handle`` does not have 64 bytes, or ``device`` is not a CUDA device.
            AcceleratorError: ``handle`` names an event of this process, or no event.

        Example:
            >>> event = tcuda.Event(interprocess=True)
            >>> handle = event.ipc_handle()
            >>> try:
            ...     tcuda.Event.from_ipc_handle(0, handle)
            ... except tcuda.AcceleratorError:
            ...     print("only another process can open the event")
            only another process can open the event
        """
        _check_ipc_handle(handle)
        if not is_device(device):
            raise TypeError(f"from_ipc_handle(): device must be an int, a str or a device; got {a_kind(device)}.")
        try:
            index = existing_device(device)
        except ValueError as error:
            raise RuntimeError(f"Event can only be created on CUDA devices, but got device {device!r}") from error
        event = Event.__new__(cls, interprocess=True)  # as in torch, the __new__ of a subclass is not called
        event._spares, event._device_index = None, index
        previous = exchange_device(index)
        try:
            event.cuda_event = cuda.ipcOpenEventHandle(handle)
        finally:
            exchange_device(previous)
        return event

    @property
    def device(self) -> Device | None:
        """The device of the event; None until the CUDA event is created."""
        return Device("cuda", self._device_index) if self.cuda_event else None

    def record(self, stream: StreamLike | None = None) -> None:
        """Record the event: the event then marks the end of the work that ``stream`` has now (``cudaEventRecord``).

        Args:
            stream: The stream; the current stream if None.

        Raises:
            RuntimeError: ``stream`` is of another device than the event, or ``stream`` is not a stream.

        Example:
            >>> event = tcuda.Event()
            >>> event.record()
            >>> event.wait(tcuda.Stream())  # later work of that stream waits
        """
        if stream is None:
            current = backend.current_stream()
            handle, index = current.ptr, current.device_id
            if index < 0:  # CuPy ties a default stream to no device
                index = cuda.getDevice()
            self._record(handle, index)
            return
        handle, index = handle_and_device(stream)
        if handle > STREAM_PER_THREAD:
            self._record(handle, index)
            return
        with device(index):
            self._record(handle, index)

    def _record(self, handle: int, index: int) -> None:
        """Record the event on the stream ``handle`` of the device ``index``.

        For a default stream, the caller must make its device current.
        """
        created = not self.cuda_event
        if created:
            self._create_on(index)
        elif index != self._device_index:
            raise RuntimeError(
                f"Event device {self._device_index} does not match recording stream's device {index}. Record it on a "
                f"stream of device {self._device_index}, or make another event."
            )
        try:
            if self._external and cuda.streamIsCapturing(handle):
                self._keep_for_graph(handle)
                cuda.eventRecordWithFlags(self.cuda_event, handle, EVENT_RECORD_EXTERNAL)
            else:
                cuda.eventRecord(self.cuda_event, handle)
                if captures:
                    self._capture = number_on(handle)
        except AcceleratorError:
            if created:
                self._release()
            raise

    def wait(self, stream: StreamLike | None = None) -> None:
        """Make all later work on ``stream`` wait for the event (``cudaStreamWaitEvent``). The call returns at once.

        Args:
            stream: The stream; the current stream if None.

        Raises:
            RuntimeError: ``stream`` is not a stream.
            AcceleratorError: ``stream`` is capturing, and the event was not recorded in that capture (905).

        Example:
            >>> side, ready = tcuda.Stream(), tcuda.Event()
            >>> x = xp.ones(1000)
            >>> ready.record()
            >>> with tcuda.stream(side):
            ...     ready.wait()  # the current stream, side, waits for x
            ...     y = x + 1
        """
        if stream is None:
            if self.cuda_event or self._external:
                current = backend.current_stream()
                self._wait(current.ptr, current.device_id)
            return
        handle, index = handle_and_device(stream)
        if handle > STREAM_PER_THREAD:
            self._wait(handle, index)
            return
        with device(index):
            self._wait(handle, index)

    def _wait(self, handle: int, index: int) -> None:
        """Let the stream ``handle`` of the device ``index`` wait for the event.

        For a default stream, the caller must make its device current.
        """
        if not self.cuda_event:
            if self._external:
                self._wait_for_later(handle, index)
            return
        if self._external and cuda.streamIsCapturing(handle):
            self._keep_for_graph(handle)
            cuda.streamWaitEvent(handle, self.cuda_event, EVENT_WAIT_EXTERNAL)
        else:
            if captures:
                require_same_capture("Event.wait()", handle, self._capture)
            cuda.streamWaitEvent(handle, self.cuda_event)

    def _wait_for_later(self, handle: int, index: int) -> None:
        """Let the graph that is being captured on the stream ``handle`` wait for later records of the event.

        The call does nothing if the stream is not capturing: an event without a record orders no work.
        """
        if handle <= STREAM_LEGACY or not cuda.streamIsCapturing(handle):
            return
        self._create_on(index if index >= 0 else cuda.getDevice())
        try:
            self._wait(handle, index)
        except AcceleratorError:
            self._release()
            raise

    def _keep_for_graph(self, stream: int) -> None:
        """Let the graph that is being captured on ``stream`` keep the event, because every launch uses the event."""
        capture = capture_on(stream)
        if capture is not None:
            capture.events.append(self)

    def query(self) -> bool:
        """Return whether the work before the last record is complete (``cudaEventQuery``).

        An event that was never recorded is complete.

        Example:
            >>> event = tcuda.Event()
            >>> event.record()
            >>> event.synchronize()
            >>> event.query()
            True
        """
        event = self.cuda_event
        if not event:
            return True
        if captures:
            require_no_capture("Event.query()", event=self._capture)
        status = cuda.eventQuery(event)
        return status == 0 or is_complete(status, "cudaEventQuery", event)

    @property
    def done(self) -> bool:
        """Whether the work before the last record is complete: :meth:`query` under CuPy's name."""
        return self.query()

    def synchronize(self) -> None:
        """Wait until the work before the last record is complete (``cudaEventSynchronize``).

        Example:
            >>> event = tcuda.Event()
            >>> event.record()
            >>> event.synchronize()
        """
        event = self.cuda_event
        if event:
            if captures:
                require_no_capture("Event.synchronize()", event=self._capture)
            cuda.eventSynchronize(event)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to ``end_event`` (``cudaEventElapsedTime``).

        Args:
            end_event: The event at the end of the time, on a stream of the same device.

        Raises:
            ValueError: One of the two events was made without ``enable_timing=True``, or was never recorded.
            AcceleratorError: The two events are of different devices (400).
            RuntimeError: One of the two events is not complete, or ``end_event`` is not an event.

        Example:
            >>> start, end = (tcuda.Event(enable_timing=True) for _ in range(2))
            >>> start.record()
            >>> x = xp.ones(1000)
            >>> end.record()
            >>> end.synchronize()
            >>> start.elapsed_time(end) >= 0  # milliseconds
            True
        """
        if not isinstance(end_event, Event):
            raise RuntimeError(
                f"expected other to be a torch.cuda.Event object, or rather a tcuda.Event, got {end_event!r}"
            )
        if (self._flags | end_event._flags) & EVENT_DISABLE_TIMING:
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.cuda_event and end_event.cuda_event):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if self._device_index != end_event._device_index:
            raise AcceleratorError(
                Status.INVALID_RESOURCE_HANDLE,
                "Event.elapsed_time()",
                f"The events are of two devices, cuda:{self._device_index} and cuda:{end_event._device_index}. Record "
                "both events on streams of one device.",
            )
        try:
            return cuda.eventElapsedTime(self.cuda_event, end_event.cuda_event)
        except AcceleratorError as error:
            if error.error_code == Status.NOT_READY:
                raise RuntimeError("Both events must be completed before calculating elapsed time.") from error
            # A wait in a capture, or a record in one, creates the CUDA event of an external event without a record.
            external = self._external or end_event._external
            if error.error_code == Status.INVALID_RESOURCE_HANDLE and external:
                raise ValueError("Both events must be recorded before calculating elapsed time.") from error
            raise

    def ipc_handle(self) -> bytes:
        """Return the 64 bytes by which another process opens the event (``cudaIpcGetEventHandle``).

        If the event was never recorded, the CUDA event is created on the current device.

        Raises:
            AcceleratorError: The event was not made with ``interprocess=True``.

        Example:
            >>> event = tcuda.Event(interprocess=True)
            >>> handle = event.ipc_handle()  # another process passes the bytes to Event.from_ipc_handle()
            >>> len(handle)
            64
        """
        created = not self.cuda_event
        if created:
            self._create_on(cuda.getDevice())
        try:
            return cuda.ipcGetEventHandle(self.cuda_event)
        except AcceleratorError:
            if created:
                self._release()
            raise

    def _create_on(self, index: int) -> None:
        self._device_index = index
        if self._external or self._flags & EVENT_INTERPROCESS:
            self._spares = None
            self.cuda_event = create_event(index, self._flags)
        else:
            self._spares = spare_events(index, self._flags)
            self.cuda_event = self._spares.take()

    def _release(self) -> None:
        """Give the CUDA event back to the spare events, or destroy the CUDA event; called when the event dies."""
        event, self.cuda_event = self.cuda_event, 0
        if self._spares is not None:
            self._spares.give_back(event)
        else:
            destroy_event(event)

    def __repr__(self) -> str:
        return f"<tcuda.Event {self.cuda_event:#x}>" if self.cuda_event else "<tcuda.Event uninitialized>"

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_event)


# Functions of CuPy that take an event read `ptr`. `ptr` is the slot of `cuda_event` itself, as it is for streams.
setattr(Event, "ptr", Event.__dict__["cuda_event"])  # noqa: B010
