"""The facts of a release: ``python .ci/release.py check|notes|folder TAG``.

``check`` compares the tag, such as v0.1.0, with the files that name the version, and refuses a release whose tests have
not passed on one GPU and on two. A run counts if it was of the commit of the release, or of an earlier one from which
the release differs only in pages, the changelog, the version, and the file of the runs: no test on a GPU depends on
these. ``notes`` prints the notes of the
version, from the changelog. ``folder`` prints the folder of the version on the documentation site, such as 0.1.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = "tests/data/last_gpu_run.json"
_NO_NEW_RUN = re.compile(
    r"docs/.*\.(md|svg|png|css)|[^/]*\.md|CITATION\.cff|tcuda/_base/version\.py|" + re.escape(RUNS)
)
"""The files that may change between the run on a GPU and the release."""


def version_of(tag: str) -> str:
    """Return the version that a tag names.

    Raises:
        SystemExit: The tag is not such as v0.1.0.
    """
    if not re.fullmatch(r"v\d+\.\d+\.\d+", tag):
        raise SystemExit(f"The tag is {tag!r}; a tag of a release is such as v0.1.0.")
    return tag[1:]


def notes(version: str, changelog: str) -> str | None:
    """Return the notes of a version; None if the changelog has no section with the version and a date."""
    head = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}\n"
    section = re.search(head + r"(.*?)(?=^## |^\[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    return section[1].strip() if section else None


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Return what is to be mended before the release, one sentence for each file."""
    version = version_of(tag)
    found = []
    if f'__version__ = "{version}"' not in (root / "tcuda" / "_base" / "version.py").read_text():
        found.append(f"tcuda/_base/version.py has another version than {version}.")
    if f"\nversion: {version}\n" not in (root / "CITATION.cff").read_text():
        found.append(f"CITATION.cff has another version than {version}.")
    if not notes(version, (root / "CHANGELOG.md").read_text()):
        found.append(f"CHANGELOG.md has no notes under '## [{version}] - YYYY-MM-DD'.")
    return found + [problem for gpus in ("1", "2") for problem in _run_problems(gpus, root)]


def _run_problems(gpus: str, root: Path) -> list[str]:
    """Return what is wrong with the last run of the tests on so many GPUs."""
    run = json.loads((root / RUNS).read_text())[gpus]
    advice = f"Run python .ci/gpu_run.py on a machine with {gpus} GPU{'s' if gpus != '1' else ''}, and commit the file."
    if run is None:
        return [f"{RUNS} has no run on {gpus} GPU{'s' if gpus != '1' else ''}. {advice}"]
    if run["failed"] or not run["passed"]:
        return [f"{RUNS}: {run['failed']} tests failed and {run['passed']} passed on {gpus} GPU(s). {advice}"]
    command = ["git", "diff", "--name-only", "--no-renames", run["commit"], "HEAD", "--"]
    changes = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    if changes.returncode:
        return [f"{RUNS} names the commit {run['commit']}, which this checkout does not have. {advice}"]
    new = [name for name in changes.stdout.splitlines() if not _NO_NEW_RUN.fullmatch(name)]
    if new:
        return [f"{RUNS}: the run on {gpus} GPU(s) is of another commit; since then {new[0]} has changed. {advice}"]
    return []


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return the exit status."""
    parser = argparse.ArgumentParser(prog="release.py", description="Facts of a release.")
    parser.add_argument("command", choices=["check", "notes", "folder"])
    parser.add_argument("tag", help="such as v0.1.0")
    options = parser.parse_args(arguments)
    version = version_of(options.tag)
    if options.command == "folder":
        print(version.rpartition(".")[0])
        return 0
    found = problems(options.tag)
    for problem in found:
        print(problem, file=sys.stderr)
    if options.command == "notes" and not found:
        print(notes(version, (ROOT / "CHANGELOG.md").read_text()))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
