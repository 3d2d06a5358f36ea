"""The DLPack protocol, by which libraries pass arrays of a device."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tcuda
from support.emulated_arrays import assert_same_array
from tcuda.emulation import xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


class Passed:
    """An array of another library, which passes a capsule."""

    def __init__(self, array, **options):
        self._array = array
        self._options = options
        self.streams = []

    def __dlpack__(self, *, stream=None, **options):
        self.streams.append(stream)
        return self._array.__dlpack__(stream=stream, **self._options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_an_array_says_that_it_is_on_a_gpu():
    assert xp.zeros(3).__dlpack_device__() == (2, 0)
    with tcuda.device(1):
        assert xp.zeros(3).__dlpack_device__() == (2, 1)


def test_numpy_refuses_an_array_of_a_device():
    array = xp.arange(3)
    with pytest.raises((BufferError, RuntimeError), match="[Dd]evice"):
        np.from_dlpack(array)
    host = np.from_dlpack(array, device="cpu")
    array += 1
    assert host.tolist() == [0, 1, 2]


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}, {"max_version": (0, 8)}])
@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", "c8"])
def test_an_array_that_is_passed_shares_its_memory(dtype, options):
    array = xp.ones((2, 3), dtype)
    for shared in (xp.from_dlpack(Passed(array[:, ::-2], **options)), xp.from_dlpack(array[:, ::-2])):
        assert shared.strides == array[:, ::-2].strides
        shared[0, 0] = 0
        assert array[0, 2].item() == 0
        array[0, 2] = 1


def test_an_array_that_is_passed_keeps_its_device_and_its_memory():
    with tcuda.device(1):
        array = xp.arange(3)
    shared = xp.from_dlpack(array)
    address = array.data.ptr
    del array
    assert shared.device.id == 1
    assert shared.data.ptr == address
    with tcuda.device(1):
        xp.zeros(3)
        assert_same_array(shared, [0, 1, 2])


def test_a_capsule_is_read_once():
    array = xp.arange(3)
    capsule = array.__dlpack__(max_version=(1, 0))
    assert '"dltensor_versioned"' in str(capsule)
    assert '"dltensor"' in str(array.__dlpack__())
    assert_same_array(xp.from_dlpack(capsule), [0, 1, 2])
    assert '"used_dltensor_versioned"' in str(capsule)
    with pytest.raises(ValueError, match="consumed multiple times"):
        xp.from_dlpack(capsule)
    with pytest.raises(ValueError, match="not a DLPack capsule"):
        xp.from_dlpack(3)


def test_the_stream_of_the_reader_waits_for_the_current_stream(runtime):
    array = xp.zeros(3)
    reader, writer = tcuda.Stream(), tcuda.Stream()
    with tcuda.stream(writer):
        runtime.sleep(10**6, writer.cuda_stream)
        array.__dlpack__(stream=-1)
        assert reader.query()
        array.__dlpack__(stream=reader.cuda_stream)
    assert not reader.query()
    passed = Passed(array)
    xp.from_dlpack(passed)
    with tcuda.stream(reader):
        xp.from_dlpack(passed)
    assert passed.streams == [1, reader.cuda_stream]
    with pytest.warns(UserWarning, match="Stream 0"):
        array.__dlpack__(stream=0)
    with pytest.raises(ValueError, match="valid stream"):
        array.__dlpack__(stream=-2)


def test_what_cupy_does_not_pass_is_refused():
    array = xp.zeros(3)
    with pytest.raises(TypeError, match="CPU arrays cannot be directly imported"):
        xp.from_dlpack(np.zeros(3))
    with pytest.raises(NotImplementedError, match="device"):
        xp.from_dlpack(array, device=array.device)
    with pytest.raises(BufferError, match="copy to CPU"):
        xp.from_dlpack(array, copy=True)
    for other in ((2, 2**30), (9, 0)):
        with pytest.raises(BufferError, match="unsupported device"):
            array.__dlpack__(dl_device=other)
    with pytest.raises(ValueError, match="without copy"):
        array.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(RuntimeError, match="different from the backend"):
        xp.from_dlpack(np.zeros(3).__dlpack__())


def test_the_old_functions_pass_capsules_with_a_warning():
    array = xp.arange(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        same = xp.fromDlpack(array.toDlpack())
    assert [warning.category for warning in caught] == [np.exceptions.VisibleDeprecationWarning] * 2
    assert same.data.ptr == array.data.ptr
