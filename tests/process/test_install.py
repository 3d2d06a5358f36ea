"""An install without what the build needs says what is missing and what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.folders import REPOSITORY

pytestmark = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("ninja")), reason="needs cmake and ninja in PATH"
)

WITHOUT_HEADERS = """\
import sysconfig; _path, _variable = sysconfig.get_path, sysconfig.get_config_var; \
sysconfig.get_path = lambda name, *a, **k: "/absent" if "include" in name else _path(name, *a, **k); \
sysconfig.get_config_var = lambda name: "/absent" if name in ("INCLUDEPY", "prefix", "base") else _variable(name)
"""


def configured(folder: Path, *options: str, **variables: str) -> str:
    """Return what CMake says when it cannot configure the build, as one line."""
    command = ["cmake", "-G", "Ninja", "-S", str(REPOSITORY), "-B", str(folder / "build"), *options]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode != 0
    return " ".join(done.stderr.split())


def test_without_a_compiler_the_message_names_the_packages(tmp_path: Path) -> None:
    message = configured(tmp_path, CXX="/absent/c++")
    assert "There is no C++ compiler, which the build of tcuda needs." in message
    assert "Debian, Ubuntu: sudo apt install g++" in message
    assert "CMake has tried '/absent/c++'." in message
    assert "CMAKE_CXX_COMPILER:" not in (tmp_path / "build" / "CMakeCache.txt").read_text()  # the next try looks again


def test_without_the_headers_of_python_the_message_names_the_packages(tmp_path: Path) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if any(Path(prefix, f"include/python{version}/Python.h").exists() for prefix in ("/usr", "/usr/local")):
        pytest.skip("CMake finds the headers in a usual folder, whatever Python says")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (packages,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (packages / "without_headers.pth").write_text(WITHOUT_HEADERS)
    message = configured(tmp_path, f"-DPython_EXECUTABLE={tmp_path}/env/bin/python")
    assert f"The headers of Python {version} (Python.h) are missing" in message
    assert f"Debian, Ubuntu: sudo apt install python{version}-dev" in message
