"""Arrays that other libraries pass by ``__cuda_array_interface__`` or by ``__cupy_get_ndarray__``."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tcuda
from support.emulated_arrays import assert_same_array
from tcuda.emulation import ndarray, xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


def foreign(array: ndarray, **changes):
    """Return an object of another library with the memory of ``array``."""
    return SimpleNamespace(array=array, __cuda_array_interface__={**array.__cuda_array_interface__, **changes})


def test_the_interface_tells_the_memory_and_the_current_stream(monkeypatch):
    array = xp.arange(6.0).reshape(2, 3)
    interface = array[:, 1:].__cuda_array_interface__
    assert interface == {
        "shape": (2, 2),
        "typestr": "<f8",
        "descr": [("", "<f8")],
        "strides": (24, 8),
        "data": (array.data.ptr + 8, False),
        "version": 3,
        "stream": 1,
    }
    assert array.__cuda_array_interface__["strides"] is None
    assert array[:0].__cuda_array_interface__["data"] == (0, False)
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        assert array.__cuda_array_interface__["stream"] == stream.cuda_stream
    monkeypatch.setenv("CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION", "2")
    assert "stream" not in array.__cuda_array_interface__
    monkeypatch.setenv("CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION", "1")
    with pytest.raises(ValueError, match="3 \\(default\\) or 2"):
        array.__cuda_array_interface__  # noqa: B018  # the property raises the error


def test_an_array_of_another_library_shares_its_memory():
    array = xp.arange(6.0).reshape(2, 3)
    shared = xp.asarray(foreign(array[:, ::-1]))
    array += 1
    assert shared.strides == (24, -8)
    assert_same_array(shared, [[3.0, 2, 1], [6, 5, 4]])
    shared[0, 0] = 9
    assert array[0, 2].item() == 9
    assert not xp.shares_memory(xp.array(foreign(array)), array)
    assert xp.asarray(foreign(array[:0])).shape == (0, 3)


def test_an_array_of_another_library_keeps_its_memory_alive():
    shared = xp.asarray(foreign(xp.arange(3)))
    xp.zeros(3)
    assert_same_array(shared, [0, 1, 2])


def test_an_array_of_another_library_is_on_its_device():
    with tcuda.device(1):
        array = xp.arange(3)
        assert xp.asarray(foreign(array)).device == array.device
    with pytest.raises(ValueError, match="Array device must be same"):
        xp.add(foreign(array), 1)


def test_the_stream_of_an_array_of_another_library_is_waited_for(runtime):
    array = xp.zeros(3)
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        passed = foreign(array)
        runtime.sleep(10**6, stream.cuda_stream)
    start = runtime.clock.now()
    xp.asarray(foreign(array, stream=None))
    assert runtime.clock.now() < start + 10**6
    xp.asarray(passed)
    assert runtime.clock.now() >= start + 10**6


def test_functions_and_kernels_take_arrays_of_other_libraries():
    array = xp.arange(3.0)
    passed = foreign(array)
    assert_same_array(xp.add(passed, 1), [1.0, 2, 3])
    assert_same_array(np.multiply(array, passed), [0.0, 1, 4])
    assert_same_array(array - passed, [0.0, 0, 0])
    assert_same_array(xp.asarray([passed, passed]), [[0.0, 1, 2]] * 2)
    assert xp.asnumpy(passed).tolist() == [0, 1, 2]
    assert_same_array(array[foreign(xp.asarray([2, 0]))], [2.0, 0])
    array[:] = foreign(xp.asarray([4.0, 5, 6]))
    assert_same_array(xp.ElementwiseKernel("T x", "T y", "y = 2 * x")(passed), [8.0, 10, 12])
    array.fill(foreign(xp.asarray(3.0)))
    assert_same_array(array, [3.0, 3, 3])


def test_an_object_that_passes_an_array_of_cupy_is_that_array():
    array = xp.arange(3)
    holder = SimpleNamespace(__cupy_get_ndarray__=lambda: array)
    assert xp.asarray(holder) is array
    assert_same_array(xp.add(holder, 1), [1, 2, 3])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"typestr": ">f8"}, "big-endian"),
        ({"mask": object()}, "masked arrays"),
        ({"data": (np.ones(3).ctypes.data, False)}, "not in memory of a device"),
    ],
)
def test_other_memory_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        xp.asarray(foreign(xp.zeros(3), **changes))


def test_the_elements_may_have_a_dtype_that_no_kernel_knows():
    times = xp.asarray(foreign(xp.arange(3), typestr="<M8[s]", descr=[("", "<M8[s]")]))
    assert times.dtype == "M8[s]"
    assert_same_array(times.view("i8"), [0, 1, 2])
    pairs = xp.zeros(3, xp.make_aligned_dtype("?,q"))
    assert xp.asarray(foreign(pairs)).dtype == pairs.dtype


def test_an_array_and_a_part_of_its_memory_are_operands_of_a_capture(captured):
    array = xp.arange(100.0)
    part = xp.asarray(foreign(array[:2], stream=None))
    result, launch = captured(lambda: xp.concatenate([part, array[:3]]))
    launch()
    assert_same_array(result, [0.0, 1, 0, 1, 2])
