"""The errors of the sanitizer, with torch's names, attributes and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda.sanitizer._access import torchs_text
from tcuda.sanitizer._causes import causes_of, mends_of
from tcuda.sanitizer._race import Race
from tcuda.sanitizer._unwritten_read import UnwrittenRead
from tcuda.sanitizer._words import INDENT

if TYPE_CHECKING:
    import traceback
    from collections.abc import Callable, Sequence

    from tcuda.sanitizer._access import Access
    from tcuda.sanitizer._kernel_race import KernelRace
    from tcuda.sanitizer._race import Finding


class SynchronizationError(Exception):
    """An error that the sanitizer found (``torch.cuda._sanitizer.SynchronizationError``).

    Example:
        >>> side = tcuda.Stream()
        >>> try:
        ...     with tcuda.sanitizer.check():
        ...         x = xp.ones(1000)
        ...         with tcuda.stream(side):
        ...             y = x * 2  # side does not wait for the default stream
        ... except tcuda._sanitizer.CUDASanitizerErrors as found:
        ...     isinstance(found.errors[0], tcuda._sanitizer.SynchronizationError)
        True
    """


class UnsynchronizedAccessError(SynchronizationError):
    """Two accesses to the same memory that no order relates (``torch.cuda._sanitizer.UnsynchronizedAccessError``).

    Attributes:
        data_ptr: The address of the array of the current access.
        allocation_stack_trace: The stack of the allocation; None if the memory is older than the detector.
        current_access: The access that found the race.
        previous_access: The earlier access.
        race: All that the detector knows of the race; None if the program made the error itself.

    Example:
        >>> side = tcuda.Stream()
        >>> try:
        ...     with tcuda.sanitizer.check():
        ...         x = xp.ones(1000)
        ...         with tcuda.stream(side):
        ...             y = x * 2  # side does not wait for the default stream
        ... except tcuda._sanitizer.CUDASanitizerErrors as found:
        ...     error = found.errors[0]
        >>> error.current_access.stream == side.cuda_stream
        True
    """

    def __init__(
        self,
        data_ptr: int,
        allocation_stack_trace: traceback.StackSummary | None,
        current_access: Access,
        previous_access: Access,
        race: Race | None = None,
    ) -> None:
        """Describe a race between ``current_access`` and ``previous_access``."""
        super().__init__(data_ptr, allocation_stack_trace, current_access, previous_access, race)
        self.data_ptr = data_ptr
        self.allocation_stack_trace = allocation_stack_trace
        self.current_access = current_access
        self.previous_access = previous_access
        self.race = race

    @classmethod
    def of(cls, race: Race) -> UnsynchronizedAccessError:
        """Return the error that describes ``race``.

        Args:
            race: A race of a report.

        Example:
            >>> side = tcuda.Stream()
            >>> with tcuda.sanitizer.check(mode="collect") as report:
            ...     x = xp.ones(1000)
            ...     with tcuda.stream(side):
            ...         y = x * 2  # side does not wait for the default stream
            >>> error = tcuda._sanitizer.UnsynchronizedAccessError.of(report.races[0])
            >>> error.data_ptr == x.data.ptr
            True
        """
        return cls(race.data_ptr, race.allocation_stack_trace, *race.torchs_accesses, race)

    def __str__(self) -> str:
        if self.race is not None:
            return self.race._torchs_text
        return torchs_text(self.data_ptr, self.allocation_stack_trace, self.current_access, self.previous_access)


class UnwrittenReadError(SynchronizationError):
    """A kernel reads memory that nothing has written, in a check.

    Attributes:
        read: The read.

    Example:
        >>> import tcuda.emulation
        >>> tcuda.emulation.enable(checks="memory,init")
        >>> xp = tcuda.emulation.xp
        >>> code = 'extern "C" __global__ void twice(int* x) { x[threadIdx.x] *= 2; }'
        >>> try:
        ...     with tcuda.sanitizer.check():
        ...         xp.RawKernel(code, "twice")((1,), (2,), (xp.empty(2, "i"),))
        ... except tcuda.sanitizer.CUDASanitizerErrors as found:
        ...     error = found.errors[0]
        >>> type(error).__name__, error.read.kernel
        ('UnwrittenReadError', 'twice')
    """

    __module__ = "tcuda.sanitizer"

    def __init__(self, read: UnwrittenRead) -> None:
        """Describe ``read``."""
        super().__init__(read)
        self.read = read

    def __str__(self) -> str:
        return str(self.read)


class CUDASanitizerErrors(Exception):
    """The errors of one operation (``torch.cuda._sanitizer.CUDASanitizerErrors``).

    The text has the races, those that one call mends as one. If torch's switch has turned the detector on, the text is
    torch's, such as ``detected 1 errors``.

    Attributes:
        errors: The errors.

    Example:
        >>> side = tcuda.Stream()
        >>> try:
        ...     with tcuda.sanitizer.check():
        ...         x = xp.ones(1000)
        ...         with tcuda.stream(side):
        ...             y = x * 2  # side does not wait for the default stream
        ... except tcuda._sanitizer.CUDASanitizerErrors as error:
        ...     print(len(error.errors), error.errors[0].race.kind)
        1 read after write
    """

    __module__ = "tcuda.sanitizer"

    _note_lost: Callable[[BaseException], object] | None = None

    _is_torchs = False
    """Whether the text is torch's, because torch's switch has turned the detector on."""

    def __init__(self, errors: Sequence[SynchronizationError]) -> None:
        """Hold ``errors``."""
        super().__init__(errors)
        self.errors = errors

    def __reduce__(self) -> tuple[type[CUDASanitizerErrors], tuple[object, ...], dict[str, object]]:
        # Without the check, which stays in this process.
        return type(self), (self.errors,), {"_is_torchs": self._is_torchs}

    def __str__(self) -> str:
        findings = [finding_of(error) for error in self.errors]
        if self._is_torchs or None in findings or not findings:
            return f"detected {len(self.errors)} errors"
        return "\n\n".join(_texts_of_causes([finding for finding in findings if finding is not None]))


class RaceWarning(UserWarning):
    """A race, or a read of unwritten memory, that was found in the mode ``"warn"``.

    Attributes:
        race: All that is known of the race or of the read; None if the program made the warning itself.

    Example:
        >>> import warnings
        >>> side = tcuda.Stream()
        >>> with warnings.catch_warnings(record=True) as caught, tcuda.sanitizer.check(mode="warn"):
        ...     warnings.simplefilter("always")
        ...     x = xp.ones(1000)
        ...     with tcuda.stream(side):
        ...         y = x * 2  # side does not wait for the default stream
        >>> caught[0].category.__name__, caught[0].message.race.kind
        ('RaceWarning', 'read after write')
    """

    __module__ = "tcuda.sanitizer"

    race: Finding | None = None
    _note_lost: Callable[[BaseException], object] | None = None

    def __reduce__(self) -> tuple[type[RaceWarning], tuple[object, ...], dict[str, object]]:
        return type(self), self.args, {"race": self.race}  # without the check, which stays in this process


class KernelRaceError(AcceleratorError):
    """A launch had races inside of its kernel, and no check gets the races.

    The call that waits for the launch raises the error, as for other failures of a kernel. The kernel has run to its
    end, and the device stays usable. The status is 719, which stands for the failure of a launch.

    Attributes:
        races: The races.

    Example:
        >>> import tcuda.emulation
        >>> tcuda.emulation.enable(checks="memory,races")
        >>> xp = tcuda.emulation.xp
        >>> code = 'extern "C" __global__ void last(int* out) { out[0] = threadIdx.x; }'
        >>> try:
        ...     xp.RawKernel(code, "last")((1,), (2,), (xp.zeros(1, "i"),))
        ...     tcuda.synchronize()
        ... except tcuda.sanitizer.KernelRaceError as error:
        ...     print(error.error_code, error.races[0].memory.expression)
        719 out[0]
    """

    __module__ = "tcuda.sanitizer"

    def __init__(self, races: Sequence[KernelRace], call: str, left_out: int = 0) -> None:
        """Describe ``races`` of the launch ``call``, and ``left_out`` more that are not known."""
        self.races = tuple(races)
        self._left_out = left_out
        texts = _texts_of_causes(self.races)
        if left_out:
            texts.append(f"{left_out:,} more races of this launch were not kept.")
        super().__init__(Status.LAUNCH_FAILURE, call, "\n".join(texts))

    def __reduce__(self) -> tuple[type[KernelRaceError], tuple[tuple[KernelRace, ...], str, int]]:  # type: ignore[override]
        return type(self), (self.races, self.call, self._left_out)


def _texts_of_causes(findings: Sequence[Finding]) -> list[str]:
    """Return a text for each cause: the first finding, and what its call mends too."""
    data = [finding.as_dict() for finding in findings]
    texts = [(str(findings[cause[0]]), mends_of(data, cause)) for cause in causes_of(data)]
    return [f"{text}{f'{INDENT}{mends}' if mends else ''}" for text, mends in texts]


def error_of(finding: Finding) -> SynchronizationError:
    """Return the error that reports ``finding`` in a check."""
    if isinstance(finding, UnwrittenRead):
        return UnwrittenReadError(finding)
    assert isinstance(finding, Race)
    return UnsynchronizedAccessError.of(finding)


def finding_of(error: SynchronizationError) -> Finding | None:
    """Return what ``error`` reports; None if a program has made the error."""
    return getattr(error, "race", None) or getattr(error, "read", None)
