"""A pytest plugin for CuPy's own tests: ``cupy`` has the functions of emulated devices, and the results are counted.

The tests come from CuPy, and use CuPy's own helpers: ``cupy.testing``, and private modules such as ``cupy._core``. So
the plugin puts modules in front of those of the installed CuPy. A public name is looked up in the modules of emulated
devices only, also where a test imports a public function from the private module that defines the function. Of a module
that emulated devices do not have at all, the tests get CuPy's::

    TCUDA_RUNTIME=emulated python -m pytest -p emulated_cupy --suite-json=results.json TESTS
"""

from __future__ import annotations

import contextlib
import fnmatch
import importlib
import importlib.util
import json
import os
import re
import sys
import traceback
from collections import Counter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

os.environ.setdefault("TCUDA_RUNTIME", "emulated")
os.environ.setdefault("TCUDA_EMULATED_DEVICES", "2")
os.environ.setdefault("TCUDA_EMULATED_MEMORY", "8GiB")
os.environ.setdefault("TCUDA_NO_CUPY_TAKEOVER", "1")  # tcuda then leaves the installed CuPy as it is

import tcuda  # reads the variables
from tcuda.emulation.names.private_modules import MODULES

_LONGEST = 90

_OF_CUPY = "CuPy's own module ran, which emulated devices do not have."
_CUPYS = re.compile(
    r'File "(?:.*/)?(?:cupy|cupyx|cupy_backends)/(?!testing/)[\w/]+\.(?:py|pyx|pxd)"'  # a line of a traceback
    r"|cupy\._core\.core\."  # the class that compiled code refuses an array for
)
"""The texts in an error that tell of the installed CuPy, except its helpers for tests."""

_EXPECTED: dict[str, list[str]] = json.loads(Path(__file__).with_name("expected.json").read_text("utf-8"))["reasons"]


def reason_of(name: str, error: str) -> str:
    """Return why the test ``name`` cannot pass on emulated devices; nothing if the test should pass.

    Args:
        name: The name of the test, with its file.
        error: The error, with its traceback and those of the errors before it.
    """
    for reason, patterns in _EXPECTED.items():
        if any(fnmatch.fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns):
            return reason
    return _OF_CUPY if _CUPYS.search(error) else ""


class Front(ModuleType):
    """A module of CuPy whose public names are those of emulated devices.

    Args:
        emulated: The module of emulated devices.
        installed: The module of the installed CuPy, for private names and for modules that ``emulated`` lacks.
    """

    def __init__(self, emulated: ModuleType, installed: ModuleType) -> None:
        super().__init__(installed.__name__)
        vars(self).update(_emulated=emulated, _installed=installed, _replaced={}, **_place_of(installed))

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._emulated  # a test compares the module with what get_array_module() gives

    def __hash__(self) -> int:
        return hash(self._emulated)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._replaced and hasattr(self._emulated, name):
            self._replaced[name] = getattr(self._emulated, name)
        setattr(self._emulated, name, value)

    def __delattr__(self, name: str) -> None:
        # A test deletes what it has set on a module that does not itself have the name, and expects the old value then.
        if name in self._replaced:
            setattr(self._emulated, name, self._replaced.pop(name))
        else:
            delattr(self._emulated, name)

    def __getattr__(self, name: str) -> Any:
        tool = name == "testing" or (name.startswith("__") and not name.startswith("__ua_"))
        if not tool and hasattr(self._emulated, name):
            return self._front_of(name, getattr(self._emulated, name))
        if tool or name.startswith("_") or isinstance(getattr(self._installed, name, None), ModuleType):
            return self._front_of(name, getattr(self._installed, name))
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on emulated devices")

    def _front_of(self, name: str, found: Any) -> Any:
        return sys.modules.get(f"{self.__name__}.{name}", found) if isinstance(found, ModuleType) else found


class PrivateFront(ModuleType):
    """A private module of CuPy. What the package shows publicly of the module is the package's, so emulated.

    Args:
        package: The front of the package.
        installed: The private module.
    """

    def __init__(self, package: Front, installed: ModuleType) -> None:
        super().__init__(installed.__name__)
        own = MODULES.get(installed.__name__)
        vars(self).update(_package=package, _installed=installed, **_place_of(installed))
        vars(self).update(_own=own and importlib.import_module(own))

    def __getattr__(self, name: str) -> Any:
        if name in getattr(self._own, "__all__", ()):
            return getattr(self._own, name)
        found = getattr(self._installed, name)
        if isinstance(found, ModuleType):
            return sys.modules.get(f"{self.__name__}.{name}", found)
        public = not name.startswith("_") and getattr(self._package._installed, name, None) is found
        return getattr(self._package, name, found) if public else found


def _place_of(module: ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name in ("__file__", "__path__", "__spec__")}


def modules_of(name: str, emulated: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    """Yield the modules of emulated devices, each with the name that CuPy has for the module."""
    yield name, emulated
    for inner in sorted({*dir(emulated), *vars(emulated)}):
        module = getattr(emulated, inner)
        if inner != "testing" and isinstance(module, ModuleType) and module.__name__.startswith("tcuda.emulation."):
            below = f"{name}.{inner}"
            if _is_cupys(below):
                yield from modules_of(below, module)


def _is_cupys(name: str) -> bool:
    """Return whether CuPy has a module ``name``, even one that cannot be imported here."""
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def put_in_front_of_private_modules() -> None:
    """Put modules in front of the private modules of the packages that have a front."""
    for name, module in list(sys.modules.items()):
        package, private, _ = name.partition("._")
        front = sys.modules.get(package)
        if private and isinstance(front, Front) and getattr(module, "__name__", None) == name:
            sys.modules[name] = PrivateFront(front, module)


_LIBRARIES = ("cublas", "cusolver", "cusparse")


class _Zero(int):
    """A constant, or a function that returns 0."""

    def __call__(self, *args: object) -> int:
        return 0


class _StandIn(ModuleType):
    """A module of one of CUDA's libraries that is not installed: every name is 0, and can be called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return (lambda: (0, 0, 0)) if name == "_getVersion" else _Zero()


def stand_in_for_libraries() -> None:
    """Let the tests import CuPy's modules that need CUDA's libraries where these libraries are not installed."""
    libraries = importlib.import_module("cupy_backends.cuda.libs")
    for name in _LIBRARIES:
        try:
            importlib.import_module(f"{libraries.__name__}.{name}")
        except ImportError:
            stand_in = _StandIn(f"{libraries.__name__}.{name}")
            sys.modules[stand_in.__name__] = stand_in
            setattr(libraries, name, stand_in)


def install() -> None:
    """Put the modules of emulated devices in front of CuPy's, in CuPy's helpers for tests, too."""
    import cupy as installed

    stand_in_for_libraries()
    tcuda.init()
    fronts = list(modules_of("cupy", tcuda.xp))
    with contextlib.suppress(ModuleNotFoundError):  # The tests then get CuPy's own, which refuse emulated arrays.
        fronts += modules_of("cupyx", importlib.import_module("tcuda.emulation.cupyx"))
    # CuPy's modules are imported before the first front is there, so that they use CuPy's functions.
    for name in ("cupy.cublas", "cupy.testing", "cupyx.scipy", *(name for name, _ in fronts)):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name, emulated in fronts:
        own = sys.modules.get(name)
        private = name.rpartition(".")[2].startswith("_")
        sys.modules[name] = emulated if own is None or private else Front(emulated, own)
    put_in_front_of_private_modules()
    helpers = [module for name, module in sys.modules.items() if name.startswith("cupy.testing")]
    for module in helpers:
        for key, value in list(vars(module).items()):
            if value is installed:
                setattr(module, key, sys.modules["cupy"])
            elif key in ("asnumpy", "ndarray") and value is getattr(installed, key):
                setattr(module, key, getattr(tcuda.xp, key))
            elif isinstance(value, FunctionType) and installed in (value.__defaults__ or ()):
                defaults = value.__defaults__ or ()
                value.__defaults__ = tuple(sys.modules["cupy"] if each is installed else each for each in defaults)


install()

_result = pytest.StashKey["Result"]()


class Result:
    """The results of the tests.

    Attributes:
        files: By file, the number of the tests for each outcome: "passed", "failed", "error", "skipped", "xfailed", or
            "private" for a failure of a test that needs a private part of CuPy or NVIDIA's compilers.
        why: The number of tests for each beginning of an error message.
        reasons: The number of private tests for each reason.
        surprises: The names of the tests that pass although ``expected.json`` says that they cannot.
    """

    def __init__(self) -> None:
        self.files: dict[str, Counter[str]] = {}
        self.why: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.surprises: list[str] = []

    def add(self, name: str, outcome: str, message: str = "", error: str = "") -> None:
        """Count a test.

        Args:
            name: The name of the test, with its file.
            outcome: The outcome that pytest gives.
            message: The first line of the error.
            error: The error with its traceback.
        """
        if outcome in ("failed", "error"):
            reason = reason_of(name, error)
            if reason:
                outcome = "private"
                self.reasons[reason] += 1
            else:
                self.why[message[:_LONGEST]] += 1
        elif outcome == "passed" and reason_of(name, ""):
            self.surprises.append(name)
        self.files.setdefault(name.partition("::")[0], Counter())[outcome] += 1


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
    error = "".join(traceback.format_exception(call.excinfo.value)) if call.excinfo is not None else ""
    item.config.stash[_result].add(item.nodeid, word, message.partition("\n")[0], error)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the JSON."""
    path: Path | None = session.config.getoption("suite_json")
    result = session.config.stash[_result]
    for file, message in _collected:
        result.add(file, "error", message)
    if path is not None:
        path.write_text(json.dumps(vars(result)), encoding="utf-8")
