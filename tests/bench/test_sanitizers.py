"""The comparison of the race detector with torch's sanitizer, with a stand-in for torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf

SCRIPT = REPOSITORY / "bench" / "sanitizers.py"

TORCH = """
import traceback, types

class CUDASanitizerErrors(Exception):
    def __init__(self, errors): self.errors = errors

def enable_cuda_sanitizer(): pass

def touch():
    import inspect
    return types.SimpleNamespace(stack_trace=traceback.extract_stack(inspect.currentframe().f_back))

def race(first, second):
    raise CUDASanitizerErrors([types.SimpleNamespace(previous_access=first, current_access=second)])
"""

PROGRAM = '''"""Two lines race."""
from torch.cuda import _sanitizer
first = _sanitizer.touch()  # first
# missing: a wait
_sanitizer.race(first, _sanitizer.touch())  # second
'''

SAY = """
import json, sys
from pathlib import Path
sys.path.append(sys.argv[1])
import sanitizers
from support.corpus import programs
for program in programs(Path(sys.argv[2])):
    said = sanitizers.by_torch(program)
    print(json.dumps([program.name, said.verdict(program)]))
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """The folder of a package ``torch`` whose sanitizer finds the races that a program asks for."""
    package = tmp_path / "packages" / "torch" / "cuda"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package.parent / "__init__.py").write_text("")
    (package / "_sanitizer.py").write_text(TORCH)
    return tmp_path / "packages"


def test_the_verdict_on_torch_names_what_the_sanitizer_said(
    stand_in: Path, tmp_path: Path, output_of: OutputOf
) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, text in {
        "accused_right": PROGRAM.replace("  # first", "").replace("  # second", "").replace("# missing", "# waits"),
        "elsewhere_wrong": PROGRAM.replace("  # first", "").replace('"""\n', '"""  # first\n', 1),
        "failing_right": '"""The program fails."""\nraise KeyError("x")',
        "found_wrong": PROGRAM,
        "in_a_thread_wrong": PROGRAM.replace("_sanitizer.race", "import threading\nrun = _sanitizer.race").replace(
            "(first, _sanitizer.touch())  # second", ""
        )
        + "second = _sanitizer.touch()  # second\n"
        + "thread = threading.Thread(target=run, args=(first, second))\nthread.start()\nthread.join()\n",
        "missed_wrong": '"""Nothing."""\nx = 1  # first\n# missing: a wait\nx = 2  # second\nassert x == 1',
        "pair": PROGRAM.replace("a wait", "from unittest.mock import Mock; _sanitizer = Mock()"),
        "quiet_right": '"""Nothing."""\n',
    }.items():
        (folder / f"{name}.py").write_text(text)
    arguments = [str(REPOSITORY / "bench"), str(folder)]
    printed = output_of(
        f"import sys; sys.argv += {arguments!r}\n{SAY}",
        PYTHONPATH=os.pathsep.join([str(stand_in), str(REPOSITORY / "tests")]),
    )
    assert dict(map(json.loads, printed.splitlines())) == {
        "accused_right": "**accused**",
        "elsewhere_wrong": "other lines",
        "failing_right": "failed: KeyError: 'x'",
        "found_wrong": "found",
        "in_a_thread_wrong": "found",
        "missed_wrong": "**missed**",
        "pair_right": "quiet",
        "pair_wrong": "found",
        "quiet_right": "quiet",
    }


@pytest.mark.long
def test_the_table_has_both_programs_of_a_pair_and_the_totals(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, SCRIPT, "--workers", "2", "read_after_write", "two_readers"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "| program | wrong program: tcuda | torch | right program: tcuda | torch |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| one of two readers | found |  | quiet |  |",
        "| read after write | found |  | quiet |  |",
        "| two readers |  |  | quiet |  |",
        "| in all | 2 of 2 | 0 of 0 | 3 of 3 | 0 of 0 |",
    ]
    assert done.stderr == "torch is not installed.\n"
