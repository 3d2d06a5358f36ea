"""The smallest limit on which a workload runs: ``python bench/limits.py [--workload NAME] [--trace FILE] [--busy]``.

For each workload and allocator, the tool prints the time and the calls of the driver of the first and of the second
replay of a fresh process without a limit, and the most memory that the allocator then holds. After that, the tool
searches, by bisection, for the smallest limit of the allocator's memory on which a replay ends without out-of-memory.
The limits are multiples of 2 MiB, and each replay begins with an empty cache. The limit is shown as a multiple of the
peak of the live bytes, with each block rounded to 512 bytes and the sum to 2 MiB. Two columns say what stands against a
smaller limit: a piece of 2 MiB, the least that the driver gives; and, with ``--plan``, a plan that knows the workload
beforehand (``plans.py``). With ``--busy``, the stream has work all the time. With ``--quick``, the tool leaves out the
search. Each row is printed as soon as the row is measured, too.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from limits_worker import QUICK, Limits
from plans import PIECE
from replay import ReplayError, planned, possible, results
from replay import present as all_present
from table import markdown, note, plain
from workloads import COLD, WORKLOADS, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plans import Plan

NAMES = tuple(name for name in WORKLOADS if name not in COLD)
"""The names of the workloads, all of which free memory."""

_WORKER = Path(__file__).parent / "limits_worker.py"


def present() -> tuple[str, ...]:
    """Return the allocators that are compared on this machine."""
    return tuple(name for name in all_present() if name not in {"tcuda_segments", "cupy_async"})


def limits(source: str, workloads: Sequence[str], *, busy: bool = False, quick: bool = False) -> Iterator[Limits]:
    """Measure workloads, given by name or by the path of a trace, with an allocator in processes of its own.

    Args:
        source: The allocator.
        workloads: The workloads.
        busy: Whether the stream has work all the time.
        quick: Whether to leave out the search for the smallest limit.

    Raises:
        ReplayError: A replay failed.
    """
    for values in results(_WORKER, source, [*([QUICK] if quick else []), *workloads], busy=busy):
        pairs = {name: values[name] and tuple(values[name]) for name in ("seconds", "calls")}
        yield Limits(**{**values, **pairs})


def table(found: Sequence[Limits], plans: Mapping[str, Plan]) -> list[tuple[str, ...]]:
    """Return all results, in one row for each workload and allocator, with the plans of some workloads."""
    header: tuple[str, ...] = ("workload", "stream", "allocator", "smallest limit / live", "live + a piece / live")
    header += (*(("plan / live",) if plans else ()), "held / live")
    header += ("first: µs an event", "driver calls", "second: µs an event", "driver calls")
    rows: list[tuple[str, ...]] = [header]
    for each in sorted(found, key=lambda each: (each.workload, each.busy)):
        ratio = "-" if each.per_live is None else f"{each.per_live:.3f}"
        costs = []
        for place in (0, 1):
            costs.append(f"{each.seconds[place] / each.events * 1e6:.2f}")
            costs.append("-" if each.calls is None else f"{each.calls[place]:,}")
        stream = "busy" if each.busy else "idle"
        floors = [f"{1 + PIECE / each.bound:.3f}"]
        if plans:
            floors.append(f"{plans[each.workload].height / each.bound:.3f}" if each.workload in plans else "-")
        rows.append((each.workload, stream, each.source, ratio, *floors, f"{each.held / each.bound:.3f}", *costs))
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 0 after success, or 2 if a trace cannot be read or a replay failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", nargs="+", choices=NAMES, default=[], metavar="NAME", help="; ".join(NAMES))
    parser.add_argument("--trace", nargs="+", type=Path, default=[], metavar="FILE", help="a trace as in data/*.npz")
    parser.add_argument("--source", nargs="+", choices=possible(), default=present(), help="the allocators")
    parser.add_argument("--busy", action="store_true", help="keep the stream busy")
    parser.add_argument(QUICK, action="store_true", help="leave out the search for the smallest limit")
    parser.add_argument("--plan", action="store_true", help="show a plan made beforehand; takes a minute")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--markdown", action="store_true", help="print the table for a document")
    shape.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)

    def measured() -> Iterator[Limits]:
        for trace in options.trace:
            read_trace(trace)
        workloads = [*options.workload, *(str(trace.resolve()) for trace in options.trace)] or list(NAMES)
        for source in options.source:
            yield from limits(source, workloads, busy=options.busy, quick=options.quick)

    try:
        found: list[Limits] = []
        for each in measured():
            found.append(each)
            note(table([each], {})[1])
    except (OSError, ValueError, ReplayError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps([each._asdict() for each in found], indent=2))
        return 0
    measured_names = dict.fromkeys(each.workload for each in found if each.workload in WORKLOADS)
    plans = {name: planned(name) for name in measured_names} if options.plan else {}
    print((markdown if options.markdown else plain)(table(found, plans)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
