"""Arrays that move to the host when memory is short: ``python bench/spilling.py``.

The first table has the time to read an array of a ``tcuda.memory.Spillable`` that is on the device, beside a mapping in
Python that does nothing else. The second table has the speed of the moves, beside copies between memory that exists.
The third table has a program whose arrays need 1.5 times the memory that the process may reserve, beside the same
program without a limit.
"""

from __future__ import annotations

import statistics
import timeit
from typing import TYPE_CHECKING, Any, NamedTuple

from chosen_runtime import ON_CUDA
from sleeping import copy_each, timed
from table import plain

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
SIZE, COUNT = (64 * MIB, 32) if ON_CUDA else (4 * MIB, 8)  # the arrays whose moves are measured
ROUNDS, CALLS = 15, 20_000
SWEEPS = 3
PARTS, ROOM = (192, 128) if ON_CUDA else (24, 16)  # the arrays of the program, and how many of them have room


class Plain:
    """A mapping in Python that does nothing else."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._values[key] = value


def hits() -> dict[str, float]:
    """Return the nanoseconds to read an array that is on the device, the medians of rounds in turns."""
    mappings: dict[str, Any] = {
        "a mapping in Python": Plain(),
        "an array that was never moved": tcuda.memory.Spillable(),
        "an array that came back": tcuda.memory.Spillable(),
    }
    for mapping in mappings.values():
        mapping["x"] = tcuda.xp.zeros(1000)
    mappings["an array that came back"].spill()
    reads: dict[str, Callable[[], Any]] = {
        name: (lambda mapping=mapping: mapping["x"]) for name, mapping in mappings.items()
    }
    times: dict[str, list[float]] = {name: [] for name in [*reads, "an array that came back, on another stream"]}
    for _ in range(ROUNDS):
        for name, read in reads.items():
            read()
            times[name].append(timeit.timeit(read, number=CALLS))
        with tcuda.stream(tcuda.Stream()):
            times["an array that came back, on another stream"].append(timeit.timeit(read, number=CALLS))
    return {name: statistics.median(rounds) / CALLS * 1e9 for name, rounds in times.items()}


class Speeds(NamedTuple):
    """GB/s to the host and back to the device."""

    to_host: float
    to_device: float


def moves() -> dict[str, Speeds]:
    """Return the speeds of copies and of moves of the same arrays."""
    total = SIZE * COUNT / 1e9
    device = [tcuda.xp.full(SIZE, number, "u1") for number in range(COUNT)]
    host = [tcuda.memory.empty_pinned(SIZE, "u1") for _ in range(COUNT)]
    copy_each(host, device)
    pairs = ((host, device), (device, host))
    times = [min(timed(lambda pair=pair: copy_each(*pair)) for _ in range(3)) for pair in pairs]
    found = {"copies between memory that exists": Speeds(*(total / each for each in times))}
    del host, pairs
    tcuda.memory.empty_host_cache()
    cache: tcuda.memory.Spillable[int] = tcuda.memory.Spillable()
    while device:
        cache[len(device)] = device.pop()

    def read_all() -> None:
        for key in cache:
            cache[key]

    for name in ("moves, with new page-locked memory", "moves, with memory of the cache"):
        found[name] = Speeds(*(total / timed(work) for work in (cache.spill, read_all)))
    return found


class Program(NamedTuple):
    """What a program with 1.5 times the memory took.

    Attributes:
        seconds: The time with moves.
        unlimited: The time of the same program without a limit and without moves.
        moved: The GB that moved to the host and back.
        same_bits: Whether both programs had the same results.
    """

    seconds: float
    unlimited: float
    moved: float
    same_bits: bool


def program() -> Program:
    """Run the program with a limit and without."""
    xp = tcuda.xp

    def work(parts: Any) -> list[float]:
        for number in range(PARTS):
            parts[number] = xp.arange(number, number + SIZE // 4, dtype="f4")
        for sweep in range(SWEEPS):
            for number in range(PARTS):
                parts[number] *= 0.5
                parts[number] += parts[(number * 7 + sweep) % PARTS]
        return [float(parts[number].sum()) for number in range(PARTS)]

    def limited(parts: Any) -> list[float]:
        tcuda.empty_cache()
        room = tcuda.memory_reserved() + ROOM * SIZE
        tcuda.set_per_process_memory_fraction(room / tcuda.mem_get_info()[1])
        try:
            return work(parts)
        finally:
            tcuda.set_per_process_memory_fraction(1.0)

    results: list[list[float]] = []
    limited(tcuda.memory.Spillable())  # page-locks the memory of the host
    cache: tcuda.memory.Spillable[int] = tcuda.memory.Spillable()
    seconds = timed(lambda: results.append(limited(cache)))
    moved = (cache.stats().spills + cache.stats().restores) * SIZE / 1e9
    cache.clear()
    unlimited = timed(lambda: results.append(work({})))
    return Program(seconds, unlimited, moved, results[0] == results[1])


def main() -> None:
    print(plain([["read", "ns"], *([name, f"{found:.0f}"] for name, found in hits().items())]))
    speeds = moves()
    rows = [[name, f"{each.to_host:.1f}", f"{each.to_device:.1f}"] for name, each in speeds.items()]
    print(plain([["", "GB/s to the host", "GB/s back"], *rows]))
    run = program()
    copied = speeds["copies between memory that exists"]
    least = run.moved / 2 / copied.to_host + run.moved / 2 / copied.to_device
    rows = [
        ["time with 2/3 of the memory, s", f"{run.seconds:.2f}"],
        ["time without a limit, s", f"{run.unlimited:.2f}"],
        ["GB moved", f"{run.moved:.1f}"],
        ["time of plain copies of as many bytes, s", f"{least:.2f}"],
        ["same bits", str(run.same_bits)],
    ]
    print(plain([["program with 1.5 times the memory", ""], *rows]))


if __name__ == "__main__":
    main()
