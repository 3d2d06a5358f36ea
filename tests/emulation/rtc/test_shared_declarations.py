"""The declarations of variables in shared memory, as the source has them."""

from __future__ import annotations

import pytest

from tcuda.emulation.rtc.excerpts import excerpt
from tcuda.emulation.rtc.shared_declarations import Declaration, declarations


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("__shared__ float a[3];", [Declaration("a", "float", (3,), False)]),
        ("float __shared__;", []),
        ("__shared__ unsigned int a;", [Declaration("a", "unsigned int", (), False)]),
        ("__shared__ int a[2][3], b;", [Declaration("a", "int", (2, 3), False), Declaration("b", "int", (), False)]),
        ("__shared__ __align__(16) float4 a[2];", [Declaration("a", "float4", (2,), False)]),
        ("__shared__ alignas(8) char a[0x10];", [Declaration("a", "char", (None,), False)]),
        ("extern __shared__ char a[];", [Declaration("a", "char", (None,), True)]),
        ("__shared__ extern char a[];", [Declaration("a", "char", (None,), True)]),
        ("static __shared__ volatile int a;", [Declaration("a", "int", (), False)]),
        ("#define N 32\n__shared__ T a[N][N + 1];", [Declaration("a", "T", (32, None), False)]),
        ("constexpr int N = 8;\n__shared__ T a[N];", [Declaration("a", "T", (8,), False)]),
        ("const unsigned N = 8u;\n__shared__ T a[N];", [Declaration("a", "T", (8,), False)]),
        ("__shared__ ns::Pair a[2];", [Declaration("a", "ns::Pair", (2,), False)]),
        ("// __shared__ int a;\n", []),
        ("__shared__", []),
        ("__shared__ ;", []),
    ],
)
def test_a_declaration_has_a_name_a_type_and_lengths(source: str, found: list[Declaration]) -> None:
    assert declarations(source) == found


def test_an_excerpt_has_lines_of_one_file() -> None:
    source = "\n".join(f"line {number}" for number in range(1, 11))
    assert excerpt(source, "kernel.cu", "kernel.cu", -1, 3) == [(number, f"line {number}") for number in range(1, 4)]
    assert excerpt(source, "kernel.cu", "other.h", 1, 9) == []


def test_an_excerpt_follows_the_directives_of_the_source() -> None:
    source = 'before\n#line 1 "f: operation"\ny = x;\nz = y;\n#line 7 "f: generated"\nafter'
    assert excerpt(source, "kernel.cu", "f: operation", 1, 5) == [(1, "y = x;"), (2, "z = y;")]
    assert excerpt(source, "kernel.cu", "f: generated", 1, 9) == [(7, "after")]
    assert excerpt(source, "kernel.cu", "kernel.cu", 1, 1) == [(1, "before")]


def test_a_long_line_of_an_excerpt_is_cut() -> None:
    ((_, text),) = excerpt("x" * 1000, "kernel.cu", "kernel.cu", 1, 1)
    assert text == "x" * 300
