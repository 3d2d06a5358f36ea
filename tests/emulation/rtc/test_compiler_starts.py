"""The starts of the C++ compiler: a second call starts no compiler, also after an error."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda.emulation import rtc, xp

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
]


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The number of starts of the compiler, whose cache is empty before the test."""
    list_, program = tmp_path / "starts", tmp_path / "c++"
    list_.touch()
    program.write_text(f'#!/bin/sh\necho "$@" >> {list_}\nexec {shutil.which("c++")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    monkeypatch.setenv("TCUDA_CACHE_DIR", str(tmp_path / "cache"))
    return lambda: len(list_.read_text().splitlines())


def raw(code: str, name: str = "f", **settings: Any) -> None:
    xp.RawKernel(code, name, **settings)((1,), (1,), (xp.zeros(1),))


def raw_module(code: str, name: str = "f<double>") -> None:
    module = xp.RawModule(code=code, name_expressions=[name])
    module.get_function(name)((1,), (1,), (xp.zeros(1),))


def elementwise(operation: str, **settings: Any) -> None:
    xp.ElementwiseKernel("T x", "T y", operation, **settings)(xp.zeros(3))


def reduction(expression: str) -> None:
    xp.ReductionKernel("T x", "T y", expression, "a + b", "y = a", "0")(xp.zeros(3))


def jiterated(code: str) -> None:
    tcuda.jiterator._create_jit_fn(code)(xp.zeros(3))


def fused() -> None:
    def scaled(x: Any) -> Any:
        return x * 2 + 1

    xp.fuse(scaled)(xp.zeros(3))


KERNEL = 'extern "C" __global__ void f(double* x) { x[0] = 1; }'
WRONG = 'extern "C" __global__ void f(double* x) { x[0] = absent; }'

# Each call takes a text that makes its source another than those of all other tests.
RIGHT_CALLS: dict[str, Callable[[str], None]] = {
    "RawKernel": lambda text: raw(KERNEL + text),
    "RawKernel with a header of the host": lambda text: raw("#include <cstdlib>\n" + KERNEL + text, backend="nvcc"),
    "RawKernel with a macro": lambda text: raw(f"#ifdef X\n#else\n{KERNEL}\n#endif{text}"),
    "RawModule": lambda text: raw_module("template <typename T> __global__ void f(T* x) { x[0] = 1; }" + text),
    "ElementwiseKernel": lambda text: elementwise("y = x + 1" + text),
    "ReductionKernel": lambda text: reduction("x * x" + text),
    "fuse": lambda text: fused(),
    "jiterator": lambda text: jiterated("template <typename T> T f(T x) { return x + 1; }" + text),
    "_compile_kernel": lambda text: tcuda._compile_kernel(KERNEL + text, "f"),
}

WRONG_CALLS: dict[str, Callable[[str], None]] = {
    "RawKernel": lambda text: raw(WRONG + text),
    "RawKernel with a missing header": lambda text: raw("#include <absent.h>\n" + KERNEL + text),
    "RawKernel with PTX": lambda text: raw('extern "C" __global__ void f(double* x) { asm("ret;"); }' + text),
    "RawKernel with the name of a function": lambda text: raw(
        'extern "C" __global__ void norm(double* x) {}' + text, "norm"
    ),
    "RawModule": lambda text: raw_module("template <typename T> __global__ void f(T* x) { x[0] = absent; }" + text),
    "RawModule with a wrong name": lambda text: raw_module(KERNEL + text, "absent<int>"),
    "ElementwiseKernel": lambda text: elementwise("y = absent" + text),
    "ElementwiseKernel with a wrong preamble": lambda text: elementwise("y = x", preamble="#include <absent>" + text),
    "ReductionKernel": lambda text: reduction("absent" + text),
    "jiterator": lambda text: jiterated("template <typename T> T f(T x) { return absent; }" + text),
    "_compile_kernel": lambda text: tcuda._compile_kernel(WRONG + text, "f"),
}


@pytest.mark.parametrize("call", RIGHT_CALLS.values(), ids=RIGHT_CALLS)
@pytest.mark.parametrize("watched", [False, True], ids=["", "watched"])
def test_a_second_call_starts_no_compiler(
    call: Callable[[str], None], watched: bool, starts: Callable[[], int], tmp_path: Path
) -> None:
    with tcuda.sanitizer.check(mode="collect") if watched else contextlib.nullcontext():
        call(f"\n// {tmp_path}\n")
        first = starts()
        call(f"\n// {tmp_path}\n")
    assert starts() == first
    assert (first == 0) == (call is RIGHT_CALLS["fuse"])


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_second_call_that_fails_starts_no_compiler(
    call: Callable[[str], None], starts: Callable[[], int], tmp_path: Path
) -> None:
    found = []
    for _ in range(2):
        with pytest.raises((rtc.CompileException, RuntimeError)) as caught:
            call(f"\n// {tmp_path}\n")
        found.append((str(caught.value), starts()))
    assert found[0] == found[1]


def test_another_process_starts_no_compiler_for_a_kernel_in_the_cache(
    starts: Callable[[], int], output_of: OutputOf, tmp_path: Path
) -> None:
    source = f"{KERNEL} // {tmp_path}"
    raw(source)
    first = starts()
    code = f"from tcuda.emulation import xp\nxp.RawKernel({source!r}, 'f')((1,), (1,), (xp.zeros(1),))\n"
    output_of(code, TCUDA_RUNTIME="emulated")
    assert starts() == first > 0


def test_a_source_that_includes_a_file_is_compiled_again_after_an_error(
    tmp_path: Path, starts: Callable[[], int]
) -> None:
    header = tmp_path / "own.h"
    header.write_text("#error wrong")
    source = f'#include "own.h"\n{KERNEL} // {tmp_path}'
    for _ in range(2):
        with pytest.raises(rtc.CompileException, match="wrong"):
            raw(source, options=(f"-I{tmp_path}",))
    header.write_text("")
    raw(source, options=(f"-I{tmp_path}",))
    first = starts()
    raw(source, options=(f"-I{tmp_path}",))
    assert starts() == first


LACKS = {
    "kernel.cu:1:1: fatal error: error writing to x.s: No space left on device": "has no room .* TMPDIR",
    "kernel.cu:1:1: fatal error: error writing to x.s: Disk quota exceeded": "has no room .* TMPDIR",
    "virtual memory exhausted: Cannot allocate memory": "The compiler got no memory",
    "kernel.cu:1:1: fatal error: x.h: Too many open files": "ulimit -n",
}


@pytest.mark.parametrize("message", LACKS)
def test_an_error_of_the_machine_says_what_is_short_and_is_not_remembered(
    message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, flag = tmp_path / "c++", tmp_path / "full"
    fails = f'[ -e {flag} ] && [ "$1" != --version ] && echo "{message}" >&2 && exit 1'
    program.write_text(f'#!/bin/sh\n{fails}\nexec {shutil.which("c++")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    monkeypatch.setenv("TCUDA_CACHE_DIR", str(tmp_path / "cache"))
    flag.touch()
    with pytest.raises(OSError, match=LACKS[message]) as caught:
        raw(f"{KERNEL} // {tmp_path}")
    assert os.strerror(caught.value.errno or 0) in message
    flag.unlink()
    raw(f"{KERNEL} // {tmp_path}")


def test_a_full_temporary_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match=f"The folder {tmp_path} has no room"):
            raw(f"{KERNEL} // {tmp_path} full")
    raw(f"{KERNEL} // {tmp_path} full")
