"""Which events a program asked for, and which tcuda made inside another call."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcuda
from tcuda.sanitizer._stacks import Frame, is_asked_for

PACKAGE = Path(tcuda.__file__).parent
USER = Frame("<module>", "/home/user/train.py", 12)


def own(path: str) -> Frame:
    return Frame("f", str(PACKAGE / path), 1)


@pytest.mark.parametrize(
    ("inside", "is_asked"),
    [
        ([own("streams/_stream.py")], True),
        ([own("emulation/runtime/runtime.py"), own("streams/_event.py"), own("accelerator/events.py")], True),
        ([own("emulation/runtime/runtime.py"), own("emulation/cuda/event.py")], True),
        ([own("streams/_event.py"), own("comm/_order.py")], False),
        ([own("emulation/runtime/runtime.py"), own("memory/_allocator.py")], False),
        ([Frame("record", "/usr/lib/python3/site-packages/cupy/cuda/stream.py", 5)], True),
        ([], True),
    ],
)
def test_the_function_that_the_program_called_says_who_asked_for_an_event(inside: list[Frame], is_asked: bool) -> None:
    assert is_asked_for([*inside, USER]) is is_asked
