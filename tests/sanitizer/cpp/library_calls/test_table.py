"""The rows of the table of library functions, against the declarations of NVIDIA's headers."""

from __future__ import annotations

import json
import re

import pytest

from support.core import for_tests
from support.folders import REPOSITORY

# The arguments of each function as its header declares them: p a pointer, i a handle, an enumeration or an int, l 64
# bits, f float, d double. The headers are those of CUDA 13.0, NCCL 2.28, and CuPy's declarations of cuTENSOR 2.
# `cublas[SD]dot_v2` stands for `cublasSdot_v2` and `cublasDdot_v2`.
ROWS: dict[str, str] = json.loads((REPOSITORY / "tests" / "data" / "library_functions.json").read_text())
DECLARED = {
    re.sub(r"\[\w+\]", letter, name): kinds
    for name, kinds in ROWS.items()
    for letter in re.sub(r".*\[|\].*", "", name if "[" in name else "-")
}
TABLE = dict(for_tests.library_call_table())

POINTERS = {"read", "write", "both", "maybe", "table", "keeps", "sets", "new", "holds", "indexes", "vector"}
WORD = re.compile(r"(?P<name>\w+)(:(?P<role>[a-z]+)(?P<extent>\([^)]*\))?)?(\^(?P<operation>\w+))?(@(?P<item>\w+))?")


def parts(argument: str) -> dict[str, str | None]:
    """Return the parts of an argument of the table."""
    match = WORD.fullmatch(argument)
    assert match is not None, argument
    return match.groupdict()


def test_each_function_is_declared_once() -> None:
    """The names of the table are those of the declarations, without a double one."""
    names = [name for name, _ in for_tests.library_call_table()]
    assert sorted(names) == sorted(DECLARED)


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_the_arguments_are_as_declared(name: str) -> None:
    """The number of the arguments and the way each is passed."""
    arguments = [parts(argument) for argument in TABLE[name]]
    assert len(arguments) == len(DECLARED[name])
    for argument, kind in zip(arguments, DECLARED[name], strict=True):
        role = argument["role"]
        assert (role == "float") == (kind == "f"), argument
        assert (role == "double") == (kind == "d"), argument
        assert (role == "wide") == (kind == "l"), argument
        if role in POINTERS:
            assert kind == "p", argument
        if argument["extent"]:
            assert role in POINTERS


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_the_numbers_of_an_extent_are_numbers(name: str) -> None:
    """An extent is made of integers that the function takes, and an item has a type that it takes."""
    arguments = {str(argument["name"]): argument for argument in map(parts, TABLE[name])}
    assert len(arguments) == len(TABLE[name])
    for argument in arguments.values():
        for word in re.findall(r"[A-Za-z]\w*", argument["extent"] or ""):
            assert arguments[word]["role"] in (None, "wide", "vector"), (argument, word)
        if argument["item"] and argument["item"] != "real" and not argument["item"].isdigit():
            assert arguments[argument["item"]]["role"] in ("data", "index", "nccl", "cupy"), argument
        if argument["operation"]:
            assert arguments[argument["operation"]]["role"] in (None, "order")


def test_every_function_with_memory_says_what_it_does() -> None:
    """A row without a single role would hide a kernel."""
    acting = {*POINTERS, "object", "ends", "resizes", "repoints", "reads"}
    quiet = {name for name, row in TABLE.items() if not {parts(argument)["role"] for argument in row} & acting}
    assert quiet == {"ncclGroupStart", "ncclGroupEnd", "cufftMakePlan1d", "cufftMakePlanMany", "cufftXtMakePlanMany"}
