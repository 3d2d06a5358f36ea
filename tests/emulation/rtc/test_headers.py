"""The headers of the device language, as installed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tcuda.emulation.rtc import headers

if TYPE_CHECKING:
    from pathlib import Path


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
