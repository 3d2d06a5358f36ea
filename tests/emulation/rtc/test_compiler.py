"""The C++ compiler of the machine."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tcuda.emulation.rtc import compiler

if TYPE_CHECKING:
    from pathlib import Path


def program(folder: Path, name: str, says: str) -> Path:
    """Make a program that prints ``says``, and return its path."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho run >> {folder}/{name}.runs\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_cxx_may_contain_arguments(tmp_path: Path) -> None:
    program(tmp_path, "cache", "gcc 12.2")
    program(tmp_path, "mine", "unused")
    found = compiler.find({"CXX": "cache mine -m64", "PATH": str(tmp_path)})
    assert found.command == (str(tmp_path / "cache"), "mine", "-m64")
    assert found.version == "gcc 12.2"


def test_the_first_known_name_on_the_path_is_used(tmp_path: Path) -> None:
    program(tmp_path, "clang++", "Debian clang version 14.0.6")
    found = compiler.find({"PATH": str(tmp_path)})
    assert found.command == (str(tmp_path / "clang++"),)
    assert found.is_clang
    program(tmp_path, "g++", "g++ (Debian 12.2.0-14) 12.2.0")
    found = compiler.find({"PATH": str(tmp_path)})
    assert found.command == (str(tmp_path / "g++"),)
    assert not found.is_clang


def test_a_machine_without_a_compiler_is_told_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as caught:
        compiler.find({"PATH": str(tmp_path)})
    for text in ("CXX", "c++, g++, clang++", "apt install g++", "dnf install gcc-c++", "xcode-select --install"):
        assert text in str(caught.value)


@pytest.mark.parametrize(("value", "message"), [("absent -m64", "no program 'absent'"), ("'", "is no command")])
def test_a_wrong_cxx_is_named(value: str, message: str, tmp_path: Path) -> None:
    program(tmp_path, "g++", "g++ 12")
    with pytest.raises(RuntimeError, match=f"CXX is .*{message}"):
        compiler.find({"CXX": value, "PATH": str(tmp_path)})


def test_a_replaced_compiler_has_another_identity_and_is_asked_again(tmp_path: Path) -> None:
    path = program(tmp_path, "g++", "g++ 12")
    environ = {"PATH": str(tmp_path)}
    first = compiler.find(environ)
    assert first.version == compiler.find(environ).version == "g++ 12"
    assert (tmp_path / "g++.runs").read_text() == "run\n"
    program(tmp_path, "g++", "g++ 13 and more")
    os.utime(path, (1, 1))
    second = compiler.find(environ)
    assert second.identity != first.identity
    assert second.version == "g++ 13 and more"


@pytest.mark.parametrize("says", ["", "hello"])
def test_a_program_that_is_no_compiler_is_refused(says: str, tmp_path: Path) -> None:
    program(tmp_path, "g++", says)
    with pytest.raises(RuntimeError, match="is no C\\+\\+ compiler"):
        _ = compiler.find({"PATH": str(tmp_path)}).version


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_gcc_is_told_from_clang() -> None:
    assert not compiler.find({**os.environ, "CXX": "g++"}).is_clang
