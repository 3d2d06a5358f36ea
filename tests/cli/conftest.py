"""The fixtures of the tests of the command line."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.environments import environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tcuda_command(tmp_path: Path) -> Any:
    """Return a function that runs the command outside the source tree, in a process with only the given variables."""

    def run(*arguments: str, code: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        start = ["-m", "tcuda"] if code is None else ["-c", code]
        return subprocess.run(
            [sys.executable, *start, *arguments],
            cwd=tmp_path,
            env=environment(**variables),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
