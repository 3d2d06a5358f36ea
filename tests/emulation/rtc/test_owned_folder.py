"""Folders to which no other user can write."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.descriptors import open_descriptors
from tcuda.emulation.rtc.owned_folder import opened

OTHER = 12345


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> dict[Path, int]:
    """Folders, links and their owners, as the folders and links seem to belong to those users."""
    found: dict[Path, int] = {}
    real, real_link = os.fstat, os.lstat

    def changed(state: os.stat_result) -> os.stat_result:
        for path, owner in found.items():
            if os.path.samestat(state, real_link(path)):
                return os.stat_result([*state[:4], owner, *state[5:10]])
        return state

    monkeypatch.setattr(os, "fstat", lambda descriptor: changed(real(descriptor)))
    monkeypatch.setattr(os, "lstat", lambda path, **options: changed(real_link(path, **options)))
    return found


def identity(path: Path, *, make: bool = True) -> tuple[int, int]:
    """Return the identity of the folder that is opened for ``path``."""
    with opened(Path("/"), path.parts[1:], make=make) as descriptor:
        state = os.fstat(descriptor)
        return state.st_dev, state.st_ino


def test_missing_folders_are_made_for_this_user_alone(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        identity(tmp_path / "a" / "b", make=False)
    assert not (tmp_path / "a").exists()
    made = identity(tmp_path / "x" / "y")
    state = (tmp_path / "x" / "y").stat()
    assert identity(tmp_path / "x" / "y", make=False) == made == (state.st_dev, state.st_ino)
    assert (tmp_path / "x").stat().st_mode & 0o777 == state.st_mode & 0o777 == 0o700


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "loop").symlink_to("loop")
    with opened(Path("/"), tmp_path.parts[1:], make=False):
        assert open_descriptors(str(tmp_path)) == [str(tmp_path)]
    identity(tmp_path / "a")
    for name in ("open", "loop"):
        with pytest.raises(OSError, match="changed by other users|symbolic links"):
            identity(tmp_path / name / "a")
    assert open_descriptors(str(tmp_path)) == []


@pytest.mark.parametrize("step", ["a", "a/b", "a/b/c"])
def test_a_folder_of_another_user_on_the_way_is_refused(step: str, tmp_path: Path, owners: dict[Path, int]) -> None:
    identity(tmp_path / "a" / "b" / "c")
    owners[tmp_path / step] = OTHER
    with pytest.raises(PermissionError, match="belongs to another user"):
        identity(tmp_path / "a" / "b" / "c")
    owners[tmp_path / step] = os.geteuid()
    identity(tmp_path / "a" / "b" / "c")


@pytest.mark.parametrize("step", ["a", "a/b", "a/b/c"])
def test_a_folder_that_others_can_write_is_refused(step: str, tmp_path: Path) -> None:
    identity(tmp_path / "a" / "b" / "c")
    (tmp_path / step).chmod(0o757)
    with pytest.raises(PermissionError, match="can be changed by other users"):
        identity(tmp_path / "a" / "b" / "c")


def test_a_shared_folder_with_the_sticky_bit_may_be_on_the_way_but_not_at_the_end(tmp_path: Path) -> None:
    identity(tmp_path / "a" / "b")
    (tmp_path / "a").chmod(0o1777)
    identity(tmp_path / "a" / "b")
    with pytest.raises(PermissionError, match="not this user's alone"):
        identity(tmp_path / "a")


def test_links_of_this_user_are_followed_and_those_of_others_are_not(tmp_path: Path, owners: dict[Path, int]) -> None:
    expected = identity(tmp_path / "a" / "b")
    (tmp_path / "absolute").symlink_to(tmp_path / "a")
    (tmp_path / "relative").symlink_to("absolute/../a/./b")
    assert identity(tmp_path / "absolute" / "b") == identity(tmp_path / "relative") == expected
    owners[tmp_path / "absolute"] = OTHER
    for name in ("absolute/b", "relative"):
        with pytest.raises(PermissionError, match="belongs to another user"):
            identity(tmp_path / name)


def test_a_link_at_the_end_of_the_way_is_checked_as_the_way_is(tmp_path: Path) -> None:
    identity(tmp_path / "open" / "b")
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open" / "b")
    with pytest.raises(PermissionError, match="can be changed by other users"):
        identity(tmp_path / "link")


@pytest.mark.parametrize(("group", "members", "allowed"),
                         [("me", [], True), ("me", ["me"], True), ("me", ["me", "you"], False), ("staff", [], False),
                          (None, [], False)])  # fmt: skip
def test_a_group_may_write_only_if_the_group_is_of_this_user_alone(
    group: str | None, members: list[str], allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entry(number: int) -> SimpleNamespace:
        if group is None:
            raise KeyError(number)
        return SimpleNamespace(gr_name=group, gr_mem=members)

    identity(tmp_path / "a" / "b")
    (tmp_path / "a").chmod(0o770)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_name="me", pw_gid=os.getegid()))
    monkeypatch.setattr(grp, "getgrgid", entry)
    if allowed:
        identity(tmp_path / "a" / "b")
    else:
        with pytest.raises(PermissionError, match="can be changed by other users"):
            identity(tmp_path / "a" / "b")
