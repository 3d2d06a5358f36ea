"""Fixtures of the tests of the sanitizer."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime


@pytest.fixture(autouse=True)
def _nothing_stays_attached(runtime: Runtime) -> Iterator[None]:
    """Fail a test that leaves a check, a detector or a hook behind."""
    from tcuda.sanitizer import _checks, _detector, _suppressions

    hooks = sys.unraisablehook, threading.excepthook
    assert _checks._active == ()
    yield
    left = [*_checks._active]
    for check in left:
        check.end()
    assert not left
    assert _detector._started is None
    assert _detector._is_attached is False
    assert sys.unraisablehook is hooks[0]
    assert threading.excepthook is hooks[1]
    assert _suppressions._in_force == ()
