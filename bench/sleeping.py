"""Pools that sleep, and two processes that share a device by turns: ``python bench/sleeping.py``.

The first table has the seconds to put arrays to sleep and to wake them, beside plain copies of the same bytes between
the device and page-locked memory: without the time to page-lock the memory, and with that time. In the second part, two
processes take turns, each of which needs most of the device. Their bytes must be those of the same programs that run
alone.

On a machine with one H200::

    python bench/sleeping.py --gib 60 --turns 100 --device-gib 8

Each round prints its figures when it ends. ``--device-gib`` makes the device of the second part smaller, because the
contents of both processes are on the host for a moment, and because each turn copies them twice and locks memory for
them. 0 leaves the device as it is. ``--seconds`` bounds the time of the turns, of which a line says how many were made.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from chosen_runtime import ON_CUDA
from machine import machine
from table import plain

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

MIB, GIB = 1 << 20, 1 << 30
PART = 512 * MIB if ON_CUDA else 8 * MIB  # the bytes of an array
PLAIN, LOCKING, KEPT, DROPPED = (
    "plain copies",
    "plain copies, locking included",
    "sleep and wake",
    "sleep(keep=False) and wake",
)
FACTOR, STEP = 1_664_525, 1_013_904_223  # of a linear congruential generator, which no error leaves unchanged


class Times(NamedTuple):
    """Seconds to the host and back to the device."""

    to_host: float
    to_device: float

    @property
    def total(self) -> float:
        return self.to_host + self.to_device


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of ``work``, until the device is done."""
    tcuda.synchronize()
    begin = time.perf_counter()
    work()
    tcuda.synchronize()
    return time.perf_counter() - begin


def copy_each(targets: list[Any], sources: list[Any]) -> None:
    """Copy each of ``sources`` to the target at its place."""
    for target, source in zip(targets, sources, strict=True):
        tcuda.memory.copy_async(target, source)


def part(number: int, size: int, seed: int) -> Any:
    """Return the array ``number`` of a process, of ``size`` bytes."""
    array = tcuda.xp.arange(size // 4, dtype="uint32")
    array += seed * 977 + number
    return array


def fill(size: int, seed: int) -> list[Any]:
    """Return arrays of ``size`` bytes in all, whose elements differ."""
    return [part(begin // PART, min(PART, size - begin), seed) for begin in range(0, size, PART)]


def are_unchanged(arrays: list[Any], seed: int) -> bool:
    """Return whether arrays of :func:`fill` have their first elements. The device compares: a hash takes a minute."""
    return all(bool((array == part(number, array.nbytes, seed)).all()) for number, array in enumerate(arrays))


def advance(arrays: list[Any]) -> None:
    """Change every element, in place."""
    for array in arrays:
        array *= FACTOR
        array += STEP


def digest(arrays: list[Any]) -> str:
    """Return a hash of all bytes, and bring them to the host in small parts."""
    found = hashlib.blake2b()
    for array in arrays:
        for begin in range(0, array.size, 4 * MIB):
            found.update(np.ascontiguousarray(array[begin : begin + 4 * MIB].get()))
    return found.hexdigest()


# One process


def copies(arrays: list[Any]) -> dict[str, Times]:
    """Return the times of plain copies to page-locked memory and back, without the time of the locks and with it."""
    host: list[Any] = []

    def lock() -> None:
        host.extend(tcuda.memory.empty_pinned(array.shape, array.dtype) for array in arrays)

    def unlock() -> None:
        host.clear()
        tcuda.memory.empty_host_cache()

    locked, to_host = timed(lock), timed(lambda: copy_each(host, arrays))
    to_device, unlocked = timed(lambda: copy_each(arrays, host)), timed(unlock)
    return {PLAIN: Times(to_host, to_device), LOCKING: Times(locked + to_host, to_device + unlocked)}


def sleeps(pool: tcuda.MemPool, *, keep: bool) -> Times:
    """Return the times of a sleep and of a wake."""
    return Times(timed(lambda: pool.sleep(keep)), timed(pool.wake))


def one_process(size: int, rounds: int) -> None:
    pool = tcuda.MemPool()
    with tcuda.use_mem_pool(pool):
        arrays = fill(size, 1)
    best: dict[str, Times] = {}

    def note(number: int, name: str, times: Times) -> None:
        print(f"round {number}, {name}: {times.to_host:.3f} s to the host, {times.to_device:.3f} s to the device")
        best[name] = min(best.get(name, times), times, key=lambda times: times.total)

    for number in range(1, rounds + 1):
        for name, times in copies(arrays).items():
            note(number, name, times)
        note(number, KEPT, sleeps(pool, keep=True))
    assert are_unchanged(arrays, 1), "the bytes have changed"
    for number in range(1, rounds + 1):
        note(number, DROPPED, sleeps(pool, keep=False))
    rows = [["", "to the host", "to the device", "both"]]
    rows += [[name, *(f"{value:.3f} s" for value in (*times, times.total))] for name, times in best.items()]
    print(f"{size / GIB:.3g} GiB, the best of {rounds} rounds, all bytes the same:\n{plain(rows)}")
    kept, locked, copied = (best[name].total for name in (KEPT, LOCKING, PLAIN))
    print(f"sleep and wake take {kept / locked:.2f} of plain copies with locking, {kept / copied:.2f} of copies alone")


# Two processes


def worker(size: int, seed: int) -> None:
    """Do what the lines of the input ask for: ``warm``, ``turn``, ``stay``, ``digest`` or the end.

    ``stay`` is the work of a turn without the sleep.
    """
    # Makes the context and the handles of libraries, which a capture makes first, and loads the kernels: later, the
    # device has no memory for them.
    small = fill(4096, seed)
    advance(small)
    with tcuda.graph(tcuda.CUDAGraph()):
        advance(small)
    del small
    tcuda.empty_cache()
    pool = tcuda.MemPool()
    arrays: list[Any] = []
    graph = tcuda.CUDAGraph()
    for line in sys.stdin:
        command = line.strip()
        if command == "warm":
            print("done", flush=True)
            continue
        if not arrays:
            with tcuda.use_mem_pool(pool):
                arrays = fill(size, seed)
            with tcuda.graph(graph, pool=pool.id):
                advance(arrays)
        pool.wake()
        if command == "digest":
            print(digest(arrays), flush=True)
            continue
        graph.replay()
        tcuda.synchronize()
        if command == "turn":
            pool.sleep()
        print("done", flush=True)
    graph.reset()


class Worker:
    """A process that takes turns."""

    def __init__(self, size: int, seed: int) -> None:
        command = [sys.executable, str(Path(__file__)), "--worker", json.dumps([size, seed])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command: str) -> str:
        to, back = self._pipes()
        print(command, file=to, flush=True)
        answer = back.readline().strip()
        assert answer, "a worker has ended with an error"
        return answer

    def end(self) -> None:
        to, _ = self._pipes()
        to.close()
        assert self._process.wait() == 0

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout


def room_of_host() -> int:
    """Return the bytes of the host that new memory can use."""
    with Path("/proc/meminfo").open(encoding="ascii") as lines:
        kib = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return int(kib) * 1024


def take_turns(turns: int, share: float, device: float, seconds: float) -> None:
    workers = [Worker(0, 0), Worker(0, 0)]  # to find out how much memory the contexts of two processes leave
    for each in workers:
        each.ask("warm")
    free = tcuda.mem_get_info()[0]
    for each in workers:
        each.end()
    wanted = min(free, int(device * GIB) if device else free, int(room_of_host() * 0.45 / share))
    size = int(wanted * share) // (2 * MIB) * 2 * MIB
    ballast = []
    left = free - wanted
    while left >= 2 * MIB:
        ballast.append(tcuda.xp.empty(min(PART, left), "u1"))
        left -= ballast[-1].nbytes
    workers = [Worker(size, seed) for seed in (1, 2)]
    begin = time.perf_counter()
    made, took = 0, 0.0
    while made < turns and (took < seconds or made == 0):
        for each in workers:
            each.ask("turn")
        made, took = made + 1, time.perf_counter() - begin
        if made % 10 == 0:
            print(f"{made} turns each: {took:.1f} s")
    together = []
    for each in workers:
        together.append(each.ask("digest"))
        each.end()
    for seed, found in zip((1, 2), together, strict=True):
        single = Worker(size, seed)
        for _ in range(made):
            single.ask("stay")
        assert found == single.ask("digest"), "a process that took turns has other bytes than alone"
        single.end()
    print(
        f"two processes with {size / GIB:.3g} GiB each, {size / wanted:.2f} of a device of {wanted / GIB:.3g} GiB: "
        f"{made} of {turns} turns each in {took:.1f} s, {took / made / 2:.3f} s a turn, the same bytes as alone"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=60 if ON_CUDA else 0.1, help="the bytes that sleep, in GiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=100 if ON_CUDA else 3, help="0 leaves the two processes out")
    parser.add_argument("--share", type=float, default=0.9, help="the part of the device that each process needs")
    parser.add_argument("--device-gib", type=float, default=8 if ON_CUDA else 0.2, help="0 for the whole device")
    parser.add_argument("--seconds", type=float, default=200, help="no turn begins after so many seconds")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(*json.loads(options.worker))
        return
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)  # a figure is kept if a time limit ends the process
    print(", ".join(f"{name} {value}" for name, value in machine().items()), os.cpu_count(), "processors")
    if options.gib:
        one_process(int(options.gib * GIB) // (2 * MIB) * 2 * MIB, options.rounds)
        tcuda.empty_cache()
    if options.turns:
        take_turns(options.turns, options.share, options.device_gib, options.seconds)


if __name__ == "__main__":
    main()
