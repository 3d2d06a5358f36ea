"""The images that NVRTC makes, and the parameters that NVRTC tells. A GPU is not used, but CuPy is."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

SOURCE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define T float
#define kind 3
#define value 4
#define type 5
struct Pair { float x; double y; };
enum Choice : short { first };
template <class U> struct alignas(16) Two { U a, b; };
extern "C" { __global__ void __launch_bounds__(128) g(T *a, const int *b, size_t n, bool f) {} }
namespace inner {
template <class U> __global__ void k(U *a, const U v, Pair p, Choice e, signed char c, __half h,
                                     const __grid_constant__ Pair q, __nv_bfloat16 b) {}
}
__global__ void none() {}
__global__ void big(Two<double> c, unsigned u, char ch, long l, decltype(nullptr) np) {}
"""
BIG = [("s", 16, 0), ("u", 4, 16), ("i", 1, 20), ("i", 8, 24), ("p", 8, 32)]


@pytest.fixture
def nvrtc() -> Any:
    return importlib.import_module("tcuda._cupy.nvrtc")


def test_the_compiler_tells_kinds_sizes_and_offsets(nvrtc: Any) -> None:
    entry = nvrtc.compiled(SOURCE, "inner::k<double>", "-arch=sm_90", ()).entries["inner::k<double>"]
    assert entry.parameters == [
        *(("p", 8, 0), ("f", 8, 8), ("s", 16, 16), ("i", 2, 32)),
        *(("i", 1, 34), ("f", 2, 36), ("s", 16, 40), ("g", 2, 56)),
    ]


def test_an_image_has_all_kernels_that_need_no_template_arguments(nvrtc: Any) -> None:
    entries = nvrtc.compiled(SOURCE, "big", "-arch=sm_90", ()).entries
    assert {name: entry.symbol for name, entry in entries.items()} == {
        "big": "_Z3big3TwoIdEjclDn",
        "g": "g",
        "none": "_Z4nonev",
    }
    assert entries["big"].parameters == BIG
    assert entries["g"].parameters == [("p", 8, 0), ("p", 8, 8), ("u", 8, 16), ("b", 1, 24)]
    assert entries["none"].parameters == []


@pytest.mark.parametrize("standard", ["c++14", "c++17", "c++20"])
def test_any_standard_of_the_language_will_do(nvrtc: Any, standard: str) -> None:
    image = nvrtc.compiled(SOURCE, "big", "-arch=sm_90", (f"-std={standard}",))
    assert image.entries["big"].parameters == BIG


def test_another_architecture_than_that_of_the_device_makes_ptx(nvrtc: Any) -> None:
    assert nvrtc.architecture("90", None) == "-arch=sm_90"
    assert nvrtc.architecture("90", "90a") == "-arch=sm_90a"
    assert nvrtc.architecture("90", "80") == "-arch=compute_80"
    assert nvrtc.architecture("9999", None).startswith("-arch=compute_")
    assert b".target sm_80" in nvrtc.compiled(SOURCE, "none", "-arch=compute_80", ()).code
    assert nvrtc.compiled(SOURCE, "none", "-arch=sm_90", ()).code.startswith(b"\x7fELF")


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        ("__global__ void f() { x }", "f", 'identifier "x" is undefined'),
        ("__global__ void f() {}", "g", "Is 'g' a kernel of the source?"),
        ("__device__ void f() {}", "f", "Is 'f' a kernel of the source?"),
        ("namespace n { __global__ void f() {} }", "f", "begins with the namespace"),
    ],
)
def test_an_error_shows_the_text_of_the_compiler_and_nothing_of_tcuda(
    nvrtc: Any, source: str, name: str, expected: str
) -> None:
    with pytest.raises(RuntimeError, match="Kernel compilation failed:\n") as error:
        nvrtc.compiled(source, name, "-arch=sm_90", ())
    assert expected in str(error.value)
    assert "tcuda" not in str(error.value)
