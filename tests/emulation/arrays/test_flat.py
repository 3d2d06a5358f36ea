"""Iterators over the elements of emulated arrays."""

from __future__ import annotations

import numpy as np
import pytest

from support.emulated_arrays import assert_same_array, numbers
from tcuda.emulation import xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

PLACES = [..., 0, 5, -1, slice(None), slice(None, 4), slice(1, None, 2), slice(None, None, -1), slice(4, None, -2)]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("place", PLACES)
def test_parts_of_the_iterator_are_copied_and_assigned(place, order):
    host = np.asarray(numbers("f"), order=order)
    array = xp.asarray(host)
    part = array.flat[place]
    expected = host.flat[place]
    assert_same_array(part, expected)
    assert not xp.shares_memory(part, array)
    array.flat[place] = 7
    host.flat[place] = 7
    assert_same_array(array, host)
    if not isinstance(place, int):
        array.flat[place] = xp.asarray([1.0, 2.0])
        host.flat[place] = [1.0, 2.0]
        assert_same_array(array, host)
        array.flat = [3, 4, 5]
        host.flat = [3, 4, 5]
        assert_same_array(array, host)


def test_the_iterator_returns_every_element_once():
    array = xp.arange(6).reshape(2, 3).T
    iterator = array.flat
    assert iterator.base is array
    assert iter(iterator) is iterator
    assert len(iterator) == 6
    assert [element.item() for element in iterator] == [0, 3, 1, 4, 2, 5]
    assert_same_array(iterator.copy(), [0, 3, 1, 4, 2, 5])
    assert isinstance(iterator, xp.flatiter)


@pytest.mark.parametrize("place", [None, (0,), True, [0], np.array([0])])
def test_other_places_are_refused(place):
    array = xp.zeros((2, 3))
    with pytest.raises(IndexError, match="unsupported iterator index"):
        array.flat[place]
    with pytest.raises(IndexError, match="unsupported iterator index"):
        array.flat[place] = 1


def test_a_place_after_the_last_element_is_refused():
    with pytest.raises(IndexError):
        xp.zeros((2, 3)).flat[6]


def test_the_old_methods_for_scattering_work_with_a_warning():
    array = xp.zeros(3, "f")
    for name in ("scatter_add", "scatter_max", "scatter_min"):
        with pytest.warns(DeprecationWarning, match=name):
            getattr(array, name)([1, 1], np.array([2.0, 3.0]))
    assert_same_array(array, np.array([0, 2, 0], "f"))
