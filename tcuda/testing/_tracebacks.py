"""The tracebacks of pytest: a failure in tcuda ends at the line of the program that called tcuda."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.tracebacks import end_at_program

if TYPE_CHECKING:
    import pytest


def shorten(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Take the functions below the last line of the program out of the tracebacks of a failure, if tcuda is among them.

    ``--full-trace`` and ``--tb=native`` show these functions.
    """
    if item.config.getoption("fulltrace") or item.config.getoption("tbstyle") == "native":
        return
    of_unittest = getattr(item, "_excinfo", None) or ()  # the errors of a unittest.TestCase are no part of the call
    for excinfo in filter(None, (call.excinfo, *of_unittest)):
        end_at_program(excinfo.value)


__all__ = ["shorten"]
