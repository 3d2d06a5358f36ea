"""The exceptions by which a test skips itself."""

from __future__ import annotations

import sys
import unittest


def skips() -> tuple[type[BaseException], ...]:
    """Return the exceptions of ``unittest`` and, if pytest is imported, of pytest."""
    outcomes = sys.modules.get("_pytest.outcomes")
    return (unittest.SkipTest,) if outcomes is None else (unittest.SkipTest, outcomes.Skipped)
