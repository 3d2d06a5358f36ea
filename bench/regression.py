"""The check for calls that became slower, compared with the layer below: ``python bench/regression.py``.

Nanoseconds differ between machines much more than the ratio of two sides that are measured in turn. The check compares
the ratio of each call with the ratio in ``baseline.json``. A call that seems slow is measured again before the check
fails.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from baseline import Baseline
from results import Results, UnusableError
from table import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOLERANCE = 1.5
"""The check fails for a call if its ratio is more than this multiple of the ratio in the baseline."""

RERUNS = 2
"""The number of further runs in which a call must be slow, too, before the check fails."""

RUNS_OF_A_BASELINE = 5
"""The number of runs whose medians make a baseline."""

BENCH = Path(__file__).parent


def measure(*, replays: bool = False) -> Results:
    """Run the benchmarks of tcuda and of the layer below in a process of their own.

    Args:
        replays: Whether to replay workloads and to measure beside many objects, too. Such a benchmark fails if the
            allocator reserves too much memory, or if a call becomes slower beside many objects.

    Raises:
        UnusableError: A benchmark failed.
    """
    which = "not torch and not test_comm and not test_races_cuda"
    which += "" if replays else " and not test_replay and not test_growth"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", which, BENCH.name]
        done = subprocess.run(
            [*command, f"--benchmark-json={path}"], cwd=BENCH.parent, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise UnusableError(f"the benchmarks failed:\n{done.stdout}{done.stderr}")
        return Results.read(path)


def slower(ratios: Mapping[str, float], baseline: Baseline) -> list[str]:
    """Return the calls whose ratio exceeds the tolerance.

    Raises:
        UnusableError: ``ratios`` and ``baseline`` have different calls.
    """
    measured, known = ratios.keys(), baseline.ratios.keys()
    if measured != known:
        raise UnusableError(
            f"not measured: {_listed(known - measured)}; not in the baseline: {_listed(measured - known)}. "
            "If the benchmarks changed, --update writes a new baseline."
        )
    return [call for call, ratio in ratios.items() if ratio > TOLERANCE * baseline.ratios[call]]


def check(given: Path | None, path: Path) -> int:
    """Compare with the baseline, print the comparison, and return the exit status."""
    results = Results.read(given) if given else measure(replays=True)
    baseline = Baseline.read(path, results.machine["runtime"])
    ratios = results.ratios
    for _ in range(0 if given else RERUNS):
        if not slower(ratios, baseline):
            break
        again = measure().ratios
        ratios = {call: min(ratio, again[call]) for call, ratio in ratios.items()}
    slow = slower(ratios, baseline)
    print(_table(ratios, baseline, slow))
    print(f"\n{len(slow)} of {len(ratios)} calls exceed {TOLERANCE} times their baseline: {_listed(slow)}.")
    return 1 if slow else 0


def _table(ratios: Mapping[str, float], baseline: Baseline, slow: list[str]) -> str:
    rows = [("call", "tcuda / below", "baseline", "change", "")]
    for call, ratio in ratios.items():
        known = baseline.ratios[call]
        rows.append((call, f"{ratio:.3g}", f"{known:.3g}", f"{ratio / known:.2f}", "SLOWER" if call in slow else ""))
    return plain(rows)


def _listed(calls: Iterable[str]) -> str:
    return ", ".join(sorted(calls)) or "none"


def update(given: Path | None, path: Path) -> int:
    """Write the baseline of the runtime in use."""
    runs = [Results.read(given)] if given else [measure() for _ in range(RUNS_OF_A_BASELINE)]
    ratios = {call: statistics.median(run.ratios[call] for run in runs) for call in runs[0].ratios}
    Baseline(runs[0].machine, ratios).write(path)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, and return the exit status.

    Returns:
        0 if no call is slower, 1 if a call is slower, 2 if the check could not compare.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the baseline of the runtime in use")
    parser.add_argument("--json", type=Path, metavar="FILE", help="use the results in FILE instead of a new run")
    parser.add_argument("--baseline", type=Path, metavar="FILE", default=BENCH / "baseline.json")
    options = parser.parse_args(arguments)
    try:
        return (update if options.update else check)(options.json, options.baseline)
    except UnusableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
