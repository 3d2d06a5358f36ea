"""The line on a terminal that says what takes long."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from support.terminal import run_on_terminal
from tcuda._base.terminal import working

if TYPE_CHECKING:
    from pathlib import Path

CLEAR = "\r\x1b[K"

PROGRAM = """
from tcuda._base.terminal import working
with working("reading [x]\\nof a program that has a long name"):
    print("done")
"""

COMPILES = """
import importlib
build = importlib.import_module("tcuda.emulation.rtc.build")
build.PATIENCE = {}
for name in "first", "second", "third":
    build.build(f'extern "C" __global__ void {{name}}(float* x) {{{{ x[0] = 1; }}}}')
"""


def test_nothing_is_said_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with working("reading"):
        pass
    assert capsys.readouterr() == ("", "")


def test_an_error_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), working("reading"):
        raise ZeroDivisionError
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("closed", [False, True])
def test_a_program_without_a_usable_stderr_goes_on(monkeypatch: pytest.MonkeyPatch, closed: bool) -> None:
    file = io.StringIO()
    file.close()
    monkeypatch.setattr(sys, "stderr", file if closed else None)
    done = []
    with working("reading"):
        done.append(1)
    assert done


def test_a_terminal_is_told_in_one_line_that_goes_away(tmp_path: Path) -> None:
    done = run_on_terminal("-c", PROGRAM, folder=tmp_path)
    assert (done.status, done.stdout) == (0, "done\n")
    assert done.said == f"{CLEAR}reading [x] of a program that has a long name ...{CLEAR}"


def test_a_line_is_cut_at_the_edge_of_the_terminal(tmp_path: Path) -> None:
    done = run_on_terminal("-c", PROGRAM, folder=tmp_path, columns=21)
    assert done.said == f"{CLEAR}reading [x] of a pro{CLEAR}"


def test_a_terminal_that_cannot_clear_a_line_is_told_nothing(tmp_path: Path) -> None:
    done = run_on_terminal("-c", PROGRAM, folder=tmp_path, TERM="dumb")
    assert (done.stdout, done.said) == ("done\n", "")


@pytest.mark.emulated
def test_compiles_that_take_long_are_named_from_the_second_one_on(tmp_path: Path) -> None:
    def said() -> list[str]:
        done = run_on_terminal("-c", COMPILES.format(0), folder=tmp_path, TCUDA_CACHE_DIR=str(tmp_path / "cache"))
        assert (done.status, done.stdout) == (0, "")
        return [line for line in done.said.split(CLEAR) if line]

    second, third = said()
    assert second.startswith("compiling second (compile 2, ")
    assert third.startswith("compiling third (compile 3, ")
    assert said() == []  # the kernels are in the cache


@pytest.mark.emulated
def test_compiles_that_take_no_time_are_not_named(tmp_path: Path) -> None:
    done = run_on_terminal("-c", COMPILES.format(1000), folder=tmp_path, TCUDA_CACHE_DIR=str(tmp_path / "cache"))
    assert (done.status, done.said) == (0, "")
