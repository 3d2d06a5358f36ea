"""Shows the results of a run: ``python bench/report.py result.json [--markdown]``.

``python bench/report.py docs/benchmarks.md --chart docs/images/calls.svg`` draws the figures of the page.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import chart
import comm_table
import replay_tables
from results import Costs, Results, UnusableError
from table import markdown, plain
from targets import TARGETS, Target

HEADER = ("call", "tcuda", "below", "torch", "over below", "tcuda / torch", "target", "met")

COLD = (
    "Memory from the device: microseconds per allocation by the allocator's own call and as an array, and the memory "
    "held while all allocations are alive."
)
COMM = "Calls over several devices: medians of the time until all devices are idle, and the bandwidth of tcuda."
RESERVED = "Peak reserved / peak live."


def row(call: str, costs: Costs, *, judged: bool) -> tuple[str, ...]:
    """Return the cells of ``call`` in the columns of :data:`HEADER`; ``judged`` says whether the targets apply."""
    tcuda, below, torch, _ = costs
    cells = [f"{tcuda:,.0f}"]
    cells += ["-" if below is None else f"{below:,.0f}", "-" if torch is None else f"{torch:,.0f}"]
    cells.append("-" if below is None else f"{costs.over_below:+,.0f}")
    cells.append("-" if torch is None else f"{tcuda / torch:.2f}")
    if judged:
        target = TARGETS.get(call, Target())
        return (call, *cells, str(target), "yes" if target.met(costs) else "NO")
    return (call, *cells, "-", "-")


def report(results: Results, *, as_markdown: bool) -> str:
    """Return the whole report."""
    judged = results.machine["runtime"] == "cuda"
    table = markdown if as_markdown else plain
    machine = ", ".join(f"{name} {value}" for name, value in results.machine.items())
    parts = [f"Medians in nanoseconds per call. Measured on: {machine}."]
    if results.medians:
        rows = [row(call, results.costs(call), judged=judged) for call in results.medians]
        parts += [table([HEADER, *rows]), _verdict(rows, judged=judged)]
    for title, rows_of_part in (
        (COLD, replay_tables.cold(results.replays)),
        (COMM, comm_table.rows(results.comm)),
        (RESERVED, replay_tables.reserved_per_live(results.replays, emulated=not judged)),
    ):
        if rows_of_part:
            parts += [title, table(rows_of_part)]
    return "\n\n".join(parts)


def _verdict(rows: list[tuple[str, ...]], *, judged: bool) -> str:
    if not judged:
        return "The targets are for an H200 and do not apply to emulated devices."
    missed = [row[0] for row in rows if row[-1] == "NO"]
    verdict = f"{len(rows) - len(missed)} of {len(rows)} calls meet their targets"
    return f"{verdict}; not: {', '.join(missed)}." if missed else f"{verdict}."


def _pairs(path: Path) -> dict[str, chart.Pair]:
    return chart.of_page(path) if path.suffix == ".md" else chart.of_results(Results.read(path))


def main(arguments: list[str] | None = None) -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "results",
        type=Path,
        help="the file that pytest --benchmark-json wrote; --chart also takes a page with the table",
    )
    parser.add_argument("--markdown", action="store_true", help="print a table for docs/benchmarks.md")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw some calls in this SVG file instead")
    options = parser.parse_args(arguments)
    try:
        if options.chart is not None:
            pairs = _pairs(options.results)
            options.chart.write_text(chart.svg(pairs), encoding="utf-8")
            print(chart.headline(pairs))
            return 0
        print(report(Results.read(options.results), as_markdown=options.markdown))
    except UnusableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
