"""Ctrl-C that no destructor can swallow."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOMENT = 0.01  # Seconds. A destructor takes less.


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the scope, even if the signal arrives in a destructor.

    Python raises ``KeyboardInterrupt`` in the code that runs at that moment. If this code is a destructor, such as that
    of an array or of an event, Python prints a traceback, drops the exception and goes on. So the signal is sent again
    after a moment.
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
