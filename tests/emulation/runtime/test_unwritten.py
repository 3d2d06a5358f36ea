"""The marks of bytes that no work has written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tcuda._base.errors import UnwrittenMemoryError
from tcuda._base.user_code import Place
from tcuda.emulation.runtime.accesses import POSSIBLE, READ, READ_AND_WRITE, WRITE, Access, span
from tcuda.emulation.runtime.memory import Rows
from tcuda.emulation.runtime.unwritten import Unwritten, padding_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.runtime.unwritten import Region

BEGIN, SIZE = 0x1000, 64
LINE, OTHER = Place("program.py", 3, "main"), Place("program.py", 4, "main")


@pytest.fixture
def unwritten() -> Unwritten:
    made = Unwritten()
    made.given(BEGIN, SIZE, LINE)
    return made


def bytes_at(begin: int, size: int) -> Region:
    return begin, 1, (size,), (1,)


def marked(unwritten: Unwritten, region: Region) -> list[bool]:
    marks = unwritten.marks(region)
    return [False] * region[2][0] * region[1] if marks is None else (marks.reshape(-1) != 0).tolist()


def done(unwritten: Unwritten, *accesses: Access) -> None:
    unwritten.around(lambda: None, accesses, "kernel")()


def test_memory_that_is_given_out_is_unwritten_until_work_writes_it(unwritten: Unwritten) -> None:
    assert marked(unwritten, bytes_at(BEGIN + 8, 3)) == [True] * 3
    unwritten.write(bytes_at(BEGIN + 9, 1))
    assert marked(unwritten, bytes_at(BEGIN + 8, 3)) == [True, False, True]
    assert unwritten.open == 1
    unwritten.write(bytes_at(BEGIN, SIZE))
    assert unwritten.marks(bytes_at(BEGIN, SIZE)) is None
    assert unwritten.open == 0


def test_the_last_missing_byte_closes_a_block(unwritten: Unwritten) -> None:
    for place in range(0, SIZE, 2):
        unwritten.write(bytes_at(BEGIN + place, 2))
        unwritten.write(bytes_at(BEGIN + place, 2))
        assert unwritten.open == (place + 2 < SIZE)


def test_elements_that_share_bytes_are_counted_once(unwritten: Unwritten) -> None:
    unwritten.write((BEGIN, 4, (15, 3), (4, 0)))
    assert marked(unwritten, bytes_at(BEGIN + 59, 5)) == [False, True, True, True, True]
    assert unwritten.open == 1


def test_unknown_memory_counts_as_written(unwritten: Unwritten) -> None:
    for region in (bytes_at(BEGIN - 8, 8), bytes_at(BEGIN + SIZE, 8), bytes_at(BEGIN + SIZE - 4, 8)):
        assert unwritten.marks(region) is None
        unwritten.write(region)
    assert marked(unwritten, bytes_at(BEGIN, SIZE)) == [True] * SIZE


@pytest.mark.parametrize("strides", [(16, 4), (-16, 4), (16, -4)])
def test_regions_have_strides(unwritten: Unwritten, strides: tuple[int, int]) -> None:
    address = BEGIN + (16 if strides[0] < 0 else 0) + (4 if strides[1] < 0 else 0)
    unwritten.write((address, 2, (2, 2), strides))
    written = {start + place for start in (0, 4, 16, 20) for place in range(2)}
    assert marked(unwritten, bytes_at(BEGIN, SIZE)) == [place not in written for place in range(SIZE)]


def test_memory_that_is_given_again_is_unwritten_with_its_new_line(unwritten: Unwritten) -> None:
    unwritten.write(bytes_at(BEGIN, SIZE))
    unwritten.given(BEGIN, 16, OTHER)
    origin = unwritten.origin_at(BEGIN, 1)
    assert origin is not None
    assert (origin.size, origin.line) == (16, OTHER)
    assert unwritten.origin_at(BEGIN + 16, 1) is None
    assert unwritten.open == 1


def test_a_part_that_is_given_again_replaces_the_whole_block(unwritten: Unwritten) -> None:
    unwritten.given(BEGIN + 32, 16, OTHER)
    assert unwritten.marks(bytes_at(BEGIN, 16)) is None
    assert marked(unwritten, bytes_at(BEGIN + 32, 16)) == [True] * 16
    assert unwritten.open == 1


def test_forgotten_memory_counts_as_written(unwritten: Unwritten) -> None:
    unwritten.forget(BEGIN + 8, 1)
    assert unwritten.marks(bytes_at(BEGIN, SIZE)) is None
    assert unwritten.open == 0


def test_a_freed_block_is_forgotten_if_it_has_unwritten_bytes(unwritten: Unwritten) -> None:
    unwritten.given(0x2000, 8, OTHER)
    unwritten.freed(0x2001)
    assert unwritten.open == 2
    unwritten.freed(0x2000)
    assert unwritten.open == 1
    assert unwritten.marks(bytes_at(0x2000, 8)) is None


def test_memory_of_the_same_size_that_is_given_again_is_unwritten(unwritten: Unwritten) -> None:
    unwritten.given(BEGIN, SIZE, OTHER)
    assert unwritten.open == 1
    unwritten.write(bytes_at(BEGIN, SIZE))
    unwritten.given(BEGIN, SIZE, OTHER)
    assert unwritten.open == 1
    assert marked(unwritten, bytes_at(BEGIN, SIZE)) == [True] * SIZE


def test_a_copy_passes_the_marks_and_the_origin_on(unwritten: Unwritten) -> None:
    unwritten.given(0x2000, 32, OTHER)
    unwritten.write(bytes_at(0x2000, 32))
    unwritten.write(bytes_at(BEGIN, 8))
    unwritten.copying(lambda: None, Rows(0x2000, 8, BEGIN + 4, 8, 8, 1), to_host=False)()
    assert marked(unwritten, bytes_at(0x2000, 12)) == [False] * 4 + [True] * 4 + [False] * 4
    assert unwritten.open == 2
    origin = unwritten.origin_at(0x2004, 1)
    assert origin is not None
    assert origin.line == LINE
    unwritten.copying(lambda: None, Rows(0x2000, 8, BEGIN, 8, 8, 1), to_host=False)()
    assert unwritten.open == 1


def test_a_copy_of_rows_leaves_the_holes(unwritten: Unwritten) -> None:
    unwritten.copying(lambda: None, Rows(BEGIN, 16, 0x9000, 8, 8, 4), to_host=False)()
    assert marked(unwritten, bytes_at(BEGIN, SIZE)) == ([False] * 8 + [True] * 8) * 4


def test_a_copy_to_the_host_is_refused_before_it_is_made(unwritten: Unwritten) -> None:
    made: list[int] = []
    unwritten.write(bytes_at(BEGIN, 8))
    copy = unwritten.copying(lambda: made.append(1), Rows(0x9000, 16, BEGIN, 16, 16, 1), to_host=True)
    with pytest.raises(UnwrittenMemoryError, match=r"byte 8 of 16 \(8 are unwritten\), of 64 bytes allocated at prog"):
        copy()
    assert made == []
    unwritten.write(bytes_at(BEGIN, 16))
    copy()
    assert made == [1]


def test_a_copy_to_the_host_names_elements_and_leaves_padding_out(unwritten: Unwritten) -> None:
    kind = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    unwritten.write((BEGIN, 1, (4,), (16,)))
    unwritten.write((BEGIN + 8, 8, (3,), (16,)))
    unwritten.describe(np.empty(4, kind))
    copies = [
        unwritten.copying(lambda: None, Rows(0x9000, size, BEGIN, size, size, 1), to_host=True) for size in (48, 64)
    ]
    unwritten.describe(None)
    copies[0]()
    with pytest.raises(UnwrittenMemoryError, match="element 3 of 4, of"):
        copies[1]()


def test_work_that_reads_as_much_as_it_writes_passes_byte_for_byte(unwritten: Unwritten) -> None:
    unwritten.given(0x2000, 16, OTHER)
    unwritten.write(bytes_at(BEGIN, 12))
    done(unwritten, span(BEGIN, 16, READ, "a"), span(0x2000, 16, WRITE, "b"))
    assert marked(unwritten, bytes_at(0x2000, 16)) == [False] * 12 + [True] * 4


@pytest.mark.parametrize("read", [8, 16])
def test_other_work_passes_all_or_nothing(unwritten: Unwritten, read: int) -> None:
    unwritten.given(0x2000, 4, OTHER)
    unwritten.write(bytes_at(BEGIN, 12))
    done(unwritten, span(BEGIN, read, READ, "a"), span(0x2000, 4, WRITE, "b"))
    assert marked(unwritten, bytes_at(0x2000, 4)) == [read > 12] * 4


def test_a_possible_read_passes_nothing_and_a_possible_write_counts(unwritten: Unwritten) -> None:
    possible: Access = (BEGIN, 1, (16,), (1,), READ_AND_WRITE, "a", POSSIBLE)
    done(unwritten, possible)
    assert marked(unwritten, bytes_at(BEGIN, 17)) == [False] * 16 + [True]


def test_work_that_decides_is_refused(unwritten: Unwritten) -> None:
    made: list[int] = []
    work = unwritten.around(lambda: made.append(1), [span(BEGIN, 8, READ, "flag")], "condition", decides=True)
    unwritten.write(bytes_at(BEGIN, 7))
    with pytest.raises(UnwrittenMemoryError, match="byte 7 of flag, of 64 bytes allocated at program.py:3 in main"):
        work()
    unwritten.write(bytes_at(BEGIN, 8))
    work()
    assert made == [1]


def test_marked_elements_have_addresses(unwritten: Unwritten) -> None:
    places = BEGIN + 4 * np.asarray([[1, 3], [5, 1]])
    unwritten.store_items(places, 4, None)
    written = {4 * place + byte for place in (1, 3, 5) for byte in range(4)}
    assert marked(unwritten, bytes_at(BEGIN, SIZE)) == [place not in written for place in range(SIZE)]
    assert unwritten.items(places, 4) is None
    marks = unwritten.items(BEGIN + 4 * np.asarray([1, 2]), 4)
    assert marks is not None
    assert (marks != 0).tolist() == [False, True]


def test_a_launch_changes_the_marks(unwritten: Unwritten) -> None:
    unwritten.given(0x800, 8, OTHER)
    assert [begin for begin, _ in unwritten.open_blocks(0x800, 0x808)] == [0x800]
    blocks = dict(unwritten.open_blocks(0x800, BEGIN + 1))
    assert list(blocks) == [0x800, BEGIN]
    for marks in blocks.values():
        marks[:8] = 255
    unwritten.changed(blocks, [(begin, 8) for begin in blocks])
    assert unwritten.open == 1
    assert marked(unwritten, bytes_at(BEGIN, 9)) == [False] * 8 + [True]


def test_many_origins_share_the_last_number(unwritten: Unwritten) -> None:
    numbers = []
    for place in range(300):
        unwritten.given(0x10000 + 8 * place, 4, Place("program.py", place, "main"))
        marks = unwritten.marks(bytes_at(0x10000 + 8 * place, 1))
        assert marks is not None
        numbers.append(int(marks[0, 0]))
    assert max(numbers) == 254
    assert "program.py:7 in main" in str(unwritten.origin(numbers[7]))
    assert str(unwritten.origin(numbers[299])) == "memory of 4 bytes"


@pytest.mark.parametrize(
    ("dtype", "unused"),
    [
        (np.dtype("f4"), []),
        (np.dtype([("a", "i1"), ("b", "i4")], align=True), [1, 2, 3]),
        (np.dtype([("a", [("x", "i1"), ("y", "i2")])]), []),
        (np.dtype({"names": ["a"], "formats": ["i2"], "offsets": [2], "itemsize": 6}), [0, 1, 4, 5]),
        (np.dtype([("a", np.dtype([("x", "i1"), ("y", "i2")], align=True), (2,))]), [1, 5]),
    ],
)
def test_padding_belongs_to_no_field(dtype: np.dtype, unused: Sequence[int]) -> None:  # type: ignore[type-arg]
    assert np.flatnonzero(padding_of(dtype)).tolist() == list(unused)


def test_the_bytes_of_elements_are_counted_once(unwritten: Unwritten) -> None:
    twice = BEGIN + np.array([0, 8, 0, 8], np.intp)
    unwritten.store_items(twice, 8, None)
    assert marked(unwritten, bytes_at(BEGIN, 16)) == [False] * 16
    unwritten.store_items(twice, 8, np.array([1, 0, 1, 0], np.uint8))
    assert marked(unwritten, bytes_at(BEGIN, 16)) == [True] * 8 + [False] * 8
    unwritten.write(bytes_at(BEGIN + 16, SIZE - 16))
    assert unwritten.open == 1
    unwritten.store_items(twice, 8, None)
    assert unwritten.open == 0


def test_random_changes_are_counted_as_by_a_list(unwritten: Unwritten) -> None:
    chosen = np.random.RandomState(3)
    known = np.ones(SIZE, bool)
    for _ in range(500):
        begin = int(chosen.randint(SIZE))
        size = int(chosen.randint(1, SIZE - begin + 1))
        marks = chosen.randint(2, size=size).astype(np.uint8)
        if chosen.randint(2):
            unwritten.write(bytes_at(BEGIN + begin, size))
            known[begin : begin + size] = False
        elif chosen.randint(2):
            unwritten.store(bytes_at(BEGIN + begin, size), marks)
            known[begin : begin + size] = marks
        else:
            places = begin + chosen.permutation(size)
            unwritten.store_items(BEGIN + places, 1, marks)
            known[places] = marks
        assert marked(unwritten, bytes_at(BEGIN, SIZE)) == known.tolist()
        assert unwritten.open == known.any()
        assert unwritten.may_have(bytes_at(BEGIN + begin, size)) == known.any()
