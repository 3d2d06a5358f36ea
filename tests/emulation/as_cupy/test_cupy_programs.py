"""``python -m tcuda.emulation``: programs that say ``import cupy`` run on emulated devices, unchanged."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.environments import environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.emulated

INSTALLED = "raise AssertionError('CuPy itself was imported')"

PROGRAM = """
import sys
import cupy as cp
import cupy.random
import cupy.random._generator
from cupy import linalg, testing
from cupy.cuda import cufft, runtime
import cupy.cuda.stream
import cupy.exceptions
import cupy.lib.stride_tricks
import cupy.polynomial.polynomial
import cupy.testing as helpers
import cupyx
import cupyx.scipy.special
from cupyx.scipy import ndimage

assert helpers is testing is cp.testing
assert cupyx.scipy.special.erf(cp.zeros(1)) == ndimage.sum(cp.zeros(3)) == 0
assert cupy.cuda.stream.Stream is cp.cuda.Stream
assert cufft.get_current_plan() is None
assert cupy.polynomial.polynomial.polyval(2, cp.asarray([1, 2])) == 5
assert cupy.lib.stride_tricks.as_strided(cp.zeros(2), (3,), (0,)).shape == (3,)
assert runtime.getDeviceCount() == 1
assert issubclass(cupy.exceptions.AxisError, ValueError)
x = cp.arange(6.0).reshape(2, 3)
cp.random.seed(0)
assert linalg.norm(x @ x.T).shape == cp.random.rand(3).sum().shape == ()
assert sys.modules["cupy.random._generator"] is cupy.random._generator
assert cupy.random._generator.get_random_state is cp.random.get_random_state
assert cp.get_array_module(x) is cp is sys.modules["cupy"]
print(type(x).__name__, x.sum(), sys.argv[1:], __name__)
raise SystemExit(3)
"""


def run(
    folder: Path, *arguments: str, stdin: str | None = None, command: str = "tcuda.emulation", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in ``folder``, which has packages with the names of CuPy that fail when they are imported."""
    installed = folder / "installed"
    for name in ("cupy", "cupyx", "cupy_backends"):
        (installed / name).mkdir(parents=True, exist_ok=True)
        (installed / name / "__init__.py").write_text(INSTALLED)
    return subprocess.run(
        [sys.executable, "-m", *command.split(), *arguments],
        cwd=folder,
        env=environment(PYTHONPATH=str(installed), **variables),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


_LONG_COMMANDS = [["-m", "program"], ["-mprogram"], ["--", "program.py"]]
_COMMANDS = [["program.py"], *(pytest.param(command, marks=pytest.mark.long) for command in _LONG_COMMANDS)]


@pytest.mark.parametrize("variables", [{}, {"TCUDA_RUNTIME": "emulated"}], ids=["plain", "asked for"])
@pytest.mark.parametrize("arguments", _COMMANDS)
def test_a_program_that_imports_cupy_runs_on_emulated_devices(arguments, variables, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(tmp_path, *arguments, "--help", "x", **variables)
    assert (done.stdout, done.stderr) == ("ndarray 15.0 ['--help', 'x'] __main__\n", "")
    assert done.returncode == 3


CODE = """
import cupy, sys
print(sys.argv, repr(sys.path[0]), __name__, '__file__' in globals())
sys.exit(cupy.ones(4).sum())
"""


@pytest.mark.parametrize(
    ("arguments", "stdin", "name"), [(["-c", CODE], None, "-c"), ([f"-c{CODE}"], None, "-c"), (["-"], CODE, "-")]
)
def test_code_and_the_standard_input_run_on_emulated_devices(arguments, stdin, name, tmp_path):
    done = run(tmp_path, *arguments, "--x", stdin=stdin)
    assert (done.stdout, done.returncode) == (f"['{name}', '--x'] '' __main__ False\n", 1)
    assert done.stderr == "4.0\n"


@pytest.mark.parametrize("runtime", ["", "auto"])
def test_without_a_gpu_an_empty_choice_and_auto_mean_emulated_devices(runtime, tmp_path):
    (tmp_path / "program.py").write_text("import cupy, tcuda\nprint(tcuda.xp is cupy, tcuda.device_count())")
    variables = {"TCUDA_RUNTIME": runtime, "TCUDA_EMULATED_DEVICES": "2"}
    if runtime == "auto":
        variables["CUDA_VISIBLE_DEVICES"] = ""  # hides GPUs, and no emulated device
    assert run(tmp_path, "program.py", **variables).stdout == "True 2\n"


def test_a_program_gets_the_devices_of_the_environment(tmp_path):
    (tmp_path / "program.py").write_text("import cupy, tcuda\nassert tcuda.xp is cupy\nprint(tcuda.device_count())")
    assert run(tmp_path, "program.py", TCUDA_EMULATED_DEVICES="3").stdout == "3\n"


def test_pytest_runs_tests_of_a_library_for_cupy(tmp_path):
    (tmp_path / "test_one.py").write_text(
        "import pytest\ncp = pytest.importorskip('cupy', minversion='13')\n"
        "def test_sum():\n    assert cp.ones(3).sum() == 3\n"
        "def test_that_fails():\n    assert cp.ones(3).sum() == 4\n"
    )
    done = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_one.py")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout


def test_the_error_of_a_refused_module_says_why_emulated_devices_lack_the_module(tmp_path):
    (tmp_path / "program.py").write_text("import cupy\nimport cupy_backends.cuda.libs.cublas")
    done = run(tmp_path, "program.py")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "ModuleNotFoundError: No module named 'cupy_backends.cuda.libs.cublas'. "
    )
    assert "Calls of NVIDIA's libraries, which emulated devices do not have." in done.stderr


@pytest.mark.parametrize("name", ["cupy.no_such_module", "cupy.creation", "cupyx.nothing"])
def test_modules_that_emulated_devices_lack_are_not_taken_from_an_installed_cupy(name, tmp_path):
    (tmp_path / "program.py").write_text(f"import cupy\nimport {name}")
    done = run(tmp_path, "program.py")
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if not line.startswith("tcuda: The import of")]
    assert lines[:2] == ["Traceback (most recent call last):", f'  File "{tmp_path}/program.py", line 2, in <module>']
    assert [line for line in lines if "File" in line] == [lines[1]]  # no frame of tcuda
    assert lines[-1].startswith("ModuleNotFoundError: ")


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        ([], {}, "give the program to run, or -m and a module, or -c and code"),
        (["-m"], {}, "give the name of a module after -m"),
        (["-c"], {}, "give code after -c"),
        (["--raise", "program.py"], {}, "unrecognized arguments: --raise"),
        (["missing.py"], {}, "No such file or directory: 'missing.py'"),
        (["program.py"], {"TCUDA_RUNTIME": "cuda"}, "TCUDA_RUNTIME is 'cuda'; this command needs 'emulated'"),
        (["program.py"], {"TCUDA_RUNTIME": "gpu"}, "TCUDA_RUNTIME is 'gpu'; it can be 'cuda', 'emulated' or 'auto'"),
        (["program.py"], {"TCUDA_EMULATED_DEVICES": "no"}, "TCUDA_EMULATED_DEVICES is 'no'"),
    ],
)
def test_bad_usage_ends_the_command_before_the_program(arguments, variables, message, tmp_path):
    (tmp_path / "program.py").write_text("print('runs')")
    done = run(tmp_path, *arguments, **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m tcuda.emulation [options] (PROGRAM | -m MODULE | -c CODE | -)")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["tcuda run", "tcuda.emulation"])
def test_the_option_chooses_the_number_of_devices(command, tmp_path):
    code = "import cupy; print(cupy.cuda.runtime.getDeviceCount())"
    for option, count in ((), "1"), (("--emulated",), "2"), (("--emulated=3",), "3"):
        done = run(tmp_path, *option, "-c", code, command=command)
        assert (done.returncode, done.stdout) == (0, f"{count}\n"), done.stderr
    assert run(tmp_path, "-c", code, command=command, TCUDA_EMULATED_DEVICES="4").stdout == "4\n"


def test_help_names_the_variables_of_the_environment(tmp_path):
    done = run(tmp_path, "--help")
    assert done.returncode == 0
    assert "TCUDA_EMULATED_DEVICES" in done.stdout
