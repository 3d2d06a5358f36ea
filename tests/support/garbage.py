"""The collection of garbage in a process with several threads."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS = 10


def collect_until(is_gone: Callable[[], bool]) -> None:
    """Collect garbage until ``is_gone`` returns True, or for some seconds.

    ``gc.collect()`` returns at once while another thread collects, as threads of Dask do. Such a thread needs time to
    end its collection.
    """
    end = time.monotonic() + _SECONDS
    gc.collect()
    while not is_gone() and time.monotonic() < end:
        gc.collect()
