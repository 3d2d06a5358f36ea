"""A pytest plugin that runs each test under the race detector of tcuda, and lists the races by test.

The tests may be those of another project, such as CuPy::

    python -m pytest -p races_by_test --races-json=races.json TESTS
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_GROUPS = 30
_result = pytest.StashKey["Result"]()


class Result:
    """The results of the detector.

    Attributes:
        tests: The number of tests that were checked.
        operations: The number of operations of these tests.
        failed: The tests that failed.
        found: A dict for each test with races: the test, the exact races, and the possible races.
    """

    def __init__(self) -> None:
        self.tests = 0
        self.operations = 0
        self.failed: list[str] = []
        self.found: list[dict[str, Any]] = []

    def add(self, test: str, report: tcuda.sanitizer.Report) -> None:
        """Add the report of a test."""
        self.tests += 1
        self.operations += report.operations
        if report or report.possible:
            data = report.as_dict()
            self.found.append({"test": test, **{kind: data[kind] for kind in ("races", "possible")}})

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return dict(vars(self))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--races-json", type=Path, metavar="FILE", help="write the races of each test as JSON to FILE")
    parser.addoption("--races-part", type=int, nargs=2, default=(0, 1), help="run this part of so many parts")
    parser.addoption("--races-each", type=int, default=1, metavar="N", help="run every Nth test of each file")
    parser.addoption("--races-tests", type=Path, metavar="FILE", help="run only the tests that FILE names, one a line")
    parser.addoption("--no-check", action="store_true", help="run the tests without the detector")


def pytest_configure(config: pytest.Config) -> None:
    """Initialise tcuda before CuPy makes arrays, so that the memory of all arrays is known."""
    tcuda.init()
    config.stash[_result] = Result()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep every Nth test of each file, and of these the tests of this part; or keep the named tests only."""
    named: Path | None = config.getoption("races_tests")
    if named is not None:
        names = set(named.read_text(encoding="utf-8").splitlines())
        items[:] = [item for item in items if item.nodeid in names]
        return
    part, parts = config.getoption("races_part")
    each: int = config.getoption("races_each")
    places: Counter[Path] = Counter()
    kept = []
    for item in items:
        number = places[item.path]
        places[item.path] += 1
        if number % each == 0 and number // each % parts == part:
            kept.append(item)
    items[:] = kept


@pytest.fixture(scope="session", autouse=True)
def _watched(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep the detector attached between the tests, so that the memory of fixtures is known."""
    if request.config.getoption("no_check"):
        yield
        return
    with tcuda.sanitizer.check(mode="collect"):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Check a test, without its fixtures."""
    config = item.config
    if config.getoption("no_check"):
        yield
        return
    with tcuda.sanitizer.check(mode="collect") as report:
        yield
        with contextlib.suppress(Exception):  # an error of the device belongs to the test
            tcuda.synchronize()
    config.stash[_result].add(item.nodeid, report)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note the tests that fail."""
    outcome = yield
    if outcome.get_result().failed:  # type: ignore[attr-defined]
        item.config.stash[_result].failed.append(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the JSON."""
    path: Path | None = session.config.getoption("races_json")
    if path is not None:
        path.write_text(json.dumps(session.config.stash[_result].as_dict()), encoding="utf-8")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show the races."""
    for line in lines(config.stash[_result].as_dict()):
        terminalreporter.write_line(line)


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a summary: equal races of several tests share a line."""
    tests, operations = several(result["tests"], "test"), several(result["operations"], "operation")
    yield f"The race detector checked {tests} with {operations}."
    for kind, noun in (("races", "race"), ("possible", "possible race")):
        groups: Counter[tuple[str, ...]] = Counter()
        examples: dict[tuple[str, ...], str] = {}
        racy = set()
        for found in result["found"]:
            for race in found[kind]:
                group = race["kind"], race["previous"]["operation"], race["current"]["operation"]
                groups[group] += 1
                examples.setdefault(group, found["test"])
                racy.add(found["test"])
        yield f"{several(sum(groups.values()), noun)} in {several(len(racy), 'test')}"
        for group, count in groups.most_common(_MOST_GROUPS):
            name, previous, current = group
            yield f"  {count:,} x {name}: {previous}, then {current}; first in {examples[group]}"


def several(count: int, noun: str) -> str:
    """Return the count with the noun, in the plural unless the count is 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
