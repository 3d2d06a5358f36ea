"""The variable of an array, and the place of its last use, read off the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcuda.sanitizer._array_names import use_of
from tcuda.sanitizer._stacks import Frame

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """\
def step(xp, x):
    x = x + 1
    y = xp.ones(
        4,
    )
    return y.sum()

def temporary(xp, x):
    y = run(x * 10)

class Loader:
    def __init__(self, xp):
        self.batch = xp.ones(4)

    def step(self):
        return self.batch.sum()

class Other:
    def step(self):
        return self.batch.sum()
"""


@pytest.mark.parametrize(
    ("allocated", "used", "writes", "expected"),
    [
        (("step", 2), ("step", 2), False, ("x", 2, False)),  # reads the array of an earlier turn
        (("step", 2), ("step", 2), True, ("x", 2, True)),  # writes the new array, which no earlier line has
        (("step", 4), ("step", 3), True, ("y", 3, True)),  # two lines of one statement
        (("step", 3), ("step", 6), False, ("y", 6, False)),
        (("temporary", 9), ("temporary", 9), True, (None, 9, True)),  # not what the variable gets
        (("__init__", 13), ("step", 16), False, ("self.batch", 16, False)),
        (("__init__", 13), ("step", 20), False, (None, 20, False)),  # another class
    ],
)
def test_the_last_use_of_an_array(
    allocated: tuple[str, int],
    used: tuple[str, int],
    writes: bool,
    expected: tuple[str | None, int, bool],
    tmp_path: Path,
) -> None:
    path = tmp_path / "program.py"
    path.write_text(SOURCE)
    frames = [[Frame(name, str(path), line)] for name, line in (allocated, used)]
    found = use_of(*frames, writes=writes)
    assert found is not None
    assert (found.name, found.place.line, found.makes_array) == expected
