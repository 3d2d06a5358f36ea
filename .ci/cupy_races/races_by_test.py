"""A pytest plugin that runs each test under the race detector of tcuda, and logs the races by test.

The tests may be those of another project, such as CuPy. Several processes can share the tests::

    python -m pytest -p races_by_test --races-log=LOG --races-queue=FILE --races-deadline=T TESTS

``T`` is a time of ``time.monotonic()``, after which no test begins.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from race_log import RaceLog
from shared_queue import SharedQueue, in_shuffled_order

import tcuda

if TYPE_CHECKING:
    from collections.abc import Iterator

_running = pytest.StashKey["Running"]()


class Running:
    """The test that runs now, and its result so far.

    Attributes:
        failed: Whether a phase of the test has failed.
        report: The report of the detector, as plain data; None if the test was not checked.
    """

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.failed = False
        self.report: dict[str, Any] | None = None

    def as_event(self, test: str) -> dict[str, Any]:
        """Return the result for the log."""
        report = self.report or {"operations": 0, "suppressed": 0, "races": [], "possible": []}
        kept = {name: report[name] for name in ("operations", "suppressed", "races", "possible")}
        # A test may have hundreds of possible races, each with the 64 steps before the race.
        kept["possible"] = [{**race, "neighbours": []} for race in kept["possible"]]
        seconds = round(time.perf_counter() - self.begin, 3)
        return {"test": test, "seconds": seconds, "failed": self.failed, "checked": self.report is not None, **kept}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption(
        "--races-log", type=Path, required=True, metavar="FILE", help="write the races of each test to FILE"
    )
    parser.addoption(
        "--races-queue", type=Path, required=True, metavar="FILE", help="take turns with the other processes"
    )
    parser.addoption(
        "--races-deadline", type=float, default=math.inf, metavar="T", help="begin no test after T of time.monotonic()"
    )
    parser.addoption("--races-each", type=int, default=1, metavar="N", help="run every Nth test of each file")
    parser.addoption("--races-tests", type=Path, metavar="FILE", help="run only the tests that FILE names, one a line")
    parser.addoption("--no-check", action="store_true", help="run the tests without the detector")


def pytest_configure(config: pytest.Config) -> None:
    """Initialise tcuda before CuPy makes arrays, so that the memory of all arrays is known."""
    tcuda.init()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep every Nth test of each file, or the named tests, in an order that is the same in all processes."""
    named: Path | None = config.getoption("races_tests")
    if named is not None:
        names = set(named.read_text(encoding="utf-8").splitlines())
        kept = [item for item in items if item.nodeid in names]
    else:
        each: int = config.getoption("races_each")
        places: Counter[Path] = Counter()
        kept = []
        for item in items:
            if places[item.path] % each == 0:
                kept.append(item)
            places[item.path] += 1
    items[:] = in_shuffled_order(kept, lambda item: item.nodeid)


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run tests of the queue, until there are no more or the time is over."""
    config, items = session.config, session.items
    queue = SharedQueue(config.getoption("races_queue"), config.getoption("races_deadline"))
    order = hashlib.sha256("\n".join(item.nodeid for item in items).encode()).hexdigest()
    log = RaceLog(config.getoption("races_log"))
    log.add(collected=len(items), order=order, time=time.monotonic())

    def take() -> pytest.Item | None:
        place = queue.take()
        return items[place] if place is not None and place < len(items) else None

    with contextlib.closing(log):
        item = take()
        while item is not None:
            following = take()  # pytest keeps the fixtures that the following test needs
            log.add(begun=item.nodeid)
            config.stash[_running] = Running()
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            log.add(**config.stash[_running].as_event(item.nodeid))
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = None if queue.is_over else following
    return True


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
    config.stash[_running].report = report.as_dict()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note whether the test fails."""
    outcome = yield
    if outcome.get_result().failed:  # type: ignore[attr-defined]
        item.config.stash[_running].failed = True
