"""A plugin of pytest that writes the outcome of each test to the file that ``OUTCOME_LOG`` names, a line for each test.

A line is written as soon as its test has ended. So the file has the outcomes of a run that is stopped early.

PYTEST_DONT_REWRITE: another plugin may import this module before pytest does.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def write(line: dict[str, Any]) -> None:
    """Add a line to the file."""
    with Path(os.environ["OUTCOME_LOG"]).open("a", encoding="utf-8") as log:
        log.write(f"{json.dumps(line)}\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the outcome of a test; processes of pytest-xdist leave this to the process that started them."""
    if "PYTEST_XDIST_WORKER" not in os.environ and (report.when == "call" or report.outcome != "passed"):
        write({"test": report.nodeid, "outcome": report.outcome})


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write a module that cannot be imported as a test that failed."""
    if "PYTEST_XDIST_WORKER" not in os.environ and report.outcome == "failed":
        write({"test": report.nodeid, "outcome": report.outcome})
