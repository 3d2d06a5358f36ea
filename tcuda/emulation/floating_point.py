"""Floating-point errors, of which NumPy warns and devices do not: a division by zero gives inf without a warning."""

from __future__ import annotations

import contextvars
from typing import Any

import numpy as np


class _Settings:
    """NumPy's treatment of floating-point errors, with the methods of a context variable."""

    def set(self, value: Any) -> Any:
        """Ignore all errors, and return the treatment before."""
        return np.seterr(all="ignore")

    def reset(self, token: Any) -> None:
        """Restore the treatment that :meth:`set` returned."""
        np.seterr(**token)


def _variable() -> tuple[contextvars.ContextVar[Any] | _Settings, Any]:
    """Return the context variable in which NumPy keeps the treatment of errors, and its value for no warnings."""
    context = contextvars.Context()
    context.run(np.seterr, all="ignore")
    changed = list(context.items())
    return changed[0] if len(changed) == 1 else (_Settings(), None)


treatment, IGNORED = _variable()
"""``treatment.set(IGNORED)`` turns the warnings off, and ``treatment.reset()`` undoes that with the returned token.

``numpy.errstate`` does the same, but makes the value anew in each call, which takes longer than a small operation.
"""
