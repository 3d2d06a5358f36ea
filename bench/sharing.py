"""The time to exchange arrays with another process, with tcuda and with torch: ``python bench/sharing.py``.

One process sends an array through a pipe, and the other process answers with an array of its own. So the figure is that
of two messages.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import statistics
import time
from typing import TYPE_CHECKING, Any

from chosen_runtime import ON_CUDA
from table import plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

SIZES = {"1 KiB": 1 << 10, "1 MiB": 1 << 20, "64 MiB": 1 << 26}
ROUNDS = 200


def _tcuda_array(size: int) -> Any:
    import tcuda
    import tcuda.multiprocessing

    return tcuda.xp.zeros(size, "u1")


def _torch_array(size: int) -> Any:
    import torch
    import torch.multiprocessing

    return torch.zeros(size, dtype=torch.uint8, device="cuda")


LIBRARIES: dict[str, Callable[[int], Any]] = {"tcuda": _tcuda_array, "torch": _torch_array}


def _answer(library: str, connection: Connection) -> None:
    """Answer each array with an array of this process, until None arrives."""
    own = {size: LIBRARIES[library](size) for size in (1, *SIZES.values())}
    while (array := connection.recv()) is not None:
        connection.send(own[array.nbytes])
        del array


def _seconds(library: str, connection: Connection, size: int) -> tuple[float, float]:
    """Return the seconds of an exchange: of the first one, which opens the memory, and the median of the others."""
    array = LIBRARIES[library](size)
    connection.send(LIBRARIES[library](1))  # starts what the first message starts
    connection.recv()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        connection.send(array)
        back = connection.recv()
        times.append(time.perf_counter() - start)
        del back
    return times[0], statistics.median(times[1:])


def measure(library: str) -> dict[str, tuple[float, float]]:
    """Return the seconds of an exchange with ``library``, for each size."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(library, theirs))
    process.start()
    LIBRARIES[library](1)
    try:
        return {name: _seconds(library, ours, size) for name, size in SIZES.items()}
    finally:
        ours.send(None)
        process.join()


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    present = [name for name in LIBRARIES if name == "tcuda" or (ON_CUDA and importlib.util.find_spec(name))]
    measured = {name: measure(name) for name in present}
    rows = [["exchange of", *(f"{name}, {which} (us)" for name in present for which in ("first", "median"))]]
    for size in SIZES:
        rows.append([size, *(f"{1e6 * seconds:.0f}" for name in present for seconds in measured[name][size])])
    print(plain(rows))


if __name__ == "__main__":
    main()
