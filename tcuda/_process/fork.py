"""Forked children, which forget the state of tcuda, because a child must not use the devices of its parent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_to_call: list[Callable[[], object]] = []


def call_in_child(forget: Callable[[], object]) -> None:
    """Call ``forget`` in every forked child, after the functions that were given before it."""
    _to_call.append(forget)


def call_around_fork(before: Callable[[], object], after: Callable[[], object]) -> None:
    """Call ``before`` before each fork, and ``after`` in the parent after the fork."""
    os.register_at_fork(before=before, after_in_parent=after)


def _after_fork_in_child() -> None:
    for forget in _to_call:
        forget()


os.register_at_fork(after_in_child=_after_fork_in_child)
