"""Measures the memory of the race detector over many launches: ``python bench/races_memory.py [--launches N]``.

Four streams launch kernels on arrays, wait for each other, and free arrays, in one check. The program has no races.
Prints the memory of the process after each tenth of the launches. The exit status is 1 if the memory grows by more than
1 MiB after the first fifth.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from pathlib import Path

import chosen_runtime  # noqa: F401  # chooses the runtime

import tcuda

_SOURCE = 'extern "C" __global__ void next(const float *x, float *y) { *y = *x + 1; }'
_STREAMS, _ARRAYS = 4, 64
_RUN = 10  # launches in a stream before the next stream has its turn
_PARTS = 10
_MOST_GROWTH = 1 << 20


def resident() -> int:
    """Return the bytes of memory that the process holds, without the memory of devices."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(launches: int) -> list[int]:
    """Make the launches, and return the resident memory after each tenth of them."""
    xp = tcuda.xp
    kernel = xp.RawKernel(_SOURCE, "next")
    streams = [tcuda.Stream() for _ in range(_STREAMS)]
    found = []
    with tcuda.sanitizer.check() as report:
        arrays = [[xp.zeros(1000, xp.float32) for _ in range(_ARRAYS)] for _ in streams]
        tcuda.synchronize()
        places = itertools.cycle(range(_ARRAYS))
        turns = itertools.cycle(range(_STREAMS))
        begin = time.perf_counter()
        for part in range(_PARTS):
            for number in range(launches // _PARTS // _RUN):
                turn = next(turns)
                stream, own = streams[turn], arrays[turn]
                with tcuda.stream(stream):
                    for place in itertools.islice(places, _RUN):
                        kernel((1,), (1,), (own[place], own[place - 1]))
                    if number % 20 == turn:  # each stream now and then
                        own[place] = xp.zeros(1000, xp.float32)
                        stream.wait_stream(streams[turn - 1])
            tcuda.synchronize()
            found.append(resident())
            seconds = time.perf_counter() - begin
            done = (part + 1) * (launches // _PARTS // _RUN * _RUN)
            print(f"{done:,} launches: {found[-1] / (1 << 20):,.1f} MiB, {seconds:,.1f} s", flush=True)
    print(report.summary)
    return found


def main() -> int:
    """Print the memory, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=100_000, help="the number of launches (100,000)")
    found = measure(parser.parse_args().launches)
    growth = found[-1] - found[_PARTS // 5 - 1]
    print(f"growth after the first fifth: {growth / (1 << 20):,.2f} MiB")
    return int(growth > _MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
