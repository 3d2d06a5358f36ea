"""The bytes between which an array lies, and the strides of an array without gaps, compared with NumPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tcuda._base.strides import byte_bounds, packed_strides

if TYPE_CHECKING:
    import numpy.typing as npt

WHOLE = np.zeros((3, 4, 5), np.int32)


@pytest.mark.parametrize(
    "view",
    [
        WHOLE,
        WHOLE[0, 0, 0, ...],
        WHOLE[::-1],
        WHOLE[:, ::-2, 1:],
        WHOLE.T[::-1],
        np.broadcast_to(WHOLE[0], WHOLE.shape),
    ],
)
def test_the_bounds_are_those_of_numpy(view: npt.NDArray[np.int32]) -> None:
    found = byte_bounds(view.ctypes.data, view.itemsize, view.shape, view.strides)
    assert found == np.lib.array_utils.byte_bounds(view)


def test_an_array_without_elements_has_no_bytes() -> None:
    assert byte_bounds(1000, 4, (3, 0), (-8, 4)) == (1000, 1000)


def test_packed_strides_are_those_of_c_order() -> None:
    assert packed_strides(4, WHOLE.shape) == WHOLE.strides
    assert packed_strides(4, ()) == ()
