"""The library of the page on tests of CuPy code, its tests, and the commands of the page."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.environments import environment
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (REPOSITORY / "docs" / "testing-cupy-code.md").read_text()
FILES = dict(re.findall(r'^```py title="([\w.]+)"\n(.*?)^```$', PAGE, re.DOTALL | re.MULTILINE))
COMMANDS = re.findall(r"^(?:[A-Z_]+=\S+ )*\.venv/bin/tcuda run -m pytest$", PAGE, re.MULTILINE)

pytestmark = pytest.mark.emulated


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_the_tests_of_the_page_pass_with_the_commands_of_the_page(command: str, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    variables, _, arguments = command.partition(".venv/bin/tcuda ")
    chosen = dict(variable.split("=") for variable in variables.split())
    done = subprocess.run(
        [sys.executable, "-m", "tcuda", *arguments.split()],
        cwd=tmp_path,
        env=environment(**chosen),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "= 3 passed" in done.stdout


def test_the_page_has_a_library_its_tests_and_three_ways_to_run_them() -> None:
    assert list(FILES) == ["smooth.py", "test_smooth.py"]
    assert len(COMMANDS) == 3
    assert FILES["test_smooth.py"].count("\ndef test_") == 3


@pytest.mark.parametrize("name", ["testing-gpu-code-in-ci"])
def test_the_installs_of_the_pages_have_what_cupyx_scipy_needs(name: str) -> None:
    page = (REPOSITORY / "docs" / f"{name}.md").read_text()
    installs = re.findall(r"^.*pip install .*_TCUDA.*$", page, re.MULTILINE)
    assert installs
    assert all("[emulation]" in line for line in installs)
    needs = importlib.metadata.requires("tcuda") or []
    assert any(need.startswith("scipy") and re.search("extra == .emulation", need) for need in needs)
