"""The check whether an array has the elements to which its parameter points."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tcuda

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("runtime")]

KERNELS = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
typedef const volatile float* Floats;
struct Unknown;
enum Small : short {};
template <typename T> __global__ void filled(T* out) {}
extern "C" {
__global__ void floats(int n, const float* x, Floats y) {}
__global__ void ints(unsigned* x) {}
__global__ void longs(long long* __restrict__ x) {}
__global__ void doubles(double* const x) {}
__global__ void halves(__half* x) {}
__global__ void brains(__nv_bfloat16* x) {}
__global__ void words(unsigned short* x) {}
__global__ void smalls(Small* x) {}
__global__ void bytes(unsigned char* x) {}
__global__ void any(void* x) {}
__global__ void vectors(float4* x) {}
__global__ void unknown(Unknown* x) {}
__global__ void pointers(float** x) {}
__global__ void numbers(unsigned long long x) {}
}
"""
WRONG = [
    ("ints", "float32"),
    ("ints", "int64"),
    ("longs", "int32"),
    ("longs", "float64"),
    ("doubles", "float32"),
    ("doubles", "complex64"),
    ("doubles", "int64"),
    ("halves", "float32"),
    ("brains", "float16"),
    ("words", "uint8"),
    ("filled<float>", "float64"),
]
RIGHT = [
    ("ints", "int32"),
    ("longs", "uint64"),
    ("doubles", "float64"),
    ("doubles", "complex128"),
    ("halves", "float16"),
    ("halves", "uint16"),
    ("words", "float16"),
    ("words", "int16"),
    ("smalls", "int16"),
    ("bytes", "float64"),
    ("any", "float64"),
    ("vectors", "float32"),
    ("unknown", "float32"),
    ("pointers", "uint64"),
    ("numbers", "float32"),
    ("filled<float>", "float32"),
    ("filled<float>", "complex64"),
]


@pytest.fixture(scope="module")
def module(runtime):
    """A module, whose code no other module shares, so that no kernel has warned."""
    return tcuda.xp.RawModule(code=KERNELS, name_expressions=["filled<float>"])


@pytest.mark.parametrize(("name", "dtype"), WRONG)
def test_an_array_of_other_elements_warns_once(xp, name, dtype):
    kernel = xp.RawModule(code=f"{KERNELS}// {dtype}", name_expressions=["filled<float>"]).get_function(name)
    array = xp.zeros(4, dtype)
    with pytest.warns(RuntimeWarning, match=f"Argument 0 is an array of {dtype}, and the parameter points to "):
        kernel((1,), (1,), (array,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel((1,), (1,), (array,))


@pytest.mark.parametrize(("name", "dtype"), RIGHT)
def test_an_array_that_fits_does_not_warn(xp, module, name, dtype):
    kernel = module.get_function(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel((1,), (1,), (xp.zeros(4, dtype),))
        kernel((1,), (1,), (xp.zeros(4, dtype),))


def test_the_check_says_which_argument_and_is_an_error_if_asked_for(xp, monkeypatch):
    x, n = xp.zeros(4, np.float32), np.int32(4)
    wide = x.astype(np.float64)
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "memory, types")
    kernel = xp.RawModule(code=KERNELS).get_function("floats")
    message = (
        "Argument 2 is an array of float64, and the parameter points to float32, so that the kernel floats takes the "
        "bytes of the array for other numbers"
    )
    for _ in range(2):
        with pytest.raises(TypeError, match=message):
            kernel((1,), (1,), (n, x, wide))
    kernel((1,), (1,), (n, x, wide.view(np.float32)))
    kernel((1,), (1,), (n, x, wide[:0]))
    kernel((1,), (1,), (n, wide.data, None))
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "memory")
    xp.RawModule(code=KERNELS).get_function("floats")((1,), (1,), (n, wide, wide))
