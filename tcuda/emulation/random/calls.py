"""Calls of the functions of ``xp.random``: the functions take the arguments that CuPy's functions take."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tcuda.emulation.arrays.functions import named
from tcuda.emulation.arrays.signatures import signature_of
from tcuda.emulation.random import _generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MODULE = "tcuda.emulation.random"


def drawing(names: Iterable[str]) -> dict[str, Callable[..., Any]]:
    """Return functions that call the methods ``names`` of the generator of the current device."""
    return {name: _drawing(name) for name in names}


def _drawing(name: str) -> Callable[..., Any]:
    signature = signature_of(f"random.{name}")
    places = [(place, signature.defaults[place]) for place in signature.places]

    def draw(*args: Any, **kwargs: Any) -> Any:
        admitted = signature.admit(args, kwargs)
        assert admitted is not None  # No function of cupy.random leaves a call to NumPy.
        arguments, options = admitted
        rest = [options.get(place, default) for place, default in places[len(arguments) :]]
        return getattr(_generator.get_random_state(), name)(*arguments, *rest)

    draw.__signature__ = signature.described  # type: ignore[attr-defined]
    return named(draw, _MODULE, name, getattr(_generator.RandomState, name).__doc__)


def admitting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with a check of its arguments against the parameters of CuPy's function of that name."""
    signature = signature_of(f"random.{function.__name__}")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        admitted = signature.admit(args, kwargs)
        assert admitted is not None  # No function of cupy.random leaves a call to NumPy.
        arguments, options = admitted
        return function(*arguments, **options)

    call.__signature__ = signature.described  # type: ignore[attr-defined]
    return named(call, _MODULE, function.__name__, function.__doc__)
