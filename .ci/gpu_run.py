"""Runs the tests on the GPUs of this machine, and writes what came out: ``python .ci/gpu_run.py``.

The command needs a machine with one GPU or with two, an installed tcuda and its tests, and no network. The
only argument is the number of processes, such as ``-n 4``, so that every run is one of all tests. The tests with the
mark ``alone`` run after the others, in one process. The result goes into ``tests/data/last_gpu_run.json``, in the entry
for the number of GPUs. ``.ci/release.py check`` reads that file.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[1]
FILE = Path("tests") / "data" / "last_gpu_run.json"


def counts(junit: str) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped, from a result of pytest in the form of JUnit."""
    suites = list(ElementTree.fromstring(junit).iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(suite.get(name, "0")) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    return {"passed": total - failed - skipped, "failed": failed, "skipped": skipped}


def check_number(cards: list[str]) -> None:
    """Refuse another number of GPUs than one or two."""
    if len(cards) not in (1, 2):
        raise SystemExit(f"There are {len(cards)} GPUs; the file has entries for 1 and 2. Set CUDA_VISIBLE_DEVICES.")


def write(root: Path, commit: str, cards: list[str], date: str, found: Mapping[str, int]) -> dict[str, object]:
    """Write the entry of a run into the file, and return the entry.

    Raises:
        SystemExit: The machine has another number of GPUs than one or two.
    """
    check_number(cards)
    runs = json.loads((root / FILE).read_text())
    entry: dict[str, object] = {"commit": commit, "cards": cards, "date": date, **found}
    runs[str(len(cards))] = entry
    (root / FILE).write_text(json.dumps(runs, indent=1) + "\n")
    return entry


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _cards() -> list[str]:
    """Return the names of the GPUs that the tests see."""
    chosen = "import os; os.environ['TCUDA_RUNTIME'] = 'cuda'; import tcuda; "
    code = chosen + "print(*map(tcuda.get_device_name, range(tcuda.device_count())), sep='\\n')"
    return _output(sys.executable, "-c", code).splitlines()


def main(arguments: list[str]) -> int:
    """Run the tests, write the result, and return the exit status of pytest."""
    if arguments and (len(arguments) != 2 or arguments[0] != "-n"):
        raise SystemExit(
            f"The arguments are {' '.join(arguments)!r}; allowed is -n with a number of processes, such as -n 4."
        )
    changed = _output("git", "status", "--porcelain", "--untracked-files=no", "--", ".", f":!{FILE}")
    if changed:
        raise SystemExit(f"The checkout has changes that are in no commit:\n{changed}\nCommit them first.")
    commit, cards = _output("git", "rev-parse", "HEAD"), _cards()
    check_number(cards)
    found = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for place, chosen in enumerate(_parts(arguments)):
            result = Path(folder) / f"{place}.xml"
            command = [sys.executable, "-m", "pytest", "-q", "--tcuda-runtime", "cuda", f"--junitxml={result}"]
            status = subprocess.run([*command, *chosen, "tests"], cwd=ROOT, check=False).returncode
            if status not in (0, 1):
                raise SystemExit(
                    f"pytest ended with the status {status} before all tests had run. No result is written."
                )
            found.update(counts(result.read_text()))
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    print(json.dumps(write(ROOT, commit, cards, date, found)))
    return int(found["failed"] > 0)


def _parts(arguments: list[str]) -> list[list[str]]:
    """Return the arguments of pytest for the tests that may share the GPUs, and for those with the mark ``alone``."""
    shared = [*arguments, "--dist", "loadfile"] if arguments else []
    return [[*shared, "-m", "not alone"], ["--long", "-m", "alone"]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
