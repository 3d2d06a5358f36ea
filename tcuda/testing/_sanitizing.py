"""The options ``--tcuda-sanitize`` and ``--tcuda-html`` of pytest: each test runs under the race detector."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tcuda._base.messages import in_one_line
from tcuda._base.outputs import PAGE, remove_earlier, require_free
from tcuda._base.wings import wing_module

if TYPE_CHECKING:
    from collections.abc import Generator

MARK = "tcuda_may_race"
_MODES = ("raise", "warn")
_KEY = "tcuda_races"


def mode(value: str) -> str:
    """Return the value of ``--tcuda-sanitize``.

    Raises:
        argparse.ArgumentTypeError: The value is no mode. The value may be the path of tests, which followed the option.
    """
    if value not in _MODES:
        raise argparse.ArgumentTypeError(
            f"{value!r} is neither 'raise' nor 'warn'; if {value!r} names tests, write --tcuda-sanitize=raise {value}"
        )
    return value


def begin(config: pytest.Config) -> None:
    """Let each test run under the race detector if the options ask for it.

    Raises:
        pytest.UsageError: The page cannot be written, or a page is asked for without a search for races; the file of
            suppressions is wrong; or the installation lacks the search for races.
    """
    chosen, page = config.option.tcuda_sanitize, config.option.tcuda_html
    if chosen is None:
        if page is not None:
            raise pytest.UsageError("--tcuda-html needs --tcuda-sanitize, which looks for the races of the page.")
        return
    path = None if page is None or hasattr(config, "workerinput") else Path(page).absolute()
    try:
        if path is not None:
            require_free(path, PAGE)
            remove_earlier(path)
        wing_module("sanitizer._suppressions").read_suppressions()
    except (OSError, RuntimeError, ValueError) as error:
        raise pytest.UsageError(f"--tcuda-sanitize: {in_one_line(error) or error}") from None
    config.pluginmanager.register(_Sanitizing(chosen, path), "tcuda_sanitizing")


class _Sanitizing:
    """A plugin for pytest that looks for races in each test, in its fixtures, and in what the fixtures undo.

    Args:
        mode: What a race does: ``"raise"`` or ``"warn"``.
        page: The page to write at the end; None for no page.
    """

    def __init__(self, mode: str, page: Path | None) -> None:
        self._sanitizer = wing_module("sanitizer")
        self._mode, self._page = mode, page
        self._report = self._sanitizer.Report()
        self._others: list[dict[str, Any]] = []
        self._is_on = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Keep the detector on from the first fixture of a test to the end of the last one."""
        if item.get_closest_marker(MARK) is not None:
            return (yield)
        # This check hears of no race. The check of each phase does, so that the phase that makes a race fails.
        between = self._sanitizer.check("collect")
        try:
            between.begin()
        except RuntimeError as error:
            pytest.exit(f"--tcuda-sanitize: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
        self._is_on = True
        try:
            return (yield)
        finally:
            self._is_on = False
            between.undo()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        """Look for races in the fixtures of a test."""
        return (yield from self._checked())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        """Look for races in a test."""
        return (yield from self._checked())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        """Look for races in what the fixtures of a test undo."""
        return (yield from self._checked())

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the races of a process of pytest-xdist to the process that prints the summary."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_KEY] = {**self._report.as_dict(), "process": os.getpid()}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Receive the races of a process of pytest-xdist."""
        found = getattr(node, "workeroutput", {}).get(_KEY)
        if found is not None:
            self._others.append(found)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print how much was found in how many operations, and write the page."""
        if terminalreporter.config.option.collectonly:
            return
        run = wing_module("sanitizer._command.watched_run")
        reports = wing_module("sanitizer._process_reports")
        found = run.with_children(self._report.as_dict(), reports.Found(self._others, 0))
        found = wing_module("sanitizer._causes").add_causes(found)
        terminalreporter.section("tcuda sanitizer")
        terminalreporter.line(wing_module("sanitizer._words").total_of(found))
        if not found["operations"]:
            terminalreporter.line("Do the tests use a device, and does `import cupy` import CuPy?")
        if self._page is not None:
            self._page.write_text(wing_module("sanitizer._page").render(found, "pytest"), encoding="utf-8")
            terminalreporter.line(f"wrote {self._page}")

    def _checked(self) -> Generator[None, Any, Any]:
        if not self._is_on:
            return (yield)
        with self._sanitizer.check(self._mode, report=self._report):
            return (yield)


__all__ = ["MARK", "begin", "mode"]
