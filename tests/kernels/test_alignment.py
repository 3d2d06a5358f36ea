"""Addresses that are no multiple of the alignment of the type of the pointer."""

from __future__ import annotations

import functools
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcuda
from support.cpp_compilers import needs_gcc
from support.devices import synchronized
from support.examples import examples
from support.kernels import launch_status

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = [
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
    pytest.mark.emulated,  # After a failure, a GPU runs nothing more in the process.
]

TYPES = {
    "float2": 8,
    "int4": 16,
    "float4": 16,
    "uchar4": 4,
    "ushort4": 8,
    "double2": 16,
    "longlong2": 16,
    "complex<float>": 8,
    "complex<double>": 16,
    "cuDoubleComplex": 16,
    "half2": 4,
    "Pair": 16,
}
HEAD = """
#include <cupy/complex.cuh>
#include <cuComplex.h>
#include <cuda_fp16.h>
struct __align__(16) Pair { float x, y; };
__device__ const Pair& first(const Pair* pairs) { return pairs[0]; }
"""


def status_of(xp: Any, body: str, parameters: str, *args: Any) -> tuple[int, str]:
    """Return the status and the message of a launch of one thread, 0 without an error."""
    kernel = xp.RawKernel(f'{HEAD} extern "C" __global__ void f({parameters}) {{ {body} }}', "f")
    try:
        with synchronized():
            kernel((1,), (1,), args)
    except tcuda.AcceleratorError as error:
        return error.error_code, error.details
    return 0, ""


@needs_gcc
@pytest.mark.parametrize("body", ["*y = *x;", "TYPE v = *x; y[1] = v;", "memcpy(y, x, sizeof *x); *y = x[0];"])
@pytest.mark.parametrize(("name", "alignment"), TYPES.items())
def test_a_read_of_a_vector_at_a_wrong_address_is_an_error(name: str, alignment: int, body: str, xp: Any) -> None:
    x, y = xp.zeros(256, dtype=xp.uint8), xp.zeros(64, dtype=xp.uint8)
    parameters = f"const {name}* x, {name}* y"
    for offset in (alignment // 2, alignment):
        wrong = offset % alignment != 0
        status, text = status_of(xp, body.replace("TYPE", name), parameters, x[offset:], y)
        assert status == (716 if wrong else 0)
        assert not wrong or f"which is no multiple of {alignment}\n" in text


@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        ("y[0] = x->x + x->w;", "const float4* x, float* y"),
        ("y[0] = x[threadIdx.x].z;", "const float4* x, float* y"),
        ("x->y = y[0];", "float4* x, const float* y"),
        pytest.param("*x = make_float4(y[0], y[1], y[2], y[3]);", "float4* x, const float* y", marks=needs_gcc),
        ("*x = {y[0], y[1]};", "double2* x, const double* y"),
        ("x[1] = make_float2(y[0], 1);", "float2* x, const float* y"),
        ("y[0] = first(x).x;", "const Pair* x, float* y"),
        ("y[0] = x[0].imag();", "const complex<double>* x, double* y"),
        ("x[0] *= y[0];", "complex<double>* x, const double* y"),
        ("x[0] = x[1] + x[2];", "complex<double>* x, const double* y"),
    ],
)
def test_a_part_of_a_vector_at_a_wrong_address_is_an_error(body: str, parameters: str, xp: Any) -> None:
    x = xp.zeros(256, dtype=xp.uint8)
    y = xp.zeros(16, dtype=xp.float32 if "float* y" in parameters else xp.float64)
    assert status_of(xp, body, parameters, x[4 if "float2" in parameters else 8 :], y)[0] == 716
    assert status_of(xp, body, parameters, x[16:], y) == (0, "")


@pytest.mark.parametrize("memory", ["__shared__ float s[32];", "extern __shared__ float s[];", "float s[32] = {};"])
@pytest.mark.parametrize("wrong", [False, True])
def test_a_vector_in_other_memory_at_a_wrong_address_is_an_error(wrong: bool, memory: str, xp: Any) -> None:
    x = xp.zeros(8, dtype=xp.float32)
    body = f"{memory} int place = (16 - (size_t)s % 16) / 4 % 4 + {wrong:d}; x[0] = ((float4*)(s + place))->y;"
    kernel = xp.RawKernel(f'extern "C" __global__ void f(float* x) {{ {body} }}', "f")
    assert launch_status(lambda: kernel((1,), (1,), (x,), shared_mem=256)) == (716 if wrong else 0)


OPERATIONS = [
    "*y = *x;",
    "T value = *y; *x = value;",
    "*y = same<T>(*x);",
    "for (int i = 0; i < 2; ++i) y[i] = x[i];",
    "T value = x[0]; x[0] = x[1]; x[1] = value;",
]
USE = """
template <class T> __device__ T same(const T& x) { return x; }
template <class T> __global__ void use(char* memory, T* y, int kind, int offset, int operation) {
    __shared__ __align__(64) char s[256];
    extern __shared__ __align__(64) char d[];
    __align__(64) char l[256] = {};
    T* x = (T*)((kind == 0 ? memory : kind == 1 ? s : kind == 2 ? d : l) + offset);
    switch (operation) { CASES }
}
"""


@functools.cache
def kernels_of_all_types() -> Any:
    """Return a module with a kernel for each type."""
    cases = "".join(f"case {number}: {{ {body} break; }}" for number, body in enumerate(OPERATIONS))
    names = [f"use<{name}>" for name in TYPES]
    return tcuda.xp.RawModule(code=HEAD + USE.replace("CASES", cases), name_expressions=names)


@needs_gcc
@given(
    name=st.sampled_from(sorted(TYPES)),
    kind=st.integers(0, 3),
    offset=st.integers(0, 64),
    operation=st.integers(0, len(OPERATIONS) - 1),
)
@settings(max_examples=examples(100), deadline=None)
def test_only_addresses_of_the_alignment_are_allowed(name: str, kind: int, offset: int, operation: int) -> None:
    xp = tcuda.xp
    x, y = xp.zeros(256, dtype=xp.uint8), xp.zeros(256, dtype=xp.uint8)
    kernel = kernels_of_all_types().get_function(f"use<{name}>")
    numbers = [xp.int32(number) for number in (kind, offset, operation)]
    status = launch_status(lambda: kernel((1,), (2,), (x, y, *numbers), shared_mem=256))
    assert status == (716 if offset % TYPES[name] else 0)


@needs_gcc
def test_the_message_names_the_line_and_the_type(xp: Any) -> None:
    x = xp.zeros(16, dtype=xp.float32)
    code = 'extern "C" __global__ void f(float4* x) {\n  float4 v = make_float4(1, 2, 3, 4);\n  x[0] = v;\n}'
    with pytest.raises(tcuda.AcceleratorError) as caught, synchronized():
        xp.RawKernel(code, "f")((1,), (1,), (x[1:],))
    assert caught.value.details.startswith("kernel.cu:3: block: [0, 0, 0], thread: [0, 0, 0]: Misaligned ")
    assert "'struct float4'" in caught.value.details


def test_the_process_outlives_a_wrong_address_without_checks(output_of: OutputOf) -> None:
    code = """
import tcuda.emulation
tcuda.emulation.enable()
xp = tcuda.emulation.xp
x, y = xp.arange(64, dtype=xp.float32), xp.zeros(64, dtype=xp.float32)
code = 'extern "C" __global__ void f(const float4* x, float4* y) { y[threadIdx.x] = x[threadIdx.x]; }'
copy = xp.RawKernel(code, "f")
try:
    copy((1,), (4,), (x[2:], y))
    tcuda.synchronize()
    print(716)
except tcuda.AcceleratorError as error:
    print(error.error_code)
copy((1,), (4,), (x, y))
print(y[15].item())
"""
    assert output_of(code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_CHECKS="0").split() == ["716", "15.0"]
