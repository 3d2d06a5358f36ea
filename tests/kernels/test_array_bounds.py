"""Accesses through pointers beyond shared, local and constant arrays that lie side by side."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import tcuda
from support.cpp_compilers import needs_gcc
from support.devices import synchronized

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
]

BEFORE = r"""
__constant__ int table[8], after_table[8];
__device__ int filter[8], after_filter[8];
__device__ int sum(const int *p, int n) { int s = 0; for (int i = 0; i < n; ++i) s += p[i]; return s; }
__device__ void set(int *p, int i) { p[i] = 1; }
__device__ int last(const int *p, int n) { p += n; return *p; }
__device__ int *shared() { __shared__ int s[8]; return s; }
template <class T> __device__ T pick(int i) { __shared__ T a[8], b[8]; T *p = a; p[0] = b[0] = 1; return p[i]; }
struct Pair { int left[4], right[4]; };
"""
SIDE_BY_SIDE = "__shared__ int a[8], b[8]; int *p = a, *q = b; a[0] = b[0] = n;"
LOCAL = "int a[8], b[8]; for (int i = 0; i < 8; ++i) { a[i] = x[i]; b[i] = x[i + 8]; }"


def run(xp: Any, body: str) -> None:
    """Run ``body`` in a kernel with the array ``x`` of 64 numbers and ``n``, which is 8."""
    code = f'{BEFORE}extern "C" __global__ void f(int* x, int n) {{\n{body}\n}}'
    xp.RawKernel(code, "f")((1,), (2,), (xp.zeros(64, dtype=xp.int32), np.int32(8)))


@needs_gcc
@pytest.mark.parametrize(
    ("body", "access"),
    [
        (f"{SIDE_BY_SIDE} x[0] = p[n] + q[0];", "read of 'int'"),
        (f"{SIDE_BY_SIDE} q[n] = n; x[0] = p[0];", "write of 'int'"),
        (f"{SIDE_BY_SIDE} set(p, n); x[0] = q[0];", "write of 'int'"),
        (f"{SIDE_BY_SIDE} x[0] = sum(p, n + 1) + q[0];", "read of 'const int'"),
        (f"{SIDE_BY_SIDE} x[0] = last(p, n) + q[0];", "read of 'const int'"),
        (f"{SIDE_BY_SIDE} x[0] = ((int2 *)p)[n / 2].y + q[0];", "read of 'int'"),
        ("__shared__ int a[2][8], b[8]; b[0] = n; int *p = a[1]; x[0] = p[n] + b[0];", "read of 'int'"),
        ("__shared__ char raw[32]; __shared__ int b[8]; b[0] = n; int *p = (int *)raw; p[n] = 1; x[0] = b[0];",
         "write of 'int'"),
        ("__shared__ Pair pair; __shared__ int b[8]; b[0] = n; int *p = pair.left; x[0] = p[n] + b[0];",
         "read of 'int'"),
        ("x[0] = pick<int>(n) + pick<float>(n - 1);", "read of 'int'"),
        ("x[0] = shared()[n];", "read of 'int'"),
        (f"{LOCAL} x[0] = sum(a, n + 1) + sum(b, n);", "read of 'const int'"),
        (f"{LOCAL} x[0] = last(a, n) + sum(b, n);", "read of 'const int'"),
        (f"{LOCAL} set(a, n); x[0] = sum(a, n) + sum(b, n);", "write of 'int'"),
        ("x[0] = sum(table, n + 1);", "read of 'const int'"),
        ("set(filter, n);", "write of 'int'"),
    ],
)  # fmt: skip
def test_an_access_beyond_an_array_is_found(body: str, access: str, xp: Any) -> None:
    with pytest.raises(tcuda.AcceleratorError) as caught, synchronized():
        run(xp, body)
    assert caught.value.error_code == 700
    details = str(caught.value).splitlines()[2]
    assert "kernel.cu:" in details
    assert "thread: [0, 0, 0]: " in details
    assert access in details
    assert details.endswith("outside of the array to which the pointer belongs")


@pytest.mark.parametrize(
    "body",
    [
        f"{SIDE_BY_SIDE} x[0] = p[n - 1] + q[n - 1] + sum(p, n) + last(q, n - 1);",
        f"{SIDE_BY_SIDE} for (int i = 0; i < 3 * n; ++i) {{ int *t = p; p = q; q = t; x[i] = p[i % n]; }}",
        f"{SIDE_BY_SIDE} int *one = p - 1; for (int i = 1; i <= n; ++i) x[i] = one[i];",
        f"{SIDE_BY_SIDE} int *end = p + n; while (end != p) x[0] += *--end;",
        f"{SIDE_BY_SIDE} int *middle = p + 4; x[0] = middle[-(n / 2)] + middle[n / 2 - 1];",
        f"{SIDE_BY_SIDE} int *either = x[0] ? p : x + 16; x[0] = either[n + 16];",
        "__shared__ int a[4][8]; int *p = &a[0][0]; x[0] = p[3 * n + 7]; x[1] = a[1][n - 1];",
        "__shared__ Pair pair; int *p = pair.left; x[0] = p[n - 1];",
        "__shared__ char raw[64]; int *p = (int *)raw; float *q = (float *)(raw + 32); p[n - 1] = 1; q[n - 1] = 2;",
        "__shared__ int a[8]; __shared__ int *kept; kept = a + threadIdx.x; __syncthreads(); x[0] = kept[n - 2];",
        "extern __shared__ int s[]; int *p = s; if (n > 8) p[n] = 1;",
        f"{LOCAL} x[0] = sum(a, n) + sum(b, n) + last(a + 1, n - 2);",
        "int *p = (int *)malloc(n * sizeof(int)); p[n - 1] = 1; x[0] = sum(p + 1, n - 1); free(p);",
        "x[0] = sum(table, n) + sum(after_table, n); set(filter, n - 1); set(after_filter, 0);",
    ],
)
def test_an_access_inside_of_an_array_is_no_error(body: str, xp: Any) -> None:
    run(xp, body)
    tcuda.synchronize()
