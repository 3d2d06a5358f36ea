"""The functions of the core that only tests call, in the module ``tcuda._core.for_tests``."""

from __future__ import annotations

from typing import Any

import pytest


class _ForTests:
    """The module, which a wheel of a release lacks: a test that needs one of its functions is skipped there."""

    def __getattr__(self, name: str) -> Any:
        reason = "this tcuda was built without the functions for tests (TCUDA_TESTS=OFF), as a wheel of a release is"
        return getattr(pytest.importorskip("tcuda._core.for_tests", reason=reason), name)


for_tests = _ForTests()


def skip_without_for_tests(code: str) -> None:
    """Skip the test if the program ``code`` needs the module, and the core lacks it."""
    if "_core import for_tests" in code or "support.cupti" in code:
        for_tests.FaultyDriver  # noqa: B018 - the attribute is looked up
