"""The kernels of the corpus: every planted race is found at its two lines, and no right kernel is accused.

The right kernels give the same numbers on emulated devices and on a GPU. ``corpus/README.md`` says how the kernels are
written, and after whom.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import tcuda
from support import kernel_corpus
from support.kernel_corpus import FOLDER, Launch, Out, Program, Source, Wrong, right_source, topics, wrong_source
from support.racing_kernels import launch
from tcuda.emulation.rtc.build import build
from tcuda.emulation.rtc.source_lines import source_lines

if TYPE_CHECKING:
    from tcuda._core import KernelAccess, KernelRace

PROGRAMS = [program for programs in topics().values() for program in programs]
WRONGS = [wrong for program in PROGRAMS for wrong in program.wrongs]

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
"""How far sums and mathematical functions of floating-point numbers may differ between the runtimes."""


class Found(NamedTuple):
    """A race that the search has found, with the lines of both accesses."""

    lines: frozenset[int | None]
    missing: str
    race: KernelRace


def name_of(one: Program | Wrong) -> str:
    return one.name


def test_the_corpus_has_two_hundred_pairs_and_all_kinds() -> None:
    assert len(WRONGS) >= 200
    assert len(PROGRAMS) >= 200
    assert {wrong.missing for wrong in WRONGS} == {*kernel_corpus.WORDS, None}
    names = [one.name for one in (*PROGRAMS, *WRONGS)]
    assert len(set(names)) == len(names)
    assert all(program.wrongs for program in PROGRAMS)


def test_a_wrong_kernel_differs_in_one_line() -> None:
    for wrong in WRONGS:
        right = wrong.program.code
        assert len(right) == len(wrong.code), wrong.name
        assert sum(one != other for one, other in zip(right, wrong.code, strict=True)) == 1, wrong.name


def test_the_page_of_the_corpus_names_every_topic_with_its_number_of_programs() -> None:
    rows = re.findall(r"^\| `(\w+)` +\| +(\d+) \| +(\d+) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    expected = [
        (topic, str(len(programs)), str(sum(len(program.wrongs) for program in programs)))
        for topic, programs in topics().items()
    ]
    assert rows == expected


@functools.cache
def module(source: Source) -> Any:
    return kernel_corpus.compiled(tcuda.xp, source)


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_a_right_kernel_gives_the_numbers(program: Program) -> None:
    outs = kernel_corpus.run(tcuda.xp, module(right_source(program.topic)), program.name, program.launch)
    assert outs
    for out, found in outs:
        expected = out.of(out.expected)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(out.of(found), expected, **CLOSE)
        else:
            np.testing.assert_array_equal(out.of(found), expected)


@functools.cache
def races(source: Source) -> dict[str, list[Found]]:
    """Launch all kernels of a source, and return the races of each."""
    found = {name: _races_of(source, name, one.launch) for name, one in source.kernels.items()}
    codes = sorted(
        {access.code for several in found.values() for race in several for access in (race.first, race.second)}
    )
    library, _ = build(source.text, races=True)
    places = dict(zip(codes, source_lines(library, codes), strict=True))

    def line(access: KernelAccess) -> int | None:
        place = places[access.code]
        return place and place[1]

    return {
        name: [Found(frozenset([line(race.first), line(race.second)]), race.missing, race) for race in several]
        for name, several in found.items()
    }


def _races_of(source: Source, name: str, described: Launch) -> list[KernelRace]:
    def three(sizes: tuple[int, ...]) -> tuple[int, int, int]:
        x, y, z = (*sizes, 1, 1)[:3]
        return x, y, z

    arguments = [one.initial if isinstance(one, Out) else one for one in described.arguments]
    copies = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]  # live until the launch ends
    started = launch(
        source.text,
        *copies,
        grid=three(described.grid),
        block=three(described.block),
        shared=described.shared,
        name=name,
    )
    assert started.run() is None
    return started.races()


@pytest.mark.emulated
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_a_right_kernel_is_not_accused(program: Program) -> None:
    assert races(right_source(program.topic))[program.name] == []


@pytest.mark.emulated
@pytest.mark.parametrize("wrong", WRONGS, ids=name_of)
def test_a_planted_race_is_found(wrong: Wrong) -> None:
    source = wrong_source(wrong.program.topic)
    at_marks = [found for found in races(source)[wrong.name] if found.lines == source.marked(wrong)]
    assert at_marks
    assert wrong.missing in (None, *(found.missing for found in at_marks))
