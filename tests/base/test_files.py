"""Files that the user names: their old content stays until the new content is complete."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tcuda._base.files import replace_file, require_replaceable, write_file

if TYPE_CHECKING:
    from pathlib import Path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        replace_file(tmp_path / "file", b"new")
    finally:
        os.umask(old)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert mode_of(tmp_path / "file") == 0o640
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o604)
    replace_file(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert mode_of(path) == 0o604


def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    monkeypatch.setattr("secrets.token_hex", lambda size: "guessed")
    (tmp_path / ".tcuda.guessed.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / ".tcuda.guessed.tmp").is_symlink()


def test_a_write_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_and_a_pipe_are_written_in_place(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(target)
    for content in (b"new", b"again"):
        write_file(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(pipe, b"new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)


def test_a_file_of_the_user_is_written_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_file(path, b"old")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: os.write(-1, b""))
        with pytest.raises(OSError, match="Bad file descriptor"):
            write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    write_file(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_an_error_before_the_work(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="file"):
            require_replaceable(path)
    finally:
        tmp_path.chmod(0o700)
