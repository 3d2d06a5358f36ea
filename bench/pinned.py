"""Page-locked host memory of tcuda, CuPy and torch: ``python bench/pinned.py``.

The tables have the time to allocate and free a block that is cached, the memory that each library holds for a churn of
blocks, the questions that tcuda asks a driver that knows as little of copies as CUDA does, and on CUDA the speed of
copies. torch is left out where it is not installed, and on emulated devices.
"""

from __future__ import annotations

import importlib.util
import random
import time
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from chosen_runtime import ON_CUDA
from table import plain

import tcuda
from tcuda import _core
from tcuda._core import for_tests
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Callable

KIB, MIB = 1 << 10, 1 << 20
SIZES = {"1 KiB": KIB, "1 MiB": MIB, "64 MiB": 64 * MIB}
ROUNDS, CALLS = 7, 300
WARM = 9000  # allocations after which tcuda has its reserve of small blocks
COUNTED = 3200  # allocations whose calls of the driver are counted
CHURN = 16, 28  # the powers of two of the smallest and of the largest block: 64 KiB and 256 MiB
LIVE, STEPS = (1 << 30, 1000) if ON_CUDA else (64 * MIB, 400)
COPIED = 256 * MIB


class Library(NamedTuple):
    """A library that allocates page-locked memory.

    Attributes:
        allocate: Returns an object with so many bytes of memory.
        held: Returns the bytes that the library holds; None if the library does not tell.
        empty: Gives the unused memory back.
        upload: Queues a copy of the memory of such an object to a device, and returns an event after the copy; None
            where the library does not know that a copy still uses freed memory.
    """

    allocate: Callable[[int], Any]
    held: Callable[[], int] | None
    empty: Callable[[], object]
    upload: Callable[[Any], Any] | None = None


def libraries() -> dict[str, Library]:
    """Return the libraries that can be measured here, by their names."""
    cuda = tcuda.xp.cuda
    held = 0

    def taken(size: int) -> Any:
        nonlocal held
        held += size
        return cuda.PinnedMemoryPointer(cuda.PinnedMemory(size, 1), 0)

    pool = cuda.PinnedMemoryPool(taken)

    def empty() -> None:
        nonlocal held
        pool.free_all_blocks()
        held = 0

    def upload(array: Any) -> Any:
        return tcuda.memory.copy_async(tcuda.xp.empty(array.shape, array.dtype), array)

    found = {
        "tcuda": Library(
            lambda size: tcuda.memory.empty_pinned(size, "u1"),
            lambda: tcuda.host_memory_stats()["allocated_bytes.current"],
            tcuda.memory.empty_host_cache,
            upload,
        ),
        "tcuda for CuPy": Library(cuda.alloc_pinned_memory, None, tcuda.memory.empty_host_cache),
        "CuPy's pool": Library(pool.malloc, lambda: held, empty),
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
            upload_tensor,
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


def churn(library: Library, copied: bool = False) -> float:
    """Return the peak of the held bytes over the peak of the live bytes.

    The devices are idle; or each block is copied to a device just before its free, and the host waits for all copies
    but the last two. The memory of a copy is live until the host has waited for the copy.
    """
    assert library.held is not None
    tcuda.synchronize()
    library.empty()
    before = library.held()
    numbers = random.Random(0)
    low, high = CHURN if ON_CUDA else (16, 24)
    live: list[tuple[int, Any]] = []
    queued: list[tuple[int, Any]] = []
    total = most = held = pending = 0
    for _ in range(STEPS):
        while total > LIVE:
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
        size = int(2 ** numbers.uniform(low, high))
        live.append((size, library.allocate(size)))
        total += size
        most, held = max(most, total + pending), max(held, library.held() - before)
    live.clear()
    tcuda.synchronize()
    library.empty()
    return held / most


def questions(size: int) -> dict[str, float]:
    """Return the calls of the driver for an allocation and a free of a cached block, with a driver that counts.

    The driver does not tell which memory a copy uses, as CUDA does not tell. No work is pending.
    """

    def fail(*arguments: Any, **facts: Any) -> NoReturn:
        raise MemoryError(arguments, facts)

    tcuda.synchronize()
    cuda = runtime()
    driver = for_tests.FaultyDriver(cuda.memoryDriver())
    driver.forget_host_uses()
    own = _core.Ledger(driver, cuda.getDeviceCount(), _core.Settings(), fail, fail)
    names = {"events": "record_device", "queries": "query", "allocations": "host_allocate"}
    for _ in range(WARM):
        _core.allocate_page_locked(own, size)
    before = {name: driver.successes(entry) for name, entry in names.items()}
    for _ in range(COUNTED):
        _core.allocate_page_locked(own, size)
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
    measured = libraries()
    rows = [["", *measured]]
    for name, size in SIZES.items():
        rows.append([f"{name}: us", *(f"{time_of(library.allocate, size):.2f}" for library in measured.values())])
    ratios = ("" if library.held is None else f"{churn(library):.2f}" for library in measured.values())
    rows.append(["churn: held / live", *ratios])
    ratios = ("" if each.upload is None else f"{churn(each, copied=True):.2f}" for each in measured.values())
    rows.append(["churn, each block copied", *ratios])
    print(plain(rows))
    counted = {name: questions(size) for name, size in SIZES.items()}
    calls = list(counted["1 MiB"])
    rows = [[name, *(f"{found[call]:.4f}" for call in calls)] for name, found in counted.items()]
    print(plain([["driver's calls of an allocation", *calls], *rows]))
    if ON_CUDA:
        print(plain([["copy_async", "GB/s"], *([name, f"{speed:.1f}"] for name, speed in copies().items())]))


if __name__ == "__main__":
    main()
