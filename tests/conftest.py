"""What several test modules need."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from pathlib import Path


class RunPython(Protocol):
    def __call__(self, code: str, **environment: str | None) -> subprocess.CompletedProcess[str]: ...


class OutputOf(Protocol):
    def __call__(self, code: str, **environment: str | None) -> str: ...


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Run code in a process of its own, away from the source tree; None removes an environment variable."""

    def run(code: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
        merged: dict[str, str | None] = {**os.environ, **environment}
        env = {name: value for name, value in merged.items() if value is not None}
        command = [sys.executable, "-W", "error", "-c", code]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture
def output_of(run_python: RunPython) -> OutputOf:
    """Run code as ``run_python`` does, insist that it succeeds, and return what it printed."""

    def output(code: str, **environment: str | None) -> str:
        done = run_python(code, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return output
