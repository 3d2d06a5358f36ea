"""Calls in other threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Call ``function`` in a new thread, and return its result or raise its error."""
    (result,) = in_threads(function, [args])
    return result


def in_threads(function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> list[T]:
    """Make ``calls``, which are arguments, at the same time in a new thread each.

    Returns:
        The results, in the order of the calls. If calls fail, the first error is raised after all calls.
    """
    arguments = list(calls)
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def work(place: int) -> None:
        try:
            results[place] = function(*arguments[place])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(arguments))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(arguments))]
