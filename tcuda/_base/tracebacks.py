"""Tracebacks that end at the line of the program, and not in the functions of tcuda that the line has called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.user_code import Place, is_library, is_own, is_user_code

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


def end_at_program(error: BaseException) -> bool:
    """Take the functions below the last line of the program out of the traceback of an error, if tcuda is among them.

    The errors that led to the error lose these functions too. An error that tcuda has caught is left out.

    Args:
        error: The error, whose traceback changes.

    Returns:
        Whether anything was taken out of the traceback of the error itself.
    """
    before = sum(1 for _ in _entries(error.__traceback__))
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        entries = list(_entries(current.__traceback__))
        last = next((place for place in reversed(range(len(entries))) if not is_library(_file(entries[place]))), None)
        if last is not None and any(is_own(_file(entry)) for entry in entries[last + 1 :]):
            entries[last].tb_next = None
        if current.__cause__ is not None and _is_inside(current.__cause__):
            current.__cause__.__traceback__ = None
        elif current.__context__ is not None and _is_inside(current.__context__):
            current.__suppress_context__ = True
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return sum(1 for _ in _entries(error.__traceback__)) < before


def place_of_error(error: BaseException) -> Place | None:
    """Return the innermost line of the program in the traceback of an error; None if all lines are of libraries."""
    for entry in reversed(list(_entries(error.__traceback__))):
        if is_user_code(_file(entry)):
            return Place(_file(entry), entry.tb_lineno, entry.tb_frame.f_code.co_name)
    return None


def _is_inside(error: BaseException) -> bool:
    """Return whether tcuda has caught an error before the error reached the program."""
    entries = list(_entries(error.__traceback__))
    return bool(entries) and is_own(_file(entries[0])) and all(is_library(_file(entry)) for entry in entries)


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _file(entry: TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename


__all__ = ["end_at_program", "place_of_error"]
