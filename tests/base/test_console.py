"""The colours and links of reports on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.terminal import run_on_terminal

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
from tcuda._base.console import console, print_table
screen = console(stderr=True)
screen.print("1. read after write")
screen.print("   model.py:12  multiply reads x")
screen.print("   absent.py:3  no such file")
screen.print("   missing: side.wait_stream(main) before model.py:12")
screen.print("wrote page.html")
print_table(screen, ("check", "result"), [("copy", "ok"), ("kernel", "failed")])
"""


@pytest.fixture
def said(tmp_path: Path) -> str:
    (tmp_path / "model.py").write_text("x = 1\n")
    (tmp_path / "page.html").write_text("page")
    return run_on_terminal("-c", PROGRAM, folder=tmp_path).said


def test_a_terminal_gets_colours_and_links(said: str, tmp_path: Path) -> None:
    assert "\x1b[1m1. read after write\x1b[0m" in said
    assert said.count(f"{(tmp_path / 'model.py').as_uri()}\x1b\\") == 2
    assert said.count(f"{(tmp_path / 'page.html').as_uri()}\x1b\\") == 1
    assert "absent.py:3  no such file" in said
    assert "absent.py\x1b\\" not in said
    assert "\x1b[32mok\x1b[0m" in said
    assert "\x1b[1;31mfailed\x1b[0m" in said
    assert "\x1b[32m   missing\x1b[0m" in said


def test_no_color_leaves_out_the_colours_and_keeps_the_links(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("x = 1\n")
    said = run_on_terminal("-c", PROGRAM, folder=tmp_path, NO_COLOR="1").said
    assert "\x1b[32m" not in said
    assert "\x1b[36m" not in said
    assert f"{(tmp_path / 'model.py').as_uri()}\x1b\\" in said


def test_a_terminal_that_knows_nothing_gets_plain_text(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("x = 1\n")
    assert "\x1b" not in run_on_terminal("-c", PROGRAM, folder=tmp_path, TERM="dumb").said


def test_a_pipe_gets_plain_text(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("x = 1\n")
    program = PROGRAM.replace("stderr=True", "stderr=False")
    assert "\x1b" not in run_on_terminal("-c", program, folder=tmp_path).stdout
