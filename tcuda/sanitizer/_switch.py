"""The sanitizer that is on or off for the whole process, as torch has it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from tcuda._base.arguments import flag
from tcuda._core import finalizing
from tcuda.sanitizer._checks import ActiveCheck, checked_mode
from tcuda.sanitizer._report import Report

if TYPE_CHECKING:
    from collections.abc import Callable


class CUDASanitizer:
    """The race detector for all code of the process (``torch.cuda._sanitizer.CUDASanitizer``).

    Every race is printed to the standard error output, in torch's words, and the operation that found the race raises
    ``CUDASanitizerErrors``. A possible race is neither printed nor raised; ``report.possible`` has these races.

    Attributes:
        report: The :class:`tcuda.sanitizer.Report` with the races since the sanitizer was enabled.

    Example:
        >>> import tcuda._sanitizer
        >>> sanitizer = tcuda._sanitizer.CUDASanitizer()
        >>> sanitizer.enable()
        >>> sanitizer.enabled
        True
        >>> x = xp.ones(1000)
        >>> sanitizer.disable()
        >>> len(sanitizer.report)
        0
    """

    def __init__(self) -> None:
        """Make a sanitizer that is off."""
        self.report = Report()
        self._check: ActiveCheck | None = None

    @property
    def enabled(self) -> bool:
        """Whether the sanitizer is on."""
        return self._check is not None and self._check.is_active

    def enable(self) -> None:
        """Look for races from now on. If the sanitizer is on, the call does nothing.

        The call uses no device. Memory that is older than the call has no stack of its allocation.

        Raises:
            OSError: The file of suppressions cannot be read.
            RuntimeError: The runtime in use cannot look for races, or a tool hears of all arrays
                (``TCUDA_NVTX_MEMORY``).
            ValueError: A line of the file of suppressions is wrong.

        Example:
            >>> sanitizer = tcuda._sanitizer.CUDASanitizer()
            >>> side, x = tcuda.Stream(), xp.zeros(1000)
            >>> sanitizer.enable()
            >>> try:
            ...     x += 1
            ...     with tcuda.stream(side):
            ...         y = x * 2  # side does not wait for the default stream
            ... except tcuda._sanitizer.CUDASanitizerErrors as found:
            ...     print(found)
            detected 1 errors
            >>> sanitizer.disable()
        """
        self._enable("raise", is_torchs=True)

    def _enable(
        self,
        mode: str,
        report: Report | None = None,
        *,
        possible: bool = False,
        may_be_refused: bool = False,
        is_torchs: bool = False,
    ) -> None:
        if not self.enabled:
            self.report = Report() if report is None else report
            check = ActiveCheck(
                mode, self.report, possible=possible, may_be_refused=may_be_refused, is_torchs=is_torchs
            )
            try:
                check.begin()
            except BaseException:
                check.end()
                raise
            self._check = check

    def _is_enabled_as(self, mode: str, *, possible: bool) -> bool:
        return self.enabled and self._check is not None and (self._check.mode, self._check.possible) == (mode, possible)

    def disable(self) -> None:
        """Look for races no longer. If the sanitizer is off, the call does nothing.

        Example:
            >>> sanitizer = tcuda._sanitizer.CUDASanitizer()
            >>> sanitizer.enable()
            >>> sanitizer.disable()
            >>> sanitizer.disable()  # does nothing
            >>> sanitizer.enabled
            False
        """
        if self._check is not None:
            self._check.end()
            self._check = None

    @finalizing
    def __del__(self, _exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _exiting():
            self.disable()


cuda_sanitizer = CUDASanitizer()
"""The sanitizer of :func:`enable_cuda_sanitizer` and of the environment variables."""


def enable_cuda_sanitizer() -> None:
    """Enable the race detector for all code of the process (``torch.cuda._sanitizer.enable_cuda_sanitizer``).

    Raises:
        OSError: The file of suppressions cannot be read.
        RuntimeError: The runtime in use cannot look for races, or a tool hears of all arrays (``TCUDA_NVTX_MEMORY``).
        ValueError: A line of the file of suppressions is wrong.

    Example:
        >>> import tcuda._sanitizer
        >>> tcuda._sanitizer.enable_cuda_sanitizer()
        >>> x = tcuda.xp.ones(1000)
        >>> with tcuda.stream(tcuda.Stream()):
        ...     y = x * 2  # the stream does not wait for the default stream
        Traceback (most recent call last):
            ...
        tcuda.sanitizer.CUDASanitizerErrors: detected 1 errors
    """
    cuda_sanitizer.enable()


def enable(mode: Literal["raise", "warn", "collect"] = "raise", *, possible: bool = False) -> Report:
    """Look for races in all code of the process from now on, such as in all later cells of a notebook.

    :func:`check` does the same for a part of a program. A second call with the same arguments does nothing. A call with
    other arguments begins a new report. ``TCUDA_SANITIZER`` and torch's ``tcuda._sanitizer.enable_cuda_sanitizer()``
    turn the same switch. Memory that is older than the call has no stack of its allocation.

    Args:
        mode: What a race does: ``"raise"``, ``"warn"`` or ``"collect"``, as for :func:`check`.
        possible: Whether possible races raise errors, or warn, like exact races.

    Returns:
        The report that gets the races until :func:`disable` is called. A notebook shows the report as a page.

    Raises:
        OSError: The file of suppressions cannot be read.
        RuntimeError: The runtime in use cannot look for races, or a tool hears of all arrays (``TCUDA_NVTX_MEMORY``).
        TypeError: ``mode`` is not a text, or ``possible`` is not a bool.
        ValueError: ``mode`` is none of the three, or a line of the file of suppressions is wrong.

    Example:
        >>> report = tcuda.sanitizer.enable("collect")
        >>> x = xp.ones(1000)
        >>> with tcuda.stream(tcuda.Stream()):
        ...     y = x * 2  # the stream does not wait for the default stream
        >>> tcuda.sanitizer.disable()
        >>> len(report)
        1
    """
    mode, possible = checked_mode(mode), flag(possible, "possible")
    if not cuda_sanitizer._is_enabled_as(mode, possible=possible):
        cuda_sanitizer.disable()
        cuda_sanitizer._enable(mode, possible=possible)
    return cuda_sanitizer.report


def disable() -> None:
    """Look for races no longer, after :func:`enable`. If nothing was enabled, the call does nothing.

    Raises:
        CUDASanitizerErrors: The mode is ``"raise"``, and a race was found that waited for Python's main thread.
        RaceWarning: The same, the mode is ``"warn"``, and the program makes errors of warnings.

    Example:
        >>> report = tcuda.sanitizer.enable("collect")
        >>> tcuda.sanitizer.disable()
        >>> x = xp.ones(1000)
        >>> report.operations  # the detector saw nothing of the line above
        0
    """
    cuda_sanitizer.disable()
