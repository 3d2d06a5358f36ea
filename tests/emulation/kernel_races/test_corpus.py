"""The kernels of the corpus: every planted race is found at its two lines, and no right kernel is accused.

The numbers of the right kernels are tested on both runtimes. ``corpus/README.md`` says how the kernels are
written, and after whom.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import numpy as np
import pytest

import tcuda
from support import kernel_corpus
from support.corpus_races import Found, races
from support.cpp_compilers import is_clang
from support.folders import DATA
from support.kernel_corpus import RACES, Program, Source, Wrong, right_source, topics, wrong_source

PROGRAMS = [program for programs in topics(RACES).values() for program in programs]
WRONGS = [wrong for program in PROGRAMS for wrong in program.wrongs]

NOT_KNOWN: dict[str, dict[str, str]] = json.loads((DATA / "kernel_races_not_known.json").read_text())
"""The wrong kernels whose race is not found, or of which another word is said, each with the reason."""
if is_clang():
    for kind, names in json.loads((DATA / "kernel_races_not_known_by_clang.json").read_text()).items():
        NOT_KNOWN[kind] |= names

ORDERS = 1, 2, 3, 4
"""The reverse order of the blocks and the threads, and three seeds."""

FOUND_IN_EVERY_ORDER = {
    "asynchronous_copies",
    "cooperative_groups",
    "grid_barriers",
    "phase_barriers",
    "pipelines",
    "scopes",
}
"""The topics whose races no order of the blocks and the threads may hide."""

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
"""How far sums and mathematical functions of floating-point numbers may differ between the runtimes."""


def name_of(one: Program | Wrong) -> str:
    return one.name


def test_the_corpus_has_two_hundred_pairs_and_all_kinds() -> None:
    assert len(WRONGS) >= 200
    assert len(PROGRAMS) >= 200
    assert {wrong.missing for wrong in WRONGS} == {*kernel_corpus.WORDS, None}
    names = [one.name for one in (*PROGRAMS, *WRONGS)]
    assert len(set(names)) == len(names)
    assert all(program.wrongs for program in PROGRAMS)


def test_the_kernels_that_are_known_less_are_in_the_corpus() -> None:
    named = [name for names in NOT_KNOWN.values() for name in names]
    assert len(named) == len(set(named))
    assert set(named) <= {wrong.name for wrong in WRONGS}


def test_a_wrong_kernel_differs_in_one_line() -> None:
    for wrong in WRONGS:
        right = wrong.program.code
        assert len(right) == len(wrong.code), wrong.name
        assert sum(one != other for one, other in zip(right, wrong.code, strict=True)) == 1, wrong.name


def test_dynamic_memory_has_one_type_in_a_source() -> None:
    for topic in topics(RACES):
        declared = re.findall(r"extern __shared__ (\w+) (\w+)\[", right_source(topic).text)
        assert len({name for _, name in declared}) == len(set(declared)), topic


def test_the_page_of_the_corpus_names_every_topic_with_its_number_of_programs() -> None:
    rows = re.findall(r"^\| `(\w+)` +\| +(\d+) \| +(\d+) \|", (RACES / "README.md").read_text(), re.MULTILINE)
    expected = [
        (topic, str(len(programs)), str(sum(len(program.wrongs) for program in programs)))
        for topic, programs in topics(RACES).items()
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


@pytest.mark.emulated
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_a_right_kernel_is_not_accused(program: Program) -> None:
    assert races(right_source(program.topic))[program.name] == []


@pytest.mark.emulated
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_a_right_kernel_is_not_accused_in_another_order(program: Program, order: int) -> None:
    assert races(right_source(program.topic), order)[program.name] == []


def cases(*kinds: str) -> list[Any]:
    """Return the wrong kernels as parameters; those of the table under ``kinds`` are expected to fail."""
    less = {name: reason for kind in kinds for name, reason in NOT_KNOWN[kind].items()}
    return [
        pytest.param(wrong, id=wrong.name, marks=[pytest.mark.xfail(reason=less[wrong.name])])
        if wrong.name in less
        else pytest.param(wrong, id=wrong.name)
        for wrong in WRONGS
    ]


@pytest.mark.emulated
@pytest.mark.parametrize("wrong", cases("not found"))
def test_a_planted_race_is_found_at_its_lines(wrong: Wrong) -> None:
    assert races_at_marks(wrong)


@pytest.mark.emulated
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "wrong", [wrong for wrong in WRONGS if wrong.program.topic in FOUND_IN_EVERY_ORDER], ids=name_of
)
def test_a_race_is_found_in_every_order(wrong: Wrong, order: int) -> None:
    assert races_at_marks(wrong, order)


@pytest.mark.emulated
@pytest.mark.parametrize("wrong", cases("not found", "another word"))
def test_what_is_missing_is_said(wrong: Wrong) -> None:
    found = races_at_marks(wrong)
    assert found
    assert wrong.missing in (None, *(one.missing for one in found))


@pytest.mark.emulated
@pytest.mark.parametrize("wrong", [wrong for wrong in WRONGS if wrong.same_value], ids=name_of)
def test_writes_of_the_same_value_are_told_apart(wrong: Wrong) -> None:
    assert all(found.race.same_value for found in races_at_marks(wrong))


def races_at_marks(wrong: Wrong, order: int = 0) -> list[Found]:
    source = wrong_source(wrong.program.topic)
    return [found for found in races(source, order)[wrong.name] if found.lines == source.marked(wrong)]
