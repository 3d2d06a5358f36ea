"""The fixtures of the tests of the late schedule."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def output_with() -> Callable[..., str]:
    """Run a file of this folder in a process with two devices and the given schedule, once for the same arguments."""

    @functools.cache
    def output(schedule: str, file: str, *arguments: str) -> str:
        chosen = {"TCUDA_RUNTIME": "emulated", "TCUDA_EMULATED_DEVICES": "2", "TCUDA_EMULATED_SCHEDULE": schedule}
        command = [sys.executable, "-W", "error", str(Path(__file__).with_name(file)), *arguments]
        done = subprocess.run(
            command, env={**os.environ, **chosen}, capture_output=True, text=True, timeout=300, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return output
