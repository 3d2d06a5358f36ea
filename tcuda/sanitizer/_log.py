"""Races as records of :mod:`logging`, by the logger ``tcuda.sanitizer``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda.sanitizer._race import Race

_NAME = "tcuda.sanitizer"


def log(race: Race) -> None:
    """Log a race that was found for the first time: an exact race as a warning, a possible race as information.

    Args:
        race: The race, which the record has as ``race``.
    """
    logging = sys.modules.get("logging")
    if logging is None:  # nobody has imported it, so nobody handles records
        return
    logger = logging.getLogger(_NAME)
    if not logger.handlers:  # otherwise Python prints a race that no handler of the program takes
        logger.addHandler(logging.NullHandler())
    level = logging.WARNING if race.confidence == "exact" else logging.INFO
    logger.log(level, "%s", race, extra={"race": race})
