"""What ``conftest.py`` in the root of the repository does to each process with tests."""

from __future__ import annotations

import gc


def test_the_garbage_collector_does_not_visit_the_tests_and_the_modules() -> None:
    assert gc.get_freeze_count() > 10_000
    tracked = {id(module) for module in gc.get_objects()}
    assert id(gc) not in tracked
    assert id(test_the_garbage_collector_does_not_visit_the_tests_and_the_modules) not in tracked
