"""The README: its first program runs on a machine without a GPU, and its files exist."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.environments import NO_GPU, environment
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

README = (REPOSITORY / "README.md").read_text()


def test_the_first_program_runs_without_a_gpu_and_without_settings(tmp_path: Path) -> None:
    program, printed = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", README, re.DOTALL | re.MULTILINE)[0]
    (tmp_path / "first.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-W", "error", "first.py"],
        cwd=tmp_path,
        env=environment(**NO_GPU),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_the_readme_has_a_picture_and_its_links_lead_to_files() -> None:
    assert re.search(r"!\[[^]]+\]\(docs/images/\w+\.(png|svg)\)", README)
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", README) if not link.startswith("https://")]
    assert len(links) > 10
    assert [link for link in links if not (REPOSITORY / link).exists()] == []


def test_the_readme_says_what_an_install_needs() -> None:
    for need in ("python3-dev", "build-essential", "Python 3.10 or later"):
        assert need in README


def test_the_terminal_of_the_readme_shows_what_the_commands_print(tool: Callable[[str], Any]) -> None:
    terminal = tool("terminal")
    lines = terminal.transcript()
    assert terminal.PICTURE.read_text() == terminal.picture(lines), "run python docs/_tools/terminal.py"
    assert "missing: side.wait_stream(" in "\n".join(lines)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_lines_say_for_whom_tcuda_is(page: str) -> None:
    first = (REPOSITORY / page).read_text().partition("```")[0]
    for words in ("torch", "CuPy", "GPU", "CI"):
        assert words in first
    assert first.count("\n* ") == 3 or first.count("\n| ") >= 3
