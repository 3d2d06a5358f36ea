"""Views of emulated arrays, and the lifetime of the memory of arrays and views."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tcuda
import tcuda.emulation
from support.devices import allocated
from support.emulated_arrays import numbers, on_device
from tcuda.emulation import xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]
MILLISECOND = 1_000_000


VIEWS = {
    "T": lambda array: array.T,
    "mT": lambda array: array.mT,
    "reshape": lambda array: array.reshape(-1),
    "ravel": lambda array: array.ravel(),
    "swapaxes": lambda array: array.swapaxes(0, 1),
    "squeeze": lambda array: array[:1].squeeze(),
    "diagonal": lambda array: array.diagonal(1),
    "real": lambda array: array.real,
    "imag": lambda array: array.imag,
    "view": lambda array: array.view(),
    "view of bytes": lambda array: array.view("q"),
    "new axis": lambda array: array[None, ..., None],
    "reversed": lambda array: array[::-1, ::-2],
    "element": lambda array: array[1, 1, ...],
    "view of a view": lambda array: array.T[1:][:, 1:],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_share_memory_and_cost_nothing(runtime, view):
    host = numbers("D")
    array = xp.asarray(host)
    used, time = allocated(), runtime.clock.now()
    seen = view(array)
    assert (allocated(), runtime.clock.now()) == (used, time)
    assert seen.base is array
    assert xp.shares_memory(seen, array)
    view(array)[...] = 7
    expected = host.copy()
    target = view(expected)
    if not target.flags.writeable:
        target.setflags(write=True)
    target[...] = 7
    np.testing.assert_array_equal(array.get(), expected)


def test_functions_return_writable_views():
    array = xp.zeros((2, 4))
    halves = xp.split(array, 2, axis=1)
    halves[1][...] = 1
    xp.broadcast_to(array[:, :1], (2, 4))[0, 3] = 5  # CuPy returns a writable view, unlike NumPy
    assert array.tolist() == [[5, 0, 1, 1], [0, 0, 1, 1]]


def test_parts_of_complex_numbers_can_be_set():
    array = xp.zeros(2, "D")
    array.real = xp.asarray([1.0, 2.0])
    array.imag = 3
    assert array.tolist() == [1 + 3j, 2 + 3j]
    with pytest.raises(TypeError, match="imaginary part"):
        xp.zeros(2).imag = 1
    assert xp.ones(2).imag.tolist() == [0, 0]


def test_a_view_keeps_the_memory():
    gc.collect()  # frees the arrays of other tests
    before = allocated()
    view = xp.arange(1024.0)[1000:]
    with_view = allocated()
    assert with_view != before
    gc.collect()
    assert view.tolist() == list(range(1000, 1024))
    last = view[:1].data
    del view
    assert allocated() == with_view
    del last
    assert allocated() == before


def test_the_memory_of_an_array_is_freed_when_it_dies():
    before = allocated()
    array = xp.zeros(1 << 20, "B")
    assert allocated()[0] == before[0] + (1 << 20)
    del array
    assert allocated() == before


def test_memory_is_reused_and_given_back_by_empty_cache(runtime):
    tcuda.empty_cache()
    free, _ = runtime.memGetInfo()
    array = xp.empty(30 << 20, "B")
    address, held = array.data.ptr, free - runtime.memGetInfo()[0]
    assert held >= 30 << 20
    del array
    assert runtime.memGetInfo()[0] == free - held
    again = xp.empty(30 << 20, "B")
    assert again.data.ptr == address
    del again
    tcuda.empty_cache()
    assert runtime.memGetInfo()[0] == free


def test_allocation_takes_no_time_and_is_no_work_of_a_stream(runtime):
    runtime.sleep(MILLISECOND, 0)
    time, ready = runtime.clock.now(), runtime.devices[0].default.ready
    array = xp.empty(30 << 20, "B")
    del array
    assert (runtime.clock.now(), runtime.devices[0].default.ready) == (time, ready)


def test_arrays_without_elements_take_no_memory(runtime):
    before = allocated()
    array = xp.zeros((3, 0, 2))
    assert allocated() == before
    assert array.data.ptr == 0
    assert (array + 1).shape == array.get().shape == (3, 0, 2)
    assert array.sum().item() == 0
    assert array.reshape(0).size == array[1:2].size == array.T.size == 0
    with on_device(runtime, 1):  # the current device does not matter for views
        assert array.T.base is array
        assert array[1:, ..., :1].device == xp.cuda.Device(0)


def test_reshape_copies_as_asked():
    array = xp.zeros((2, 3))
    assert array.reshape(6, copy=None).base is array
    assert not xp.shares_memory(array.reshape(6, copy=True), array)
    with pytest.raises(ValueError, match="Unable to avoid creating a copy"):
        array.T.reshape(6, copy=False)
    with pytest.raises(ValueError, match="strings are not allowed for 'copy'"):
        array.reshape(6, copy="never")
