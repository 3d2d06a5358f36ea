"""Refusals to copy or pickle objects that own a CUDA event, a graph or a pool.

Two objects must not own the same event, graph or pool, and a handle is valid in one process only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def refusing(act: str, reason: str) -> Callable[[Any], NoReturn]:
    """Return a ``__reduce__`` for a class: ``copy.copy``, ``copy.deepcopy`` and ``pickle.dumps`` raise ``TypeError``.

    Args:
        act: The refused action, such as ``"copy or pickle"``.
        reason: The reason and the advice, in whole sentences.
    """

    def __reduce__(self: object) -> NoReturn:  # noqa: N807  # the name that the function has in the class
        raise TypeError(f"cannot {act} {type(self).__name__!r} object: {reason}")

    return __reduce__
