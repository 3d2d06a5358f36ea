"""The detector on the programs of the corpus: every missing wait is found, and no right program is accused.

A wrong program marks its two accesses with ``# first`` and ``# second``. Where an access is in a graph, ``# first
launch`` or ``# second launch`` marks the replay, and ``# launch`` the replay with both. ``# missing:`` has the call
that is missing, and ``# reported as:`` the call of the report if that is another call. ``support.corpus`` says
how most right programs are made from the wrong ones.

On CUDA, the detector knows less of some programs. ``tests/data/corpus_on_cuda.json`` names these pairs, with reasons:

* ``not seen``: the wrong program has a race that the detector does not see.
* ``elements not known``: the array of a kernel is known, and its elements are not, so the race of the wrong program is
  possible only, and the right program has the same possible race.
* ``possible``: the race of the wrong program may be possible only. The right program has no race at all.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.corpus import Program, line_in, programs, run
from support.folders import DATA, TESTS

if TYPE_CHECKING:
    from support.fixture_types import RunPython

PROGRAMS = programs()
RIGHT = [program for program in PROGRAMS if program.right]
WRONG = [program for program in PROGRAMS if not program.right]

ON_CUDA = os.environ["TCUDA_RUNTIME"] == "cuda"
LESS_ON_CUDA: dict[str, dict[str, str]] = json.loads((DATA / "corpus_on_cuda.json").read_text())

pytestmark = pytest.mark.usefixtures("runtime")


def name_of(program: Program) -> str:
    return program.name


def is_known_less(program: Program, how: str) -> bool:
    """Return whether the detector knows less of a program, because the program runs on CUDA."""
    return ON_CUDA and program.pair in LESS_ON_CUDA[how]


def report_on(program: Program) -> dict[str, Any]:
    """Run a program under the detector, and return the report."""
    if program.devices > tcuda.device_count():
        pytest.skip(f"needs {program.devices} devices")
    with tcuda.sanitizer.check(mode="collect") as report:
        failed = run(program)
    if ON_CUDA and not program.right:  # the missing wait may give wrong numbers
        assert failed is None or isinstance(failed, AssertionError)
    else:
        assert failed is None
    return report.as_dict()


def test_the_corpus_has_right_and_wrong_programs_with_their_marks() -> None:
    assert len(RIGHT) >= 30
    assert len(WRONG) >= 30
    right_files = [program for program in RIGHT if program.path.stem == program.name]
    for program in right_files:  # the files of the other right programs have the marks of the wrong ones
        assert re.search(r"# (first|second|launch|missing|reported)", program.text) is None, program.name
    for program in WRONG:
        assert program.name.endswith("_wrong")
        assert None not in (program.first, program.second, program.missing), program.name


def test_the_programs_of_a_pair_differ_in_few_lines() -> None:
    right = {program.pair: program for program in RIGHT}
    for wrong in WRONG:
        codes = [code_of(right[wrong.pair]), code_of(wrong)]
        changed = [line for line in difflib.ndiff(*codes) if line[0] in "+-"]
        assert 0 < len(changed) <= 4, wrong.name


def code_of(program: Program) -> list[str]:
    """Return the lines of a program without its docstring and its comments."""
    lines = program.text.splitlines()[1:]
    return [code for line in lines if (code := line.partition("  #")[0].rstrip()) and code.lstrip()[0] != "#"]


def test_the_pairs_that_are_known_less_on_cuda_are_in_the_corpus() -> None:
    named = [pair for pairs in LESS_ON_CUDA.values() for pair in pairs]
    assert len(named) == len(set(named))
    assert set(named) <= {program.pair for program in WRONG}


@pytest.mark.parametrize("program", RIGHT, ids=name_of)
def test_a_right_program_is_not_accused(program: Program) -> None:
    report = report_on(program)
    assert report["races"] == []
    if not is_known_less(program, "elements not known"):
        assert report["possible"] == []


@pytest.mark.parametrize("program", WRONG, ids=name_of)
def test_a_missing_wait_is_found(program: Program) -> None:
    report = report_on(program)
    races = report["races"] + report["possible"]
    if is_known_less(program, "not seen"):
        assert races == []
        return
    if is_known_less(program, "elements not known"):  # the right program may have other possible races, too
        races = [race for race in races if line_in(program, race["previous"]["stack"]) == program.first]
        assert races
    elif is_known_less(program, "possible"):
        assert races
    else:
        assert report["races"]
    in_one_launch = program.first_launch == program.second_launch
    is_freed = "record_stream" in str(program.missing)
    before = program.second if in_one_launch else program.second_launch or program.second
    if is_freed:  # the last use of the array, which is there
        before = program.first_launch or program.first
    for race in races:
        previous, current = race["previous"], race["current"]
        assert line_in(program, previous["stack"]) == program.first
        assert line_in(program, current["stack"]) == program.second
        assert line_in(program, previous["launch_stack"]) == program.first_launch
        assert line_in(program, current["launch_stack"]) == program.second_launch
        assert without_device(race["missing"]) == without_device(program.missing)
        assert race["before"] == {"file": str(program.path), "line": before}
        assert race["use_after_free"] == is_freed


def without_device(call: str | None) -> str | None:
    """Return the text of a call, with no number of a default stream's device on CUDA.

    The number is said unless the device is current. On CUDA, a race is told when the program may have left the device.
    """
    return re.sub(r"default_stream\(\d*\)", "default_stream()", call) if ON_CUDA and call else call


_RUN = """
import json
import sys
import tcuda
from support.corpus import programs, run

failed = {}
for program in programs():
    if program.devices <= tcuda.device_count() and program.name.endswith(sys.argv[-1]):
        error = run(program)
        if error is not None:
            failed[program.name] = repr(error)
print(json.dumps(failed))
"""


def failures(run_python: RunPython, ending: str = "", **environment: str) -> dict[str, str]:
    """Run all programs whose names have an ending in one new process, and return the errors of those that fail."""
    done = run_python(f"import sys\nsys.argv.append({ending!r})\n{_RUN}", PYTHONPATH=str(TESTS), **environment)
    assert done.returncode == 0, done.stderr
    failed: dict[str, str] = json.loads(done.stdout)
    return failed


@pytest.mark.long
def test_right_programs_give_right_numbers(run_python: RunPython) -> None:
    assert failures(run_python, "_right") == {}


@pytest.mark.long
@pytest.mark.emulated
def test_in_the_order_of_the_program_wrong_programs_give_right_numbers_too(run_python: RunPython) -> None:
    assert failures(run_python, "_wrong", TCUDA_EMULATED_SCHEDULE="eager") == {}


@pytest.mark.long
@pytest.mark.emulated
@pytest.mark.parametrize("schedule", ["late", "late:7"])
def test_the_late_schedule_gives_wrong_numbers_for_wrong_programs_only(schedule: str, run_python: RunPython) -> None:
    assert failures(run_python, "_right", TCUDA_EMULATED_SCHEDULE=schedule) == {}
    failed = failures(run_python, "_wrong", TCUDA_EMULATED_SCHEDULE=schedule)
    assert {error.partition("(")[0] for error in failed.values()} == {"AssertionError"}
    assert len(failed) >= (75 if schedule == "late" else 25)


_FIRST_SEEDS = """
import json
import tcuda
from support.corpus import programs, run
from tcuda._runtime import runtime
from tcuda._base.parts import begin_part

found = {}
tcuda.init()
for program in programs():
    if program.devices <= tcuda.device_count() and not program.right:
        begin_part(program.name)
        for seed in range(1, 17):
            runtime()._work._seed = seed
            runtime()._work._forget()
            if isinstance(run(program), AssertionError):
                found[program.name] = seed
                break
print(json.dumps(found))
"""


@pytest.mark.long
@pytest.mark.emulated
def test_a_few_seeds_of_the_late_schedule_show_every_wrong_program(run_python: RunPython) -> None:
    done = run_python(_FIRST_SEEDS, PYTHONPATH=str(TESTS), TCUDA_EMULATED_SCHEDULE="late:1", TCUDA_EMULATED_DEVICES="2")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)
    assert sorted(first) == [program.name for program in WRONG]
    assert sum(seed <= 8 for seed in first.values()) >= 0.95 * len(WRONG)
