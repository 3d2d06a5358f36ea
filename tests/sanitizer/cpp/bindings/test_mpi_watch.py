"""The begin of the watch of MPI's calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.fixture_types import RunPython


def test_a_watch_that_could_not_begin_leaves_nothing(run_python: RunPython) -> None:
    done = run_python(
        """
import sys
from tcuda import _core
detector = _core.RaceDetector(print)
atexit, sys.modules["atexit"] = sys.modules.get("atexit"), None  # the watch registers a function there
try:
    _core.MpiWatch(detector)
except ImportError as error:
    print(error.name)
import importlib
del sys.modules["atexit"]
sys.modules["atexit"] = importlib.import_module("atexit")
_core.MpiWatch(detector).end()
watch = _core.MpiWatch(detector)
try:
    _core.MpiWatch(detector)
except RuntimeError as error:
    print(error)
watch.end()
_core.MpiWatch(detector).end()
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "atexit\nanother race detector watches the calls of MPI already\n"
