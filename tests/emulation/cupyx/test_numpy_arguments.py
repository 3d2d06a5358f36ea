"""NumPy arrays as axes, sizes, cut-offs and operands: CuPy takes them in some functions, and refuses them in others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tcuda
from tcuda.emulation import cupyx

pytest.importorskip("scipy")
pytestmark = [pytest.mark.usefixtures("runtime"), pytest.mark.emulated]

MEASURED = json.loads((Path(__file__).parents[2] / "data" / "numpy_arguments_on_h200.json").read_text("utf-8"))


def evaluated(call, axes, zero):
    scipy = cupyx.scipy
    x = tcuda.xp.arange(24.0).reshape(4, 6)
    names = {"xp": tcuda.xp, "np": np, "fft": scipy.fft, "nd": scipy.ndimage, "sg": scipy.signal, "x": x}
    return eval(call, {**names, "axes": axes, "zero": zero})


def parts_of(result):
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("call", MEASURED["taken"])
def test_arrays_of_the_host_are_taken_where_a_gpu_takes_them(call):
    found = evaluated(call, np.array([0, 1]), np.array(0))
    if "np.array(" in call or "np.ones(" in call:
        return
    for mine, theirs in zip(parts_of(found), parts_of(evaluated(call, (0, 1), 0)), strict=True):
        np.testing.assert_array_equal(mine.get(), theirs.get())


@pytest.mark.parametrize("call", MEASURED["refused"])
def test_arrays_of_the_host_are_refused_where_a_gpu_refuses_them(call):
    with pytest.raises(TypeError):
        evaluated(call, np.array([0, 1]), np.array(0))


def test_places_along_several_axes_count_the_elements_of_these_axes():
    host = np.random.default_rng(0).standard_normal((3, 4, 5))
    array = tcuda.xp.asarray(host)
    for axes, order in (((0, 2), (1, 0, 2)), ((2, 0), (1, 0, 2)), ((1, 2), (0, 1, 2)), ((-1, 0), (1, 0, 2))):
        flat = host.transpose(order).reshape(host.shape[order[0]], -1)
        assert tcuda.xp.argmax(array, axis=axes).tolist() == flat.argmax(axis=1).tolist()
        assert tcuda.xp.nanargmin(array, axis=axes).tolist() == flat.argmin(axis=1).tolist()
        assert tcuda.xp.argmin(array, axis=axes, keepdims=True).ndim == 3
