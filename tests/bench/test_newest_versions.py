"""The script that chooses the versions of CuPy for ``.ci/run cupy_versions``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.folders import REPOSITORY

SCRIPT = REPOSITORY / ".ci" / "newest_versions.py"


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        ("14.2.0, 14.1.1, 14.1.0, 13.6.0, 13.5.1, 13.4.1, 9.9.9", "13.5.1 13.6.0 14.1.1 14.2.0"),
        ("15.0.0rc1, 15.0.0b2, 15.0.0b1, 15.0.0a10, 14.0.0, 14.0.0rc1", "14.0.0 15.0.0rc1"),
        ("15.0.0a10, 15.0.0a2", "15.0.0a10"),
        ("13.10.0, 13.9.0, 13.5.0.post1, 13.4.9", "13.9.0 13.10.0"),
    ],
)
def test_the_newest_patch_of_each_version_is_printed(available: str, expected: str) -> None:
    listed = f"cupy-cuda12x (14.2.0)\nAvailable versions: {available}\n  INSTALLED: 1.2.3\n"
    assert output_for(listed).stdout.strip() == expected


@pytest.mark.parametrize("listed", ["", "cupy (1.0.0)\nAvailable versions: 12.0.0\n"])
def test_the_status_tells_that_there_is_no_version(listed: str) -> None:
    assert output_for(listed).returncode == 1


def output_for(listed: str) -> subprocess.CompletedProcess[str]:
    """Return what the script makes of the list."""
    command = [sys.executable, str(SCRIPT), "13.5"]
    return subprocess.run(command, input=listed, stdout=subprocess.PIPE, text=True, check=False)
