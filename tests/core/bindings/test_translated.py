"""``translated()``, the function of the core that turns CuPy's exceptions into torch's."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any, NoReturn

import pytest

from tcuda._core import translated


class LowError(Exception):
    pass


class HighError(Exception):
    pass


def raise_high(error: LowError, *args: Any) -> NoReturn:
    raise HighError(args) from error


def low_or_answer(*args: Any, **kwargs: Any) -> Any:
    if args[:1] == ("low",):
        raise LowError("deep down")
    if args[:1] == ("other",):
        raise KeyError(args[0])
    return args, kwargs


class TestTranslated:
    call = staticmethod(translated(low_or_answer, LowError, raise_high))

    def test_arguments_and_answers_pass_through(self) -> None:
        assert self.call() == ((), {})
        assert self.call(1, b=2) == ((1,), {"b": 2})
        assert self.call(*range(50)) == (tuple(range(50)), {})

    def test_an_exception_is_translated_and_becomes_the_cause(self) -> None:
        with pytest.raises(HighError) as caught:
            self.call("low", 5, key=6)
        assert caught.value.args == (("low", 5),)
        assert isinstance(caught.value.__cause__, LowError)
        assert caught.value.__cause__.__traceback__ is not None

    def test_other_exceptions_pass_unchanged(self) -> None:
        with pytest.raises(KeyError) as caught:
            self.call("other")
        assert caught.value.__cause__ is None

    def test_a_translation_that_raises_nothing_is_an_error_itself(self) -> None:
        call = translated(low_or_answer, LowError, lambda error, *args: None)  # type: ignore[arg-type,return-value]
        with pytest.raises(SystemError, match="the translation of an exception raised none"):
            call("low")

    def test_a_garbage_cycle_through_the_function_is_collected(self) -> None:
        class Function:
            itself: Any

            def __call__(self, *args: Any) -> Any:
                return low_or_answer(*args)

        function = Function()
        function.itself = call = translated(function, LowError, raise_high)  # a cycle
        call(1)
        with pytest.raises(HighError):
            call("low")
        reference = weakref.ref(function)
        del function, call
        gc.collect()
        assert reference() is None

    def test_a_call_leaks_no_reference(self) -> None:
        argument = object()
        gc.collect()
        before = sys.getrefcount(argument)
        for _ in range(100):
            self.call(argument)
            with pytest.raises(HighError):
                self.call("low", argument)
        gc.collect()
        assert sys.getrefcount(argument) == before

    def test_an_instance_without_a_function_cannot_be_created(self) -> None:
        with pytest.raises(TypeError, match="cannot create"):
            type(translated(low_or_answer, LowError, raise_high))()
