"""The elements of views that lie in a range of memory."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcuda.sanitizer._elements import Elements, Region, elements, indices, text

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

BASE = 1000


def region(view: numpy.ndarray, whole: numpy.ndarray) -> Region:
    offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return Region(BASE + offset, view.itemsize, view.shape, view.strides)


@st.composite
def views(draw: DrawFn) -> tuple[numpy.ndarray, numpy.ndarray]:
    shape = draw(st.lists(st.integers(1, 4), min_size=0, max_size=3))
    whole = numpy.arange(int(numpy.prod(shape)), dtype=draw(st.sampled_from([numpy.uint8, numpy.float32])))
    view = whole.reshape(shape).transpose(draw(st.permutations(range(len(shape)))))
    steps = [slice(None, None, draw(st.sampled_from([1, 2, -1]))) for _ in shape]
    return view[tuple(steps)], whole


@given(views())
def test_every_byte_of_a_view_belongs_to_its_element(given: tuple[numpy.ndarray, numpy.ndarray]) -> None:
    view, whole = given
    seen = region(view, whole)
    for number, place in enumerate(itertools.product(*map(range, view.shape))):
        start = seen.address + sum(index * stride for index, stride in zip(place, view.strides, strict=True))
        for byte in range(view.itemsize):
            assert elements(seen, (start + byte, 1)) == Elements(number, number)
        assert indices(seen, number) == place


def test_a_range_names_its_first_and_its_last_element() -> None:
    assert elements(Region(1000, 4, (64,), (4,)), (1016, 32)) == Elements(4, 11)


def test_a_reversed_view_names_the_smaller_number_first() -> None:
    assert elements(Region(1036, 4, (10,), (-4,)), (1000, 8)) == Elements(8, 9)


@pytest.mark.parametrize(
    "seen",
    [Region(1000, 4, (4,), (8,)), Region(1000, 4, (2,), (4,)), Region(1008, 4, (2,), (4,))],
    ids=["gap", "behind", "before"],
)
def test_a_byte_of_no_element_has_no_number(seen: Region) -> None:
    assert elements(seen, (1004 + 16 * (seen.shape == (2,)) - 16 * (seen.address == 1008), 1)) is None


def test_the_elements_of_a_broadcast_view_are_the_first_ones() -> None:
    assert elements(Region(1000, 4, (3, 2), (0, 4)), (1004, 4)) == Elements(1, 1)


@pytest.mark.parametrize(
    ("seen", "found", "expected"),
    [
        (Region(0, 4, (64,), (4,)), Elements(0, 63), "elements 0 to 63 of 64"),
        (Region(0, 4, (64,), (4,)), Elements(5, 5), "element 5 of 64"),
        (Region(0, 1, (64,), (1,)), Elements(0, 7), "bytes 0 to 7 of 64"),
        (Region(0, 4, (8, 8), (32, 4)), Elements(4, 31), "elements [0, 4] to [3, 7] of 8 x 8"),
        (Region(0, 4, (), ()), Elements(0, 0), "element 0 of 1"),
        (Region(0, 4, (9,), (2,)), None, "elements of 9"),
    ],
)
def test_the_text_names_elements_by_their_indices(seen: Region, found: Elements | None, expected: str) -> None:
    assert text(seen, found) == expected
