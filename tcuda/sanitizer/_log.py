"""Races as records of :mod:`logging`, by the logger ``tcuda.sanitizer``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda.sanitizer._race import Finding

_NAME = "tcuda.sanitizer"


def log(race: Finding) -> None:
    """Log a new finding that no error and no warning reports: a possible race as information, all others as warnings.

    Args:
        race: The race or the read, which the record has as ``race``.
    """
    logging = sys.modules.get("logging")
    if logging is None:  # nobody has imported it, so nobody handles records
        return
    logger = logging.getLogger(_NAME)
    if not logger.handlers:  # otherwise Python prints a race that no handler of the program takes
        logger.addHandler(logging.NullHandler())
    level = logging.WARNING if race.confidence == "exact" else logging.INFO
    logger.log(level, "%s", race, extra={"race": race})
