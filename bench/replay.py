"""Replays workloads through allocators: ``python bench/replay.py [--workload NAME] [--trace FILE] [--source NAME]``.

For each workload and allocator, the tool prints the time of an allocation, the peak of the reserved memory, this peak
as a multiple of the peak of the live memory, and the number of allocations from the driver. The memory is measured in
the first replay of a process that has done nothing else. The time is measured in replays that begin with an empty
cache. The steady figures are those of a program that repeats itself: the peak of all replays, and the time of an event
and the calls of the driver in later replays, with nothing cleared between. With ``--busy``, the stream has work all the
time, as in training. The figures of a program on several streams include the time of its waits. With ``--plan``, the
tool compares tcuda with a lower bound and with a plan that knows the workload beforehand (``plans.py``).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import replay_tables
from chosen_runtime import ON_CUDA
from plans import Plan, plan
from replayed import Replayed
from sides import SIDES
from sources import SETTINGS, SOURCES
from stream_programs import PROGRAMS, recorded
from table import markdown, note, plain
from workloads import COLD, WORKLOADS, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORKER = Path(__file__).parent / "replay_worker.py"
NAMES = (*WORKLOADS, *PROGRAMS)
"""The names of all workloads and of all programs on several streams."""

PLANNED = tuple(name for name in NAMES if name not in COLD)
"""The names of those that free memory, so that a plan differs from the order of the program."""

# One emulated device with as much memory as an H200, because the calls of the driver depend on the free memory. Memory
# that no code writes to takes no memory of the host.
EMULATED = {"TCUDA_EMULATED_DEVICES": "1", "TCUDA_EMULATED_MEMORY": "139GiB"}


class ReplayError(Exception):
    """A replay failed."""


def present() -> tuple[str, ...]:
    """Return the allocators that are compared on this machine."""
    if not ON_CUDA:
        return "tcuda", "tcuda_segments"
    torch = ("torch", "torch_expandable") if "torch" in SIDES else ()
    return "tcuda", *torch, "cupy", "cupy_async"


def possible() -> tuple[str, ...]:
    """Return the allocators that ``--source`` can name on this machine."""
    return tuple(dict.fromkeys([*present(), "tcuda_trimmed", "tcuda_segments"]))


def results(worker: Path, source: str, workloads: Sequence[str], *, busy: bool) -> Iterator[dict[str, Any]]:
    """Yield the result of each workload with an allocator as soon as ``worker`` prints the result.

    Raises:
        ReplayError: A replay failed.
    """
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    environment |= {**EMULATED, **SOURCES[source].environment}
    # Python warns of a fork in a process with threads. The only other threads are idle threads of NumPy.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(worker), source, "busy" if busy else "idle"]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        with subprocess.Popen(
            [*command, *workloads], env=environment, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8"
        ) as process:
            assert process.stdout is not None
            yield from map(json.loads, process.stdout)
        if process.returncode:
            errors.seek(0)
            raise ReplayError(f"The replay through {source} failed:\n{errors.read()}")


def replay(source: str, workloads: Sequence[str], *, busy: bool = False) -> Iterator[Replayed]:
    """Replay workloads, given by name or by the path of a trace, through an allocator in processes of its own.

    Raises:
        ReplayError: A replay failed.
    """
    for values in results(_WORKER, source, workloads, busy=busy):
        yield Replayed(**values)


def planned(workload: str) -> Plan:
    """Return the bound and the plan of a workload or of a program on several streams."""
    return plan(recorded(PROGRAMS[workload]) if workload in PROGRAMS else WORKLOADS[workload]())


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 0 after success, or 2 if a trace cannot be read or a replay failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", nargs="+", choices=NAMES, default=[], metavar="NAME", help="; ".join(NAMES))
    parser.add_argument("--trace", nargs="+", type=Path, default=[], metavar="FILE", help="a trace as in data/*.npz")
    parser.add_argument("--source", nargs="+", choices=possible(), default=present(), help="the allocators")
    parser.add_argument("--busy", action="store_true", help="keep the stream busy")
    parser.add_argument("--plan", action="store_true", help="compare tcuda, idle and busy, with a plan made beforehand")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--markdown", action="store_true", help="print the table for a document")
    shape.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    if options.plan and (options.trace or options.json or options.busy or set(options.workload) & set(COLD)):
        parser.error("--plan takes --workload only, with workloads that free memory")
    table = markdown if options.markdown else plain
    try:
        if options.plan:
            names = options.workload or PLANNED
            sides = [list(replay("tcuda", names, busy=busy)) for busy in (False, True)]
            print(table(replay_tables.beside_plan(*sides, {name: planned(name) for name in names})))
            return 0
        for trace in options.trace:
            read_trace(trace)
        workloads = [*options.workload, *(str(trace.resolve()) for trace in options.trace)] or list(NAMES)
        replays: list[Replayed] = []
        for each in (each for source in options.source for each in replay(source, workloads, busy=options.busy)):
            replays.append(each)
            note(replay_tables.figures([each])[1])
    except (OSError, ValueError, ReplayError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps([each._asdict() for each in replays], indent=2))
    else:
        print(table(replay_tables.figures(replays)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
