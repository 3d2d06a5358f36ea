"""Which function of the user's code is the kernel."""

from __future__ import annotations

import re

import pytest

import tcuda
from tcuda.jiterator._parser import kernel_of

KERNEL = "template <typename T> T my_kernel(T x) { return x; }"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (KERNEL, "my_kernel"),
        ("template<typename T>T f(T x){return x;}", "f"),
        ("\n\n  template <typename T>\nT\nf\n(T x)\n{\n  return x;\n}\n", "f"),
        ("template <typename T> T* f(T x) { return 0; }", "f"),
        ("template <typename T> static inline unsigned long long f(T x) { return x; }", "f"),
        ("template <typename T> typename Real<T>::type f(T x) { return x; }", "f"),
        ("template <typename T> template <int n> T f(T x) { return x; }", "f"),
        ("template <typename T> void f(T x, T& out) { out = x; }", "f"),
        ("template <typename T> complex<T> f(complex<T> x) { return x; }", "f"),
        ("template <typename T, int n = (2 > 1)> T f(T x) { return x; }", "f"),
        ("template <typename T> __device__ __forceinline__ T f(T x) { return x; }", "f"),
        ("template <typename T> T f(T x) { if (x > 0) { return x; } for (;;) { } }", "f"),
        ("namespace mine { template <typename T> T g(T x) { return x; } } " + KERNEL, "my_kernel"),
        ("struct P { int a; int get() { return a; } }; " + KERNEL, "my_kernel"),
        ("constexpr int table[] = {1, 2}; " + KERNEL, "my_kernel"),
        (KERNEL + " // template <typename T> T other(T x) { return x; }", "my_kernel"),
        (KERNEL + " /* template <typename T> T other(T x) { */", "my_kernel"),
        ("#define BRACE {\n" + KERNEL, "my_kernel"),
        ("template <typename T> T f(T x) { return x + '{' + sizeof(\"}}\"); }", "f"),
    ],
)
def test_the_kernel_is_the_last_function(code: str, name: str) -> None:
    assert kernel_of(code).name == name


def test_functions_before_the_kernel_are_its_helpers() -> None:
    code = "template <typename T> T helper(T x) { return 2 * x; } float plain(float x) { return x; } " + KERNEL
    assert kernel_of(code).name == "my_kernel"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", "defines no function"),
        ("int x = 3;", "defines no function"),
        ("template <typename T> T f(T x);", "defines no function"),
        ("template <typename T> Tmy_kernel(T x) { return x; }", "defines no function"),
        ("template <typename T> T my _kernel(T x) { return x; }", "defines no function"),
        ("T f(T x) { return x; }", "line 1 defines 'f', the last function and so the kernel, without 'template <...>'"),
        (KERNEL + "\nfloat g(float x) { return x; }", "line 2 defines 'g'"),
        ("template <typename T> T f(T x) {\n return x;", "the '{' in line 1 is never closed"),
        ("template <typename T> T f(T x) { return x; }\n}", "the '}' in line 2 closes no bracket"),
        ("template <typename T> T f(T x) { return (x; }", "the '}' in line 1 closes the '(' of line 1"),
    ],
)
def test_code_that_cannot_be_parsed_is_an_error_that_says_why(code: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        tcuda.jiterator._create_jit_fn(code)


def test_code_that_is_no_string_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="not bytes"):
        tcuda.jiterator._create_jit_fn(KERNEL.encode())  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, -1, 9])
def test_the_number_of_outputs_is_limited(number: int) -> None:
    with pytest.raises(RuntimeError, match=f"from 1 to 8, not {number}"):
        tcuda.jiterator._create_multi_output_jit_fn(KERNEL, number)


@pytest.mark.parametrize("number", ["2", 1.0, True, None])
def test_the_number_of_outputs_is_an_integer(number: object) -> None:
    with pytest.raises(TypeError, match="num_outputs must be an integer from 1 to 8"):
        tcuda.jiterator._create_multi_output_jit_fn(KERNEL, number)  # type: ignore[arg-type]


def test_a_default_that_is_no_number_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="alpha must be a number"):
        tcuda.jiterator._create_jit_fn(KERNEL, alpha="1")


def test_a_default_that_64_bits_cannot_hold_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="does not fit in an integer of 64 bits"):
        tcuda.jiterator._create_jit_fn(KERNEL, alpha=2**63)
