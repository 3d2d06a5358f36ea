"""A pytest plugin for CuPy's own tests: ``cupy`` has the functions of emulated devices, and the results are counted.

The tests come from CuPy, and use CuPy's own helpers: ``cupy.testing``, and private modules such as ``cupy._core``. So
the plugin puts modules in front of those of the installed CuPy. A public name is looked up in the modules of emulated
devices only. Of a module that emulated devices do not have at all, the tests get CuPy's::

    TCUDA_RUNTIME=emulated python -m pytest -p emulated_cupy --suite-json=results.json TESTS
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections import Counter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

os.environ.setdefault("TCUDA_RUNTIME", "emulated")
os.environ.setdefault("TCUDA_EMULATED_DEVICES", "2")
os.environ.setdefault("TCUDA_EMULATED_MEMORY", "8GiB")
os.environ.setdefault("TCUDA_NO_CUPY_TAKEOVER", "1")  # tcuda then leaves the installed CuPy as it is

import tcuda  # reads the variables

_OF_THE_TESTS = {"__version__", "numpy", "show_config", "testing", "typing"}
"""Public names of the installed CuPy that the tests use as tools."""

_REPLACED: set[str] = set()
"""The modules of CuPy in whose places there are modules of emulated devices."""

_LONGEST = 90


class Front(ModuleType):
    """A module of CuPy whose public names are those of emulated devices.

    Args:
        emulated: The module of emulated devices.
        installed: The module of the installed CuPy, for private names and for modules that ``emulated`` lacks.
    """

    def __init__(self, emulated: ModuleType, installed: ModuleType) -> None:
        super().__init__(installed.__name__)
        self._emulated, self._installed = emulated, installed
        for name in ("__file__", "__path__", "__spec__"):
            if hasattr(installed, name):
                setattr(self, name, getattr(installed, name))

    def __getattr__(self, name: str) -> Any:
        below = sys.modules.get(f"{self.__name__}.{name}")
        if name.startswith("_") and below is not None and _is_emulated(below):
            return below
        private = name.startswith("_") or name in _OF_THE_TESTS
        if private and f"{self.__name__}.{name}" in _REPLACED:
            return sys.modules[f"{self.__name__}.{name}"]
        if not private and hasattr(self._emulated, name):
            found = getattr(self._emulated, name)
            return sys.modules.get(f"{self.__name__}.{name}", found) if isinstance(found, ModuleType) else found
        if private or isinstance(getattr(self._installed, name, None), ModuleType):
            return getattr(self._installed, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on emulated devices")


def _is_emulated(module: ModuleType) -> bool:
    return module.__name__.startswith("tcuda.")


def put_in_front(name: str, emulated: ModuleType) -> None:
    """Put modules in front of the module ``name`` of CuPy, and of the modules in it that emulated devices have too."""
    installed = sys.modules[name]
    sys.modules[name] = Front(emulated, installed)
    for inner, module in list(vars(emulated).items()):
        below = f"{name}.{inner}"
        if not isinstance(module, ModuleType) or not _is_emulated(module):
            continue
        if below in sys.modules and not inner.startswith("_"):
            put_in_front(below, module)
        else:  # CuPy's own module needs a library of CUDA, or has a state that the emulated module has, too.
            sys.modules[below] = module
            _REPLACED.add(below)


def install() -> None:
    """Put the modules of emulated devices in front of CuPy's, in CuPy's helpers for tests, too."""
    import cupy as installed

    for name in ("cupy.fft", "cupy.linalg", "cupy.random", "cupy.testing", "cupyx", "cupyx.scipy"):
        importlib.import_module(name)
    tcuda.init()
    put_in_front("cupy", tcuda.xp)
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("cupyx.scipy.fftpack")
        put_in_front("cupyx.scipy.fftpack", importlib.import_module("tcuda.emulation.cupyx.scipy.fftpack"))
    with contextlib.suppress(ModuleNotFoundError):
        sys.modules["cupy.cublas"] = importlib.import_module("tcuda.emulation.cublas")
    if "cupy.fft._fft" in sys.modules:  # CuPy's private functions read the settings of the emulated module
        vars(sys.modules["cupy.fft._fft"])["config"] = tcuda.xp.fft.config
    with contextlib.suppress(ModuleNotFoundError):  # The tests then get CuPy's own, which refuse emulated arrays.
        put_in_front("cupyx", importlib.import_module("tcuda.emulation.cupyx"))
    for name, module in list(sys.modules.items()):
        if name.startswith("cupy.testing"):
            for key, value in list(vars(module).items()):
                if value is installed:
                    setattr(module, key, sys.modules["cupy"])
                elif key in ("asnumpy", "ndarray") and value is getattr(installed, key):
                    setattr(module, key, getattr(tcuda.xp, key))
                elif isinstance(value, FunctionType) and value.__defaults__:
                    front = sys.modules["cupy"]
                    value.__defaults__ = tuple([front if given is installed else given for given in value.__defaults__])


install()

_result = pytest.StashKey["Result"]()


class Result:
    """The results of the tests.

    Attributes:
        files: By file, the number of the tests for each outcome: "passed", "failed", "error", "skipped" or "xfailed".
        why: The number of tests for each beginning of an error message.
    """

    def __init__(self) -> None:
        self.files: dict[str, Counter[str]] = {}
        self.why: Counter[str] = Counter()

    def add(self, file: str, outcome: str, message: str = "") -> None:
        """Count a test."""
        self.files.setdefault(file, Counter())[outcome] += 1
        if outcome in ("failed", "error"):
            self.why[message[:_LONGEST]] += 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--suite-json", type=Path, metavar="FILE", help="write the counts as JSON to FILE")
    parser.addoption("--suite-each", type=int, default=1, metavar="N", help="run every Nth test of each file")


def pytest_configure(config: pytest.Config) -> None:
    """Begin with no results."""
    config.stash[_result] = Result()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep every Nth test of each file."""
    places: Counter[Path] = Counter()
    kept = []
    for item in items:
        if places[item.path] % config.getoption("suite_each") == 0:
            kept.append(item)
        places[item.path] += 1
    items[:] = kept


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note the files that cannot be imported."""
    if report.failed:
        _collected.append((report.nodeid, str(report.longrepr).strip().rpartition("\n")[2]))


_collected: list[tuple[str, str]] = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Count the outcome of a test: of its call, or of a setup or teardown that fails or skips."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if report.when != "call" and report.passed:
        return
    word = "error" if report.failed and report.when != "call" else report.outcome
    if hasattr(report, "wasxfail"):
        word = "xfailed"
    message = f"{call.excinfo.typename}: {call.excinfo.value}" if call.excinfo is not None else ""
    item.config.stash[_result].add(item.nodeid.partition("::")[0], word, message.partition("\n")[0])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the JSON."""
    path: Path | None = session.config.getoption("suite_json")
    result = session.config.stash[_result]
    for file, message in _collected:
        result.add(file, "error", message)
    if path is not None:
        path.write_text(json.dumps({"files": result.files, "why": result.why}), encoding="utf-8")
