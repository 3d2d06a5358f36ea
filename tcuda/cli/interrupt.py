"""Ctrl-C in a command: no traceback, and no destructor swallows the interrupt."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOMENT = 0.01  # Seconds. A destructor takes less.


def end_at_ctrl_c() -> bool:
    """Let Ctrl-C end the process if it raised ``KeyboardInterrupt`` before; return whether this call changed that.

    The signal then ends the process at once, as for programs that are not written in Python.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # the signal is ignored or handled
        return False
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # only the main thread can set a handler
        return False
    return True


@contextlib.contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end the process in this scope, instead of raising ``KeyboardInterrupt``."""
    changed = end_at_ctrl_c()
    try:
        yield
    finally:
        if changed:
            signal.signal(signal.SIGINT, signal.default_int_handler)


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
