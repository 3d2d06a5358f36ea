"""The page on missing waits shows what ``tcuda sanitize`` prints."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

PAGE = REPOSITORY / "docs" / "missing-waits.md"
COMMAND = "```sh\ntcuda sanitize sums.py\n```\n\n```text\n"


def sanitized(program: str, folder: Path) -> tuple[int, str]:
    """Run ``tcuda sanitize`` on a program, and return the exit status and the output."""
    (folder / "sums.py").write_text(program)
    command = [sys.executable, "-m", "tcuda", "sanitize", "sums.py"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode, done.stdout


@pytest.mark.emulated
def test_the_page_shows_the_report_of_its_example(tmp_path: Path) -> None:
    before, _, after = PAGE.read_text().partition(COMMAND)
    (program,) = re.findall(r"^```python\n(.*?)^```", before, re.DOTALL | re.MULTILINE)
    status, printed = sanitized(program, tmp_path)
    assert status == 1
    assert printed.strip() == after.partition("```")[0].strip()

    fixed = program.replace("print(", "main.wait_stream(side)\nprint(")
    assert sanitized(fixed, tmp_path)[0] == 0
