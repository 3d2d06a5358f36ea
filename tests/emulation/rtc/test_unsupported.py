"""Constructs that emulated devices do not have, and the errors that name them."""

from __future__ import annotations

import pytest

from tcuda.emulation.rtc.build import build
from tcuda.emulation.rtc.errors import CompileException
from tcuda.emulation.rtc.unsupported import findings


def named(code: str) -> list[tuple[int, str, bool]]:
    """Return the line, the name and the certainty of each finding."""
    return [(finding.line, finding.what, finding.certain) for finding in findings(code, lambda header: False)]


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ('void f() { asm volatile("membar.gl;"); }', "inline PTX assembly"),
        ('void f() { __asm__("membar.gl;"); }', "inline PTX assembly"),
        ("void f(cudaTextureObject_t t) {}", "a texture or a surface"),
        ("float x = tex2D<float>(t, 0, 0);", "a texture or a surface"),
        ("void f() { return tex1Dfetch(t, 0); }", "a texture or a surface"),
        ("texture<float, 2> t;", "a texture or a surface"),
        ("void f() { surf2Dwrite(1, s, 0, 0); }", "a texture or a surface"),
        ("#include <mma.h>", "an operation of tensor cores"),
        ("using namespace nvcuda;", "an operation of tensor cores"),
        ("void f() { g<<<1, 2>>>(); }", "a launch of a kernel from a kernel (<<< >>>)"),
        ("__global__ void __cluster_dims__(2, 1, 1) f() {}", "a cluster of blocks"),
        (
            "#include <cooperative_groups.h>\nauto g = cooperative_groups::this_multi_grid();",
            "a barrier of the grids of several devices",
        ),
        (
            "namespace cg = cooperative_groups; void f(cg::multi_grid_group g);",
            "a barrier of the grids of several devices",
        ),
        ("#include <cuda/ptx>", "a barrier of the hardware"),
        ("void f() { __pipeline_arrive_on(b, 1); }", "a barrier of the hardware"),
        ("#include <cub/block/block_reduce.cuh>", "a header of CUDA's C++ libraries"),
        ("#include <thrust/complex.h>", "a header of CUDA's C++ libraries"),
        ("#include <cuda/std/type_traits>", "a header of CUDA's C++ libraries"),
        ("#include <curand_mtgp32_kernel.h>", "a header of cuRAND"),
        ("__device__ curandStateSobol32_t *s;", "a generator of cuRAND"),
        ("__global__ void f(curandStateMtgp32* s);", "a generator of cuRAND"),
        ("#include <cupy/complex.cuh>", "a header of CuPy"),
    ],
)
def test_constructs_are_named_with_their_line(code: str, what: str) -> None:
    assert named("\n\n" + code) == [(3 + code.count("\n"), what, True)]


@pytest.mark.parametrize(
    "code",
    [
        '// asm\n/* tex2D(t) */ const char* s = "asm volatile";',
        '#if 0\nasm("x");\n#endif',
        '#if 0 // not yet\n#ifdef X\nasm("x");\n#endif\n#endif',
        "int multi_grid_group; int this_multi_grid;",
        "__device__ float tex2D(int x);",
        "int shifted = x << 3 >> 1;",
        "#include <math.h>\n#include <type_traits>",
    ],
)
def test_other_code_is_not_named(code: str) -> None:
    assert named(code) == []


def test_only_the_preprocessor_knows_a_construct_in_a_condition() -> None:
    code = '#ifdef X\nasm("x");\n#else\nasm("y");\n#endif\nasm("z");\n#if 0\n#else\nasm("w");\n#endif'
    assert [(line, certain) for line, _, certain in named(code)] == [(2, False), (4, False), (6, True), (9, False)]


def test_only_the_preprocessor_knows_whether_a_macro_is_used() -> None:
    assert named('#define FENCE() \\\n    asm volatile("membar.gl;")') == [(1, "inline PTX assembly", False)]


def test_a_header_that_exists_is_supported() -> None:
    assert list(findings("#include <thrust/complex.h>", lambda header: header == "thrust/complex.h")) == []


def test_the_message_has_the_line_the_text_and_advice() -> None:
    (finding,) = findings('\nasm("x");', lambda header: False)
    assert finding.message("kernel.cu") == (
        "kernel.cu:2: error: inline PTX assembly (asm) is not supported on emulated devices. PTX runs on a GPU only. "
        "Write the operation in C++ or with CUDA's intrinsic functions, or leave the assembly out with "
        "#ifndef __TCUDA_EMULATED__."
    )


@pytest.mark.parametrize("condition", [("", ""), ("#if __CUDA_ARCH__ > 1\n", "\n#endif")])
def test_the_message_about_a_header_of_curand_has_advice_and_no_other_errors(condition: tuple[str, str]) -> None:
    before, after = condition
    used = "__global__ void f(mtgp32_kernel_params* s) { s[0] = s[1]; }"
    code = f"{before}#include <curand_mtgp32_kernel.h>{after}\n{used}"
    with pytest.raises(CompileException) as caught:
        build(code)
    text = str(caught.value)
    assert "emulated devices have only <curand_kernel.h>." in text
    assert "mtgp32_kernel_params" not in text
