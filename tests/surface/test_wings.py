"""The core without its wings: emulated devices, and the search for races."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tcuda
from support.folders import REPOSITORY
from support.wings import (
    TESTS,
    is_in_a_folder_of_the_wings,
    names_of_the_extension,
    names_of_the_wings,
    unmarked_uses_of_a_wing,
)
from tcuda import _core
from tcuda._cupy import captured_blas

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGE = Path(tcuda.__file__).parent
WINGS = {"emulation", "sanitizer", "_sanitizer.py"}

TESTS_WITHOUT_DEVICES = (
    "tests/base/test_files.py",
    "tests/cli/test_graph_viz.py",
    "tests/cli/test_memory_viz.py",
    "tests/core/bindings/test_call_group.py",
    "tests/core/bindings/test_stack_notes.py",
    "tests/core/bindings/test_translated.py",
    "tests/core/driver/test_libcuda.py",
    "tests/core/graphs",
    "tests/core/transfers",
    "tests/jiterator/test_core_call.py",
    "tests/jiterator/test_dtypes.py",
    "tests/jiterator/test_parser.py",
    "tests/jiterator/test_plan.py",
    "tests/jiterator/test_source.py",
    "tests/process/test_poison.py",
    "tests/runtime/cuda",
    "tests/test_nvtx.py",
    "tests/viz/memory/test_columns.py",
    "tests/viz/memory/test_history.py",
    "tests/viz/memory/test_segments.py",
    "tests/viz/memory/test_sites.py",
)
"""Tests of the core that need no device, and so pass on a machine without a GPU."""

# The finder of an editable install would find the sources, which have the wings.
_SITE = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "ScikitBuildRedirectingFinder"]
"""

_IMPORT_ALL = """
import importlib, pkgutil, tcuda
imported = 0
for module in pkgutil.walk_packages(tcuda.__path__, "tcuda."):
    if module.name == "tcuda.__main__":
        continue
    try:
        importlib.import_module(module.name)
        imported += 1
    except (ImportError, RuntimeError) as error:
        if not any(name in str(error) for name in ("'cupy'", "'cupy_backends'", "'distributed'")):
            raise
print(tcuda.__file__)
print(imported)
"""


# Names that the extension has with the wings only, and modules of the core that ask `_core.has_wings` before a use.
ASKING = {("tcuda/_cupy/captured_blas.py", "noting_function"), ("tcuda/_cupy/captured_blas.py", "notes_library_calls")}


@pytest.fixture(scope="module")
def core_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the installed package without its wings."""
    folder = tmp_path_factory.mktemp("core_only")

    def left_out(parent: str, names: list[str]) -> list[str]:
        return [name for name in names if name == "__pycache__" or (Path(parent) == PACKAGE and name in WINGS)]

    shutil.copytree(PACKAGE, folder / "tcuda", ignore=left_out)
    shutil.copy(str(_core.__file__), folder / "tcuda")
    shutil.rmtree(folder / "tcuda" / "_core", ignore_errors=True)  # the C++ files, in an editable install
    (folder / "sitecustomize.py").write_text(_SITE)
    return folder


def run(core_only: Path, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the core only, on CUDA, in the folder ``folder``."""
    path = os.pathsep.join(filter(None, [str(core_only), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "TCUDA_RUNTIME": "cuda"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=500)


def test_every_module_of_the_core_is_imported_without_the_wings(core_only: Path, tmp_path: Path) -> None:
    done = run(core_only, ["-c", _IMPORT_ALL], tmp_path)
    assert done.returncode == 0, done.stderr
    file, imported = done.stdout.split()
    assert Path(file) == core_only / "tcuda" / "__init__.py"
    assert int(imported) > 200


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import tcuda.sanitizer", "No module named 'tcuda.sanitizer'"),
        ("import tcuda.emulation", "No module named 'tcuda.emulation'"),
    ],
)
def test_a_wing_that_is_missing_cannot_be_imported(core_only: Path, tmp_path: Path, code: str, message: str) -> None:
    done = run(core_only, ["-c", code], tmp_path)
    assert done.returncode == 1
    assert message in done.stderr


def test_the_names_of_the_package_are_those_that_are_there(core_only: Path, tmp_path: Path) -> None:
    code = """
from tcuda import *
import tcuda
for wing in ("emulation", "sanitizer"):
    assert not hasattr(tcuda, wing) and wing not in dir(tcuda)
tcuda.sanitizer
"""
    done = run(core_only, ["-c", code], tmp_path)
    assert done.stderr.splitlines()[-1].startswith(
        "AttributeError: This installation of tcuda lacks the search for races (tcuda.sanitizer)."
    )


def test_a_choice_of_emulated_devices_says_that_the_wing_is_missing(core_only: Path, tmp_path: Path) -> None:
    done = run(
        core_only, ["-c", "import os; os.environ['TCUDA_RUNTIME'] = 'emulated'; import tcuda; tcuda.init()"], tmp_path
    )
    assert done.returncode == 1
    assert "This installation of tcuda lacks emulated devices (tcuda.emulation)." in done.stderr


@pytest.mark.parametrize("option", ["--tcuda-cupy=emulated", "--tcuda-checks=races", "--tcuda-sanitize"])
def test_an_option_of_pytest_says_that_its_wing_is_missing(core_only: Path, tmp_path: Path, option: str) -> None:
    done = run(core_only, ["-m", "pytest", "-p", "no:tcuda", "-p", "tcuda.testing.plugin", option], tmp_path)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "This installation of tcuda lacks" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_commands_are_those_of_the_core(core_only: Path, tmp_path: Path) -> None:
    done = run(core_only, ["-m", "tcuda", "--help"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "memory-viz" in done.stdout
    assert "sanitize" not in done.stdout


@pytest.mark.long
def test_the_tests_of_the_core_that_need_no_device_pass_without_the_wings(core_only: Path) -> None:
    done = run(
        core_only,
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not wings", *TESTS_WITHOUT_DEVICES],
        REPOSITORY,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert int(done.stdout.split(" passed")[0].split()[-1]) > 400


def test_the_core_uses_no_part_of_the_extension_that_only_the_wings_have() -> None:
    wings = names_of_the_wings()
    assert {"RaceDetector", "EmulatedMemory", "noting_function"} <= wings
    used = set()
    for file in (REPOSITORY / "tcuda").rglob("*.py"):
        path = file.relative_to(REPOSITORY)
        if path.parts[1] not in WINGS:
            used |= {(path.as_posix(), name) for name in names_of_the_extension(file.read_text()) & wings}
    assert used == ASKING


@pytest.mark.wings
def test_products_are_captured_without_the_wings(monkeypatch: pytest.MonkeyPatch) -> None:
    function = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
    assert captured_blas._noted("cublasGemmEx", function) is not function
    monkeypatch.setattr(_core, "has_wings", False)
    assert captured_blas._noted("cublasGemmEx", function) is function


WITHOUT_A_USE = {
    "test_a_page_forbids_the_browser_to_load_anything",
    "test_a_page_needs_no_other_file",
    "test_import_loads_no_large_library_and_initialises_nothing",
    "test_no_option_changes_nothing_and_loads_nothing",
}
"""Tests that name a wing and need none, or have the mark for one of their cases."""


def test_a_test_of_the_core_uses_no_wing() -> None:
    files = {file for file in TESTS.rglob("test_*.py") if not is_in_a_folder_of_the_wings(file)} - {Path(__file__)}
    found = {test: file.relative_to(TESTS) for file in files for test in unmarked_uses_of_a_wing(file)}
    unmarked = [f"{file}::{test}" for test, file in found.items() if test not in WITHOUT_A_USE]
    assert not unmarked, "these tests need the mark wings"
    assert found.keys() >= WITHOUT_A_USE


@pytest.mark.parametrize(
    "code",
    [
        "def test_it():\n    from tcuda.sanitizer import check\n",
        "from tcuda.emulation import xp\ndef test_it():\n    xp.ones(3)\n",
        "@pytest.fixture\ndef watched():\n    tcuda.sanitizer.check()\ndef test_it(watched): ...\n",
        "PROGRAM = 'import tcuda.emulation'\nclass TestIt:\n    def test_it(self):\n        run(PROGRAM)\n",
        "from tcuda import _core\ndef test_it():\n    _core.RaceDetector(print)\n",
        "from support.race_reports import several\ndef test_it():\n    several()\n",
        "def test_it(output_of):\n    output_of('', TCUDA_RUNTIME='emulated')\n",
    ],
)
def test_a_use_of_a_wing_is_found(code: str, tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(code)
    assert list(unmarked_uses_of_a_wing(file)) == ["test_it"]
    file.write_text(f"{code}\npytestmark = [pytest.mark.wings]\n")
    assert list(unmarked_uses_of_a_wing(file)) == []
