"""The example of the page on ``tcuda sanitize``."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from support.environments import environment
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (REPOSITORY / "docs" / "sanitize.md").read_text(encoding="utf-8")


def sanitize(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(program, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "tcuda", "sanitize", "train.py"],
        cwd=folder,
        env=environment(TCUDA_RUNTIME="emulated"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_finds_what_the_page_says(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```py\n(.*?)^```\n", PAGE, re.DOTALL | re.MULTILINE)
    (printed,) = re.findall(r"^```text\n(.*?)^```\n", PAGE, re.DOTALL | re.MULTILINE)
    done = sanitize(program, tmp_path)
    assert (done.returncode, done.stderr.strip()) == (1, printed.strip())
    call, line = re.findall(r"missing: (.*) before train.py:(\d+)", printed)[0]
    lines = program.splitlines()
    indent = re.match(" *", lines[int(line) - 1])[0]  # type: ignore[index]
    lines.insert(int(line) - 1, indent + call)
    done = sanitize("\n".join(lines), tmp_path)
    assert (done.returncode, done.stderr.strip()) == (0, "No race in 37 operations.")


def test_the_page_has_every_option(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tcuda", "sanitize", "--help"],
        cwd=tmp_path,  # the source tree has no compiled core
        env=environment(COLUMNS="200"),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    options = set(re.findall(r"--[a-z]+", done.stdout)) - {"--help"}
    assert len(options) >= 7
    assert options == set(re.findall(r"^\| `(--[a-z]+)", PAGE, re.MULTILINE))
