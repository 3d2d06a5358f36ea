"""Memoized functions: ``cupy.memoize`` and ``cupy.clear_memo``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from collections.abc import Callable

_memos: list[dict[Any, Any]] = []


def memoize(for_each_device: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a decorator that lets a function compute the result for the same arguments only once.

    Args:
        for_each_device: Whether each device has results of its own.
    """

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        memo: dict[Any, Any] = {}
        _memos.append(memo)

        @functools.wraps(function)
        def memoized(*args: Any, **kwargs: Any) -> Any:
            key = (cuda.getDevice() if for_each_device else -1, args, frozenset(kwargs.items()))
            if key not in memo:
                memo[key] = function(*args, **kwargs)
            return memo[key]

        return memoized

    return decorator


def clear_memo() -> None:
    """Forget the results of all memoized functions."""
    for memo in _memos:
        memo.clear()
