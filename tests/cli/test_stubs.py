"""``tcuda stubs``: the files, and what type checkers find with the files in a program that imports CuPy."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.folders import TESTS
from support.installed_cupy import MODULES
from tcuda.cli import main, stubs

PROGRAM = TESTS / "data" / "checked" / "cupy_program.py"
NEEDS = "without it. .ci/run types installs it."
STRICT = {"typeCheckingMode": "strict", "reportUnnecessaryTypeIgnoreComment": "error"}
"""The settings of pyright, none of which names the folder of the types."""


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_module_of_the_types_has_a_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stubs"]) == 0
    written = files(project / "typings" / "cupy")
    types = {str(path.relative_to(stubs._TYPES)) for path in stubs._TYPES.rglob("*.pyi")}
    assert set(written) == types - {"_arrays.pyi"} | {"_core/__init__.pyi"}
    assert written["linalg.pyi"].endswith("\nfrom tcuda._backend.xp.linalg import *\n")
    assert written["cuda/__init__.pyi"].endswith("\nfrom tcuda._backend.xp.cuda import *\n")
    assert capsys.readouterr().out == f"typings: the types of cupy, in {len(written)} files\n"
    assert [path.name for path in (project / "typings").iterdir()] == ["cupy"]


def test_cupyx_has_a_file_for_each_public_module(project: Path) -> None:
    assert main(["stubs", "types/of", "--cupyx"]) == 0
    written = {path.removesuffix("/__init__.pyi").replace("/", ".") for path in files(project / "types" / "of")}
    assert {name for name in written if name.startswith("cupyx")} == {
        name for name in MODULES if name.startswith("cupyx")
    }


def test_a_second_call_writes_the_files_anew(project: Path) -> None:
    assert main(["stubs"]) == 0
    before = files(project)
    changed = project / "typings" / "cupy" / "fft.pyi"
    changed.write_text(stubs._BEGIN + "old: int\n")
    assert main(["stubs"]) == 0
    assert files(project) == before


def test_a_file_of_somebody_else_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = project / "typings" / "cupy" / "random.pyi"
    own.parent.mkdir(parents=True)
    own.write_text("def rand() -> int: ...\n")
    with pytest.raises(SystemExit) as exit:
        main(["stubs"])
    assert exit.value.code == 2
    assert "random.pyi' is no file of types of tcuda" in capsys.readouterr().err
    assert files(project) == {"typings/cupy/random.pyi": "def rand() -> int: ...\n"}


def test_a_file_in_the_place_of_the_folder_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "typings").write_text("")
    assert main(["stubs"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tcuda stubs: ")


def checked(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason=f"mypy checks nothing {NEEDS}")
def test_mypy_checks_a_program_that_imports_cupy(project: Path) -> None:
    assert main(["stubs"]) == 0
    shutil.copy(PROGRAM, "program.py")
    Path("mypy.ini").write_text("[mypy]\nmypy_path = typings\nstrict = True\n")
    checked("mypy", "--config-file=mypy.ini", "program.py")


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("pyright") is None, reason=f"pyright checks nothing {NEEDS}")
def test_pyright_checks_a_program_that_imports_cupy(project: Path) -> None:
    assert main(["stubs"]) == 0
    shutil.copy(PROGRAM, "program.py")
    Path("pyrightconfig.json").write_text(json.dumps(STRICT))
    checked("pyright", "--pythonpath", sys.executable, "program.py")


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason=f"mypy checks nothing {NEEDS}")
def test_names_of_cupyx_are_allowed_where_cupy_is_absent(project: Path) -> None:
    assert main(["stubs", "--cupyx"]) == 0
    lines = "from cupyx.scipy import sparse\nimport cupyx.scipy.signal\nfrom cupy._core._kernel import ufunc\n"
    Path("program.py").write_text(lines + "from cupy_backends.cuda.api import runtime\nsparse.eye(3)\n")
    Path("mypy.ini").write_text("[mypy]\nmypy_path = typings\nstrict = True\n")
    checked("mypy", "--config-file=mypy.ini", "program.py")
