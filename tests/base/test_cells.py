"""The cells of notebooks: their names in reports, and the frames of IPython that are left out.

IPython need not be installed: the tests give code the names that IPython gives to it.
"""

from __future__ import annotations

import linecache
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

import tcuda
from support.found_races import FoundAccess, FoundRace, stack
from tcuda._base.cells import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime
    from tcuda.sanitizer._race import Race

CELL = "/tmp/ipykernel_77/614166370.py"
SHELL = "/usr/lib/python3/site-packages/IPython/core/interactiveshell.py"
SOURCE = "import numpy\nx.fill(3)\n"

RUN_CELL = [("run_code", SHELL, 3500), ("run_cell", SHELL, 3000), ("start", "/usr/tornado/asyncio.py", 200)]


@pytest.fixture
def ipython(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Let a stand-in for IPython count cells; yield the number of each cell by its name."""
    numbers = {CELL: 3}

    def format_code_name(name: str) -> tuple[str, str] | None:
        return ("Cell", f"In[{numbers[name]}]") if name in numbers else None

    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=format_code_name))
    monkeypatch.setitem(sys.modules, "IPython", cast("Any", SimpleNamespace(get_ipython=lambda: shell)))
    linecache.cache[CELL] = len(SOURCE), None, SOURCE.splitlines(keepends=True), CELL
    yield numbers
    for name in (CELL, "cell [3]", "cell [4]"):
        linecache.cache.pop(name, None)


def race_in(*frames: tuple[str, str, int]) -> Race:
    from tcuda.sanitizer._description import race_of

    accesses = (FoundAccess(stack=stack(*frames), stream=stream) for stream in (0x10, 0x20))
    return race_of(cast("Any", FoundRace(*accesses)))


def test_a_cell_has_its_number_and_its_lines(ipython: dict[str, int]) -> None:
    assert shown(CELL) == "cell [3]"
    linecache.checkcache()
    assert linecache.getline("cell [3]", 2) == "x.fill(3)\n"


def test_a_cell_that_runs_again_has_the_new_number(ipython: dict[str, int]) -> None:
    assert shown(CELL) == "cell [3]"
    ipython[CELL] = 4
    assert shown(CELL) == "cell [4]"


@pytest.mark.parametrize("name", ["/home/user/program.py", "<stdin>", "/tmp/ipykernel_77/other.py"])
def test_other_files_keep_their_names(name: str, ipython: dict[str, int]) -> None:
    assert shown(name) == name


def test_a_name_with_the_number_needs_no_ipython(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert shown("<ipython-input-12-0a1b2c>") == "cell [12]"
    assert shown(CELL) == CELL
    linecache.cache.pop("cell [12]", None)


def test_ipython_without_a_shell_names_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", cast("Any", SimpleNamespace(get_ipython=lambda: None)))
    assert shown(CELL) == CELL


@pytest.mark.wings
def test_a_race_has_the_cell_and_its_line_and_no_frame_of_ipython(ipython: dict[str, int], runtime: Runtime) -> None:
    from tcuda.sanitizer._errors import UnsynchronizedAccessError

    race = race_in(("write", CELL, 2), ("<module>", CELL, 1), *RUN_CELL)
    assert [(frame.filename, frame.line) for frame in race.current.stack] == [("cell [3]", 2), ("cell [3]", 1)]
    assert '  File "cell [3]", line 2, in write\n    x.fill(3)\n' in str(UnsynchronizedAccessError.of(race))
    assert "\n   cell [3], line 2  fill writes memory" in str(race)
    assert "before cell [3], line 2 orders them." in race.missing.sentence
    assert "IPython" not in str(race)


@pytest.mark.wings
def test_a_magic_command_inside_a_cell_is_left_out(ipython: dict[str, int], runtime: Runtime) -> None:
    magic = "/usr/lib/python3/site-packages/IPython/core/magics/execution.py"
    race = race_in(("<module>", "<timed exec>", 1), ("time", magic, 1300), ("<module>", CELL, 1), *RUN_CELL)
    assert [frame.filename for frame in race.current.stack] == ["<timed exec>", "cell [3]"]


@pytest.mark.wings
def test_the_words_take_a_cell_for_code_of_the_user(ipython: dict[str, int], runtime: Runtime) -> None:
    race = race_in(("add", "/usr/lib/python3.11/json/decoder.py", 5), ("<module>", CELL, 2))
    assert race.as_dict()["words"]["sides"][1]["place"] == {"file": "cell [3]", "line": 2}


@pytest.mark.emulated
def test_a_warning_names_the_cell_and_names_of_ipython_are_not_looked_up(ipython: dict[str, int]) -> None:
    from tcuda.sanitizer import RaceWarning

    program = (
        "with tcuda.sanitizer.check(mode='warn'):\n"
        "    x = tcuda.xp.ones(1000)\n"
        "    with tcuda.stream(streams.pop()):\n"
        "        y = x * 2\n"
    )
    code = compile(program, CELL, "exec")
    names: dict[str, Any] = {"exec": exec}
    # A function of IPython has the stream in a variable, and runs the cell.
    exec(
        compile("def run_code(code, variables, user_stream):\n    exec(code, variables)\n", SHELL, "exec"),
        names,
    )
    side = tcuda.Stream()
    with pytest.warns(RaceWarning) as caught:
        names["run_code"](code, {"tcuda": tcuda, "streams": [side]}, side)
    (warning,) = caught
    assert (warning.filename, warning.lineno) == ("cell [3]", 4)
    race = cast("RaceWarning", warning.message).race
    assert race is not None
    assert race.current.stream_name == "tcuda.current_stream()"


@pytest.mark.emulated
def test_underscores_of_a_notebook_come_last() -> None:
    _ = side = tcuda.Stream()
    with tcuda.sanitizer.check(mode="collect") as report:
        x = tcuda.xp.ones(1000)
        with tcuda.stream(side):
            x * 2
    assert report.races[0].current.stream_name == "side"
