"""Attributes that CuPy's classes have: the error says what to write."""

from __future__ import annotations

from typing import Any

import pytest

import tcuda
from tcuda._base.cupy_names import CupyName

CLASSES: list[Any] = [tcuda.device, tcuda.Stream, tcuda.CUDAGraph]
NAMES = [(owner, name) for owner in CLASSES for name, value in vars(owner).items() if isinstance(value, CupyName)]


@pytest.mark.parametrize(("owner", "name"), NAMES, ids=[f"{owner.__name__}.{name}" for owner, name in NAMES])
def test_a_name_of_cupys_class_is_missing_and_says_what_to_write(owner: Any, name: str) -> None:
    advice = vars(owner)[name]._advice
    made = object.__new__(owner) if owner is not tcuda.device else owner(0)
    for where in (owner, made):
        assert not hasattr(where, name)
        with pytest.raises(AttributeError) as caught:
            getattr(where, name)
        assert str(caught.value) == f"{owner.__name__!r} has no attribute {name!r}, which CuPy's class has. {advice}"


def test_the_classes_have_advice_for_the_usual_names() -> None:
    assert {name for _, name in NAMES} >= {"use", "synchronize", "null", "begin_capture", "launch"}


def test_a_subclass_may_have_the_name() -> None:
    class Numbered(tcuda.Stream):
        null = 3

    assert Numbered.null == 3
    assert not hasattr(Numbered, "ptds")
