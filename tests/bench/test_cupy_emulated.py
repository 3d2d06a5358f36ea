"""The script that runs CuPy's own tests on emulated devices, with stand-ins for CuPy and for its tests."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = REPOSITORY / ".ci" / "cupy_emulated"

CUPY = {
    "cupy/__init__.py": "def only_installed(): ...\ndef sum(x): ...\n",
    "cupy/fft.py": "",
    "cupy/linalg.py": "",
    "cupy/random/__init__.py": "from cupy.random._private import uniform\n",
    "cupy/random/_private.py": "answer = 42\ndef uniform(size): ...\n",
    "cupy/testing.py": "import cupy\ndef total(x, xp=cupy): return cupy.sum(x) + xp.sum(x)\n",
    "cupy/_core.py": "answer = 43\ndef of_the_device(): raise RuntimeError('no driver')\n",
    "cupy/cublas.py": "from cupy_backends.cuda.libs import cublas\nlimit = cublas.LIMIT\n",
    "cupy_backends/cuda/libs/__init__.py": "",
    "cupy_backends/cuda/libs/cusparse.py": "",
    "cupyx/__init__.py": "",
    "cupyx/scipy.py": "",
    "cupy_cuda13x-14.2.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: cupy-cuda13x\nVersion: 14.2.0\n",
}

TESTS = """
import cupy
import pytest
import tcuda
from cupy import cublas, testing
from cupy._core import answer, of_the_device
from cupy.random._private import answer as other_answer, uniform


def test_functions_are_those_of_emulated_devices():
    x = cupy.ones(4)
    assert tcuda.is_initialized() and x.device == tcuda.xp.zeros(0).device
    assert float(cupy.sum(x)) * 2 == float(testing.total(x)) == 8
    assert cupy.random.uniform(size=3).shape == uniform(size=3).shape == (3,)
    assert (answer, other_answer, cublas.limit) == (43, 42, 0)


def test_a_test_changes_the_modules_of_emulated_devices(monkeypatch):
    monkeypatch.setattr(cupy.random, "uniform", "changed")
    assert tcuda.xp.random.uniform == cupy.random.uniform == "changed"
    monkeypatch.undo()
    assert tcuda.xp.random.uniform(size=3).shape == (3,)


def test_a_public_name_that_emulated_devices_lack():
    cupy.only_installed()


@pytest.mark.parametrize("number", range(6))
def test_numbers(number):
    assert number != 4


def test_a_private_function_of_cupy():
    of_the_device()


def test_a_private_function_whose_error_is_told_in_a_message():
    try:
        of_the_device()
    except RuntimeError as error:
        raise AssertionError("only cupy raises an error") from error


def test_modules_are_those_that_functions_give():
    assert cupy == cupy.get_array_module(cupy.ones(1))


@pytest.fixture
def broken():
    raise KeyError("of the fixture")


def test_error(broken): ...


@pytest.mark.skip
def test_skipped(): ...


@pytest.mark.xfail
def test_expected_to_fail():
    assert False


@pytest.mark.slow
def test_slow():
    assert False
"""

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(not FOLDER.exists(), reason="the folder .ci is in checkouts only"),
]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with a stand-in for CuPy's tests; a stand-in for CuPy is in the folder beside."""
    write(tmp_path / "installed", CUPY)
    some = "tests/cupy_tests/some_tests"
    files = {
        f"{some}/test_some.py": TESTS,
        f"{some}/test_import.py": "import cupy.nowhere\n",
        f"{some}/other.py": "1 / 0",
    }
    write(tmp_path / "checkout", files)
    return tmp_path / "checkout"


def done(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, FOLDER / "run.py", checkout, "--parts", "some_tests", *arguments],
        env={**os.environ, "PYTHONPATH": str(checkout.parent / "installed")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.long
def test_the_script_counts_the_tests_that_pass(checkout: Path) -> None:
    result = checkout / "result.json"
    run = done(checkout, "--floor", "0.6", "--workers", "2", "--json", str(result))
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    module = "cupy_tests/some_tests/test_some.py"
    assert lines[:2] == [
        "cupy_tests/some_tests/test_import.py: 1 error",
        f"{module}: 1 error, 2 failed, 8 passed, 2 private, 1 skipped, 1 xfailed",
    ]
    assert "     1 x KeyError: 'of the fixture'" in lines
    assert "     1 x AttributeError: module 'cupy' has no attribute 'only_installed' on emulated devices" in lines
    assert "     2 x CuPy's own module ran, which emulated devices do not have." in lines
    assert lines[-1] == (
        "Of 12 tests of CuPy that need no private part of CuPy, 66.67% pass: 2 error, 2 failed, 8 passed, 2 private, "
        "1 skipped, 1 xfailed."
    )
    written = json.loads(result.read_text())
    assert written["part"] == 8 / 12
    assert written["reasons"] == {"CuPy's own module ran, which emulated devices do not have.": 2}
    assert written["files"][module]["failed"] == 2


@pytest.mark.long
def test_the_script_fails_below_the_floor(checkout: Path) -> None:
    run = done(checkout, "--floor", "0.67")
    assert run.returncode == 1
    assert run.stdout.endswith("This is below the floor of 67.00%.\n")


@pytest.mark.long
def test_a_sample_has_every_nth_test_of_each_file(checkout: Path) -> None:
    run = done(checkout, "--each", "3", "--parts", "some_tests/test_some.py")
    assert run.stdout.splitlines()[-1] == (
        "Of 4 tests of CuPy that need no private part of CuPy, 75.00% pass: 1 error, 3 passed, 1 private."
    )


@pytest.mark.long
def test_a_test_that_is_expected_to_fail_is_counted_apart_and_told_if_it_passes(checkout: Path) -> None:
    name = "some_tests/core_tests/test_include.py"
    write(checkout, {f"tests/cupy_tests/{name}": "def test_compiler(): 1 / 0\ndef test_nothing(): ...\n"})
    run = done(checkout, "--parts", name, "--floor", "1")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines() == [
        f"cupy_tests/{name}: 1 passed, 1 private",
        "     1 x The test compiles with nvcc or NVRTC.",
        f"The test passes, although expected.json says that the test cannot: cupy_tests/{name}::test_nothing",
        "Of 1 tests of CuPy that need no private part of CuPy, 100.00% pass: 1 passed, 1 private.",
    ]


@pytest.mark.long
def test_a_process_that_ends_early_fails_the_run(checkout: Path) -> None:
    write(checkout, {"tests/cupy_tests/some_tests/test_end.py": "import os\ndef test_end(): os._exit(3)\n"})
    run = done(checkout)
    assert run.returncode == 1
    assert "The tests could not be run: cupy_tests/some_tests/test_end.py: status 3" in run.stdout
    assert "8 passed" in run.stdout


def downloaded(folder: Path, pip: str) -> subprocess.CompletedProcess[str]:
    """Download the tests with a stand-in for pip, a program that runs in the place of pip."""
    write(folder / "installed", {**CUPY, "pip/__main__.py": pip, "pip/__init__.py": ""})
    (folder / "made").mkdir()
    return subprocess.run(
        [sys.executable, FOLDER / "download.py", folder / "made"],
        env={**os.environ, "PYTHONPATH": str(folder / "installed")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_tests_are_taken_from_the_sources_of_the_installed_version(tmp_path: Path) -> None:
    sources = tmp_path / "cupy-14.2.0.tar.gz"
    with tarfile.open(sources, "w:gz") as archive:
        for name in ("cupy-14.2.0/tests/cupy_tests/test_some.py", "cupy-14.2.0/setup.py"):
            member = tarfile.TarInfo(name)
            member.size = 4
            archive.addfile(member, io.BytesIO(b"pass"))
    pip = f"""
import os, shutil, sys
assert sys.argv[1] == "download" and "cupy==14.2.0" in sys.argv and os.environ["READTHEDOCS"] == "True"
shutil.copy({str(sources)!r}, sys.argv[sys.argv.index("-d") + 1])
"""
    run = downloaded(tmp_path, pip)
    assert run.returncode == 0, run.stderr
    folder = tmp_path / "made" / "cupy-14.2.0"
    assert run.stdout == f"{folder}\n"
    assert [path.name for path in (tmp_path / "made").rglob("*") if path.is_file()] == ["test_some.py"]


def test_a_package_index_without_the_sources_is_told(tmp_path: Path) -> None:
    run = downloaded(tmp_path, "raise SystemExit(1)")
    assert run.returncode == 1
    assert run.stderr == "pip cannot download the sources of CuPy 14.2.0.\n"
