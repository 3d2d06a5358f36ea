"""Test classes that run for several sets of attributes."""

from __future__ import annotations

import itertools
import sys
import types
import unittest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Parameters = dict[str, Any]

_LONGEST_VALUE = 100
_LONGEST = 5000


def product(parameter: Mapping[str, Iterable[Any]]) -> list[Parameters]:
    """Return all combinations of the values of ``parameter``, as dictionaries."""
    names = sorted(parameter)
    return [dict(zip(names, row, strict=True)) for row in itertools.product(*(parameter[name] for name in names))]


def product_dict(*parameters: Iterable[Parameters]) -> list[Parameters]:
    """Return all combinations of one dictionary of each list, joined to one dictionary."""
    return [{name: value for part in row for name, value in part.items()} for row in itertools.product(*parameters)]


def parameterize(*params: Parameters, _ids: bool = True) -> Callable[[type], Any]:
    """Return a decorator that runs the tests of a class once for each of ``params``, which become attributes.

    Args:
        params: The attributes.
        _ids: Whether the names of the tests show the attributes.
    """

    def decorate(cls: type) -> Any:
        if issubclass(cls, unittest.TestCase):
            _add_cases(cls, params)
            return None
        return _for_pytest(cls, params, show=_ids)

    return decorate


def _add_cases(base: type, params: Iterable[Parameters]) -> None:
    """Add a class for each of ``params`` to the module of ``base``, of which only these classes are left."""
    module = sys.modules[base.__module__]
    for place, given in enumerate(params):
        name = f"{base.__name__}{_name(place, given)}"
        members = {key: staticmethod(value) if isinstance(value, types.FunctionType) else value
                   for key, value in given.items()}  # fmt: skip
        case = type(name, (base,), {**members, "__module__": base.__module__})
        setattr(module, name, case)


def _for_pytest(cls: type, params: Iterable[Parameters], *, show: bool) -> Any:
    import pytest

    @pytest.fixture(autouse=True)
    def _cupy_testing_parameterize(self: Any, _cupy_testing_param: Parameters) -> None:
        self.__dict__.update(_cupy_testing_param)

    if getattr(cls, "_cupy_testing_parameterize", None) is not None:
        raise RuntimeError("do not `@testing.parameterize` twice")
    members = {"_cupy_testing_parameterize": _cupy_testing_parameterize, "__module__": cls.__module__}
    made = type(cls.__name__, (cls,), members)
    cases = [pytest.param(given, id=_name(place, given) if show else str(place)) for place, given in enumerate(params)]
    return pytest.mark.parametrize("_cupy_testing_param", cases)(made)


def _name(place: int, given: Parameters) -> str:
    shown = ", ".join(f"{name}={_shortened(_text(value), _LONGEST_VALUE)}" for name, value in sorted(given.items()))
    return f"_param_{place}_{{{_shortened(shown, _LONGEST)}}}"


def _text(value: Any) -> str:
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else repr(value)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    front = (longest - 3) // 2
    return f"{text[:front]}...{text[front + 3 - longest :]}"
