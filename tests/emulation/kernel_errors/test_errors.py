"""The kernels of the corpus: every mistake is found at its line, and no right kernel is accused.

The numbers of the right kernels are tested on both runtimes. ``corpus/README.md`` says how the kernels are written.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import numpy as np
import pytest

import tcuda
from support import corpus_errors, kernel_corpus
from support.cpp_compilers import is_clang
from support.folders import DATA
from support.kernel_corpus import ERRORS, Program, Source, Wrong, right_source, topics, wrong_source

PROGRAMS = [program for programs in topics(ERRORS).values() for program in programs]
WRONGS = [wrong for program in PROGRAMS for wrong in program.wrongs]

NOT_KNOWN: dict[str, dict[str, str]] = json.loads((DATA / "kernel_errors_not_known.json").read_text())
"""The wrong kernels that are not found, or of which no line is named, each with the reason."""

if is_clang():
    for kind, names in json.loads((DATA / "kernel_errors_not_known_by_clang.json").read_text()).items():
        NOT_KNOWN[kind] |= names


def name_of(one: Program | Wrong) -> str:
    return one.name


def test_a_wrong_kernel_differs_in_one_line() -> None:
    names = [one.name for one in (*PROGRAMS, *WRONGS)]
    assert len(set(names)) == len(names)
    assert all(program.wrongs for program in PROGRAMS)
    for wrong in WRONGS:
        right = wrong.program.code
        assert len(right) == len(wrong.code), wrong.name
        assert sum(one != other for one, other in zip(right, wrong.code, strict=True)) == 1, wrong.name


def test_the_kernels_that_are_known_less_are_in_the_corpus() -> None:
    named = [name for names in NOT_KNOWN.values() for name in names]
    assert len(named) == len(set(named))
    assert set(named) <= {wrong.name for wrong in WRONGS}


def test_the_page_of_the_corpus_names_every_topic_with_its_number_of_programs() -> None:
    rows = re.findall(r"^\| `(\w+)` +\| +(\d+) \| +(\d+) \|", (ERRORS / "README.md").read_text(), re.MULTILINE)
    expected = [
        (topic, str(len(programs)), str(sum(len(program.wrongs) for program in programs)))
        for topic, programs in topics(ERRORS).items()
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
        np.testing.assert_array_equal(out.of(found), out.of(out.expected))


@pytest.mark.emulated
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_a_right_kernel_is_not_accused(program: Program) -> None:
    assert corpus_errors.outcomes()[program.name] == ""


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
def test_a_mistake_is_found(wrong: Wrong) -> None:
    assert wrong.name in corpus_errors.outcomes()[wrong.name]


@pytest.mark.emulated
@pytest.mark.parametrize("wrong", cases("not found", "without its line"))
def test_the_line_of_a_mistake_is_named(wrong: Wrong) -> None:
    source = wrong_source(wrong.program.topic)
    assert source.marked(wrong) in corpus_errors.findings(source)[wrong.name]
