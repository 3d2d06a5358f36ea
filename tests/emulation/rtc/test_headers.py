"""The headers of the device language, as installed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tcuda.emulation.rtc import headers

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf


@pytest.mark.parametrize("name", ["tcuda/device.h", "tcuda/launch.h", "../abi/tcuda_abi.h"])
def test_the_headers_are_installed_with_the_package(name: str) -> None:
    assert (headers.folder() / name).is_file()


@pytest.mark.parametrize("name", ["include/tcuda/device.h", "abi/tcuda_abi.h", "include/new.h"])
def test_a_changed_header_changes_the_hash(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = headers.folder().parent
    copies = [tmp_path / "same", tmp_path / "changed"]
    for copied in copies:
        for part in ("include", "host", "abi"):
            shutil.copytree(package / part, copied / part)
    with (copies[1] / name).open("a") as file:
        file.write("\n")
    found = [headers.digest()]
    for copied in copies:
        monkeypatch.setattr(headers, "package", lambda copied=copied: copied)
        found.append(headers.digest())
    assert found[0] == found[1] != found[2]


def test_headers_in_an_archive_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "__file__", "/archive.zip/tcuda/emulation/rtc/headers.py")
    with pytest.raises(RuntimeError, match="imported from an archive; install tcuda as files"):
        headers.package.__wrapped__()


LAUNCHES = """
import sys
from tcuda import xp

x = xp.zeros(32, "float32")
before = set(sys.modules)
raw = xp.RawKernel('extern "C" __global__ void first(float* x) { x[threadIdx.x] += 1; }', "first")
raw((1,), (32,), (x,))
xp.ElementwiseKernel("T x", "T y", "y = x + 1", "add_one")(x)
xp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")(x)
print(sorted(set(sys.modules) - before))
"""


def test_the_launch_of_a_kernel_in_the_cache_imports_nothing(fresh_output_of: OutputOf, tmp_path: Path) -> None:
    for _ in range(2):
        imported = fresh_output_of(LAUNCHES, TCUDA_RUNTIME="emulated", TCUDA_CACHE_DIR=str(tmp_path))
    assert imported == "[]"
