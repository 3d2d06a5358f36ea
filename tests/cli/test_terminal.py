"""What commands say on a terminal while they work."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.environments import environment
from tcuda.cli.terminal import working

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_is_said_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with working("reading"):
        pass
    assert capsys.readouterr() == ("", "")


def test_an_error_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), working("reading"):
        raise ZeroDivisionError
    assert capsys.readouterr() == ("", "")


def test_a_terminal_is_told_and_the_output_is_not_touched(tmp_path: Path) -> None:
    code = (
        "import time\nfrom tcuda.cli.terminal import working\n"
        "with working('reading [x]'):\n    time.sleep(0.3)\nprint('done')"
    )
    controller, terminal = pty.openpty()
    variables = environment(TERM="xterm")
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=terminal, env=variables, cwd=tmp_path
    )
    os.close(terminal)
    said = os.read(controller, 10_000).decode()
    os.close(controller)
    assert (done.returncode, done.stdout) == (0, b"done\n")
    assert "reading [x] ..." in said
