"""The environment variables of a program, checked before a command runs the program."""

from __future__ import annotations

import os

from tcuda._process import alloc_conf, poison
from tcuda._process.lazy import require_variables
from tcuda.emulation.rtc import checks
from tcuda.emulation.runtime import settings


def require_valid(*, emulated: bool) -> None:
    """Insist that the environment variables of tcuda have values that are allowed.

    Args:
        emulated: Whether the program runs on emulated devices, so that their variables count.

    Raises:
        OSError: A file that a variable names cannot be read.
        ValueError: A variable has a value that is not allowed.
    """
    require_variables()
    alloc_conf.from_environment(os.environ)
    poison.chosen()
    if emulated:
        settings.check(*settings.from_environment(os.environ))
        settings.parse_schedule(None, None, os.environ)
        checks.chosen()


__all__ = ["require_valid"]
