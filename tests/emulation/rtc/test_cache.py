"""The folder of compiled kernels."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tcuda.emulation.rtc.cache import Cache, cache


def test_what_is_stored_is_found_and_nothing_else_is(tmp_path: Path) -> None:
    stored = Cache(tmp_path / "a" / "b")
    path = stored.store("key", b"library")
    assert stored.find("key") == path
    assert path.read_bytes().startswith(b"library")
    assert stored.find("other") is None
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert [entry.name for entry in stored.folder.iterdir()] == ["key.so"]


@pytest.mark.parametrize("damage", [lambda text: text[:-1], lambda text: text[:4], lambda text: b"",
                                    lambda text: b"L" + text[1:]])  # fmt: skip
def test_a_broken_file_is_not_found_and_can_be_stored_again(damage, tmp_path: Path) -> None:
    stored = Cache(tmp_path)
    path = stored.store("key", b"library")
    path.write_bytes(damage(path.read_bytes()))
    assert stored.find("key") is None
    stored.store("key", b"library")
    assert stored.find("key") == path


def test_the_files_that_were_used_longest_ago_are_removed_from_a_large_folder(tmp_path: Path) -> None:
    stored = Cache(tmp_path, most_bytes=4000)
    for number in range(3):
        path = stored.store(f"key{number}", bytes(1000))
        os.utime(path, (number, number))
    assert stored.find("key0") is not None  # The use makes the file the newest.
    stored.store("large", bytes(2000))
    assert {entry.stem for entry in tmp_path.iterdir()} == {"large"} or stored.find("key1") is None
    assert stored.find("large") is not None
    assert sum(entry.stat().st_size for entry in tmp_path.iterdir()) <= 4000


def test_a_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Cache(tmp_path)

    def refuse(self: Path, target: Path) -> None:
        raise OSError("no space")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="no space"):
        stored.store("key", b"library")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCUDA_CACHE_DIR", str(tmp_path / "chosen"))
    assert cache().folder == tmp_path / "chosen"
    monkeypatch.delenv("TCUDA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache().folder == tmp_path / "xdg" / "tcuda" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache().folder == tmp_path / "home" / ".cache" / "tcuda" / "kernels"


def test_a_folder_that_cannot_be_made_is_replaced_by_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TCUDA_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    private = cache().folder
    assert not private.is_relative_to(tmp_path)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert cache().folder == private


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TCUDA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    open_to_all = tmp_path / "tcuda" / "kernels"
    open_to_all.mkdir(parents=True)
    open_to_all.chmod(0o777)
    assert cache().folder != open_to_all
