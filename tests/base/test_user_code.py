"""The rule that tells the user's code from the code of libraries."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import tcuda
from tcuda import _core
from tcuda._base import user_code
from tcuda._base.user_code import calling_place, is_library, is_user_code, place_of
from tcuda.demo import network

PACKAGE = Path(tcuda.__file__).parent
SITE = "/usr/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    "filename",
    [
        "/home/user/train.py",
        "train.py",
        "<stdin>",
        "<ipython-input-3-1f>",
        "cell [3]",
        "C:\\code\\train.pyw",
        f"{SITE}/their_program/train.py",
        f"{SITE}/cupy_of_mine/train.py",
        "/usr/lib/python3/dist-packages/their_program.py",
        f"{SITE}/tcuda/demo/network.py",
        "/home/user/numpy/train.py",
        network.__file__,
        "/home/user/clone/tcuda/demo/network.py",
        "/home/user/tcuda/train.py",
        "/home/user/tcuda/tests/test_demo.py",
        "/home/user/tcuda/memory_of_mine/allocator.py",
        "/home/user/my_tcuda/emulation/devices/memory.py",
    ],
)
def test_programs_and_installed_programs_are_the_users_code(filename: str) -> None:
    assert is_user_code(filename)


@pytest.mark.parametrize(
    "filename",
    [
        f"{SITE}/cupy/_core/core.py",
        f"{SITE}/cupyx/scipy/linalg.py",
        f"{SITE}/cupy_backends/cuda.py",
        f"{SITE}/numpy/lib/io.py",
        f"{SITE}/scipy/fft/_backend.py",
        f"{SITE}/torch/nn/modules/linear.py",
        f"{SITE}/tcuda/emulation/array.py",
        f"{SITE}/tcuda/cli/demo.py",
        "C:\\Python\\Lib\\site-packages\\torch\\nn.py",
        "/usr/lib/python3/dist-packages/numpy/core.py",
        "/usr/lib/python3.12/threading.py",
        "/usr/lib64/python3.12/concurrent/futures/thread.py",
        "/opt/lib/python3.13t/runpy.py",
        "<frozen runpy>",
        "<unknown>",
        "??",
        "allocator.cpp",
        str(PACKAGE / "memory" / "__init__.py"),
        str(PACKAGE / "cli" / "demo.py"),
        "/home/user/clone/tcuda/emulation/devices/memory.py",
        "/home/user/tcuda/tcuda/memory/__init__.py",
        "C:\\code\\tcuda\\cli\\demo.py",
    ],
)
def test_libraries_and_native_code_are_not_the_users_code(filename: str) -> None:
    assert not is_user_code(filename)


def test_a_program_without_a_suffix_is_no_library() -> None:
    assert not is_library("/home/user/bin/train")
    assert is_library("<frozen runpy>")
    assert is_library("scipy/interpolate/_ppoly.pyx")
    assert is_library("_qhull.pyx")
    names: dict[str, Any] = {"calling_place": calling_place}
    exec(compile("found = calling_place()", "/home/user/bin/train", "exec"), names)
    assert names["found"].filename == "/home/user/bin/train"


def test_the_calling_place_is_the_innermost_line_of_a_program() -> None:
    names = {"calling_place": calling_place}
    exec(compile("def library():\n    return calling_place()", f"{SITE}/numpy/lib/io.py", "exec"), names)
    exec(compile("\n\nfound = library()", "/home/user/train.py", "exec"), names)
    assert names["found"] == ("/home/user/train.py", 3, "<module>")  # type: ignore[comparison-overlap]


def test_without_a_line_of_a_program_the_place_is_the_outermost_line() -> None:
    stack: list[int] = []
    thread = threading.Thread(target=stack.append, args=(0,))
    names = {"thread": thread, "_core": _core, "stack": stack}
    exec(compile("thread.run = lambda: stack.append(_core.note_stack())", f"{SITE}/numpy/lib/io.py", "exec"), names)
    thread.start()
    thread.join()
    place = place_of(stack[0])
    assert place is not None
    assert place.filename == threading.__file__
    assert place_of(0) is None


def test_files_of_a_package_with_a_longer_name_are_no_files_of_tcuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "_PACKAGE", "/home/user/tcuda/")
    assert not is_user_code("/home/user/tcuda/memory.py")
    assert is_user_code("/home/user/tcuda_of_mine/a.py")
