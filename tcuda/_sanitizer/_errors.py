"""The errors of the sanitizer, with torch's names, attributes and texts."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import traceback
    from collections.abc import Callable, Sequence

    from tcuda._sanitizer._race import Race


class AccessType(enum.Enum):
    """Whether an access only reads (``torch.cuda._sanitizer.AccessType``)."""

    READ = enum.auto()
    WRITE = enum.auto()

    def __str__(self) -> str:
        return "reading from" if self is AccessType.READ else "writing to"


@dataclass
class Access:
    """One access of an operation to memory (``torch.cuda._sanitizer.Access``).

    Attributes:
        type: Whether the operation only reads.
        seq_num: The number of the operation.
        stream: The handle of the stream; None for the host.
        operator: The name of the operation.
        aliases: The names of the arguments.
        is_output: Whether the memory is an output of the operation.
        stack_trace: The stack of the call that queued the operation.
    """

    type: AccessType
    seq_num: int
    stream: int | None
    operator: str
    aliases: list[str]
    is_output: bool
    stack_trace: traceback.StackSummary

    def _text(self) -> str:
        """Return torch's description of the access."""
        arguments = f" argument(s) {', '.join(self.aliases)}" if self.aliases else ""
        output = (", and to the output" if self.aliases else " the output") if self.is_output else ""
        stack = "".join(self.stack_trace.format())
        return f"{self.operator}\n{self.type}{arguments}{output}\nWith stack trace:\n{stack}\n"

    def _heading(self) -> str:
        return "by the host" if self.stream is None else f"by stream {self.stream}"


class SynchronizationError(Exception):
    """An error that the sanitizer found (``torch.cuda._sanitizer.SynchronizationError``)."""


class UnsynchronizedAccessError(SynchronizationError):
    """Two accesses to the same memory that no order relates (``torch.cuda._sanitizer.UnsynchronizedAccessError``).

    Attributes:
        data_ptr: The address of the array of the current access.
        allocation_stack_trace: The stack of the allocation; None if the memory is older than the detector.
        current_access: The access that found the race.
        previous_access: The earlier access.
        race: All that the detector knows of the race; None if the program made the error itself.
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

    def __str__(self) -> str:
        current, previous = self.current_access, self.previous_access
        if self.allocation_stack_trace:
            allocation = f"Tensor was allocated with stack trace:\n{''.join(self.allocation_stack_trace.format())}"
        else:
            allocation = "Trace for tensor allocation not found."
        torchs = (
            "============================\n"
            f"CSAN detected a possible data race on tensor with data pointer {self.data_ptr}\n"
            f"Access {current._heading()} during kernel:\n{current._text()}"
            f"Previous access {previous._heading()} during kernel:\n{previous._text()}"
            f"{allocation}"
        )
        if self.race is None:
            return torchs
        return f"{torchs.rstrip()}\n\n{self.race.details}"


class CUDASanitizerErrors(Exception):
    """The errors of one operation (``torch.cuda._sanitizer.CUDASanitizerErrors``).

    Attributes:
        errors: The errors.
    """

    _note_lost: Callable[[BaseException], object] | None = None

    def __init__(self, errors: Sequence[SynchronizationError]) -> None:
        """Hold ``errors``."""
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        return f"detected {len(self.errors)} errors"


class RaceWarning(UserWarning):
    """A race that was found in the mode ``"warn"``.

    Attributes:
        race: All that the detector knows of the race; None if the program made the warning itself.
    """

    race: Race | None = None
    _note_lost: Callable[[BaseException], object] | None = None
