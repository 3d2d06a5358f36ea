"""The command line: ``tcuda info``, ``doctor``, ``demo``, ``run``, ``sanitize``, ``memory-viz`` and others."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tcuda._base.messages import in_one_line, send_to_nowhere
from tcuda._base.public_names import public_names
from tcuda.cli.interrupt import end_at_ctrl_c, ended_by_ctrl_c, interruptible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_FAILED = 1
_STDOUT = 1
_INTERRUPTED = 130  # 128 + SIGINT, as shells count


def command() -> NoReturn:
    """Run the command that the arguments of this process name, and end the process."""
    try:
        status = main()
    finally:
        end_at_ctrl_c()  # The process only has to end now, and Ctrl-C must print no traceback.
    sys.exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that ``argv`` names.

    Args:
        argv: The arguments; those of the process if None.

    Returns:
        The exit code: 0 after success, 1 if the command failed, 130 if the user interrupted the command, or a code of
        the command's own. Bad usage exits with 2.
    """
    command = "tcuda"
    status = 0
    try:
        with ended_by_ctrl_c():  # The import takes long.
            from tcuda.cli.parser import parse

        with interruptible():
            options = parse(argv)
            command = f"tcuda {options.command}"
            status = options.run(options) or 0
            if not getattr(sys.stdout, "closed", True):  # a program that the command ran may have closed stdout
                sys.stdout.flush()
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:  # The reader of the output, such as `head`, has closed the pipe.
        send_to_nowhere(_STDOUT)
        return _FAILED
    except Exception as error:
        if _began_as_interrupt(error):
            return _interrupted()
        message = in_one_line(error)
        if message is None:
            raise
        print(f"{command}: {message}", file=sys.stderr)
        _flush_or_drop_output()
        return _FAILED
    return status


def _interrupted() -> int:
    print("tcuda: interrupted", file=sys.stderr)
    return _INTERRUPTED


def _began_as_interrupt(error: BaseException | None) -> bool:
    """Return whether a library turned a ``KeyboardInterrupt`` into ``error``, as Python does in bodies of classes."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _flush_or_drop_output() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        send_to_nowhere(_STDOUT)


__all__ = ["command", "main"]
__dir__ = public_names(__name__)
