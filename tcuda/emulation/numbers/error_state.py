"""Whether errors of linear algebra are raised (``cupyx.errstate``)."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class _State(threading.local):
    linalg = "ignore"


_state = _State()


def geterr() -> dict[str, str | None]:
    """Return the settings of this thread."""
    return {"divide": None, "over": None, "under": None, "invalid": None, "linalg": _state.linalg}


def seterr(
    *,
    divide: None = None,
    over: None = None,
    under: None = None,
    invalid: None = None,
    linalg: str | None = None,
) -> dict[str, str | None]:
    """Change the settings of this thread, and return the settings before.

    With "ignore", which is the setting at first, the result for a matrix without a solution is NaN. With "raise", the
    host waits for the status of each function of linear algebra, and a matrix without a solution raises an error.

    Raises:
        NotImplementedError: A setting of the arithmetic is given, or ``linalg`` is neither "ignore" nor "raise".
    """
    before = geterr()
    if any(setting is not None for setting in (divide, over, under, invalid)):
        raise NotImplementedError("a device does not report errors of the arithmetic; leave the setting out.")
    if linalg is not None:
        if linalg not in ("ignore", "raise"):
            raise NotImplementedError(f"linalg is {linalg!r}; it can be 'ignore' or 'raise'.")
        _state.linalg = linalg
    return before


@contextlib.contextmanager
def errstate(
    *,
    divide: None = None,
    over: None = None,
    under: None = None,
    invalid: None = None,
    linalg: str | None = None,
) -> Iterator[None]:
    """Change the settings of this thread in a scope; see :func:`seterr`."""
    before = seterr(divide=divide, over=over, under=under, invalid=invalid, linalg=linalg)
    try:
        yield
    finally:
        seterr(linalg=before["linalg"])
