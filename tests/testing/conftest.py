"""Runs of pytest in processes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Run pytest on a file of tests, in a process that has no environment variables of tcuda."""
    for name in (
        "TCUDA_RUNTIME",
        "TCUDA_EMULATED_DEVICES",
        "TCUDA_EMULATED_MEMORY",
        "TCUDA_EMULATED_SCHEDULE",
        "TCUDA_EMULATED_CHECKS",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # other plugins take long to import

    def run(code: str, *options: str) -> pytest.RunResult:
        if "emulated" in options:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        pytester.makepyfile(f"import pytest, tcuda\n{code}")
        plugins = ("-p", "tcuda.testing.plugin")
        return pytester.runpytest_subprocess("--strict-markers", "-rs", "-W", "error", *plugins, *options)

    return run
