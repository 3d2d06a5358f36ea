"""The collection of garbage in a process with several threads."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 200


def collect_until(is_gone: Callable[[], bool]) -> None:
    """Collect garbage until ``is_gone`` returns True, or for some hundred times.

    ``gc.collect()`` does nothing while another thread collects, as threads of Dask do.
    """
    for _ in range(_MOST):
        gc.collect()
        if is_gone():
            return
