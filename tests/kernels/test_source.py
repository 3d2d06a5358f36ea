"""The search for kernels in a source."""

from __future__ import annotations

import pytest

from tcuda.kernels._source import untemplated_kernels


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("__global__ void f() {}", ["f"]),
        ('extern "C" __global__ void f(int *x) { if (x) { *x = 1; } }\n__global__ void g();', ["f", "g"]),
        ('extern "C" { __global__ void f() {} }\n__global__ void g() {}', ["f", "g"]),
        ("static __global__ __launch_bounds__(128, 2) void f() {}", ["f"]),
        ("__global__ void __launch_bounds__(128) f() {}", ["f"]),
        ("void __global__ f() {}", ["f"]),
        ("__global__ void f(); __global__ void f() {}", ["f"]),
        ("template <class T> __global__ void f(T x) {} __global__ void g() {}", ["g"]),
        ("namespace a { __global__ void f() {} } __global__ void g() {}", ["g"]),
        ("struct S { int x; }; __global__ void g(S s) {}", ["g"]),
        ("// __global__ void f() {}\n/* __global__ void g() {} */", []),
        ('__device__ const char *s = "__global__ void f() {}";', []),
        ("__device__ void f() {}", []),
        ("", []),
    ],
)
def test_only_kernels_that_need_no_more_than_their_name_are_found(source: str, expected: list[str]) -> None:
    assert untemplated_kernels(source) == expected
