"""Ctrl-C while the command ``tcuda`` starts: it ends the process at once, and no traceback is shown.

Modules are imported for a while before :func:`tcuda.cli.main` can answer for an interrupt. Until then the signal does
what it does to programs that are not written in Python. A program of another name is left alone.
"""

# Nothing else, not even signal, which imports enum: an interrupt while this file is imported is a traceback.
import _signal as signal  # type: ignore[import-not-found]
import sys


def is_command() -> bool:
    """Return whether this process is ``tcuda`` or ``python -m tcuda``."""
    program = sys.argv[0] if getattr(sys, "argv", None) else ""  # an embedded Python may have no arguments
    if program != "-m":  # which it is while Python looks for the module
        return program.endswith(("/bin/tcuda", "/tcuda/__main__.py"))
    arguments = sys.orig_argv
    return "-mtcuda" in arguments or any(arguments[at : at + 2] == ["-m", "tcuda"] for at in range(len(arguments)))


def end_at_ctrl_c() -> bool:
    """Let Ctrl-C end the process; return whether it does now, and raised ``KeyboardInterrupt`` before."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, or someone else's concern
        return False
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # not the main thread, where Ctrl-C does not strike
        return False
    return True


def raise_at_ctrl_c() -> None:
    """Let Ctrl-C raise ``KeyboardInterrupt`` again, as Python does from its start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


ENDS_AT_CTRL_C = is_command() and end_at_ctrl_c()
"""Whether Ctrl-C ends the process since this module was imported, which the command must put right."""
