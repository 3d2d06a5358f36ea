"""A process that runs one program: ``python bench/program_worker.py tcuda|cupy PROGRAM SCALE``.

For each line on the standard input, the process runs the program, and prints the seconds of the run and the bytes of
the device that the memory pool holds. An empty line is the first output: the program has run once, so that its kernels
are compiled. ``absent`` is printed in its place if a library of the program is not installed. Libraries may print too:
their text goes to the standard error.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _held(side: str) -> Callable[[], int]:
    if side == "cupy":
        import cupy

        return lambda: int(cupy.get_default_memory_pool().total_bytes())
    import tcuda

    return tcuda.max_memory_reserved


def main(side: str, name: str, scale: str) -> None:
    """Answer the lines of the standard input."""
    answers, sys.stdout = sys.stdout, sys.stderr
    held = _held(side)  # imports tcuda before CuPy
    import cupy
    from programs import PROGRAMS

    try:
        run = PROGRAMS[name](cupy, int(scale))
    except ImportError:
        print("absent", file=answers, flush=True)
        return
    run()
    print(file=answers, flush=True)
    for _ in sys.stdin:
        gc.collect()
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        run()
        cupy.cuda.Device().synchronize()
        print(time.perf_counter() - begin, held(), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
