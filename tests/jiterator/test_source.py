"""The generated source."""

from __future__ import annotations

from tcuda.jiterator import _source
from tcuda.jiterator._kernels import compiler_message

CODE = "template <typename T> T f(T x) { return x; }"


def made(inputs: tuple[str, ...] = ("float32",), common: str = "float32", kinds: tuple[int, ...] = ()) -> str:
    return _source.source(CODE, "f", inputs, common, 1, False, kinds)


def test_the_code_of_the_user_begins_in_line_1_of_its_own_file() -> None:
    lines = made().splitlines()
    assert lines[lines.index(CODE) - 1] == '#line 1 "jiterator code"'


def test_a_header_is_included_only_where_a_type_needs_the_header() -> None:
    assert not [name for name in ("cuda_fp16.h", "cuda_bf16.h", "cupy/complex.cuh") if name in made()]
    assert "#include <cuda_fp16.h>" in made(("float16",), "float16")
    assert "#include <cuda_bf16.h>" in made(("float32", "bfloat16"))
    assert "#include <cupy/complex.cuh>" in made(kinds=(3,))


def test_the_user_function_computes_float16_in_float() -> None:
    source = made(("float16",), "float16")
    assert "typedef float tcuda_T;" in source
    assert "typedef __half tcuda_R;" in source


def test_errors_of_nvrtc_name_the_line_and_its_text() -> None:
    log = 'jiterator code(2): error: identifier "y" is undefined\n      y;\n      ^\n\n1 error detected'
    message = compiler_message(log, "template <typename T> T f(T x) {\n  return y; }", "f")
    assert message.startswith("The code of the jiterator function 'f' does not compile:\n")
    assert '\n  line 2: identifier "y" is undefined\n    return y; }\n' in message
    assert message.endswith("1 error detected")


def test_errors_of_gcc_name_the_line_and_its_text() -> None:
    log = "In file x:\njiterator code:1:30: error: 'y' was not declared in this scope"
    message = compiler_message(log, "return y;", "f")
    assert "\n  line 1: 'y' was not declared in this scope\n    return y;\n" in message
