"""Folders with the files that tests read."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
DATA = TESTS / "data"
REPOSITORY = TESTS.parent
