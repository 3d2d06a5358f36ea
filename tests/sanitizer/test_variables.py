"""The environment variables, initialisation, fork, and the runtime of CUDA, in processes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.environments import NO_GPU
from tcuda.sanitizer._variables import _mode

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf, RunPython

RACE = """
import sys, tcuda

main, side = tcuda.Stream(), tcuda.Stream()

def race():
    with tcuda.stream(main):
        x = tcuda.xp.zeros(16)
    with tcuda.stream(side):
        x += 1
    side.synchronize()
    main.synchronize()
"""

FIRST_RACE = """
import tcuda

with tcuda.sanitizer.check(mode="collect") as report:  # no device is initialised yet
    x = tcuda.xp.ones(1000)
    with tcuda.stream(tcuda.Stream()):
        y = x * 2  # the stream does not wait for the default stream
    tcuda.synchronize()
print([race.kind for race in report])
"""

emulated = pytest.mark.emulated


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "program.py").write_text(RACE)
    return "import program\nprogram.race()\nprint('end')"


def test_the_first_operations_of_a_process_race(output_of: OutputOf) -> None:
    assert output_of(FIRST_RACE).split("\n")[0] == "['read after write']"


@pytest.mark.parametrize(
    ("environment", "mode"),
    [
        ({}, None),
        ({"TORCH_CUDA_SANITIZER": "1"}, "raise"),
        ({"TORCH_CUDA_SANITIZER": "yes"}, "raise"),
        ({"TORCH_CUDA_SANITIZER": "0"}, None),
        ({"TORCH_CUDA_SANITIZER": ""}, None),
        ({"TCUDA_SANITIZER": "1"}, "raise"),
        ({"TCUDA_SANITIZER": "raise"}, "raise"),
        ({"TCUDA_SANITIZER": "warn"}, "warn"),
        ({"TCUDA_SANITIZER": "collect"}, "collect"),
        ({"TCUDA_SANITIZER": "0", "TORCH_CUDA_SANITIZER": "1"}, None),
        ({"TCUDA_SANITIZER": "", "TORCH_CUDA_SANITIZER": "1"}, "raise"),
        ({"TCUDA_SANITIZER": "warn", "TORCH_CUDA_SANITIZER": "1"}, "warn"),
    ],
)
def test_the_variables_name_the_mode(environment: dict[str, str], mode: str | None) -> None:
    assert _mode(environment) == mode


def test_an_unknown_value_is_refused_at_the_first_use(run_python: RunPython) -> None:
    done = run_python("import tcuda; print('imported', flush=True); tcuda.init()", TCUDA_SANITIZER="on")
    assert done.stdout == "imported\n"
    assert done.returncode == 1
    assert done.stderr.endswith(
        "ValueError: TCUDA_SANITIZER is 'on'; it can be '0', '1', 'raise', 'warn' or 'collect'.\n"
    )


@emulated
def test_a_race_is_raised(program: str, run_python: RunPython) -> None:
    done = run_python(program, TCUDA_SANITIZER="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "CSAN" not in done.stderr
    assert "CUDASanitizerErrors: write after write\n" in done.stderr
    assert done.stderr.endswith("   missing: side.wait_stream(main) before program.py:10\n")


@emulated
def test_torchs_variable_prints_and_raises_torchs_words(program: str, run_python: RunPython) -> None:
    done = run_python(program, TORCH_CUDA_SANITIZER="1")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("============================\nCSAN detected a possible data race on tensor with ")
    assert "Missing order: `side.wait_stream(main)` before line 10 of program.py orders them.\n" in done.stderr
    assert done.stderr.endswith("tcuda.sanitizer.CUDASanitizerErrors: detected 1 errors\n")


@emulated
def test_warnings_name_the_line(program: str, run_python: RunPython) -> None:
    done = run_python(f"import warnings\nwarnings.simplefilter('default')\n{program}", TCUDA_SANITIZER="warn")
    assert done.returncode == 0
    assert done.stdout == "end\n"
    assert "program.py:10: RaceWarning: write after write\n" in done.stderr


@emulated
def test_a_collected_report_is_printed_at_the_end(program: str, run_python: RunPython) -> None:
    done = run_python(f"{program}\nprogram.race()", TCUDA_SANITIZER="collect")
    assert done.returncode == 0
    assert done.stdout == "end\n"
    assert done.stderr.startswith("write after write\n   program.py:8  ")
    assert done.stderr.rstrip().splitlines()[-1].startswith("1 race, seen 2 times, in ")


@emulated
def test_without_a_variable_nothing_is_watched(program: str, fresh_output_of: OutputOf) -> None:
    code = f"{program}\nassert not any(name.startswith('tcuda.sanitizer._v') for name in sys.modules)"
    assert fresh_output_of(f"import sys\n{code}") == "end"


@emulated
def test_suppressions_are_read(program: str, tmp_path: Path, fresh_output_of: OutputOf) -> None:
    (tmp_path / "races.txt").write_text("file=program.py function=race\n")
    assert fresh_output_of(program, TCUDA_SANITIZER="1", TCUDA_SANITIZER_SUPPRESSIONS="races.txt") == "end"


def test_enabling_initialises_nothing(fresh_output_of: OutputOf) -> None:
    code = (
        "import sys, tcuda, tcuda.sanitizer\n"
        "from tcuda import _runtime\n"
        "with tcuda.sanitizer.check(): pass\n"
        "assert not tcuda.is_initialized() and _runtime._in_use is None\n"
        "assert not {'cupy', 'numpy'} & set(sys.modules)"
    )
    assert fresh_output_of(code, TCUDA_SANITIZER="1") == ""


@emulated
def test_a_check_from_before_initialisation_finds_races(program: str, fresh_output_of: OutputOf) -> None:
    code = (
        "import tcuda, tcuda.sanitizer\n"
        "with tcuda.sanitizer.check(mode='collect') as report:\n"
        "    assert not tcuda.is_initialized()\n"
        "    import program\n"
        "    program.race()\n"
        "assert len(report) == 1\n"
        "assert report[0].allocation.stack[0].line == 8"
    )
    assert fresh_output_of(code) == ""


def test_the_devices_can_be_chosen_in_a_check(fresh_output_of: OutputOf) -> None:
    code = (
        "import tcuda.emulation, tcuda.sanitizer\n"
        "with tcuda.sanitizer.check(mode='collect') as report:\n"
        "    tcuda.emulation.enable(devices=1)\n"
        "    tcuda.xp.zeros(4)\n"
        "print(report.operations)"
    )
    assert fresh_output_of(code, TCUDA_RUNTIME=None) == "1"


@emulated
def test_older_memory_has_no_stack(program: str, fresh_output_of: OutputOf) -> None:
    code = (
        "import tcuda, tcuda.sanitizer\n"
        "from tcuda._sanitizer import UnsynchronizedAccessError\n"
        "x = tcuda.xp.zeros(4)\n"
        "main, side = tcuda.Stream(), tcuda.Stream()\n"
        "with tcuda.sanitizer.check(mode='collect') as report:\n"
        "    for stream in (main, side):\n"
        "        with tcuda.stream(stream): x += 1\n"
        "assert 'Trace for tensor allocation not found.' in str(UnsynchronizedAccessError.of(report[0]))"
    )
    assert fresh_output_of(code) == ""


@emulated
def test_a_forked_child_has_no_detector(fresh_output_of: OutputOf) -> None:
    code = (
        "import os, tcuda, tcuda.sanitizer\n"
        "from tcuda.sanitizer import _detector\n"
        "from tcuda.sanitizer import _checks\nfrom tcuda._sanitizer import cuda_sanitizer\n"
        "with tcuda.sanitizer.check(mode='collect') as report:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        left = _detector._started is None and _checks._active == () and not cuda_sanitizer.enabled\n"
        "        os._exit(0 if left else 3)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
        "    assert _detector._started is not None"
    )
    assert fresh_output_of(code, TCUDA_SANITIZER="1") == ""


@emulated
def test_a_forked_child_prints_no_report(program: str, run_python: RunPython) -> None:
    code = f"{program}\nimport os\npid = os.fork()\nif pid: os.waitpid(pid, 0)"
    done = run_python(code, TCUDA_SANITIZER="collect")
    assert done.returncode == 0
    assert done.stderr.count("write after write\n") == 1


REFUSING = """
import tcuda, warnings
from tcuda.sanitizer import _detector

def refuse(cuda, detector):
    if detector is not None:
        raise RuntimeError("These devices tell nothing.")

_detector._watch_races = refuse
"""


class TestARuntimeWithoutRaces:
    def test_the_variable_warns_once_and_the_program_goes_on(self, fresh_output_of: OutputOf) -> None:
        code = (
            f"{REFUSING}\n"
            "with warnings.catch_warnings(record=True) as caught:\n"
            "    warnings.simplefilter('always')\n"
            "    tcuda.init()\n"
            "    tcuda.Stream()\n"
            "print(*[f'{one.filename}: {one.category.__name__}: {one.message}' for one in caught])"
        )
        expected = "<string>: RuntimeWarning: The race detector stays off: These devices tell nothing."
        assert fresh_output_of(code, TORCH_CUDA_SANITIZER="1") == expected

    def test_a_check_raises_the_error(self, fresh_output_of: OutputOf) -> None:
        code = (
            f"{REFUSING}\n"
            "import tcuda.sanitizer\n"
            "from tcuda.sanitizer import _detector\n"
            "tcuda.init()\n"
            "try:\n"
            "    with tcuda.sanitizer.check(): pass\n"
            "except RuntimeError as error: print(error)\n"
            "assert _detector._started is None"
        )
        assert fresh_output_of(code) == "These devices tell nothing."

    def test_a_check_from_before_raises_the_error_at_initialisation(self, fresh_output_of: OutputOf) -> None:
        code = (
            f"{REFUSING}\n"
            "import tcuda.sanitizer\n"
            "with tcuda.sanitizer.check():\n"
            "    try: tcuda.init()\n"
            "    except RuntimeError as error: print(error)\n"
            "assert not tcuda.is_initialized()\n"
            "tcuda.init()"
        )
        assert fresh_output_of(code) == "These devices tell nothing."


def test_without_devices_a_check_is_allowed(fresh_output_of: OutputOf) -> None:
    code = "import tcuda.sanitizer\nwith tcuda.sanitizer.check(): assert not tcuda.is_available()"
    assert fresh_output_of(code, TCUDA_RUNTIME=None, **NO_GPU) == ""
