"""Page-locked host memory of tcuda, CuPy and torch: ``python bench/pinned.py``.

The table has the time to allocate and free a block that is cached, the memory that each library holds for a churn of
blocks, and on CUDA the speed of copies. torch is left out where it is not installed, and on emulated devices.
"""

from __future__ import annotations

import importlib.util
import random
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from chosen_runtime import ON_CUDA
from table import plain

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

KIB, MIB = 1 << 10, 1 << 20
SIZES = {"1 KiB": KIB, "1 MiB": MIB, "64 MiB": 64 * MIB}
ROUNDS, CALLS = 7, 300
CHURN = 16, 28  # the powers of two of the smallest and of the largest block: 64 KiB and 256 MiB
LIVE, STEPS = (1 << 30, 1000) if ON_CUDA else (64 * MIB, 400)
COPIED = 256 * MIB


class Library(NamedTuple):
    """A library that allocates page-locked memory.

    Attributes:
        allocate: Returns an object with so many bytes of memory.
        held: Returns the bytes that the library holds; None if the library does not tell.
        empty: Gives the unused memory back.
    """

    allocate: Callable[[int], Any]
    held: Callable[[], int] | None
    empty: Callable[[], object]


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

    found = {
        "tcuda": Library(
            lambda size: tcuda.memory.empty_pinned(size, "u1"),
            lambda: tcuda.host_memory_stats()["allocated_bytes.current"],
            tcuda.memory.empty_host_cache,
        ),
        "tcuda for CuPy": Library(cuda.alloc_pinned_memory, None, tcuda.memory.empty_host_cache),
        "CuPy's pool": Library(pool.malloc, lambda: held, empty),
    }
    if ON_CUDA and importlib.util.find_spec("torch") is not None:
        import torch

        torch.cuda.init()  # has no statistics before
        found["torch"] = Library(
            lambda size: torch.empty(size, dtype=torch.uint8, pin_memory=True),
            lambda: torch.cuda.host_memory_stats()["allocated_bytes.current"],
            torch._C._host_emptyCache,
        )
    return found


def time_of(allocate: Callable[[int], Any], size: int) -> float:
    """Return the microseconds of an allocation and a free of a cached block."""
    allocate(size)
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            allocate(size)
        best = min(best, time.perf_counter() - start)
    return best / CALLS * 1e6


def churn(library: Library) -> float:
    """Return the peak of the held bytes over the peak of the live bytes."""
    assert library.held is not None
    library.empty()
    before = library.held()
    numbers = random.Random(0)
    low, high = CHURN if ON_CUDA else (16, 24)
    live: list[tuple[int, Any]] = []
    total = most = held = 0
    for _ in range(STEPS):
        while total > LIVE:
            size, _ = live.pop(numbers.randrange(len(live)))
            total -= size
        size = int(2 ** numbers.uniform(low, high))
        live.append((size, library.allocate(size)))
        total += size
        most, held = max(most, total), max(held, library.held() - before)
    live.clear()
    library.empty()
    return held / most


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
    print(plain(rows))
    if ON_CUDA:
        print(plain([["copy_async", "GB/s"], *([name, f"{speed:.1f}"] for name, speed in copies().items())]))


if __name__ == "__main__":
    main()
