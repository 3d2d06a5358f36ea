"""The race detector: accesses to the same memory that no order of streams, events and the host relates.

On emulated devices, the report also has the races inside of kernels, if the program has chosen to look for them.
:func:`check` looks for races in a part of a program, and :func:`enable` in all later code of the process.
``tcuda._sanitizer`` has torch's names for the same detector.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tcuda._base.arguments import a_kind, flag, function
from tcuda._base.errors import UnwrittenMemoryError
from tcuda._base.public_names import public_names
from tcuda._base.scope import Scope
from tcuda._core import cleanup_on_error
from tcuda.sanitizer._checks import ActiveCheck, checked_mode
from tcuda.sanitizer._errors import CUDASanitizerErrors, KernelRaceError, RaceWarning, UnwrittenReadError
from tcuda.sanitizer._kernel_race import KernelMemory, KernelRace, KernelRaceAccess
from tcuda.sanitizer._race import Finding, Race, RaceAccess, RaceAllocation
from tcuda.sanitizer._report import Report
from tcuda.sanitizer._suppressions import suppress, suppressed
from tcuda.sanitizer._switch import disable, enable
from tcuda.sanitizer._unwritten_read import UnwrittenRead
from tcuda.sanitizer._uses import uses

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

F = TypeVar("F", bound="Callable[..., Any]")

__all__ = [
    "CUDASanitizerErrors",
    "Finding",
    "KernelMemory",
    "KernelRace",
    "KernelRaceAccess",
    "KernelRaceError",
    "Race",
    "RaceAccess",
    "RaceAllocation",
    "RaceWarning",
    "Report",
    "UnwrittenMemoryError",
    "UnwrittenRead",
    "UnwrittenReadError",
    "check",
    "disable",
    "enable",
    "suppress",
    "suppressed",
    "uses",
]
__dir__ = public_names(__name__)


class check(Scope):
    """Context manager and decorator that looks for races in a block of code, or in the calls of a function.

    The detector sees the operations of all threads. A race belongs to the innermost check of the code that found the
    race; the race of a thread without a check belongs to the check that was entered last. The accesses of a race may be
    older than the check if another check was active then.

    On CUDA devices, Python's main thread raises the error or warns, in the line of the operation or in the next line.
    The race belongs to the innermost check of the main thread, even if another thread made the operation.

    It is not always known there what a kernel does with its pointers. A race of such a kernel is *possible*.
    By default, a possible race raises no error and gives no warning. ``report.possible`` has the possible races.

    The logger ``tcuda.sanitizer`` of :mod:`logging` gets each new race that neither an error nor a warning tells.

    A coroutine function can be decorated too. Python drops the exceptions of destructors, and those that end a thread.
    If a race is found there, the error is raised at the end of the block.

    Args:
        mode: With ``"raise"``, the operation that found the race raises ``CUDASanitizerErrors``, whose text is the
            race. ``"warn"`` warns with a :class:`RaceWarning` that points to the line of that
            operation. ``"collect"`` only adds the race to the report.
        report: The report that gets the races; a new report if None.
        possible: Whether possible races raise errors, or warn, like exact races.

    Raises:
        OSError: The block is entered, and the file in ``TCUDA_SANITIZER_SUPPRESSIONS`` cannot be read.
        RuntimeError: The block is entered, and the runtime in use cannot look for races, or a tool hears of all arrays
            (``TCUDA_NVTX_MEMORY``); or a block is entered twice.
        TypeError: ``mode`` is not a text, ``report`` is not a report, or ``possible`` is not a bool.
        ValueError: ``mode`` is none of the three, or a line of the file of suppressions is wrong.

    Example:
        >>> main, side = tcuda.current_stream(), tcuda.Stream()
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     x = xp.ones(1000)
        ...     with tcuda.stream(side):
        ...         y = x * 2  # side does not wait for main
        >>> print(report.races[0].missing.sentence)
        `side.wait_stream(main)` before line 4 of ... orders them.
        >>> @tcuda.sanitizer.check()
        ... def step():  # a call raises an error if a race is found
        ...     return xp.ones(1000) * 2
    """

    def __init__(
        self,
        mode: Literal["raise", "warn", "collect"] = "raise",
        *,
        report: Report | None = None,
        possible: bool = False,
    ) -> None:
        """Prepare a check; the block begins the check."""
        if report is not None and not isinstance(report, Report):
            raise TypeError(f"report must be a tcuda.sanitizer.Report or None; got {a_kind(report)}.")
        self._mode = checked_mode(mode)
        self._given = report
        self._possible = flag(possible, "possible")
        self._check = ActiveCheck(self._mode, Report() if report is None else report, possible=self._possible)

    def begin(self) -> None:
        """Begin the check.

        Example:
            >>> check = tcuda.sanitizer.check(mode="collect")
            >>> check.begin()  # as at the start of a block
            >>> x = xp.ones(3)
            >>> check.undo()
        """
        self._check.begin()

    def undo(self) -> None:
        """End the check.

        Example:
            >>> check = tcuda.sanitizer.check(mode="collect")
            >>> check.begin()
            >>> x = xp.ones(3)
            >>> check.undo()  # as at the end of a block
        """
        self._check.end()

    def again(self) -> Self:
        """Return a new check with the same arguments.

        Example:
            >>> check = tcuda.sanitizer.check(mode="collect")
            >>> with check.again() as report:  # a block of its own
            ...     x = xp.ones(3)
            >>> len(report)
            0
        """
        return type(self)(self._mode, report=self._given, possible=self._possible)

    def __call__(self, func: F) -> F:
        """Return a function that calls ``func`` and checks every call.

        Raises:
            TypeError: ``func`` cannot be called, or is a generator function.
            ValueError: The mode is ``"collect"``, and there is no report that the program could read.
        """
        function(func, "the decorated function")
        if self._mode == "collect" and self._given is None:
            raise ValueError(
                "check(mode='collect') as a decorator needs a report: check(mode='collect', "
                "report=tcuda.sanitizer.Report())."
            )
        if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
            raise TypeError(
                f"check() cannot decorate the generator function {func.__qualname__}(), because the code of the caller "
                "runs between the items. Put `with tcuda.sanitizer.check():` around the loop."
            )
        if inspect.iscoroutinefunction(func):

            @functools.wraps(func)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self.again():
                    return await func(*args, **kwargs)

            return awaited  # type: ignore[return-value]
        return super().__call__(func)

    def _enter_with_report(self) -> Report:
        self._enter()
        return self._check.report

    def _leave(self, *exception: Any) -> None:
        self._end()
        if exception and exception[0] is None:
            self._check.raise_lost()

    __enter__ = cleanup_on_error(_enter_with_report, Scope._undo_begin)  # type: ignore[assignment]  # the value differs
    __exit__ = cleanup_on_error(_leave, Scope._end)
