"""The findings of the race detector, and the errors of kernels, in a failure of pytest, for GitHub."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tcuda._base.statuses import Status
from tcuda._base.tracebacks import place_of_error
from tcuda._base.wings import has_wing, wing_module

if TYPE_CHECKING:
    from pathlib import Path

_OF_KERNELS = {
    Status.ILLEGAL_ADDRESS,
    Status.LAUNCH_TIMEOUT,
    Status.ASSERT,
    Status.MISALIGNED_ADDRESS,
    Status.LAUNCH_FAILURE,
    *range(714, 720),  # the errors of the hardware, such as an illegal instruction
}
"""The statuses with which the kernel itself fails, and not its launch."""


def annotations_of(error: BaseException, folder: Path) -> list[str]:
    """Return a line for each cause of the findings that an error reports, or for the error of a kernel.

    Outside of a workflow of GitHub, there are no lines.
    """
    is_of_kernel = _is_of_kernel(error)
    if "tcuda.sanitizer" not in sys.modules and not (is_of_kernel and has_wing("sanitizer")):
        return []
    formats = wing_module("sanitizer._formats")
    if not formats.runs_on_github():
        return []
    findings = _findings(error)
    if findings:
        return list(formats.github_lines({"races": [found.as_dict() for found in findings]}, folder))
    if not is_of_kernel:
        return []
    found = place_of_error(error)
    place = None if found is None else {"file": found.filename, "line": found.line}
    causes = [str(each) for each in (error, error.__cause__) if each is not None]
    return [formats.github_line("error of a kernel", "\n".join(causes), place, folder)]


def _is_of_kernel(error: BaseException) -> bool:
    """Return whether an error of tcuda, or of CuPy, says that a kernel has failed."""
    module = type(error).__module__.partition(".")[0]
    status = getattr(error, "error_code", getattr(error, "status", None))
    return module in ("tcuda", "cupy", "cupy_backends") and status in _OF_KERNELS


def _findings(error: BaseException) -> list[Any]:
    errors = wing_module("sanitizer._errors")
    if isinstance(error, errors.CUDASanitizerErrors):
        return [found for found in map(errors.finding_of, error.errors) if found is not None]
    if isinstance(error, errors.RaceWarning) and error.race is not None:
        return [error.race]
    return list(error.races) if isinstance(error, errors.KernelRaceError) else []


__all__ = ["annotations_of"]
