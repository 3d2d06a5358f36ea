"""Shows the results of a run: ``python bench/report.py result.json [--markdown]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from results import Results, UnusableError
from table import markdown, plain
from targets import TARGETS, Target

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER = ("call", "tcuda", "below", "torch", "over below", "tcuda / torch", "target", "met")


def row(call: str, sides: Mapping[str, float], ratio: float, *, judged: bool) -> tuple[str, ...]:
    """Return what :data:`HEADER` announces; ``judged`` says whether the targets apply.

    What tcuda costs over the layer below is taken from the ratio of neighbouring rounds: the two medians are of rounds
    seconds apart.
    """
    tcuda, below = sides["tcuda"], sides["below"]
    torch = sides.get("torch")
    over = (ratio - 1) * below
    cells = [f"{tcuda:,.0f}", f"{below:,.0f}", "-" if torch is None else f"{torch:,.0f}", f"{over:+,.0f}"]
    cells.append("-" if torch is None else f"{tcuda / torch:.2f}")
    if judged:
        target = TARGETS.get(call, Target())
        met = target.met(tcuda, over) if torch is None else target.met(tcuda, over, torch)
        return (call, *cells, str(target), "yes" if met else "NO")
    return (call, *cells, "-", "-")


def report(results: Results, *, as_markdown: bool) -> str:
    """Return the whole report."""
    judged = results.machine["runtime"] == "cuda"
    rows = [row(call, sides, results.ratios[call], judged=judged) for call, sides in results.medians.items()]
    table = (markdown if as_markdown else plain)([HEADER, *rows])
    machine = ", ".join(f"{name} {value}" for name, value in results.machine.items())
    return f"Medians in nanoseconds a call. Measured on: {machine}.\n\n{table}\n\n{_verdict(rows, judged=judged)}"


def _verdict(rows: list[tuple[str, ...]], *, judged: bool) -> str:
    if not judged:
        return "The targets are those of an H200; none applies to emulated devices."
    missed = [row[0] for row in rows if row[-1] == "NO"]
    verdict = f"{len(rows) - len(missed)} of {len(rows)} calls meet their targets"
    return f"{verdict}; not: {', '.join(missed)}." if missed else f"{verdict}."


def main(arguments: list[str] | None = None) -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="what pytest --benchmark-json wrote")
    parser.add_argument("--markdown", action="store_true", help="print a table for docs/benchmarks.md")
    options = parser.parse_args(arguments)
    try:
        print(report(Results.read(options.results), as_markdown=options.markdown))
    except UnusableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
