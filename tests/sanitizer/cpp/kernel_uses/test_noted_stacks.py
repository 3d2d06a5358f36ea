"""The stacks of calls that queue work without Python's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.core import for_tests
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Iterator


class Operation:
    """Stands for a type of CuPy, whose calls launch kernels."""

    def __init__(self) -> None:
        self.functions: list[str] = []

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.functions = [frame["name"] for frame in _core.frames_of(for_tests.note_stack_without_lock())]
        if given == ("fail",):
            raise ValueError("the call failed")
        return given, named


class Other(Operation):
    """Another type, whose calls are those of the first."""


class Plain:
    """A type without calls."""


@pytest.fixture(autouse=True)
def _as_found() -> Iterator[None]:
    yield
    _core.stop_noting_stacks()


def test_the_stack_is_that_of_the_call() -> None:
    operation = Operation()
    operation(1)
    assert operation.functions == []  # nobody has begun to note stacks in another thread
    _core.note_stacks_of(Operation)
    _core.note_stacks_of(Operation)
    assert operation(1, n=2) == ((1,), {"n": 2})
    assert operation.functions[0] == "test_the_stack_is_that_of_the_call"
    _core.stop_noting_stacks()
    operation(1)
    assert operation.functions == []


def test_an_inner_call_has_a_stack_of_its_own() -> None:
    def nested() -> None:
        inner(1)

    class Outer(Operation):
        def __call__(self, *given: Any, **named: Any) -> Any:
            nested()
            return super().__call__(*given, **named)

    inner, outer = Operation(), Outer()
    _core.note_stacks_of(Operation)
    _core.note_stacks_of(Outer)
    outer(1)
    assert inner.functions[0] == "nested"
    assert outer.functions[0] == "test_an_inner_call_has_a_stack_of_its_own"


def test_an_exception_passes_and_ends_the_note() -> None:
    _core.note_stacks_of(Operation)
    operation = Operation()
    with pytest.raises(ValueError, match="the call failed"):
        operation("fail")
    assert operation.functions[0] == "test_an_exception_passes_and_ends_the_note"
    assert _core.frames_of(for_tests.note_stack_without_lock()) == []


def test_several_types_and_types_that_are_derived_meanwhile() -> None:
    _core.note_stacks_of(Operation)
    _core.note_stacks_of(Other)

    class Derived(Operation):
        pass

    for made in (Operation, Other):
        operation = made()
        assert operation(1) == ((1,), {})
        assert operation.functions[0] == "test_several_types_and_types_that_are_derived_meanwhile"
    assert Derived()(1) == ((1,), {})
    _core.stop_noting_stacks()
    for made in (Operation, Other, Derived):
        operation = made()
        assert operation(1) == ((1,), {})
        assert operation.functions == []


def test_a_type_without_calls_is_refused() -> None:
    with pytest.raises(RuntimeError, match="the slot for calls was not found in the type"):
        _core.note_stacks_of(Plain)
