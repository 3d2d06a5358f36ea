"""The object file of the functions that are the same in all modules."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tcuda.emulation import xp
from tcuda.emulation.rtc import build, support
from tcuda.emulation.rtc.compiler import find

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
]

KERNEL = r"""
struct Item { int numbers[32]; };
extern "C" __global__ void f(Item* from, Item* to, long long* sums) {
    long long* sum = new long long(0);
    to[threadIdx.x] = from[threadIdx.x];
    memset(from + threadIdx.x, 0, sizeof(Item));
    for (int number : to[threadIdx.x].numbers) *sum += number;
    sums[threadIdx.x] = *sum;
    delete sum;
}
"""


def run_kernel(comment: str) -> None:
    """Launch a kernel that copies, fills, and uses the heap."""
    from_, to, sums = xp.arange(64, dtype="int32"), xp.zeros(64, "int32"), xp.zeros(2, "int64")
    xp.RawKernel(KERNEL + comment, "f")((1,), (2,), (from_, to, sums))
    assert from_.sum() == 0
    np.testing.assert_array_equal(to.get(), np.arange(64))
    assert sums.tolist() == [31 * 16, 95 * 16]


def suffixes(folder: Path) -> list[str]:
    """Return the ends of the names of the object files and libraries in the cache.

    One of the object files is the empty library that stands for the standard library of C++.
    """
    return sorted(path.suffix for path in folder.iterdir() if path.suffix in (".o", ".so"))


def _needs_gcc() -> None:
    if find().is_clang:
        pytest.skip("clang compiles the functions with each module")


def test_all_kernels_with_the_same_checks_share_an_object_file(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _needs_gcc()
    build('extern "C" __global__ void f() {}')
    build('extern "C" __global__ void g() {}', ("-DN=1", "-std=c++20"))
    assert suffixes(cache_folder) == [".o"] * 2 + [".so"] * 2
    build('extern "C" __global__ void f() {}', recorded=True)
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "0")
    build('extern "C" __global__ void f() {}')
    assert suffixes(cache_folder) == [".o"] * 4 + [".so"] * 4


@pytest.mark.usefixtures("cache_folder")
def test_a_kernel_uses_the_functions_of_the_object_file() -> None:
    run_kernel("// with the object file")


def test_a_module_has_the_functions_itself_if_the_object_file_cannot_be_compiled(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _needs_gcc()
    monkeypatch.setattr(support, "_STANDARD", ("-std=c++17", "--no-such-option"))
    run_kernel("// without an object file")
    assert suffixes(cache_folder) == [".o", ".so"], "the object file is the empty library"
