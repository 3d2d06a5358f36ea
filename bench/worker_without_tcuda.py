"""A process without tcuda: ``python bench/worker_without_tcuda.py cupy|torch|csan``.

For each line with the name of a work on the standard input, the process makes a round of the work, and prints the
seconds of the round. ``csan`` is torch under ``torch.cuda._sanitizer``. An empty line is the answer for a work that the
side does not have.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import TYPE_CHECKING, Any

import watched_works

if TYPE_CHECKING:
    from loop import Loop


def _cupy() -> tuple[Any, Any]:
    import cupy

    stream = cupy.cuda.Stream.null
    return (lambda work: watched_works.of_cupy(cupy, work, stream.synchronize)), stream.synchronize


def _torch(*, sanitizer: bool) -> tuple[Any, Any]:
    import torch

    if sanitizer:
        from torch.cuda import _sanitizer

        _sanitizer.enable_cuda_sanitizer()
    wait = torch.cuda.synchronize
    return (lambda work: watched_works.of_torch(torch, work, wait)), wait


def main(side: str) -> None:
    """Answer the lines of the standard input."""
    made, wait = _cupy() if side == "cupy" else _torch(sanitizer=side == "csan")
    works: dict[str, Loop] = {}
    gc.disable()
    for line in sys.stdin:
        work = line.rstrip("\n")
        try:
            if work not in works:
                works[work] = made(work)
                works[work]()  # compiles the kernels
                wait()
        except LookupError:
            print(flush=True)
            continue
        begin = time.perf_counter()
        works[work]()
        seconds = time.perf_counter() - begin
        wait()
        print(seconds, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
