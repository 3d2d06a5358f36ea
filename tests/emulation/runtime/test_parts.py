"""The calls of the emulated runtime belong to families, each of which is an object."""

from __future__ import annotations

import inspect

import pytest

from tcuda.emulation.runtime import EmulatedRuntime, make

pytestmark = pytest.mark.emulated

OWN = {"beginTrace", "environment", "watchRaces", "memoryDriver", "nvml", "is_late", "name", "schedule"}
"""The members of the runtime that are of no family."""
INNER = {"create"}
"""What families offer to each other."""
NO_CALLS = {"work", "driver_streams"}
"""The parts that have no calls of the runtime."""


@pytest.fixture(params=["eager", "late"])
def runtime(request: pytest.FixtureRequest) -> EmulatedRuntime:
    """A runtime of each schedule."""
    return make(2, 1 << 20, (request.param, 0))


def families(runtime: EmulatedRuntime) -> dict[str, object]:
    return {name: part for name, part in vars(runtime._parts).items() if name not in NO_CALLS}


def calls(family: object) -> set[str]:
    return {name for name, _ in inspect.getmembers(family, inspect.ismethod) if name[0] != "_"}


def test_the_runtime_has_the_calls_of_the_families_and_writes_no_call_again(runtime: EmulatedRuntime) -> None:
    written = {name for kind in type(runtime).__mro__[:-1] for name in vars(kind) if name[0] != "_"}
    assert written <= OWN
    for family in families(runtime).values():
        for name in calls(family) - INNER:
            assert getattr(runtime, name) == getattr(family, name), name


def test_a_call_belongs_to_one_family(runtime: EmulatedRuntime) -> None:
    names = [name for family in families(runtime).values() for name in calls(family)]
    assert sorted(names) == sorted(set(names))


def test_the_families_share_the_machine_and_do_not_know_the_runtime(runtime: EmulatedRuntime) -> None:
    for part in vars(runtime._parts).values():
        assert not any(isinstance(value, EmulatedRuntime) for value in vars(part).values())


def test_both_schedules_have_the_same_families() -> None:
    eager, late = (make(1, 1 << 20, (name, 0)) for name in ("eager", "late"))
    assert vars(eager._parts).keys() == vars(late._parts).keys()
    for name, family in vars(eager._parts).items():
        assert isinstance(getattr(late._parts, name), type(family)), name
