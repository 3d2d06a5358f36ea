"""The group of calls in the core: the arguments of each call, and the end of the group after an error."""

from __future__ import annotations

from typing import Any

import pytest

from tcuda._core import CallGroup


class Noted:
    """A group that takes notes.

    Args:
        failing: The note at which the call fails; None if all calls succeed.
    """

    def __init__(self, failing: object = None) -> None:
        self.notes: list[Any] = []
        self._failing = failing
        self.group = CallGroup(lambda: self.call("start"), lambda: self.call("end"))

    def call(self, *note: Any) -> None:
        self.notes.append(note)
        if note[0] == self._failing:
            raise KeyError(note[0])


def test_a_column_that_is_a_tuple_has_an_argument_for_each_call() -> None:
    noted = Noted()
    noted.group.run(noted.call, (("a", "b"), 3, [4], (5, 6)))
    assert noted.notes == [("start",), ("a", 3, [4], 5), ("b", 3, [4], 6), ("end",)]


def test_a_group_without_calls_starts_and_ends() -> None:
    noted = Noted()
    noted.group.run(noted.call, ((), 3))
    assert noted.notes == [("start",), ("end",)]


@pytest.mark.parametrize(
    ("failing", "names"), [("start", ["start"]), ("b", ["start", "a", "b", "end"]), ("end", ["start", "a", "b", "end"])]
)
def test_a_group_ends_once_whichever_call_fails(failing: str, names: list[str]) -> None:
    noted = Noted(failing)
    with pytest.raises(KeyError, match=failing):
        noted.group.run(noted.call, (("a", "b"),))
    assert [note[0] for note in noted.notes] == names


def test_the_error_of_the_call_is_raised_if_the_end_fails_too() -> None:
    def fail(*_: object) -> None:
        raise KeyError("end")

    with pytest.raises(ZeroDivisionError) as raised:
        CallGroup(list, fail).run(divmod, ((1,), 0))
    assert raised.value.__context__ is None


@pytest.mark.parametrize("columns", [(), (3,), ([1],)])
def test_the_first_column_must_be_a_tuple(columns: tuple[Any, ...]) -> None:
    noted = Noted()
    with pytest.raises(TypeError, match="the first column must be a tuple"):
        noted.group.run(noted.call, columns)
    assert not noted.notes


def test_columns_of_different_lengths_are_refused_before_the_start() -> None:
    noted = Noted()
    with pytest.raises(ValueError, match="the columns must have the same length"):
        noted.group.run(noted.call, ((1, 2), (3,)))
    assert not noted.notes
