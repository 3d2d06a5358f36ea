"""Floating-point errors, of which NumPy warns and devices do not: a division by zero gives inf without a warning."""

from __future__ import annotations

import contextvars
from typing import Any

import numpy as np

from tcuda import _core


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


_treatment, _IGNORED = _variable()

quietly = _core.QuietCalls(_treatment.set, _IGNORED, _treatment.reset)
"""``quietly(function, *args, **kwargs)`` calls a function of NumPy, which gives no warnings then.

``numpy.errstate`` does the same, but makes the treatment anew in each call, which takes longer than a small operation.
"""
