"""The precompiled header of the device language."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tcuda.emulation.rtc import CompileException, build, cache, compiler, precompiled
from tcuda.emulation.rtc.build import FILE
from tcuda.emulation.rtc.headers import CUPY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
]


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The messages of the compiler about each source: a line ``! header`` for each precompiled header in use."""
    if compiler.find().is_clang:
        pytest.skip("clang reads the headers of each module")
    found: list[str] = []
    run = compiler.Compiler.run

    def run_and_list(
        self: compiler.Compiler, arguments: Sequence[str], folder: Path, descriptors: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[str]:
        done = run(self, ["-H", *arguments], folder, descriptors)
        if FILE in arguments:
            found.append(done.stderr)
        return done

    monkeypatch.setattr(compiler.Compiler, "run", run_and_list)
    monkeypatch.setattr(precompiled, "WORTH", 1)
    return found


def uses_header(text: str) -> bool:
    return any(line.startswith("! ") and line.endswith(".gch") for line in text.splitlines())


def headers(cache_folder: Path) -> int:
    return len([path for path in cache_folder.iterdir() if path.suffix == ".gch"])


def test_sources_with_other_macros_share_the_header(cache_folder: Path, messages: list[str]) -> None:
    for options in ((), ("-DN=1",), ("-w",), ("--use_fast_math",)):
        build('extern "C" __global__ void f() {}', options)
    assert [uses_header(text) for text in messages] == [True] * 4
    assert headers(cache_folder) == 1


def test_a_process_makes_the_header_when_it_compiles_several_kernels(
    cache_folder: Path, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precompiled, "WORTH", 3)
    for name in "fgh":
        build(f'extern "C" __global__ void {name}() {{}}')
        assert headers(cache_folder) == (name == "h")
    assert [uses_header(text) for text in messages] == [False, False, True]
    build(CUPY + 'extern "C" __global__ void f() {}')
    assert not uses_header(messages[-1])


def test_each_language_has_a_header(cache_folder: Path, messages: list[str]) -> None:
    for options in (("--std=c++20",), ("-G",)):
        build('extern "C" __global__ void f() {}', options)
    assert [uses_header(text) for text in messages] == [True, True]
    assert headers(cache_folder) == 2


@pytest.mark.usefixtures("cache_folder")
def test_a_macro_that_changes_the_headers_is_not_lost(messages: list[str]) -> None:
    code = 'extern "C" __global__ void f(float* x) { x[0] = threadIdx.x; }'
    build(code)
    with pytest.raises(CompileException, match="threadIdx"):
        build(code, ("-DthreadIdx=blockIdx.blockIdx",))
    assert uses_header(messages[0])


def test_the_compiler_reads_the_headers_if_they_cannot_be_precompiled(
    cache_folder: Path, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precompiled, "_compiled", lambda *_: None)
    build('extern "C" __global__ void f() {}')
    assert [uses_header(text) for text in messages] == [False]
    assert headers(cache_folder) == 0


def test_a_broken_header_is_compiled_again(cache_folder: Path, messages: list[str]) -> None:
    build('extern "C" __global__ void f() {}')
    (stored,) = [path for path in cache_folder.iterdir() if path.suffix == ".gch"]
    stored.write_bytes(stored.read_bytes()[:-1000])
    build('extern "C" __global__ void g() {}')
    assert [uses_header(text) for text in messages] == [True, True]


def test_the_headers_of_cupys_kernels_are_precompiled_too(cache_folder: Path, messages: list[str]) -> None:
    kernel = 'extern "C" __global__ void f(complex<float>* x) { x[0] += 1; }'
    build(CUPY + kernel)
    build("#include <cupy/complex.cuh>\n" + kernel)
    assert [uses_header(text) for text in messages] == [True, True]
    assert ["cupy/carray.cuh" in text for text in messages] == [False, False]
    assert ["cupy/complex.cuh" in text for text in messages] == [False, True]
    assert headers(cache_folder) == 2


def test_a_process_reads_the_header_once(
    cache_folder: Path, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build('extern "C" __global__ void f() {}')
    read, names = cache._read, []

    def read_and_list(folder: int, name: str) -> tuple[int, bytes]:
        names.append(name)
        return read(folder, name)

    monkeypatch.setattr(cache, "_read", read_and_list)
    build('extern "C" __global__ void g() {}')
    assert [uses_header(text) for text in messages] == [True, True]
    assert [name for name in names if name.endswith(".gch")] == []
    assert headers(cache_folder) == 1


@pytest.mark.usefixtures("cache_folder")
def test_a_program_may_close_the_descriptor_of_the_header(messages: list[str]) -> None:
    build('extern "C" __global__ void f() {}')
    ((descriptor, _),) = cache.cache()._descriptors.values()
    os.close(descriptor)
    build('extern "C" __global__ void g() {}')
    assert [uses_header(text) for text in messages] == [True, True]
