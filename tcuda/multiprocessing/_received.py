"""Memory of other processes that arrays of this process use, and the thread that gives it back.

The memory goes back when the work of this process on it is complete. So the owner may use the memory at once.
"""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
from typing import TYPE_CHECKING, Any

from tcuda._base.errors import AcceleratorError
from tcuda._process import waits
from tcuda._process.borrowed import Borrowed
from tcuda._process.captures import captures
from tcuda._process.devices import exchange_device
from tcuda._process.exit import finalizer
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda
from tcuda._process.spare_events import create_event
from tcuda._runtime.protocol import EVENT_BLOCKING_SYNC, EVENT_DISABLE_TIMING, STREAM_LEGACY, STREAM_PER_THREAD
from tcuda.multiprocessing import _mappings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.multiprocessing._connections import Connection
    from tcuda.multiprocessing._mappings import Mapping
    from tcuda.multiprocessing._segments import Place

_CAPTURE_PAUSE = 0.01
_EXIT_TIMEOUT = 0.5


class Loan:
    """What one received array owes its owner.

    Args:
        connection: The connection to the owner.
        lease: The number of the lease.
        mapping: The mapping of the segment.
        device: The index of the device.
        streams: The streams that use the memory, by their handles: objects that keep the streams from being destroyed.
    """

    __slots__ = ("connection", "device", "lease", "mapping", "streams")

    def __init__(
        self, connection: Connection, lease: int, mapping: Mapping, device: int, streams: dict[int, Any]
    ) -> None:
        self.connection = connection
        self.lease = lease
        self.mapping = mapping
        self.device = device
        self.streams = streams


class Received(Borrowed):
    """The block of another process, which this process holds as long as this object lives.

    Attributes:
        loan: What this process owes the owner.
        place: The block in its segment.
        ptr: The address in this process.
        device: The index of the device in this process.
    """

    __slots__ = ("__weakref__", "device", "loan", "place", "ptr")

    def __init__(self, loan: Loan, place: Place) -> None:
        self.loan = loan
        self.place = place
        self.device = loan.device
        self.ptr = loan.mapping.address + place.offset
        returns.start()

    def record_stream(self, handle: int, stream: Any) -> None:
        """Give the memory back only after the work that ``stream`` has when the last array dies.

        Args:
            handle: The handle of the stream.
            stream: The stream, which is kept alive until then.
        """
        self.loan.streams.setdefault(handle, stream)

    def _give_back(self) -> None:
        returns.queue.put(self.loan)

    __del__ = finalizer(_give_back)


class Returns:
    """The thread that gives memory back.

    Attributes:
        queue: The loans to give back. Finalizers put loans here: they may run in the middle of any code, and this class
            of queues is made for that.
    """

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[Loan | Callable[[], object] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self._events: dict[int, int] = {}

    def start(self) -> None:
        """Start the thread if it does not run."""
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="tcuda returns", daemon=True)
                    self._thread.start()
                    atexit.register(self.stop)

    def settle(self) -> None:
        """Wait until everything is given back whose arrays have died before the call."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        done = threading.Event()
        self.queue.put(done.set)
        while not done.wait(0.1):
            if not thread.is_alive():
                return

    def stop(self) -> None:
        """End the thread, unless it waits for a device: the end of the process gives everything back."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self.queue.put(None)
            thread.join(_EXIT_TIMEOUT)

    def forget(self) -> None:
        """Forget the thread, in a forked child."""
        if self._thread is not None:
            atexit.unregister(self.stop)
        self.__init__()  # type: ignore[misc]

    def _run(self) -> None:
        going_on = True
        while going_on:
            idle_time = _mappings.idle_time()
            if idle_time == 0:
                _wait_for_captures()
                _mappings.close_idle()
                continue
            try:
                items = [self.queue.get(timeout=idle_time)]
            except queue.Empty:
                continue
            while not self.queue.empty():
                items.append(self.queue.get())
            loans = [item for item in items if isinstance(item, Loan)]
            going_on = None not in items
            if going_on:
                self._return(loans)
            loans.clear()
            for item in items:
                if callable(item):
                    item()
            items.clear()

    def _return(self, loans: list[Loan]) -> None:
        self._wait_for_work(loans)
        released: dict[Connection, dict[int, int]] = {}
        for loan in loans:
            _wait_for_captures()
            with contextlib.suppress(AcceleratorError):
                loan.mapping.close()
            of_owner = released.setdefault(loan.connection, {})
            of_owner[loan.lease] = of_owner.get(loan.lease, 0) + 1
        for connection, leases in released.items():
            connection.release(leases)

    def _wait_for_work(self, loans: list[Loan]) -> None:
        streams: dict[int, set[int]] = {}
        for loan in loans:
            streams.setdefault(loan.device, set()).update(loan.streams)
        for device, handles in streams.items():
            for handle in handles:
                _wait_for_captures()
                # An error of the device is final for the process: no work goes on. A stream of another library may be
                # gone together with its work.
                with contextlib.suppress(AcceleratorError):
                    exchange_device(device)
                    event = self._event_of(device)
                    # The stream of another thread has no handle here. The legacy stream waits for it.
                    cuda.eventRecord(event, STREAM_LEGACY if handle == STREAM_PER_THREAD else handle)
                    if cuda.eventQuery(event):
                        waits.unwatched("eventSynchronize")(event)  # this wait is no wait of the program

    def _event_of(self, device: int) -> int:
        if device not in self._events:
            self._events[device] = create_event(device, EVENT_DISABLE_TIMING | EVENT_BLOCKING_SYNC)
        return self._events[device]


def _wait_for_captures() -> None:
    """Wait until no capture is in progress: a wait for an event would invalidate a capture."""
    pause = threading.Event()
    while captures:
        pause.wait(_CAPTURE_PAUSE)


returns = Returns()
"""The thread of this process."""

call_in_child(returns.forget)
