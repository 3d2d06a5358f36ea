"""Ranges of addresses, compared with a list that is looked through."""

from __future__ import annotations

import bisect
import random
from typing import Any

import pytest

from tcuda.emulation.runtime import address_ranges
from tcuda.emulation.runtime.address_ranges import AddressRanges

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


def test_a_garbage_collection_may_remove_a_range_during_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges: AddressRanges[None] = AddressRanges()
    for begin in range(0, 100, 10):
        ranges.add(begin, begin + 5, None)
    meanwhile = [20, 30]

    def search(begins: list[int], address: int) -> int:
        place = bisect.bisect_right(begins, address)
        if meanwhile:
            ranges.remove(meanwhile.pop())
        return place

    monkeypatch.setattr(address_ranges, "bisect_right", search)
    found: Any = ranges.at(52)
    assert (found.begin, meanwhile) == (50, [])
    meanwhile.append(0)
    assert [each.begin for each in ranges.overlapping(41, 72)] == [40, 50, 60, 70]


def test_a_range_that_begins_at_the_same_address_replaces_the_other() -> None:
    ranges: AddressRanges[str] = AddressRanges()
    ranges.add(8, 16, "old")
    ranges.add(8, 12, "new")
    assert [(each.end, each.value) for each in ranges.copy()] == [(12, "new")]
    assert ranges.at(12) is None
    ranges.remove(8)
    assert ranges.at(8) is None
