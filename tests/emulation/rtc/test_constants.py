"""The pages of ``__constant__`` variables, and assignments to them."""

from __future__ import annotations

import mmap

import pytest

from tcuda.emulation.rtc import constants
from tcuda.emulation.rtc.build import build
from tcuda.emulation.rtc.tokens import tokens

KERNEL = 'extern "C" __global__ void kernel(int* y) { y[0] = table[0] + number; }'


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("n = 1;", ["n"]),
        ("n += m; m--;", ["n", "m"]),
        ("++n;", ["n"]),
        ("if (n == 1 && m <= 2) y = n;", []),
        ("table[0] = 1;", []),
        ("int n = 3; n = 4; m = 5;", ["m"]),
        ("f(n); y.n = 1; y->m++;", []),
    ],
)
def test_assignments_to_numbers(statement: str, names: list[str]) -> None:
    source = f"__constant__ int table[4], n = 2; __constant__ int m; void g() {{ {statement} }}"
    assert [name for _, name in constants.assignments(source, list(tokens(source)))] == names


def test_constants_lie_in_pages_of_their_own() -> None:
    library, _ = build(f"__constant__ int table[1025], number; {KERNEL}")
    found = constants.pages(library)
    assert found is not None
    assert found.place % mmap.PAGESIZE == found.size % mmap.PAGESIZE == 0


def test_a_source_without_constants_has_no_such_pages() -> None:
    library, _ = build(f"__device__ int table[1025], number; {KERNEL}")
    assert constants.pages(library) is None
