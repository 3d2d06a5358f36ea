"""The findings of the race detector in a failure of pytest, for GitHub."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tcuda._base.wings import wing_module

if TYPE_CHECKING:
    from pathlib import Path


def annotations_of(error: BaseException, folder: Path) -> list[str]:
    """Return a line for each cause of the findings that an error reports; nothing outside of a workflow of GitHub."""
    if "tcuda.sanitizer" not in sys.modules:
        return []
    formats = wing_module("sanitizer._formats")
    findings = _findings(error) if formats.runs_on_github() else []
    return list(formats.github_lines({"races": [found.as_dict() for found in findings]}, folder))


def _findings(error: BaseException) -> list[Any]:
    errors = wing_module("sanitizer._errors")
    if isinstance(error, errors.CUDASanitizerErrors):
        return [found for found in map(errors.finding_of, error.errors) if found is not None]
    if isinstance(error, errors.RaceWarning) and error.race is not None:
        return [error.race]
    return list(error.races) if isinstance(error, errors.KernelRaceError) else []


__all__ = ["annotations_of"]
