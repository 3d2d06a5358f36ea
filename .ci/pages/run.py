"""Runs the programs of the pages with exactly what the pages install: ``python .ci/pages/run.py [WHEEL]``.

The tests run the same programs in the environment of the tests, which has more packages. A page that forgets a
package passes there, and fails here. Each program and each command runs in an environment with tcuda and what its
page installs, and nothing else. Commands that need a GPU, another machine or a browser are left out. The job of each
page on CI runs, too, with the library of the page on tests of CuPy code. Without a wheel of tcuda, the script builds
one. The exit status is 1 if a program, a command or a step of a job fails.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")))
LIBRARY = REPOSITORY / "docs/testing-cupy-code.md"
EXAMPLES = REPOSITORY / "docs/examples"

PROJECT = '[project]\nname = "smooth"\nversion = "1"\n\n[tool.setuptools]\npy-modules = ["smooth"]\n'
"""The project of the library, which the job installs."""

_PROGRAM = re.compile(
    r"^```python(?: title=\"([\w.]+)\")?\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
_FILE = re.compile(r'^```py title="([\w.]+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^```py(?:thon)?(?: title=\"[\w.]+\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMANDS = re.compile(r"^ *```(?:sh|console)\n(.*?)^ *```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(
    r"(?:\$ )?((?:TCUDA_\w+=\S+ )*)(?:\.venv/bin/)?((?:tcuda|pytest|python -m tcuda|python \S+\.py)\b.*?)(?: +#.*)?"
)
_ELSEWHERE = re.compile(r"\b[A-Z]{3,}\b|\bhost\b|--open|--tcuda-runtime cuda|\$|/bin/activate")
"""What stands in a command that cannot run here: a placeholder, another machine, a browser, a GPU, a loop."""

FILES = """
import tcuda
from tcuda import xp

tcuda.memory._record_memory_history()
x, side, graph = xp.ones(1000), tcuda.Stream(), tcuda.CUDAGraph(keep_graph=True)
graph.enable_debug_mode()
for name in ("snapshot", "before", "after"):
    tcuda.memory._dump_snapshot(f"{name}.pickle")
with tcuda.graph(graph):
    x += 1
graph.debug_dump("graph.dot")
"""
"""The program that makes the files which commands read."""

_JOB = re.compile(r'^```yaml title="\.github/workflows/[\w.]+"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^ +- run: (.*)$", re.MULTILINE)
_INSTALL = re.compile(r"pip install ((?:'[^']*'|\"[^\"]*\"|[^`#\n(,.&]|\.(?=\S))+)")
_TCUDA = re.compile(r"\.|(?:\.|tcuda|PATH_OF_\w+)\[([\w,]+)\](?: @ .*)?|tcuda(?: @ .*)?|PATH_OF_\w+")
_LEFT_OUT = re.compile(r"cuda1|cu1|cupti|nccl|rmm|sanitizer1|^\[(test|docs|lint)\]$")
_EMULATED = {"TCUDA_RUNTIME": "emulated", "TCUDA_EMULATED_DEVICES": "2"}
_SETTINGS = ("TCUDA_", "PYTHON", "CUDA_VISIBLE_DEVICES")
_FOR_DEVELOPERS = ("contributing.md", "benchmarks.md", "release-notes.md")


class Failure(NamedTuple):
    """A program or a command that failed.

    Attributes:
        where: The page, and the line or the command.
        said: What the program printed.
    """

    where: str
    said: str


def main() -> int:
    """Run all programs and jobs; return the exit status."""
    failures: list[Failure] = []
    with tempfile.TemporaryDirectory(prefix="tcuda-pages-") as folder:
        work = Path(folder)
        wheel = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else wheel_in(work)
        pages = defaultdict(list)
        for page in PAGES:
            if (_PROGRAM.search(page.read_text()) or commands_of(page)) and page.name not in _FOR_DEVELOPERS:
                pages[requirements_of(page.read_text())].append(page)
        for number, (requirements, group) in enumerate(pages.items()):
            print(f"\n-- {' '.join(('tcuda', *requirements))}: {', '.join(page.name for page in group)}", flush=True)
            python = environment(work / f"programs-{number}", wheel, requirements)
            for page in group:
                failures += failed_programs(page, python, work)
                failures += failed_commands(page, python, work)
        for number, page in enumerate(page for page in PAGES if _STEP.search(page.read_text())):
            for job in _JOB.findall(page.read_text()):
                if _STEP.search(job):
                    print(f"\n-- the job of {page.name}", flush=True)
                    failures += failed_steps(page, job, work / f"job-{number}", wheel)
    for failure in failures:
        print(f"\n== {failure.where} failed:\n{failure.said}")
    print(f"\n{len(failures)} failures")
    return 1 if failures else 0


def requirements_of(text: str) -> tuple[str, ...]:
    """Return what a page installs beside tcuda, and extras of tcuda as ``[extra]``.

    What needs a GPU is left out, and so are the tools of tcuda's developers.
    """
    found = set()
    for command in _INSTALL.findall(text):
        for word in shlex.split(command):
            tcuda = _TCUDA.fullmatch(word)
            if tcuda and tcuda[1]:
                found |= {f"[{extra}]" for extra in tcuda[1].split(",")}
            elif not tcuda and re.fullmatch(r"[a-z][\w-]*(?:\[[\w,]+\])?(?:[=<>!~].*)?", word):
                found.add(word)
    return tuple(sorted(each for each in found if not _LEFT_OUT.search(each)))


def wheel_in(work: Path) -> Path:
    """Build tcuda, and return the wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(work), str(REPOSITORY)]
    subprocess.run(command, check=True)
    return next(work.glob("tcuda-*.whl"))


def environment(folder: Path, wheel: Path, requirements: Iterable[str]) -> Path:
    """Make an environment with tcuda and ``requirements``, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    extras = [each for each in requirements if each.startswith("[")]
    packages = [f"{wheel}{each}" for each in extras or [""]] + [each for each in requirements if each not in extras]
    subprocess.run([str(folder / "bin/pip"), "install", "-q", *packages], check=True)
    return folder / "bin/python"


def variables(python: Path, **more: str) -> dict[str, str]:
    """Return the environment of a program: no settings of this process, and the programs beside ``python``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, **more}


def failed_programs(page: Path, python: Path, work: Path) -> list[Failure]:
    """Run the programs of a page, and return those that fail or print something else than the page says."""
    failures = []
    text = page.read_text()
    for found in _PROGRAM.finditer(text):
        title, code, printed = found.groups()
        where = f"{page.name}:{text.count(chr(10), 0, found.start()) + 1}"
        with tempfile.TemporaryDirectory(dir=work) as folder:
            if title is not None:
                Path(folder, title).write_text(code)
            done = run(
                [str(python), *(["-c", code] if title is None else [title])], folder, variables(python, **_EMULATED)
            )
        if done.returncode:
            failures.append(Failure(where, done.stderr))
        elif printed is not None and done.stdout.strip() != printed.strip():
            failures.append(Failure(where, f"The program printed:\n{done.stdout}"))
    return failures


def commands_of(page: Path) -> list[tuple[re.Match[str], re.Match[str]]]:
    """Return the commands of a page that can run here, each after its block."""
    blocks = _COMMANDS.finditer(page.read_text())
    lines = [(block, _COMMAND.fullmatch(line.strip())) for block in blocks for line in block[1].splitlines()]
    found = [(block, command) for block, command in lines if command and not _ELSEWHERE.search(command[1] + command[2])]
    return [each for each in found if "graph-viz" not in each[1][2] or shutil.which("dot")]


def failed_commands(page: Path, python: Path, work: Path) -> list[Failure]:
    """Run the commands of a page, and return those that fail or print something else than the page says."""
    failures = []
    text = page.read_text()
    with tempfile.TemporaryDirectory(dir=work) as name:
        folder = Path(name)
        for found, command in commands_of(page):
            if not any(folder.iterdir()):
                _fill(folder, python)
            programs = _CODE.findall(text[: found.start()])
            for program in re.findall(r"(?<!/)\b(\w+\.py)\b", command[2]):
                if not (folder / program).exists():
                    examples = [file.read_text() for file in EXAMPLES.rglob(program)] or programs[-1:]
                    (folder / program).write_text((examples or [(EXAMPLES / "first_array.py").read_text()])[0])
            print(f"$ {command[0]}", flush=True)
            devices = {} if command[2].startswith("tcuda demo") else _EMULATED  # the demo chooses devices by itself
            done = run(["bash", "-c", f"{command[1]}{command[2]}"], folder, variables(python, **devices))
            said = done.stdout + done.stderr
            finds = "sanitize" in command[2] and found[2] is not None  # exits with 1
            if done.returncode != finds:
                failures.append(Failure(f"{page.name}: {command[0]}", said))
            elif finds and found[2].strip() != said.strip():
                failures.append(Failure(f"{page.name}: {command[0]}", f"The command printed:\n{said}"))
    return failures


def _fill(folder: Path, python: Path) -> None:
    """Write the files that commands of the pages name: a library and its tests, the examples, and what FILES makes."""
    shutil.copytree(EXAMPLES, folder / "docs/examples")
    (folder / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\ntcuda_cupy = "emulated"\ntestpaths = ["tests"]\n'
    )
    (folder / "tests").mkdir()
    for name, text in _FILE.findall(LIBRARY.read_text()):
        (folder / name).write_text(text)
        (folder / "tests" / name.replace("test_", "test_of_")).write_text(text)
    run([str(python), "-c", FILES], folder, variables(python, **_EMULATED)).check_returncode()


def failed_steps(page: Path, job: str, folder: Path, wheel: Path) -> list[Failure]:
    """Run the steps of a job in a new environment with nothing but pip, and return the step that fails."""
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    for name, text in _FILE.findall(LIBRARY.read_text()):
        (project / name).write_text(text)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    chosen = variables(folder / "venv/bin/python")
    for command in _STEP.findall(job):
        here = re.sub(r"git\+https://HOST/PATH_OF_TCUDA\.git", wheel.as_uri(), command)
        done = run(["bash", "-euo", "pipefail", "-c", here], project, chosen)
        if done.returncode:
            return [Failure(f"{page.name}: {command}", done.stdout + done.stderr)]
    return []


def run(command: list[str], folder: str | Path, chosen: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command, and return what the command printed."""
    return subprocess.run(command, cwd=folder, env=chosen, capture_output=True, text=True, timeout=600, check=False)


if __name__ == "__main__":
    sys.exit(main())
