"""What the summary of pytest says about imports of CuPy: those that found no CuPy, and those that were refused."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tcuda._base.wings import has_wing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NO_CUPY = re.compile(r"No module named '(cupy|cupyx|cupy_backends)'|Failed to import CuPy\.")
"""The messages of Python where no CuPy is installed, and of a CuPy that finds no libraries of CUDA."""

_FEW = 3


_REFUSALS = "tcuda.emulation.as_cupy.refusals"
_KEY = "tcuda_refused_imports"


class CupyImports:
    """A plugin for pytest that notes in which files ``import cupy`` found no CuPy, and which imports were refused.

    A process of pytest-xdist sends its refused imports to the process that prints the summary.
    """

    def __init__(self) -> None:
        """Note nothing yet."""
        self._files: dict[str, None] = {}
        self._refused: dict[str, str] = {}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Iterator[None]:
        """Tell at once if a ``conftest.py`` finds no CuPy, because pytest then ends without a summary."""
        outcome: Any = yield
        error = outcome.excinfo[1] if outcome.excinfo else None
        while error is not None:
            if isinstance(error, ImportError) and _NO_CUPY.search(str(error)):
                self._files["conftest.py"] = None
                print(*self._advice(early_config, early_config.known_args_namespace), sep="\n", file=sys.stderr)
                return
            error = error.__cause__

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be collected, or that is skipped."""
        self._look_at(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the file of a test that fails, or that is skipped."""
        self._look_at(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the refused imports of a process of pytest-xdist."""
        module = sys.modules.get(_REFUSALS)
        self._refused |= {} if module is None else module.told
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_KEY] = self._refused

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Receive the refused imports of a process of pytest-xdist."""
        for name, sentence in getattr(node, "workeroutput", {}).get(_KEY, {}).items():
            self._refused.setdefault(name, sentence)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Print which option lets the tests run, and which imports were refused."""
        lines = [*self._advice(config, config.option), *self._refused.values()]
        if lines:
            terminalreporter.section("tcuda")
            for line in lines:
                terminalreporter.line(line)

    def _look_at(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.passed:
            return
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        if _NO_CUPY.search(reason):
            self._files[report.nodeid.partition("::")[0]] = None

    def _advice(self, config: pytest.Config, options: Any) -> list[str]:
        """Return the lines of the summary; none if CuPy was found, or if the user has chosen what to import."""
        if not self._files or options.tcuda_cupy or config.getini("tcuda_cupy") or not has_wing("emulation"):
            return []
        files = list(self._files)
        more = f" and in {len(files) - _FEW} more" if len(files) > _FEW else ""
        return [
            f"`import cupy` found no CuPy in {', '.join(files[:_FEW])}{more}. To import emulated devices instead, run",
            "    pytest --tcuda-cupy emulated",
            *_configuration(config.inipath),
        ]


def _configuration(path: Path | None) -> list[str]:
    """Return what to write into the configuration of pytest.

    Args:
        path: The file that pytest has read its configuration from; None without such a file.
    """
    name = "pyproject.toml" if path is None else path.name
    section, value = "pytest", '"emulated"' if name.endswith(".toml") else "emulated"
    if name == "setup.cfg":
        section = "tool:pytest"
    elif name == "pyproject.toml":
        is_native = path is not None and "[tool.pytest]" in path.read_text(encoding="utf-8")
        section = "tool.pytest" if is_native else "tool.pytest.ini_options"
    return [f"or, for all runs, write into {name}:", f"    [{section}]", f"    tcuda_cupy = {value}"]


__all__ = ["CupyImports"]
