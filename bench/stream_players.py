"""The players of programs on several streams: tcuda, torch and CuPy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from replayed import Replayed
from stream_programs import PROGRAMS, STREAMS, Player

if TYPE_CHECKING:
    from collections.abc import Callable

    from sources import Allocator

_WORK = 4_000_000
"""The cycles of the work of ``spin()``: about 2 ms, in which the host makes all calls until the next work."""

MOST_SETTLING = 8
"""The most replays until a program that repeats itself has its memory."""


class Library(Protocol):
    """The calls of a library. Streams, arrays and events are its own objects."""

    def stream(self) -> Any:
        """Return a new stream."""

    def array(self, stream: Any, size: int) -> Any:
        """Return an array of bytes whose memory is allocated on the stream."""

    def record(self, array: Any, stream: Any) -> None:
        """Keep the memory of an array, which is freed later, until the stream has done its work."""

    def free(self, array: Any) -> None:
        """Take the last reference to an array, which dies when this function ends."""

    def spin(self, stream: Any) -> None:
        """Give a stream work of ``_WORK`` cycles."""

    def wait(self, stream: Any, other: Any) -> None:
        """Let a stream wait for another."""

    def event(self, stream: Any) -> Any:
        """Return an event behind the work of a stream, which has the function ``synchronize()``."""


class LikeTorch:
    """torch, or tcuda, whose calls have the names of torch's."""

    def __init__(self, cuda: Any, empty: Callable[[int], Any], record: Callable[[Any, Any], object]) -> None:
        self._cuda, self._empty, self._record = cuda, empty, record

    def stream(self) -> Any:
        return self._cuda.Stream()

    def array(self, stream: Any, size: int) -> Any:
        with self._cuda.stream(stream):
            return self._empty(size)

    def record(self, array: Any, stream: Any) -> None:
        self._record(array, stream)

    def free(self, array: Any) -> None:
        pass

    def spin(self, stream: Any) -> None:
        with self._cuda.stream(stream):
            self._cuda._sleep(_WORK)

    def wait(self, stream: Any, other: Any) -> None:
        stream.wait_stream(other)

    def event(self, stream: Any) -> Any:
        return stream.record_event()


class CuPy:
    """CuPy, whose pools do not know that another stream uses an array.

    A program keeps such an array until an event of each of these streams is complete, and asks the events before it
    allocates memory. torch and tcuda do the same below ``record_stream()``.
    """

    def __init__(self, spin: Callable[[], object]) -> None:
        import cupy

        self._cupy, self._spin = cupy, spin
        self._users: dict[int, list[Any]] = {}
        self._waiting: list[tuple[Any, list[Any]]] = []

    def stream(self) -> Any:
        return self._cupy.cuda.Stream(non_blocking=True)

    def array(self, stream: Any, size: int) -> Any:
        if self._waiting:
            self._waiting = [each for each in self._waiting if not all(event.done for event in each[1])]
        with stream:
            return self._cupy.empty(size, dtype=self._cupy.uint8)

    def record(self, array: Any, stream: Any) -> None:
        self._users.setdefault(array.data.ptr, []).append(stream)

    def free(self, array: Any) -> None:
        users = self._users.pop(array.data.ptr, None)
        if users is not None:
            self._waiting.append((array, [self.event(stream) for stream in users]))

    def spin(self, stream: Any) -> None:
        with stream:
            self._spin()

    def wait(self, stream: Any, other: Any) -> None:
        stream.wait_event(self.event(other))

    def event(self, stream: Any) -> Any:
        event = self._cupy.cuda.Event(disable_timing=True)
        event.record(stream)
        return event


def _tcuda(allocator: Allocator) -> Library:
    import tcuda

    empty, uint8 = tcuda.xp.empty, tcuda.xp.uint8
    return LikeTorch(tcuda, lambda size: empty(size, dtype=uint8), tcuda.memory.record_stream)


def _torch(allocator: Allocator) -> Library:
    import torch

    empty, uint8 = torch.empty, torch.uint8
    return LikeTorch(
        torch.cuda,
        lambda size: empty(size, dtype=uint8, device="cuda"),
        lambda tensor, stream: tensor.record_stream(stream),
    )


def _cupy(allocator: Allocator) -> Library:
    return CuPy(allocator.spin)


LIBRARIES: dict[str, Callable[[Allocator], Library]] = {"tcuda": _tcuda, "torch": _torch, "cupy": _cupy}
"""The libraries by the first word of the names of their allocators."""


class LibraryPlayer:
    """Plays a program by the calls of a library, and counts memory.

    Attributes:
        allocations: The number of allocations.
        calls: The number of allocations and frees.
        live: The bytes that are allocated and not freed.
        peak_live: The peak of ``live``.
        peak_reserved: The peak of the bytes that the allocator held, if the allocator does not count the peak.
    """

    def __init__(self, library: Library, allocator: Allocator, *, busy: bool) -> None:
        self.allocations = self.calls = self.live = self.peak_live = self.peak_reserved = 0
        self._library, self._busy = library, busy
        self._reserved = allocator.reserved if allocator.peak_reserved is None else None
        self._streams = [library.stream() for _ in range(STREAMS)]
        self._arrays: dict[int, tuple[Any, int]] = {}
        self._marks: list[Any] = []

    def take(self, stream: int, size: int) -> int:
        number = self.allocations
        self._arrays[number] = self._library.array(self._streams[stream], size), size
        self.allocations += 1
        self.calls += 1
        self.live += size
        self.peak_live = max(self.peak_live, self.live)
        if self._reserved is not None:
            self.peak_reserved = max(self.peak_reserved, self._reserved())
        return number

    def use(self, memory: int, stream: int) -> None:
        self._library.record(self._arrays[memory][0], self._streams[stream])

    def free(self, *memory: int) -> None:
        for number in memory:
            array, size = self._arrays.pop(number)
            self._library.free(array)
            self.calls += 1
            self.live -= size

    def work(self, stream: int) -> None:
        if self._busy:
            self._library.spin(self._streams[stream])

    def wait(self, stream: int, other: int) -> None:
        self._library.wait(self._streams[stream], self._streams[other])

    def mark(self, stream: int) -> int:
        self._marks.append(self._library.event(self._streams[stream]))
        return len(self._marks) - 1

    def synchronize(self, mark: int) -> None:
        self._marks[mark].synchronize()

    def end(self) -> None:
        """Free all memory that is still alive."""
        self.free(*list(self._arrays))


def settle(allocator: Allocator, play: Callable[[], int]) -> tuple[int, int]:
    """Repeat a program, after its first play, until a play calls no driver.

    ``play`` returns the peak of the reserved memory. If the allocator does not count the calls, the program is repeated
    once. Returns the peak of all these plays, and the number of plays, with the first one, before the last of them.
    """
    count, peak, plays = allocator.driver_calls or (lambda: 0), 0, 1
    while True:
        calls = count()
        peak = max(peak, play())
        if count() == calls or plays == MOST_SETTLING:
            return peak, plays
        plays += 1


def played(source: str, name: str, allocator: Allocator, *, busy: bool) -> Replayed:
    """Play a program several times, on the same streams, and return the results like those of a replay."""
    player = LibraryPlayer(LIBRARIES[source.split("_")[0]](allocator), allocator, busy=busy)
    program = PROGRAMS[name]

    def play() -> tuple[int, float]:
        allocator.synchronize()
        seconds = _played(program, player)
        return allocator.peak_reserved() if allocator.peak_reserved is not None else player.peak_reserved, seconds

    reserved, seconds = play()
    allocations, events = player.allocations, player.calls
    driver_allocations = allocator.driver_allocations() if allocator.driver_allocations else None
    again, settled_after = settle(allocator, lambda: play()[0])
    calls = allocator.driver_calls() if allocator.driver_calls is not None else None
    _, steady_seconds = play()
    if calls is not None and allocator.driver_calls is not None:
        calls = allocator.driver_calls() - calls
    return Replayed(
        source=source,
        workload=name,
        allocations=allocations,
        live=player.peak_live,
        reserved=reserved,
        driver_allocations=driver_allocations,
        seconds=seconds,
        array_seconds=None,
        events=events,
        busy=busy,
        steady_reserved=max(reserved, again),
        steady_seconds=steady_seconds,
        steady_driver_calls=calls,
        settled_after=settled_after,
    )


def _played(program: Callable[[Player], None], player: LibraryPlayer) -> float:
    start = time.perf_counter()
    program(player)
    player.end()
    return time.perf_counter() - start
