"""Events: points in the work of streams."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from tcuda._arguments import a_kind, flag
from tcuda._copying import refusing
from tcuda._device import device
from tcuda._errors import AcceleratorError
from tcuda._process.captures import capture_on, captures, number_on, require_no_capture, require_same_capture
from tcuda._process.device_rules import existing_device
from tcuda._process.devices import Device, exchange_device, is_device
from tcuda._process.lazy import backend, cuda
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
from tcuda._status import Status
from tcuda.streams._spares import SpareEvents, create_event, destroy_event, spare_events

if TYPE_CHECKING:
    from typing_extensions import Self

    from tcuda._process.devices import DeviceArgument

_IPC_HANDLE_SIZE = 64
_new_object = object.__new__  # one look-up less for each event


def _flags(enable_timing: int, blocking: int, interprocess: int) -> int:
    """Return the flags for ``cudaEventCreateWithFlags``; like torch, take integers for truth values."""
    return (
        (EVENT_DEFAULT if flag(enable_timing, "enable_timing") else EVENT_DISABLE_TIMING)
        | (EVENT_BLOCKING_SYNC if flag(blocking, "blocking") else 0)
        | (EVENT_INTERPROCESS if flag(interprocess, "interprocess") else 0)
    )


def _check_ipc_handle(handle: Any) -> None:
    # torch takes a text for the handle too; none has the length of one, but by an accident.
    size = len(handle) if isinstance(handle, (bytes, str)) else -1
    if size < 0 or (size == _IPC_HANDLE_SIZE and isinstance(handle, str)):
        raise TypeError(f"from_ipc_handle(): handle must be the bytes of an ipc_handle(); got {a_kind(handle)}.")
    if size != _IPC_HANDLE_SIZE:
        raise RuntimeError(f"cudaIpcEventHandle_t expects byte-like object of size {_IPC_HANDLE_SIZE}, but got {size}")


class Event:
    """A CUDA event (``torch.cuda.Event``).

    The CUDA event is created when the event is first recorded or exported; from then on only streams of that device may
    record it, while streams of any device may wait for it. An external event is also created when a capturing stream
    first waits for it.

    Args:
        enable_timing: Whether :meth:`elapsed_time` may ask it.
        blocking: Whether :meth:`synchronize` lets the thread sleep instead of spinning.
        interprocess: Whether another process can open it by its IPC handle; cannot be combined with timing.
        external: Whether a captured graph records the event, or waits for it, as a node of its own instead of keeping
            the dependency for itself. The graph keeps the event alive.

    Raises:
        TypeError: An argument is neither a truth value nor an integer.
    """

    __slots__ = ("__dict__", "__weakref__", "_device_index", "_flags", "_spares", "cuda_event")

    _device_index: int
    _flags: int
    _spares: SpareEvents | None  # set before the CUDA event is created

    cuda_event: int
    """The ``cudaEvent_t``; 0 until it is created."""

    ptr: int  # CuPy's name for it; see below the class

    _capture = 0  # the number of the capture in which it was recorded last, if that was in one

    _external = False

    # In __new__, as in torch: a subclass may have other arguments in its __init__, and need not call this one's.
    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> Self:
        self = _new_object(cls)
        self.cuda_event = 0
        if enable_timing is blocking is interprocess is external is False:  # as most events are made
            self._flags = EVENT_DISABLE_TIMING
        else:
            self._flags = _flags(enable_timing, blocking, interprocess)
            if flag(external, "external"):
                self._external = True
        self._device_index = -1
        return self

    __reduce__ = refusing(
        "copy or pickle",
        "both would own the same CUDA event. Make another event and record it. Another process opens an event by what "
        "ipc_handle() returns.",
    )

    @classmethod
    def from_ipc_handle(cls, device: DeviceArgument, handle: bytes) -> Self:
        """Open an event of another process (``cudaIpcOpenEventHandle``).

        Args:
            device: The device that the event is on.
            handle: The 64 bytes that :meth:`ipc_handle` returned there.

        Raises:
            TypeError: ``handle`` is no ``bytes``, or ``device`` names no device.
            RuntimeError: The handle has another length, or the device is none of CUDA's.
            AcceleratorError: The handle is of this process, or of none.
        """
        _check_ipc_handle(handle)
        if not is_device(device):
            raise TypeError(f"from_ipc_handle(): device must be an int, a str or a device; got {a_kind(device)}.")
        try:
            index = existing_device(device)
        except ValueError as error:
            raise RuntimeError(f"Event can only be created on CUDA devices, but got device {device!r}") from error
        event = Event.__new__(cls, interprocess=True)  # as in torch, without what a subclass does in its own
        event._spares = None
        previous = exchange_device(index)
        try:
            event.cuda_event = cuda.ipcOpenEventHandle(handle)
        finally:
            exchange_device(previous)
        event._device_index = index
        return event

    @property
    def device(self) -> Device | None:
        """The device it is on; None until it is created."""
        return None if self._device_index < 0 else Device("cuda", self._device_index)

    def record(self, stream: Any = None) -> None:
        """Record it: it stands for all work that ``stream`` has been given so far (``cudaEventRecord``).

        Args:
            stream: The stream; the current one if None.

        Raises:
            RuntimeError: The event is of another device than the stream, or ``stream`` is no stream.
        """
        if stream is None:
            current = backend.current_stream()
            handle, index = current.ptr, current.device_id
            if index < 0:  # a default stream, which CuPy does not tie to a device
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
        """Record it on the stream ``handle`` of the device ``index``, the current one for a default stream."""
        created = index != self._device_index
        if created:
            self._create_on(index)
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

    def wait(self, stream: Any = None) -> None:
        """Make all work given to ``stream`` from now on wait for it (``cudaStreamWaitEvent``); returns at once.

        Args:
            stream: The stream; the current one if None.

        Raises:
            RuntimeError: ``stream`` is no stream.
            AcceleratorError: ``stream`` is capturing, and the event was not recorded in that capture (905).
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
        """Let the stream ``handle`` of the device ``index`` wait, of the current device if it is a default stream."""
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
        """Let the graph that is being captured on the stream ``handle`` wait for records that are yet to be made.

        A stream that is not capturing has nothing to wait for.
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
        """Let the graph that is being captured on ``stream`` keep the event, which every launch refers to."""
        capture = capture_on(stream)
        if capture is not None:
            capture.events.append(self)

    def query(self) -> bool:
        """Return whether the work it stands for is complete; true if it was never recorded (``cudaEventQuery``)."""
        if not self.cuda_event:
            return True
        if captures:
            require_no_capture("Event.query()", event=self._capture)
        status = cuda.eventQuery(self.cuda_event)
        return status == 0 or is_complete(status, "cudaEventQuery", self.cuda_event)

    @property
    def done(self) -> bool:
        """Whether the work it stands for is complete: :meth:`query` under CuPy's name."""
        return self.query()

    def synchronize(self) -> None:
        """Wait for the work it stands for (``cudaEventSynchronize``)."""
        if self.cuda_event:
            if captures:
                require_no_capture("Event.synchronize()", event=self._capture)
            cuda.eventSynchronize(self.cuda_event)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to ``end_event`` (``cudaEventElapsedTime``).

        Raises:
            ValueError: One of them was made without ``enable_timing=True``, or never recorded.
            RuntimeError: The work that one of them stands for is not complete.
        """
        if not isinstance(end_event, Event):
            raise RuntimeError(
                f"expected other to be a torch.cuda.Event object, or rather a tcuda.Event, got {end_event!r}"
            )
        if (self._flags | end_event._flags) & EVENT_DISABLE_TIMING:
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.cuda_event and end_event.cuda_event):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        try:
            return cuda.eventElapsedTime(self.cuda_event, end_event.cuda_event)
        except AcceleratorError as error:
            if error.error_code == Status.NOT_READY:
                raise RuntimeError("Both events must be completed before calculating elapsed time.") from error
            if error.error_code == Status.INVALID_RESOURCE_HANDLE:  # created, by a wait in a capture, and not recorded
                raise ValueError("Both events must be recorded before calculating elapsed time.") from error
            raise

    def ipc_handle(self) -> bytes:
        """Return the 64 bytes by which another process opens it (``cudaIpcGetEventHandle``).

        An event that was not recorded yet is created on the current device.

        Raises:
            AcceleratorError: It was not made with ``interprocess=True``.
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
        if self.cuda_event:
            raise RuntimeError(
                f"Event device {self._device_index} does not match recording stream's device {index}. Record it on a "
                f"stream of device {self._device_index}, or make another event."
            )
        if self._external or self._flags & EVENT_INTERPROCESS:
            self._spares = None
            self.cuda_event = create_event(index, self._flags)
        else:
            self._spares = spare_events(index, self._flags)
            self.cuda_event = self._spares.take()
        self._device_index = index

    def _release(self) -> None:
        """Give the CUDA event up."""
        event, self.cuda_event, self._device_index = self.cuda_event, 0, -1
        if self._spares is not None:
            self._spares.give_back(event)
        else:
            destroy_event(event)

    def __del__(self) -> None:
        try:
            created = self.cuda_event
        except AttributeError:  # made by a subclass without Event.__new__
            return
        if created:
            self._release()

    def __repr__(self) -> str:
        return f"<tcuda.Event {self.cuda_event:#x}>" if self.cuda_event else "<tcuda.Event uninitialized>"

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_event)


# CuPy's name, for the functions of CuPy that take an event: the very slot, as with streams.
setattr(Event, "ptr", Event.__dict__["cuda_event"])  # noqa: B010
