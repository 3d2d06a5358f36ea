"""Test functions that get some of their arguments from a decorator, so that pytest looks for no such fixtures."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def giving(test: Callable[..., Any], *names: str | None) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a function stand for ``test`` without the arguments ``names``."""

    def decorate(wrapper: Callable[..., Any]) -> Any:
        made: Any = functools.wraps(test)(wrapper)
        signature = inspect.signature(test)
        kept = [value for name, value in signature.parameters.items() if name not in names]
        made.__signature__ = signature.replace(parameters=kept)
        return made

    return decorate
