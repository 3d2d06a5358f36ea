"""Processes that receive arrays, and do with them what a test says."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import pickle
import threading
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.busy_streams import LONG, keep_busy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

_PATIENCE = 60.0
"""Seconds after which a test gives up."""

SPAWN = multiprocessing.get_context("spawn")

kept: dict[str, Any] = {}
"""The arrays that the worker keeps, by name."""

kept_streams: dict[str, Any] = {}
"""The streams that the worker keeps, by name."""

other: Connection | None = None
"""The connection of this worker to another worker."""


def _serve(orders: Connection, to_other: Connection | None) -> None:
    """Carry out the calls that arrive, until the connection is closed."""
    global other
    other = to_other
    while True:
        try:
            call = orders.recv()
        except EOFError:
            return
        except Exception as error:
            orders.send((False, f"{type(error).__name__}: {error}"))
            continue
        try:
            answer = True, call[0](*call[1])
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        call = None  # the arrays of the call die before the answer
        orders.send(answer)
        answer = None


class Worker:
    """A spawned process.

    Args:
        to_other: A connection for the worker.
        start: The start method.

    Attributes:
        process: The process.
        orders: The connection to the process.
    """

    def __init__(self, to_other: Connection | None = None, start: str = "spawn") -> None:
        self.orders, theirs = SPAWN.Pipe()
        context: Any = multiprocessing.get_context(start)
        self.process = context.Process(target=_serve, args=(theirs, to_other), daemon=True)
        self.process.start()
        theirs.close()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what ``function`` returns in the process.

        Raises:
            RuntimeError: The function failed; the message has the name and the message of its error.
        """
        self.send(function, *arguments)
        return self.answer()

    def send(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Begin a call."""
        self.orders.send((function, arguments))

    def answer(self) -> Any:
        """Wait for the end of the call, and return its result."""
        assert self.orders.poll(_PATIENCE), "the worker does not answer"
        succeeded, result = self.orders.recv()
        if not succeeded:
            raise RuntimeError(result)
        return result

    def kill(self) -> None:
        """Kill the process and wait for its end."""
        self.process.kill()
        self.process.join()  # with a timeout, join() would also wait for forked children of the process

    def close(self) -> None:
        """Let the process end by itself."""
        self.orders.close()
        self.process.join(_PATIENCE)
        ended = self.process.exitcode is not None
        if not ended:
            self.process.kill()
        assert ended, "the worker does not end"


@contextlib.contextmanager
def worker(to_other: Connection | None = None, start: str = "spawn") -> Iterator[Worker]:
    """Run a worker in a scope."""
    made = Worker(to_other, start)
    try:
        yield made
    finally:
        made.close()


# Functions for workers


def keep(name: str, array: Any) -> None:
    """Keep ``array``."""
    kept[name] = array


def drop(*names: str) -> None:
    """Let arrays die; all arrays without names."""
    for name in names or list(kept):
        del kept[name]


def elements(name: str) -> Any:
    """Return the elements of an array."""
    return kept[name].get().tolist()


def echo(array: Any) -> Any:
    """Return the array."""
    return array


def copied(array: Any) -> Any:
    """Return the elements as a NumPy array."""
    return array.get()


def fill(name: str, value: Any) -> None:
    """Set all elements of an array, and wait for the end of the work."""
    import tcuda

    kept[name].fill(value)
    tcuda.synchronize()


def send_back(name: str) -> Any:
    """Return an array that is kept."""
    return kept[name]


def pass_on(name: str) -> None:
    """Send an array to the other worker."""
    assert other is not None
    other.send(kept[name])


def pass_views_on(name: str, count: int) -> None:
    """Send views of an array to the other worker, in one message."""
    assert other is not None
    other.send([kept[name][begin:] for begin in range(count)])


def keep_from_other(name: str) -> None:
    """Keep an array that the other worker has sent."""
    assert other is not None
    kept[name] = other.recv()


def address_of(array: Any) -> int:
    """Return the address of the elements in the worker."""
    return int(array.data.ptr)


def first_and_last(array: Any) -> tuple[int, int]:
    """Return the first and the last element."""
    return int(array[0].get()), int(array[-1].get())


def settle() -> None:
    """Wait until the memory of the arrays that are gone is back at its owners."""
    from tcuda.multiprocessing._received import returns

    returns.settle()


def set_idle_time(seconds: float) -> float:
    """Keep mappings without arrays for this time, and return the old time."""
    from tcuda.multiprocessing import _mappings

    old, _mappings._IDLE_TIME = _mappings._IDLE_TIME, seconds
    return old


def set_most_idle(count: int) -> int:
    """Keep at most this many mappings without arrays, and return the old number."""
    from tcuda.multiprocessing import _mappings

    old, _mappings._MOST_IDLE = _mappings._MOST_IDLE, count
    return old


def collect() -> None:
    """Give back what the worker has received."""
    import tcuda

    tcuda.ipc_collect()


def open_files() -> int:
    """Return the number of open file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def resources() -> dict[str, int]:
    """Return the numbers of the things that must not leak."""
    import tcuda
    from tcuda.multiprocessing import _connections, _leases, _mappings

    tcuda.ipc_collect()
    tcuda.empty_cache()
    return {
        "descriptors": open_files(),
        "threads": threading.active_count(),
        "mappings": _mappings.count(),
        "connections": len(_connections.connections()),
        "leases": _leases.leases.count(),
        "allocated": tcuda.memory_allocated(),
        "reserved": tcuda.memory_reserved(),
    }


def mapped_segments() -> int:
    """Return the number of segments of other processes that are open."""
    from tcuda.multiprocessing import _mappings

    return _mappings.count()


def is_idle() -> bool:
    """Return whether the current stream has done all its work."""
    import tcuda

    return tcuda.current_stream().query()


def synchronize() -> None:
    """Wait for all work of the worker."""
    import tcuda

    tcuda.synchronize()


def load(name: str, message: bytes) -> None:
    """Keep the array of a message."""
    kept[name] = pickle.loads(message)


def wait_for(event: Any) -> bool:
    """Let the current stream wait for ``event``, and return whether all work is then complete."""
    import tcuda

    tcuda.current_stream().wait_event(event)
    tcuda.synchronize()
    return bool(event.query())


def started(function: Callable[[], object]) -> threading.Thread:
    """Start a thread that calls ``function``."""
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def drop_while_busy(name: str) -> None:
    """Let an array die while the current stream still works on it."""
    import tcuda

    kept[name].fill(1)  # compiles the kernel, which takes long
    tcuda._sleep(LONG)
    kept[name].fill(1)
    del kept[name]
    assert not tcuda.current_stream().query()


def record_and_drop(name: str) -> None:
    """Let an array die while another stream, which is recorded, still works on it."""
    import tcuda

    kept[name].fill(1)  # compiles the kernel, which takes long
    side = kept_streams["side"] = tcuda.Stream()
    keep_busy(side)
    with tcuda.stream(side):
        kept[name].fill(1)
    tcuda.memory.record_stream(kept[name], side)
    del kept[name]
    assert not side.query()


def side_is_idle() -> bool:
    """Return whether the stream of :func:`record_and_drop` has done all its work."""
    return bool(kept_streams["side"].query())


def new(name: str, size: int) -> Any:
    """Make and return an array of the numbers from 0 on."""
    import tcuda
    import tcuda.multiprocessing

    kept[name] = tcuda.xp.arange(size)
    return kept[name]


def message_of(name: str) -> bytes:
    """Return a message with an array."""
    return bytes(ForkingPickler.dumps(kept[name]))


def message_of_new(name: str, size: int) -> bytes:
    """Make an array, and return a message with it."""
    new(name, size)
    return message_of(name)


def count_elements(arrays: list[Any]) -> int:
    """Return the sum of the elements of all arrays."""
    return sum(int(array.sum()) for array in arrays)


def fork_child(connection: Connection) -> None:
    """Fork a child that lives until the other end of the connection is closed."""
    if os.fork():
        connection.close()
        return
    connection.send("forked")
    with contextlib.suppress(EOFError):
        connection.recv()
    os._exit(0)


_threads: list[threading.Thread] = []


def echo_in_threads(connections: list[Connection]) -> None:
    """Start a thread for each connection that sends back what it receives, until the connection is closed."""
    _threads.extend(started(functools.partial(_echo, connection)) for connection in connections)


def _echo(connection: Connection) -> None:
    with contextlib.suppress(EOFError):
        while True:
            connection.send(connection.recv())


def join_threads() -> None:
    """Wait for the threads of :func:`echo_in_threads`."""
    while _threads:
        _threads.pop().join()


def double(array: Any) -> Any:
    """Double all elements in place, and return the array."""
    array *= 2
    return array


def double_and_put(queue: Any, array: Any) -> None:
    """Put an array into a queue after its elements are doubled, and wait for an answer."""
    queue.put(double(array))
    queue.get()  # the sender must run until the array is received


def drop_in_capture(name: str) -> Any:
    """Let an array die during a capture, and return what the graph computes."""
    import tcuda
    from tcuda.multiprocessing._received import returns

    array, graph = tcuda.xp.zeros(4), tcuda.CUDAGraph()
    with tcuda.graph(graph, capture_error_mode="global"):
        array += 1
        del kept[name]
        while not returns.queue.empty():  # until the thread that gives memory back has begun
            os.sched_yield()
        array += 0
    graph.replay()
    return array.get().tolist()
