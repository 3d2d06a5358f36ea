"""Ctrl-C that is not lost."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOMENT = 0.01  # seconds, longer than a destructor takes


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the block wherever it strikes.

    Python raises ``KeyboardInterrupt`` in whatever runs. If that is a destructor, as those of arrays and events often
    are, it prints a traceback, drops the exception and goes on; so the signal is sent again in a moment.
    """
    previous = sys.unraisablehook

    def send_again(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            previous(unraisable)
            return
        thread = threading.main_thread().ident
        threading.Timer(_MOMENT, signal.pthread_kill, (thread, signal.SIGINT)).start()

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = previous
