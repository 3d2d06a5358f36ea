"""The checks of a process: which check gets a race, and how a race is reported.

A race belongs to the innermost check of the code that found the race. If that code runs in no check, as in a thread
that was started inside a check, the race belongs to the check that was entered last. On CUDA devices, the main thread
delivers the races of all threads, so its checks get these races.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from tcuda._base.arguments import text
from tcuda._base.user_code import is_library
from tcuda._base.warnings import stacklevel
from tcuda._core import set_variable
from tcuda._process.fork import call_in_child
from tcuda.sanitizer import _detector
from tcuda.sanitizer._description import race_of, stacks_of
from tcuda.sanitizer._errors import (
    CUDASanitizerErrors,
    RaceWarning,
    error_of,
    finding_of,
)
from tcuda.sanitizer._log import log
from tcuda.sanitizer._lost import note_lost_errors, stop_noting
from tcuda.sanitizer._stacks import frame_of, living_frames
from tcuda.sanitizer._suppressions import is_suppressed, read_suppressions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda import _core
    from tcuda.sanitizer._description import Stacks
    from tcuda.sanitizer._found import FoundRace
    from tcuda.sanitizer._found_in_kernel import FoundInKernel
    from tcuda.sanitizer._race import Finding
    from tcuda.sanitizer._report import Report

Mode: TypeAlias = Literal["raise", "warn", "collect"]

MODES: tuple[Mode, ...] = get_args(Mode)

_lock = threading.RLock()
_active: tuple[ActiveCheck, ...] = ()
_entered: contextvars.ContextVar[tuple[ActiveCheck, ...]] = contextvars.ContextVar("tcuda.sanitizer", default=())


def checked_mode(mode: object) -> Mode:
    """Return a mode.

    Raises:
        TypeError: ``mode`` is not a text.
        ValueError: ``mode`` is none of :data:`MODES`.
    """
    named = text(mode, "mode")
    for known in MODES:
        if named == known:
            return known
    raise ValueError(f"mode must be 'raise', 'warn' or 'collect'; got {named!r}.")


class ActiveCheck:
    """A check between its begin and its end.

    Attributes:
        mode: ``"raise"``, ``"warn"`` or ``"collect"``.
        report: The report that gets the races.
        possible: Whether the check reports possible races like exact races. Otherwise only the report has them.
        may_be_refused: Whether the check ends with a warning if the runtime cannot look for races.
        is_torchs: Whether the check tells an error as torch does: by torch's text on the standard error output.
    """

    def __init__(
        self,
        mode: str,
        report: Report,
        *,
        possible: bool = False,
        may_be_refused: bool = False,
        is_torchs: bool = False,
    ) -> None:
        self.mode = mode
        self.report = report
        self.possible = possible
        self.may_be_refused = may_be_refused
        self.is_torchs = is_torchs
        self._lost: list[Finding] = []
        self._before = 0

    def begin(self) -> None:
        """Begin the check, and start the detector if this is the first check.

        Raises:
            OSError: The file of suppressions cannot be read.
            RuntimeError: The runtime in use cannot look for races, or a tool hears of all arrays
                (``TCUDA_NVTX_MEMORY``).
            ValueError: A line of the file of suppressions is wrong.
        """
        global _active
        read_suppressions()
        with _lock:
            _detector.start(_on_race, _refused)
            _detector.forget()  # this check hears of races that another check has heard of
            _active = (*_active, self)
            self._before = _detector.operations()
            self.report._begin_counting(self._operations)
            note_lost_errors()
        set_variable(_entered, (*(check for check in _entered.get() if check in _active), self))

    def end(self) -> None:
        """End the check, and stop the detector if this was the last check. A second call does nothing.

        Raises:
            CUDASanitizerErrors: The mode is ``"raise"``, and a race was found that waited for Python's main thread.
            RaceWarning: The same, the mode is ``"warn"``, and the program makes errors of warnings.
        """
        try:
            if self in _active:
                _detector.deliver()  # while the check can still hear of them
        finally:
            self._leave()

    def _leave(self) -> None:
        global _active
        with _lock:
            self.report._end_counting(self._operations)
            _detector.forget()
            _active = tuple(check for check in _active if check is not self)
            if not _active:
                stop_noting()
                _detector.stop()
        set_variable(_entered, tuple(check for check in _entered.get() if check in _active))

    @property
    def is_active(self) -> bool:
        """Whether the check has begun and not ended."""
        return self in _active

    def raise_lost(self) -> None:
        """Raise the errors that Python has dropped because they were raised in a destructor, or ended a thread.

        Raises:
            CUDASanitizerErrors: There were such errors.
        """
        lost, self._lost = self._lost, []
        if lost and self.mode == "warn":
            for race in lost:
                self._warn(race)
        elif lost:
            raise self._errors(*lost)

    def receive(self, found: _core.Race) -> None:
        """Report a race in the way of the mode.

        Raises:
            CUDASanitizerErrors: The mode is ``"raise"``.
            RaceWarning: The mode is ``"warn"``, and the program makes errors of warnings.
        """
        if self.mode == "raise":
            self._raise(found)
            return
        race, is_new = self._note(found)
        if race is not None and is_new and self.mode == "warn" and self._tells(race):
            try:
                self._warn(race)
            except BaseException:  # after an error the detector reports no further race of the call
                for other in _later_of_one_call(found):
                    self._note(other)
                raise

    def _note(self, found: _core.Race) -> tuple[Finding | None, bool]:
        """Add a race to the report; return the race, unless it is suppressed, and whether it is new."""
        return self._noted(stacks_of(found), found, lambda: race_of(found))

    def _noted(self, stacks: Stacks, found: FoundRace, describe: Callable[[], Finding]) -> tuple[Finding | None, bool]:
        if is_suppressed(stacks.all, found.overlap):
            self.report._suppress(stacks.key, found)
            return None, False
        known = self.report._count(stacks.key, found)
        if known is not None:
            return known, False
        race = describe()
        kept = self.report._add(stacks.key, race, found)
        if kept is not race:
            return kept, False
        if self.mode == "collect" or not self._tells(race):  # no error and no warning reports the finding
            log(race)
        return race, True

    def receive_from_kernel(self, found: Sequence[FoundInKernel]) -> None:
        """Report the findings of one launch in the way of the mode.

        Raises:
            CUDASanitizerErrors: The mode is ``"raise"``.
            RaceWarning: The mode is ``"warn"``, and the program makes errors of warnings.
        """
        noted = [self._noted(one.stacks, one, one.describe) for one in found]
        told = [race for race, _ in noted if race is not None]
        new = [race for race, is_new in noted if race is not None and is_new]
        for race in new:
            if self.is_torchs:
                _print(race)
            elif self.mode == "warn":
                self._warn(race)
        if told and self.mode == "raise":
            raise self._errors(*told)

    def _raise(self, found: _core.Race) -> None:
        told: list[Finding] = []
        self._tell(found, told)
        if told:  # after an error the detector reports no further race of the call
            for other in _later_of_one_call(found):
                self._tell(other, told)
            _detector.forget()  # an operation that makes the same race again raises an error again
            raise self._errors(*told)

    def _tell(self, found: _core.Race, told: list[Finding]) -> None:
        """Add a race to ``told`` if the check reports the race; as torch does, print a new race."""
        race, is_new = self._note(found)
        if race is not None and self._tells(race):
            told.append(race)
            if is_new and self.is_torchs:
                _print(race)

    def _tells(self, race: Finding) -> bool:
        return self.possible or race.confidence == "exact"

    def _operations(self) -> int:
        return _detector.operations() - self._before

    def _errors(self, *found: Finding) -> CUDASanitizerErrors:
        errors = CUDASanitizerErrors([error_of(one) for one in found])
        errors._note_lost = self._note_lost
        errors._is_torchs = self.is_torchs
        return errors

    def _warn(self, race: Finding) -> None:
        warning = RaceWarning(str(race))
        warning.race = race
        warning._note_lost = self._note_lost
        for frame in living_frames():
            if not is_library(frame.f_code.co_filename):
                variables = frame.f_globals
                registry = variables.setdefault("__warningregistry__", {})
                module = variables.get("__name__", "<unknown>")
                place = frame_of(frame)
                warnings.warn_explicit(warning, None, place.filename, place.line, module, registry)
                return
        warnings.warn(warning, stacklevel=2)

    def _note_lost(self, error: BaseException) -> None:
        if isinstance(error, RaceWarning):
            found = [error.race]
        elif isinstance(error, CUDASanitizerErrors):
            found = [finding_of(one) for one in error.errors]
        else:
            found = []
        self._lost += [one for one in found if one is not None]


def _on_race(found: _core.Race) -> None:
    """Give a race to its check: the detector calls this function."""
    check = None if sys.is_finalizing() else _current()
    if check is not None:
        check.receive(found)


def tell_findings_of_kernel(found: Sequence[FoundInKernel], error: Callable[[list[Any]], BaseException]) -> None:
    """Give the findings of a launch to the check of the code that waits for the launch.

    Args:
        found: The races of one launch, or its reads of unwritten memory.
        error: Returns the error that is raised if there is no check.

    Raises:
        CUDASanitizerErrors: The mode of the check is ``"raise"``.
        RaceWarning: The mode of the check is ``"warn"``, and the program makes errors of warnings.
    """
    check = _current()
    if check is not None:
        check.receive_from_kernel(found)
        return
    read_suppressions()
    races = [one.describe() for one in found if not is_suppressed(one.stacks.all, one.overlap)]
    if races:
        raise error(races)


def _current() -> ActiveCheck | None:
    """Return the check that gets what the running code finds; None without a check."""
    active = _active
    own = [check for check in _entered.get() if check in active]
    return (own or active)[-1] if own or active else None


def _later_of_one_call(found: _core.Race) -> list[_core.Race]:
    """Return the races that the call that found ``found`` has found later."""
    known, key = _detector.known(), stacks_of(found).key
    place = next((place for place, race in enumerate(known) if stacks_of(race).key == key), len(known))
    return [race for race in known[place + 1 :] if _is_one_call(race, found)]


def _is_one_call(one: _core.Race, other: _core.Race) -> bool:
    """Return whether two races were found by one operation, or by the nodes of one launch."""
    if one.current.number == other.current.number:
        return True
    launches = one.current.launch_stack, other.current.launch_stack
    return launches[0] is not None and launches[0] == launches[1] and one.current.stream == other.current.stream


def _refused(error: RuntimeError) -> bool:
    """End the checks that may be refused, with one warning; return whether no check remains."""
    ended = [check for check in _active if check.may_be_refused]
    for check in ended:
        check.end()
    if ended:
        _warn_of_refusal(error)
    return not _active


def _warn_of_refusal(error: RuntimeError) -> None:
    warnings.warn(f"The race detector stays off: {error}", RuntimeWarning, stacklevel=stacklevel())


def _print(race: Finding) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # a closed stderr must not hide the error
            print(
                f"{error_of(race)}\n", end="", file=sys.stderr, flush=True
            )  # one write, so that threads do not mix lines


def _forget_in_child() -> None:
    global _active, _lock
    _lock = threading.RLock()  # another thread of the parent may have held the lock
    _active = ()
    stop_noting()


call_in_child(_forget_in_child)
