"""Types of arrays in annotations."""

from __future__ import annotations

import typing
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tcuda import xp


def test_the_types_are_those_of_numpy_and_of_arrays_of_a_device() -> None:
    types = xp.typing
    assert types.ArrayLike is npt.ArrayLike
    assert types.DTypeLike is npt.DTypeLike
    assert typing.get_origin(types.NDArray[np.float32]) is xp.ndarray
    assert typing.get_args(types.NDArray[np.float32]) == (Any, np.dtype[np.float32])
    assert {"ArrayLike", "DTypeLike", "NBitBase", "NDArray"} <= set(dir(types))
    with pytest.raises(AttributeError, match="no attribute 'ArrayUnlike'"):
        _ = types.ArrayUnlike


@pytest.mark.filterwarnings("ignore:`NBitBase` is deprecated:DeprecationWarning")
def test_the_name_that_numpy_deprecates_is_there() -> None:
    assert xp.typing.NBitBase is npt.NBitBase


def test_a_class_of_arrays_takes_a_shape_and_a_dtype() -> None:
    assert typing.get_args(xp.ndarray[tuple[int], np.dtype[np.float64]]) == (tuple[int], np.dtype[np.float64])
    with pytest.raises(TypeError):
        _ = xp.ndarray[int]


def test_annotations_can_be_read() -> None:
    def double(x: xp.typing.NDArray[np.float32]) -> xp.typing.NDArray[np.float32]:
        return 2 * x

    assert typing.get_type_hints(double)["return"] == xp.typing.NDArray[np.float32]
