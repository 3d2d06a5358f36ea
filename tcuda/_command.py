"""Ctrl-C while the command ``tcuda`` starts: the signal ends the process at once, and no traceback is shown.

The imports take a while before :func:`tcuda.cli.main` can handle an interrupt. Until then the signal ends the process,
as for programs that are not written in Python. Programs of another name keep Python's behaviour.
"""

# No other module is imported, because an interrupt during these imports shows a traceback. (`signal` imports `enum`.)
import _signal as signal  # type: ignore[import-not-found]
import sys


def is_command() -> bool:
    """Return whether this process is ``tcuda`` or ``python -m tcuda``."""
    program = sys.argv[0] if getattr(sys, "argv", None) else ""  # an embedded Python may have no arguments
    if program != "-m":  # Python sets "-m" while it looks for the module
        return program.endswith(("/bin/tcuda", "/tcuda/__main__.py"))
    arguments = sys.orig_argv
    return "-mtcuda" in arguments or any(arguments[at : at + 2] == ["-m", "tcuda"] for at in range(len(arguments)))


def end_at_ctrl_c() -> bool:
    """Let Ctrl-C end the process if it raised ``KeyboardInterrupt`` before; return whether this call changed that."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # the signal is ignored or handled
        return False
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # only the main thread can set a handler
        return False
    return True


def raise_at_ctrl_c() -> None:
    """Let Ctrl-C raise ``KeyboardInterrupt`` again, as Python does from its start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


ENDS_AT_CTRL_C = is_command() and end_at_ctrl_c()
"""Whether this module has let Ctrl-C end the process; the command must then call :func:`raise_at_ctrl_c`."""
