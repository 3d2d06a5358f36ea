"""Arrays of bfloat16, which ml_dtypes adds to NumPy, on emulated devices."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import tcuda
from tcuda.emulation import cupyx
from tcuda.emulation.numbers.bfloat16 import is_bfloat16, named_bfloat16

ml_dtypes = pytest.importorskip("ml_dtypes")
pytestmark = [pytest.mark.usefixtures("runtime"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]

BF16 = np.dtype(ml_dtypes.bfloat16)
MEASURED = json.loads((Path(__file__).parents[2] / "data" / "bfloat16_on_h200.json").read_text("utf-8"))
SCALARS = {
    "int": 2,
    "float": 2.5,
    "bool": True,
    "complex": 2j,
    "np.float32": np.float32(2),
    "bf": BF16.type(2),
    "np.float64": np.float64(2),
    "np.int64": np.int64(2),
}
SPECIAL = np.array(
    [
        *(0.0, -0.0, 1, np.inf, -np.inf, np.nan, 1e-45, 1e-40, 1.17e-38, 3.3895314e38, 3.4e38, 3.4028235e38),
        *(1.00390625, 1.01171875, 257, 65504, 1e-8, -2.7),
    ],
    np.float32,
)
WHOLE = np.array([0, 1, 2, 100, 127, 257, 65535, 16777217, 2**31 - 1, 2**53 + 1])
FRACTIONS = np.array([0, 1, -1, 2.7, 100, 200, 300, 70000, 3e9, 1e20, np.inf, -np.inf, np.nan], np.float32)


def array(name):
    return tcuda.xp.asarray(np.array(MEASURED[name], np.float32)).astype(BF16)


def told(result):
    """Return the dtype and the elements of a result, as the table has them."""
    if isinstance(result, (tuple, list)):
        return [told(part) for part in result]
    if not isinstance(result, tcuda.xp.ndarray):
        return str(result)
    host = result.get()
    if host.dtype.kind == "c":
        return [str(host.dtype), told(result.real)[1], told(result.imag)[1]]
    exact = host.astype(np.float32) if is_bfloat16(host.dtype) else host
    return [str(host.dtype), [repr(part.item()) for part in exact.ravel()]]


def is_near(found, expected):
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(is_near, found, expected))
    try:
        return np.isclose(float(found), float(expected), rtol=2e-5, atol=1e-6, equal_nan=True)
    except ValueError:
        return found == expected


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("name", MEASURED["ufuncs"])
def test_universal_functions_have_the_results_of_a_gpu(name):
    function = getattr(tcuda.xp, name, None)
    if function is None:
        pytest.skip("the installed version of NumPy does not have the function")
    inputs = [array("x"), array("y")][: getattr(function, "nin", 1)]
    assert is_near(outcome(lambda: told(function(*inputs))), MEASURED["ufuncs"][name])


def test_types_of_mixed_operands_are_those_of_a_gpu():
    wrong = {}
    for case, expected in MEASURED["mixed"].items():
        name, other = case.split()
        function = getattr(tcuda.xp, name, None)
        if function is None:
            continue
        operand = SCALARS[other] if other in SCALARS else array("y").astype("f4").astype(other)
        found = outcome(lambda f=function, operand=operand: f(array("x"), operand))
        kinds = [str(part.dtype) for part in found] if isinstance(found, tuple) else str(getattr(found, "dtype", found))
        if kinds != expected:
            wrong[case] = kinds, expected
    assert not wrong


@pytest.mark.parametrize("case", MEASURED["casts"])
def test_casts_are_those_of_a_gpu(case):
    first, second = case.split("->")
    if first == "bf":
        given = (SPECIAL if second.startswith("f") else FRACTIONS).astype(BF16)
        found = tcuda.xp.asarray(given).astype(second)
    else:
        given = (SPECIAL if first.startswith("f") else WHOLE).astype(first)
        found = tcuda.xp.asarray(given).astype(BF16).view("u2")
    assert is_near(told(found), MEASURED["casts"][case])


@pytest.mark.parametrize("name", MEASURED["functions"])
def test_functions_have_the_results_of_a_gpu(name):
    g = array("g")
    arguments = {
        "clip": (g, 1, 3),
        "dot": (g, g.T),
        "quantile": (g, 0.5),
        "tile": (g, 2),
        "repeat": (g, 2),
        "where": (g > 1, g, 0),
        "concatenate": ([g, g],),
        "stack": ([g, g],),
        "einsum": ("ij->i", g),
        "matmul": (g, g.T),
        "outer": (g[0], g[0]),
        "partition": (g, 1),
        "take": (g, [0]),
        "roll": (g, 1),
    }
    of_two = ("array_equal", "allclose", "inner", "isclose", "kron", "tensordot", "vdot")
    given = arguments.get(name, (g, g) if name in of_two else (g,))
    assert is_near(outcome(lambda: told(getattr(tcuda.xp, name)(*given))), MEASURED["functions"][name])


def test_many_numbers_are_added_and_multiplied_in_single_precision():
    xp = tcuda.xp
    assert float(xp.ones(1000, BF16).sum()) == float(xp.ones((1000, 2), BF16).sum(axis=0)[1]) == 1000
    assert float(xp.full(1000, 1.1, BF16).mean()) == 1.1015625
    product = xp.ones((4, 1000), BF16) @ xp.full((1000, 4), 1.1, BF16)
    assert (product.dtype, product.get().astype(float).ravel().tolist()) == (BF16, [1104] * 16)
    assert xp.ones(3, BF16).sum(dtype="f4").dtype == xp.mean(xp.ones(3, BF16), dtype="f4").dtype == np.float32
    assert xp.ones(3, "f4").sum(dtype=BF16).dtype == BF16
    out = xp.empty((), BF16)
    assert xp.sum(xp.ones(300, BF16), out=out) is out
    assert float(out) == 300


def test_linear_algebra_is_computed_in_double_precision():
    matrix = array("g")[:, :2]
    assert tcuda.xp.linalg.inv(matrix).dtype == tcuda.xp.fft.fft(matrix).real.dtype == np.float64
    assert [part.dtype for part in tcuda.xp.linalg.svd(matrix)] == [np.float64] * 3


def test_arrays_can_be_made_printed_indexed_and_pickled():
    xp = tcuda.xp
    made = xp.arange(3, dtype=BF16)
    assert (repr(made), str(made)) == ("array([0, 1, 2], dtype=bfloat16)", "[0 1 2]")
    assert xp.full(2, 1.3, "bfloat16").tolist() == [1.296875] * 2
    made[made > 1] = 5.1
    made += 1
    assert (made.tolist(), made[0].item(), float(made[2])) == ([1, 2, 6.09375], 1, 6.09375)
    assert pickle.loads(pickle.dumps(made)).tolist() == made.tolist()
    assert made.__cuda_array_interface__["typestr"] == "<V2"
    with pytest.raises(TypeError, match="atomic function for bfloat16|add.at only supports"):
        xp.add.at(made, xp.asarray([0, 0]), xp.ones(2, BF16))
    assert (made == 1.0).tolist() == [True, False, False]


def test_dlpack_passes_arrays():
    made = tcuda.xp.arange(6, dtype=BF16).reshape(2, 3).T
    again = tcuda.xp.from_dlpack(made)
    assert (again.dtype, again.strides, again.data.ptr) == (BF16, made.strides, made.data.ptr)
    assert again.tolist() == made.tolist()


def test_without_ml_dtypes_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(BufferError, match="pip install ml_dtypes"):
        named_bfloat16()


def test_kernels_take_arrays_and_scalars():
    xp = tcuda.xp
    g = array("g")
    square = xp.ElementwiseKernel("T x", "T y", "y = x * x + T(1)", "square_bfloat16")
    assert square(g).get().astype(float).tolist() == [[2, 5, 10], [17, 1.25, 65536]]
    named = xp.ElementwiseKernel("bfloat16 x, float32 s", "float32 y", "y = float(exp(x)) * s", "named_bfloat16")
    np.testing.assert_allclose(named(g[0], np.float32(2)).get(), 2 * np.exp([1, 2, 3]), rtol=1e-6)
    exact = xp.ElementwiseKernel("T x", "T y", "y = exp(x)", "exact_bfloat16")
    assert exact(g[0]).get().astype(float).tolist() == [2.71875, 7.375, 20.125]
    total = xp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total_bfloat16")
    assert float(total(g)) == 266
    source = """
    #include <cuda_bf16.h>
    extern "C" __global__ void twice(const __nv_bfloat16 *x, __nv_bfloat16 *y, __nv_bfloat16 s) {
        y[threadIdx.x] = __hmul(x[threadIdx.x], s);
    }"""
    out = xp.empty_like(g)
    xp.RawKernel(source, "twice")((1,), (6,), (g, out, BF16.type(2)))
    assert out.get().astype(float).tolist() == [[2, 4, 6], [8, 1, 512]]


@pytest.mark.filterwarnings("ignore:cupyx.jit.rawkernel:FutureWarning")
@pytest.mark.emulated  # the kernels of CuPy need a GPU's arrays, and these are of the emulated module
def test_kernels_in_python_have_no_operators_for_bfloat16():
    @cupyx.jit.rawkernel()
    def add(x, y):
        i = cupyx.jit.threadIdx.x
        y[i] = x[i] + x[i]

    with pytest.raises(TypeError, match="does not support the types bfloat16"):
        add((1,), (3,), (array("x"), array("x")))


def test_jiterator_takes_arrays():
    xp = tcuda.xp
    function = tcuda.jiterator._create_jit_fn("template <typename T> T madd(T x, T y) { return x * y + y; }")
    given = xp.arange(4, dtype=BF16)
    assert (function(given, given).dtype, function(given, given.astype("f4")).dtype) == (BF16, np.float32)
    assert function(given, given).tolist() == [0, 2, 6, 12]


@pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")
def test_collectives_take_arrays():
    xp = tcuda.xp
    parts = []
    for place in range(2):
        with tcuda.device(place):
            parts.append(xp.ones(5, BF16) * (place + 1))
    assert tcuda.comm.reduce_add(parts, 0).tolist() == [3] * 5
    assert [each.dtype for each in tcuda.comm.broadcast(parts[0], [0, 1])] == [BF16] * 2
    tcuda.nccl.all_reduce(parts)
    assert [each.tolist() for each in parts] == [[3] * 5] * 2
