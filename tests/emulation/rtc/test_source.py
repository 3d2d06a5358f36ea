"""The kernels of a source, and the arrays in shared memory whose size the launch tells."""

from __future__ import annotations

import pytest

from tcuda.emulation.rtc import source


def found(code: str) -> list[tuple[str, str]]:
    """Return the name and the kind of each kernel in ``code``."""
    return [
        (kernel.name, "template" if kernel.template else "C" if kernel.c_linkage else "C++")
        for kernel in source.kernels(code)
    ]


@pytest.mark.parametrize(
    ("code", "kernels"),
    [
        ('extern "C" __global__ void f(int n) {}', [("f", "C")]),
        ('extern "C" { __global__ void f() {} void g() {} __global__ void h() {} }', [("f", "C"), ("h", "C")]),
        ("__global__ void f() {}", [("f", "C++")]),
        ("static __global__ void __attribute__((noinline)) f() {}", [("f", "C++")]),
        ('extern "C" __global__ void __launch_bounds__(256, 2) f() {}', [("f", "C")]),
        ('extern "C" __global__ __launch_bounds__(256) void f(int (*p)(int), float x[]) {}', [("f", "C")]),
        ("namespace a { namespace b { __global__ void f() {} } __global__ void g() {} }",
         [("a::b::f", "C++"), ("a::g", "C++")]),
        ("namespace a::b { __global__ void f() {} }", [("a::b::f", "C++")]),
        ("inline namespace v1 { __global__ void f() {} }", [("v1::f", "C++")]),
        ("namespace { __global__ void f() {} }", [("f", "C++")]),
        ("template <typename T, int N> __global__ void f(T* x) { if (N < 3) x[0] = N; }", [("f", "template")]),
        ("template <typename T> __global__ void f(T*) {}\ntemplate __global__ void f<int>(int*);",
         [("f", "template"), ("f < int >", "C++")]),
        ("template <> __global__ void f<int>(int*) {}", [("f < int >", "C++")]),
        # No kernels: announcements, comments, strings, and functions of other kinds.
        ('extern "C" __global__ void f(int n);', []),
        ("// __global__ void f() {}\n/* __global__ void g() {} */ int h;", []),
        ('const char* s = "__global__ void f() {}"; auto r = R"x(__global__ void g() {})x"; char c = \'"\';', []),
        ("__device__ void f() {}", []),
        # Two functions with one name are no expression with one meaning.
        ("__global__ void f(int) {} __global__ void f(float) {}", []),
        # A kernel is found behind any other code.
        ('struct S { int x; void g() { if (x) {} } }; #define X "\n#define Y {\nextern "C" __global__ void f() {}',
         [("f", "C")]),
        ('int x = 1\'000; char q = \'{\'; extern "C" __global__ void f() { const char* s = "}"; }', [("f", "C")]),
    ],
)  # fmt: skip
def test_kernels_are_found(code: str, kernels: list[tuple[str, str]]) -> None:
    assert found(code) == kernels


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("void f() { extern __shared__ float s[]; }",
         "void f() { float* const s = static_cast<float*>(tcuda::dynamic_shared()); }"),
        ("void f() { extern __shared__ __align__(16) unsigned char s[]; }",
         "void f() { unsigned char* const s = static_cast<unsigned char*>(tcuda::dynamic_shared()); }"),
        ("void f() { extern volatile __shared__ int s[]; }",
         "void f() { volatile int* const s = static_cast<volatile int*>(tcuda::dynamic_shared()); }"),
        ("void f() { extern __shared__ float s[][32]; }",
         "void f() { float (*const s)[32] = reinterpret_cast<float (*)[32]>(tcuda::dynamic_shared()); }"),
        ("void f() { extern __shared__ T\n  s\n []; int x; }",
         "void f() { T* const s = static_cast<T*>(tcuda::dynamic_shared())\n\n; int x; }"),
        ("extern __shared__ float s[];", 'extern float s[] __asm__("tcuda_dynamic_shared");'),
        ("namespace n { extern __shared__ float s[]; }",
         'namespace n { extern float s[] __asm__("tcuda_dynamic_shared"); }'),
        ("#define S extern __shared__ float s[]",
         "#define S float* const s = static_cast<float*>(tcuda::dynamic_shared())"),
        ("void f() { static __shared__ float s[3]; }", "void f() {        __shared__ float s[3]; }"),
        ("void f() { __shared__ volatile static float s[3]; }", "void f() { __shared__ volatile        float s[3]; }"),
        ("#define S  static \\\n __shared__\nstatic int x;", "#define S         \\\n __shared__\nstatic int x;"),
        ("static int f() { __shared__ float s[3]; }", "static int f() { __shared__ float s[3]; }"),
        ("void f() { __shared__ float s[3]; }", "void f() { __shared__ float s[3]; }"),
        ("extern int x[]; // extern __shared__ float s[];", "extern int x[]; // extern __shared__ float s[];"),
    ],
)  # fmt: skip
def test_shared_arrays_are_rewritten_in_their_lines(code: str, expected: str) -> None:
    rewritten = source.prepared(code)
    assert rewritten == expected
    assert rewritten.count("\n") == code.count("\n")


@pytest.mark.parametrize(
    ("code", "depends"),
    [
        ('extern "C" __global__ void f() {}', False),
        ("#ifdef X\nint y;\n#endif\n__global__ void f() {}", False),
        ("#include <math.h>\n__global__ void f() {}", False),
        ("#ifdef X\n__global__ void f() {}\n#endif", True),
        ("#define KERNEL __global__ void\nKERNEL f() {}", True),
        ('#include "kernels.cuh"', True),
    ],
)
def test_sources_whose_kernels_only_the_preprocessor_knows(code: str, depends: bool) -> None:
    assert source.depends_on_preprocessor(code) is depends
