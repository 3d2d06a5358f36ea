"""Ranges of addresses, compared with a list that is looked through."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tcuda.emulation.runtime.address_ranges import AddressRanges

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda import _core

pytestmark = pytest.mark.emulated


def test_random_ranges_are_found_as_in_a_list() -> None:
    chosen = random.Random(1)
    ranges: AddressRanges[int] = AddressRanges()
    known: dict[int, int] = {}
    for value in range(2000):
        begin = chosen.randrange(500)
        end = begin + chosen.randint(1, 9)
        overlapping = sorted(item for item in known.items() if item[0] < end and begin < item[1])
        assert [(each.begin, each.end) for each in ranges.overlapping(begin, end)] == overlapping
        if not overlapping:
            ranges.add(begin, end, value)
            known[begin] = end
        elif value % 3 == 0:
            removed = ranges.remove(overlapping[0][0])
            assert removed is not None
            assert known.pop(removed.begin) == removed.end
        found = ranges.at(begin)
        expected = [item for item in known.items() if item[0] <= begin < item[1]]
        assert ([] if found is None else [(found.begin, found.end)]) == expected
        assert {each.begin: each.end for each in ranges.copy()} == known
        assert len(ranges) == len(known)
    assert ranges.remove(1000) is None


class Collecting:
    """Addresses in their order, with a garbage collection before each answer, which removes a range."""

    def __init__(self, begins: _core.AddressSet, collect: Callable[[], object]) -> None:
        self._begins = begins
        self._collect = collect

    def __getattr__(self, name: str) -> Any:
        self._collect()
        return getattr(self._begins, name)


def test_a_garbage_collection_may_remove_a_range_during_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges: AddressRanges[None] = AddressRanges()
    for begin in range(0, 100, 10):
        ranges.add(begin, begin + 5, None)
    meanwhile = [20, 30]
    begins = ranges._begins

    def collect() -> None:
        if meanwhile:
            removed = meanwhile.pop()
            del ranges._ranges[removed]
            begins.discard(removed)

    monkeypatch.setattr(ranges, "_begins", Collecting(begins, collect))
    found: Any = ranges.at(52)
    assert (found.begin, ranges.at(21)) == (50, None)
    meanwhile += [0, 50]
    assert [each.begin for each in ranges.overlapping(41, 72)] == [40, 60, 70]


def test_the_bounds_contain_all_ranges() -> None:
    ranges: AddressRanges[None] = AddressRanges()
    assert ranges.bounds() == []
    for begin in (30, 10, 20):
        ranges.add(begin, begin + 5, None)
    assert ranges.bounds() == [(10, 35)]
    ranges.remove(30)
    assert ranges.bounds() == [(10, 25)]


def test_a_range_that_begins_at_the_same_address_replaces_the_other() -> None:
    ranges: AddressRanges[str] = AddressRanges()
    ranges.add(8, 16, "old")
    ranges.add(8, 12, "new")
    assert [(each.end, each.value) for each in ranges.copy()] == [(12, "new")]
    assert ranges.at(12) is None
    ranges.remove(8)
    assert ranges.at(8) is None
