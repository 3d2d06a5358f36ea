"""The programs of the tutorial run on both runtimes, and the tutorial has all of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (REPOSITORY / "docs" / "tutorial.md").read_text()
PROGRAMS = sorted((REPOSITORY / "docs" / "examples").glob("*.py"))
FREE = re.compile(r"\d+\.\d+ ms|devices: \d+")
"""What depends on the machine: times, and the number of devices."""


def shown(program: Path) -> tuple[str, str]:
    """Return the code and the output that the page shows for a program."""
    part = PAGE.partition(f"<!-- program: {program.stem} -->\n")[2].partition("<!-- end -->\n")[0]
    _, code, _, output, _ = re.split(r"^```.*\n", part, flags=re.MULTILINE)
    return code, output


def same_on_every_machine(output: str) -> str:
    return " ".join(FREE.sub("...", output).split())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_prints_what_the_tutorial_shows(program: Path) -> None:
    code, output = shown(program)
    assert code == program.read_text(), "run python docs/_tools/write_parts.py"
    done = subprocess.run(
        [sys.executable, program.name],
        cwd=program.parent,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert same_on_every_machine(done.stdout) == same_on_every_machine(output) != ""


def test_the_tutorial_has_every_program_and_each_is_short() -> None:
    assert re.findall(r"<!-- program: (\w+) -->", PAGE)[:1] == ["first_array"]
    assert sorted(re.findall(r"<!-- program: (\w+) -->", PAGE)) == [program.stem for program in PROGRAMS]
    assert len(PROGRAMS) >= 9
    for program in PROGRAMS:
        assert 15 <= len(program.read_text().splitlines()) <= 40, program
