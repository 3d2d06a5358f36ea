"""The time to exchange arrays with another process, with tcuda and with torch: ``python bench/sharing.py``.

One process sends an array through a pipe, and the other process answers with an array of its own. So the figure is that
of two messages. ``--steps`` prints the time of each step of a message, from runs of their own.
"""

from __future__ import annotations

import argparse
import importlib
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


STEPS: dict[str, tuple[str, str]] = {
    "send: all": ("messages", "send"),
    "send: find the block": ("segments", "place_of"),
    "send: record events": ("events", "record"),
    "receive: all": ("messages", "receive"),
    "receive: wait for events": ("events", "wait"),
    "receive: claim": ("connections", "Connection.claim"),
    "receive: open or reuse a mapping": ("mappings", "open_segment"),
    "receive: map": ("mappings", "_open"),
    "server: answer": ("server", "Server._answer"),
    "server: export descriptors": ("segments", "SharedBlock.descriptors"),
    "return: wait for the work": ("received", "Returns._wait_for_work"),
    "return: close or keep the mapping": ("mappings", "Mapping.close"),
    "return: unmap": ("mappings", "Mapping._unmap"),
    "return: release": ("connections", "Connection.release"),
}
"""For each step of a message, the module of ``tcuda.multiprocessing`` and the function in the module."""


def _time_steps() -> dict[str, list[float]]:
    """Time the steps of all messages of this process from now on, and return the dict that gets the seconds."""
    seconds: dict[str, list[float]] = {}
    for step, (module, name) in STEPS.items():
        owner = importlib.import_module(f"tcuda.multiprocessing._{module}")
        *classes, function = name.split(".")
        for part in classes:
            owner = getattr(owner, part)
        seconds[step] = []
        setattr(owner, function, _timed(getattr(owner, function), seconds[step]))
    return seconds


def _timed(function: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    def timed(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            seconds.append(time.perf_counter() - start)

    return timed


def _answer_timed(connection: Connection) -> None:
    """Answer as _answer() does, and send the seconds of each step of the exchanges after the first two."""
    seconds = _time_steps()
    _answer("tcuda", connection, seconds)
    connection.send(seconds)


def measure_steps(size: int) -> list[list[str]]:
    """Return the rows of a table: the calls for each exchange and the median time of each step, in both processes."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer_timed, args=(theirs,))
    process.start()
    array = _tcuda_array(size)
    seconds = _time_steps()
    for number in range(ROUNDS + 2):
        if number == 2:
            _clear(seconds)
        ours.send(array)
        ours.recv()
    kept = {step: list(taken) for step, taken in seconds.items()}
    ours.send(None)
    answered = ours.recv()
    process.join()
    rows = [["step", "calls", "median (us)", "calls there", "median there (us)"]]
    for step in STEPS:
        cells = [(f"{len(of[step]) / ROUNDS:.2f}", _median(of[step])) for of in (kept, answered)]
        rows.append([step, *(cell for pair in cells for cell in pair)])
    return rows


def _median(seconds: list[float]) -> str:
    return f"{1e6 * statistics.median(seconds):.1f}" if seconds else "-"


def _clear(seconds: dict[str, list[float]]) -> None:
    for taken in seconds.values():
        taken.clear()


def _answer(library: str, connection: Connection, seconds: dict[str, list[float]] | None = None) -> None:
    """Answer each array with an array of this process, until None arrives."""
    answered = 0
    own = {size: LIBRARIES[library](size) for size in (1, *SIZES.values())}
    while (array := connection.recv()) is not None:
        connection.send(own[array.nbytes])
        del array
        answered += 1
        if seconds is not None and answered == 2:
            _clear(seconds)


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
    parser.add_argument("--steps", action="store_true", help="print the time of each step of tcuda's messages")
    asked = parser.parse_args()
    present = [name for name in LIBRARIES if name == "tcuda" or (ON_CUDA and importlib.util.find_spec(name))]
    measured = {name: measure(name) for name in present}
    rows = [["exchange of", *(f"{name}, {which} (us)" for name in present for which in ("first", "median"))]]
    for size in SIZES:
        rows.append([size, *(f"{1e6 * seconds:.0f}" for name in present for seconds in measured[name][size])])
    print(plain(rows))
    if asked.steps:
        for name, size in SIZES.items():
            print(f"\nSteps of an exchange of {name}")
            print(plain(measure_steps(size)))


if __name__ == "__main__":
    main()
