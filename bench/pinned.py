"""Page-locked host memory of tcuda, CuPy and torch: ``python bench/pinned.py``.

The first table has the times to allocate and free a block that is cached, and to allocate new memory; the memory that
each library holds and locks for a churn of blocks; and the smallest limit of the host on which a small churn ends. The
next table has the questions that tcuda asks a driver that knows as little of copies as CUDA does. On CUDA, the last one
has the speed of copies. torch is left out where torch is not installed, and on emulated devices. Each row of the first
table is printed as soon as the row is measured, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import time
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from chosen_runtime import ON_CUDA
from table import markdown, note, plain

import tcuda
from tcuda import _core
from tcuda._core import for_tests
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KIB, MIB = 1 << 10, 1 << 20
SIZES = {"1 KiB": KIB, "1 MiB": MIB, "64 MiB": 64 * MIB}
ROUNDS, CALLS = 7, 300
WARM = 9000  # allocations after which tcuda has its reserve of small blocks
COUNTED = 3200  # allocations whose calls of the driver are counted
COPIED = 256 * MIB
NEW, NEW_BLOCKS = 3 * MIB, 64
UNLIMITED = (1 << 64) - 1


class Shape(NamedTuple):
    """The shape of a churn.

    Attributes:
        live: Blocks are freed while more bytes than these are live.
        steps: The number of allocations.
        largest: The power of two of the largest block. The smallest block has 64 KiB.
    """

    live: int
    steps: int
    largest: int


SMALL = Shape(64 * MIB, 400, 24)
"""The churn of the search for the smallest limit, in which a driver would lock 300 GiB for the other one."""

CHURN = Shape(1 << 30, 1000, 28) if ON_CUDA else SMALL
"""The churn of the other figures."""


class Library(NamedTuple):
    """A library that allocates page-locked memory.

    Attributes:
        allocate: Returns an object with so many bytes of memory.
        held: Returns the bytes that the library holds; None if the library does not tell.
        locked: Returns the bytes that the driver has locked for the library so far.
        empty: Gives the unused memory back.
        limit: Sets the most bytes that the driver locks for the library at a time; None if there is no way to do so.
        upload: Queues a copy of the memory of such an object to a device, and returns an event after the copy; None
            where the library does not know that a copy still uses freed memory.
    """

    allocate: Callable[[int], Any]
    held: Callable[[], int] | None
    empty: Callable[[], object]
    locked: Callable[[], int] | None = None
    limit: Callable[[int], object] | None = None
    upload: Callable[[Any], Any] | None = None


class Pool:
    """CuPy's pool of page-locked memory, with a limit of its memory."""

    def __init__(self) -> None:
        self._cuda = tcuda.xp.cuda
        self._held = self._locked = 0
        self._most = UNLIMITED
        self._pool = self._cuda.PinnedMemoryPool(self._take)

    def library(self) -> Library:
        return Library(
            self._pool.malloc, lambda: self._held, self._pool.free_all_blocks, lambda: self._locked, self._limit
        )

    def _take(self, size: int) -> Any:
        if size > self._most - self._held:
            raise self._cuda.runtime.CUDARuntimeError(2)
        memory = self._cuda.PinnedMemory(size, 1)
        self._held += size
        self._locked += size
        weakref.finalize(memory, self._freed, size)
        return self._cuda.PinnedMemoryPointer(memory, 0)

    def _freed(self, size: int) -> None:
        self._held -= size

    def _limit(self, most: int) -> None:
        self._most = most


class Own(NamedTuple):
    """An allocator of tcuda and its driver, which counts.

    Attributes:
        driver: The driver.
        ledger: The ledger.
    """

    driver: for_tests.FaultyDriver
    ledger: _core.Ledger

    @classmethod
    def make(cls) -> Own:
        def fail(*arguments: Any, **facts: Any) -> NoReturn:
            raise MemoryError(arguments, facts)

        cuda = runtime()
        driver = for_tests.FaultyDriver(cuda.memoryDriver())
        return cls(driver, _core.Ledger(driver, cuda.getDeviceCount(), _core.Settings(), fail, fail))

    def library(self) -> Library:
        """Return the allocator on a host that tells how much memory is left."""
        return Library(
            lambda size: _core.allocate_page_locked(self.ledger, size),
            lambda: self.ledger.host_statistics()["allocated_bytes.current"],
            self.ledger.empty_host_cache,
            lambda: self.ledger.host_statistics()["allocated_bytes.allocated"],
            lambda most: self.driver.limit_host(most, True),
        )


def libraries() -> dict[str, Library]:
    """Return the libraries that can be measured here, by their names."""

    def upload(array: Any) -> Any:
        return tcuda.memory.copy_async(tcuda.xp.empty(array.shape, array.dtype), array)

    found = {
        "tcuda": Library(
            lambda size: tcuda.memory.empty_pinned(size, "u1"),
            lambda: tcuda.host_memory_stats()["allocated_bytes.current"],
            tcuda.memory.empty_host_cache,
            lambda: tcuda.host_memory_stats()["allocated_bytes.allocated"],
            upload=upload,
        ),
        "tcuda for CuPy": Library(tcuda.xp.cuda.alloc_pinned_memory, None, tcuda.memory.empty_host_cache),
        "CuPy's pool": Pool().library(),
    }
    if ON_CUDA and importlib.util.find_spec("torch") is not None:
        import torch

        torch.cuda.init()  # has no statistics before

        def upload_tensor(tensor: Any) -> Any:
            tensor.to("cuda", non_blocking=True)
            return torch.cuda.current_stream().record_event()

        found["torch"] = Library(
            lambda size: torch.empty(size, dtype=torch.uint8, pin_memory=True),
            lambda: torch.cuda.host_memory_stats()["allocated_bytes.current"],
            torch._C._host_emptyCache,
            lambda: torch.cuda.host_memory_stats()["allocated_bytes.allocated"],
            upload=upload_tensor,
        )
    return found


def time_of(allocate: Callable[[int], Any], size: int) -> float:
    """Return the microseconds of an allocation and a free of a cached block."""
    for _ in range(WARM):
        allocate(size)
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            allocate(size)
        best = min(best, time.perf_counter() - start)
    return best / CALLS * 1e6


def time_of_new(library: Library) -> float:
    """Return the microseconds of an allocation that needs new memory of the driver."""
    best = float("inf")
    for _ in range(ROUNDS):
        library.empty()
        start = time.perf_counter()
        kept = [library.allocate(NEW) for _ in range(NEW_BLOCKS)]
        best = min(best, time.perf_counter() - start)
        kept.clear()
    library.empty()
    return best / NEW_BLOCKS * 1e6


class Churn(NamedTuple):
    """The result of a churn, in bytes.

    Attributes:
        live: The peak of the live bytes.
        held: The peak of the held bytes.
        locked: The sum of the bytes that the driver has locked; None if the library does not tell.
        seconds: The time.
    """

    live: int
    held: int
    locked: int | None
    seconds: float


def churn(library: Library, shape: Shape = CHURN, *, copied: bool = False) -> Churn:
    """Allocate blocks of many sizes, and free random ones.

    The devices are idle; or each block is copied to a device just before its free, and the host waits for all copies
    but the last two. The memory of a copy is live until the host has waited for the copy.
    """
    assert library.held is not None
    tcuda.synchronize()
    library.empty()
    before = library.held()
    locked = library.locked() if library.locked else 0
    numbers = random.Random(0)
    live: list[tuple[int, Any]] = []
    queued: list[tuple[int, Any]] = []
    total = most = held = pending = 0
    start = time.perf_counter()
    for _ in range(shape.steps):
        while total > shape.live:
            size, gone = live.pop(numbers.randrange(len(live)))
            total -= size
            if copied:
                assert library.upload is not None
                queued.append((size, library.upload(gone)))
                pending += size
            del gone  # a name would keep the block
            while len(queued) > 2:
                size, done = queued.pop(0)
                done.synchronize()
                pending -= size
        size = int(2 ** numbers.uniform(16, shape.largest))
        live.append((size, library.allocate(size)))
        total += size
        most, held = max(most, total + pending), max(held, library.held() - before)
    seconds = time.perf_counter() - start
    live.clear()
    tcuda.synchronize()
    library.empty()
    return Churn(most, held, library.locked() - locked if library.locked else None, seconds)


def smallest_limit(library: Library) -> float:
    """Return the smallest limit on which the churn ends, as a multiple of the peak of the live bytes."""
    assert library.limit is not None
    found = churn(library, SMALL)
    fails, ends = found.live - 1, found.held
    while ends - fails > found.live // 200:
        middle = (fails + ends) // 2
        library.limit(middle)
        try:
            churn(library, SMALL)
            ends = middle
        except Exception as error:  # each library has an error of its own
            if "memory" not in f"{type(error).__name__} {error}".lower():
                raise
            fails = middle
        finally:
            library.limit(UNLIMITED)
    library.empty()
    return ends / found.live


def questions(size: int) -> dict[str, float]:
    """Return the calls of the driver for an allocation and a free of a cached block, with a driver that counts.

    The driver does not tell which memory a copy uses, as CUDA does not tell. No work is pending.
    """

    tcuda.synchronize()
    own = Own.make()
    driver, ledger = own.driver, own.ledger
    driver.forget_host_uses()
    names = {"events": "record_device", "queries": "query", "allocations": "host_allocate"}
    for _ in range(WARM):
        _core.allocate_page_locked(ledger, size)
    before = {name: driver.successes(entry) for name, entry in names.items()}
    for _ in range(COUNTED):
        _core.allocate_page_locked(ledger, size)
    return {name: (driver.successes(entry) - before[name]) / COUNTED for name, entry in names.items()}


def copies() -> dict[str, float]:
    """Return the speed of copies of ``copy_async`` in GB/s, alone and beside a kernel."""
    host, device = tcuda.memory.empty_pinned(COPIED, "u1"), tcuda.xp.empty(COPIED, "u1")
    side = tcuda.Stream()
    found = {}
    for name, target, source in (("to the device", device, host), ("to the host", host, device)):
        for beside in (False, True):
            tcuda.synchronize()
            if beside:
                tcuda._sleep(200_000_000)
            # The copy would wait for the kernel of the current stream.
            with tcuda.stream(side):
                begin, end = (tcuda.Event(enable_timing=True) for _ in range(2))
                tcuda.memory.copy_async(target, source)
                begin.record()
                for _ in range(4):
                    tcuda.memory.copy_async(target, source)
                end.record()
                end.synchronize()
            found[f"{name}{', beside a kernel' if beside else ''}"] = 4 * COPIED / begin.elapsed_time(end) / 1e6
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print the tables for a document")
    table = markdown if parser.parse_args().markdown else plain
    measured = libraries()
    rows = [["", *measured]]

    def add(name: str, cells: Iterable[str]) -> None:
        rows.append([name, *cells])
        note(rows[-1])

    for name, size in SIZES.items():
        add(f"{name}: us", (f"{time_of(library.allocate, size):.2f}" for library in measured.values()))
    add("new memory: us", (f"{time_of_new(library):.2f}" for library in measured.values()))
    found = [None if library.held is None else churn(library) for library in measured.values()]
    add("churn: held / live", ("" if each is None else f"{each.held / each.live:.2f}" for each in found))
    locked = (None if each is None or each.locked is None else each.locked / each.live for each in found)
    add("churn: locked / live", ("" if each is None else f"{each:.2f}" for each in locked))
    if ON_CUDA:  # emulated devices take no time to lock memory
        times = ("" if each is None else f"{each.seconds / CHURN.steps * 1e6:.1f}" for each in found)
        add("churn: us an allocation", times)
    copied = (None if each.upload is None else churn(each, copied=True) for each in measured.values())
    add("churn, each block copied", ("" if each is None else f"{each.held / each.live:.2f}" for each in copied))
    limited = {"tcuda": Own.make().library(), "CuPy's pool": Pool().library()}
    limits = (f"{smallest_limit(limited[name]):.3f}" if name in limited else "" for name in measured)
    add("small churn: smallest limit / live", limits)
    print(table(rows), end="\n\n", flush=True)
    counted = {name: questions(size) for name, size in SIZES.items()}
    calls = list(counted["1 MiB"])
    rows = [[name, *(f"{found[call]:.4f}" for call in calls)] for name, found in counted.items()]
    print(table([["driver's calls of an allocation", *calls], *rows]), end="\n\n", flush=True)
    if ON_CUDA:
        print(table([["copy_async", "GB/s"], *([name, f"{speed:.1f}"] for name, speed in copies().items())]))


if __name__ == "__main__":
    main()
