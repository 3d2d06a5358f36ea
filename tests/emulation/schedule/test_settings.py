"""The choice of the schedule, by arguments and by the environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tcuda.emulation.runtime.settings import parse_schedule

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.emulated


@pytest.mark.parametrize(
    ("schedule", "seed", "variable", "chosen"),
    [
        (None, None, None, ("eager", 0)),
        (None, None, "late", ("late", 0)),
        (None, None, "late:7", ("late", 7)),
        (None, 3, "late:7", ("late", 3)),
        ("late", None, "late:7", ("late", 0)),
        ("late", 5, None, ("late", 5)),
        ("eager", None, "late", ("eager", 0)),
    ],
)
def test_an_argument_comes_before_the_environment(
    schedule: str | None, seed: int | None, variable: str | None, chosen: tuple[str, int]
) -> None:
    environ = {} if variable is None else {"TCUDA_EMULATED_SCHEDULE": variable}
    assert parse_schedule(schedule, seed, environ) == chosen


@pytest.mark.parametrize("value", ["soon", "late:", "late:x", "late:-1", "late:4294967296", "eager:1", "late" * 99])
def test_a_wrong_variable_is_an_error_that_says_what_is_allowed(value: str) -> None:
    with pytest.raises(ValueError, match=r"TCUDA_EMULATED_SCHEDULE is '.*'; it can be 'eager' or 'late'") as raised:
        parse_schedule(None, None, {"TCUDA_EMULATED_SCHEDULE": value})
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("schedule", "seed", "error", "message"),
    [
        ("soon", None, ValueError, "schedule is 'soon'; it can be 'eager' or 'late'."),
        (1, None, TypeError, "schedule is 1, a int; it takes 'eager' or 'late'."),
        ("late", "7", TypeError, "seed is '7', a str; it takes an integer."),
        ("late", True, TypeError, "seed is True, a bool; it takes an integer."),
        ("late", -1, ValueError, "seed is -1; it can be 0 to 4294967295."),
    ],
)
def test_wrong_arguments_are_errors_that_say_what_is_allowed(
    schedule: Any, seed: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        parse_schedule(schedule, seed, {})


def test_enable_chooses_the_schedule(output_of: OutputOf) -> None:
    code = """
import tcuda.emulation
try:
    tcuda.emulation.enable(schedule="soon")
except ValueError:
    tcuda.emulation.enable(schedule="late", seed=5)
from tcuda._runtime import environment, runtime
x = tcuda.emulation.xp.ones(3)
pending = len(runtime().schedule)
print(pending > 0, environment()["TCUDA_EMULATED_SCHEDULE"], float(x.sum()), len(runtime().schedule))
"""
    assert output_of(code, TCUDA_RUNTIME=None).split() == ["True", "late:5", "3.0", "0"]


def test_the_environment_chooses_the_schedule_of_enable(output_of: OutputOf) -> None:
    code = """
import tcuda.emulation
tcuda.emulation.enable()
from tcuda._runtime import runtime
print(runtime().is_late)
"""
    assert output_of(code, TCUDA_RUNTIME=None, TCUDA_EMULATED_SCHEDULE="late") == "True"
    assert output_of(code, TCUDA_RUNTIME=None, TCUDA_EMULATED_SCHEDULE=None) == "False"
