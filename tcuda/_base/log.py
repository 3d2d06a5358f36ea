"""The logger ``tcuda`` of :mod:`logging`: its events help to find why a program is slow or does something unexpected.

A process that never imports :mod:`logging` pays for a look-up in a dictionary at each event. Events are seldom: no
launch is an event, and no allocation that takes no memory from the driver.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping

VARIABLE = "TCUDA_LOG"
"""The environment variable that prints the events to stderr."""

_LEVELS = ("debug", "info", "warning", "error")
_FORMAT = "%(name)s %(levelname)s at %(relativeCreated).0f ms: %(message)s"


def debug(text: str, *values: object) -> None:
    """Log an event.

    Args:
        text: A sentence, with ``%s`` and the like for the values.
        *values: The values.
    """
    logger = _logger or _found()
    if logger is not None and logger.isEnabledFor(_DEBUG):  # a look-up in a dictionary
        logger.debug(text, *values)


_DEBUG = 10  # logging.DEBUG
_logger: logging.Logger | None = None


def _found() -> logging.Logger | None:
    """Return the logger; None if nothing has imported :mod:`logging`, so that nobody handles records."""
    global _logger
    module = sys.modules.get("logging")
    if module is not None:
        _logger = module.getLogger("tcuda")
    return _logger


def is_for_debugging(environ: Mapping[str, str]) -> bool:
    """Return whether ``TCUDA_LOG`` asks for all that helps to find a mistake in tcuda."""
    return environ.get(VARIABLE, "").strip().lower() == "debug"


def print_if_asked(environ: Mapping[str, str]) -> None:
    """Print the events to stderr if ``TCUDA_LOG`` asks for that.

    Raises:
        ValueError: ``TCUDA_LOG`` is no level.
    """
    level = environ.get(VARIABLE, "").strip().lower()
    if not level:
        return
    if level not in _LEVELS:
        raise ValueError(f"{VARIABLE} is {environ[VARIABLE]!r}; it can be {', '.join(map(repr, _LEVELS))}.")
    import logging  # here, because the import takes long

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger = logging.getLogger("tcuda")
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False  # a handler of the program would print each event again
