"""A graph that is changed and replayed takes a small part of the time of another capture."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from chosen_runtime import ON_CUDA

TOOL = Path(__file__).parent / "changed_graphs.py"

MOST = 0.1
"""The most that a changed graph may take of the time of a capture."""


@pytest.mark.skipif(not ON_CUDA, reason="the bound is for CUDA")
def test_a_change_takes_less_than_a_tenth_of_a_capture() -> None:
    """Measure in a process of its own, in which nothing else uses the device."""
    done = subprocess.run([sys.executable, str(TOOL), "--json"], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    for nodes, taken in json.loads(done.stdout)["seconds"].items():
        parts = {name: taken[name] / taken["capture"] for name in ("replace", "update")}
        assert max(parts.values()) < MOST, f"{nodes} nodes: {parts} of {taken['capture']} s"
