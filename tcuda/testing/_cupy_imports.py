"""What the summary of pytest says about imports of CuPy: those that found no CuPy, and those that were refused."""

from __future__ import annotations

import os
import re
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tcuda._base.wings import has_wing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType, ModuleType

_NO_CUPY = re.compile(r"No module named '(cupy|cupyx|cupy_backends)'|Failed to import CuPy\.")
"""The messages of Python where no CuPy is installed, and of a CuPy that finds no libraries of CUDA."""

_FEW = 3


_INSTALLED = ("site-packages", "dist-packages")
_FOUND_NONE = "tcuda_no_cupy"

_REFUSALS = "tcuda.emulation.as_cupy.refusals"
_KEY = "tcuda_refused_imports"


class _Tries(MetaPathFinder):
    """The last finder of Python, which finds nothing, and notes the file whose import of CuPy no finder has found.

    Args:
        note: A function that notes the path of the file.
    """

    def __init__(self, note: Callable[[Path], None]) -> None:
        self._note = note

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Note the file that imports CuPy."""
        if name in ("cupy", "cupyx"):
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and "importlib" in frame.f_code.co_filename:
                frame = frame.f_back
            if frame is not None:
                self._note(Path(frame.f_code.co_filename))


class CupyImports:
    """A plugin for pytest that notes in which files ``import cupy`` found no CuPy, and which imports were refused.

    A file that goes on without CuPy passes its tests on NumPy. The plugin notes such a file of the project where the
    tests have emulated devices. A process of pytest-xdist sends what it has noted to the process that prints the
    summary.
    """

    def __init__(self) -> None:
        """Note nothing yet."""
        self._files: dict[str, None] = {}
        self._refused: dict[str, str] = {}
        self._tries: _Tries | None = None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Iterator[None]:
        """Tell at once if a ``conftest.py`` finds no CuPy, because pytest then ends without a summary."""
        chosen = early_config.known_args_namespace.tcuda_runtime or os.environ.get("TCUDA_RUNTIME")
        if chosen in ("emulated", "auto"):
            root = early_config.rootpath

            def note(path: Path) -> None:
                if path.is_relative_to(root) and not set(path.parts) & set(_INSTALLED):
                    self._files[str(path.relative_to(root))] = None

            self._tries = _Tries(note)
            sys.meta_path.append(self._tries)
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
        """Send what a process of pytest-xdist has noted."""
        module = sys.modules.get(_REFUSALS)
        self._refused |= {} if module is None else module.told
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput |= {_KEY: self._refused, _FOUND_NONE: [*self._files]}

    def pytest_unconfigure(self) -> None:
        """Note no more imports."""
        if self._tries in sys.meta_path:
            sys.meta_path.remove(self._tries)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Receive what a process of pytest-xdist has noted."""
        self._files |= dict.fromkeys(getattr(node, "workeroutput", {}).get(_FOUND_NONE, ()))
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
