"""The compiled kernels that all processes of a user share."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

import pytest

from tcuda.emulation.rtc.cache import HEADER, LIBRARY, Cache, Folder, cache, key_of

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf

KEY = key_of("a source")
FULL = OSError(28, "No space left on device")


def folder_in(path: Path, most_bytes: int = 1 << 30) -> Folder:
    return Folder(path, ("own",), most_bytes)


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_what_is_stored_is_found_and_nothing_else_is(tmp_path: Path) -> None:
    stored = folder_in(tmp_path / "a" / "b")
    assert stored.find(KEY) is None
    stored.store(KEY, b"library")
    assert stored.find(KEY) == b"library"
    assert stored.find(KEY, HEADER) is None
    assert stored.find(key_of("another source")) is None
    assert stat.S_IMODE(stored.path.stat().st_mode) == 0o700
    assert names(stored.path) == [KEY + LIBRARY]


@pytest.mark.parametrize("damage", [lambda text: text[:-1], lambda text: text[:4], lambda text: b"",
                                    lambda text: b"L" + text[1:]])  # fmt: skip
def test_a_broken_file_is_not_found_and_can_be_stored_again(damage, tmp_path: Path) -> None:
    stored = folder_in(tmp_path)
    stored.store(KEY, b"library")
    path = stored.path / f"{KEY}{LIBRARY}"
    path.write_bytes(damage(path.read_bytes()))
    assert stored.find(KEY) is None
    stored.store(KEY, b"library")
    assert stored.find(KEY) == b"library"


def test_the_files_that_were_used_longest_ago_are_removed_from_a_large_folder(tmp_path: Path) -> None:
    stored = folder_in(tmp_path, most_bytes=4000)
    keys = [key_of(str(number)) for number in range(3)]
    for number, key in enumerate(keys):
        stored.store(key, bytes(1000))
        os.utime(stored.path / f"{key}{LIBRARY}", (number, number))
    assert stored.find(keys[0]) is not None  # The use makes the file the newest.
    stored.store(KEY, bytes(2000))
    assert stored.find(keys[1]) is None
    assert stored.find(KEY) is not None
    assert sum(entry.stat().st_size for entry in stored.path.iterdir()) <= 4000


def test_files_of_others_in_a_large_folder_stay(tmp_path: Path) -> None:
    stored = folder_in(tmp_path, most_bytes=1000)
    stored.store(KEY, bytes(100))
    others = ["model.so", "libmine.so", "x.o", "x.gch", "x.tmp", "A" * 64 + ".so", f"{KEY}.so.old", f"{KEY}.c"]
    for place in (tmp_path, stored.path):
        for name in others:
            (place / name).write_bytes(bytes(2000))
            os.utime(place / name, (0, 0))
    young = stored.path / f"{key_of('c')}{LIBRARY}.{'0' * 16}.tmp"  # Another process may be about to finish the file.
    young.write_bytes(bytes(2000))
    interrupted = stored.path / f"{key_of('b')}{LIBRARY}.{'0' * 16}.tmp"
    interrupted.write_bytes(bytes(2000))
    os.utime(interrupted, (0, 0))
    stored.store(key_of("large"), bytes(2000))
    assert not interrupted.exists()
    assert names(stored.path) == sorted([*others, f"{key_of('large')}{LIBRARY}", young.name])
    assert names(tmp_path) == sorted([*others, "own"])


def test_a_failed_write_leaves_no_file_and_the_memory_keeps_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_in(tmp_path)
    stored = Cache(folder)

    def refuse(*arguments: object, **options: object) -> None:
        raise FULL

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(RuntimeWarning, match=r"cannot keep compiled kernels in '.*own'.*No space left on device"):
        stored.store(KEY, b"header", HEADER)
    stored.store(KEY, b"library")  # The warning comes once.
    assert names(folder.path) == []
    assert stored.find(KEY, HEADER) == b"header"
    assert stored.find(KEY) == b"library"
    monkeypatch.undo()
    stored.store(key_of("later"), b"more")
    assert names(folder.path) == [key_of("later") + LIBRARY]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_a_kernel_runs_if_the_folder_has_no_space_for_the_precompiled_header(
    output_of: OutputOf, tmp_path: Path
) -> None:
    code = """
import os, warnings
from tcuda.emulation import xp
from tcuda.emulation.rtc import cache, precompiled

precompiled.WORTH = 1

def write(folder, name, content, write=cache._write):
    if len(content) > 1 << 20:
        raise OSError(28, "No space left on device")
    write(folder, name, content)

cache._write = write
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    for number in range(2):
        x = xp.zeros(1)
        xp.RawKernel('extern "C" __global__ void f(double* x) { x[0] = %d; }' % (number + 1), "f")((1,), (1,), (x,))
        assert x.item() == number + 1
kinds = {warning.category for warning in found}
print(len(found) < 2 and kinds <= {RuntimeWarning})
"""
    assert output_of(code, TCUDA_CACHE_DIR=str(tmp_path), TCUDA_RUNTIME="emulated") == "True"


def test_the_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def path() -> Path:
        folder = cache().folder
        assert folder is not None
        return folder.path

    monkeypatch.setenv("TCUDA_CACHE_DIR", str(tmp_path / "chosen"))
    assert path() == tmp_path / "chosen" / f"tcuda-kernels-{os.geteuid()}"
    monkeypatch.delenv("TCUDA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert path() == tmp_path / "xdg" / "tcuda" / "kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert path() == tmp_path / "home" / ".cache" / "tcuda" / "kernels"
    monkeypatch.setenv("HOME", "relative")
    with pytest.warns(RuntimeWarning, match="no home folder"):
        cache().store(KEY, b"library")


def test_a_folder_whose_path_is_no_text_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCUDA_CACHE_DIR", os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    cache().store(KEY, b"library")
    assert cache().find(KEY) == b"library"
    assert [os.fsencode(name) for name in names(tmp_path)] == [b"\xff"]


def test_a_folder_that_cannot_be_made_is_replaced_by_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TCUDA_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    with pytest.warns(RuntimeWarning, match="Set TCUDA_CACHE_DIR to a folder of yours"):
        cache().store(KEY, b"library")
    assert cache().find(KEY) == b"library"


def test_a_folder_that_others_can_write_is_not_read(tmp_path: Path) -> None:
    stored = folder_in(tmp_path)
    stored.store(KEY, b"library")
    stored.path.chmod(0o777)
    assert Cache(stored).find(KEY) is None
    with pytest.warns(RuntimeWarning, match="can be changed by other users"):
        Cache(stored).store(KEY, b"library")


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    stored = folder_in(tmp_path)
    stored.store(KEY, b"library")
    path = stored.path / f"{KEY}{LIBRARY}"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert stored.find(KEY) is None
    stored.store(KEY, b"replaced")
    assert stored.find(KEY) == b"replaced"
    assert not path.is_symlink()
