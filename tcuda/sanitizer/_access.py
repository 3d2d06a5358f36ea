"""The accesses of a race as torch describes them, and torch's text of a race."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import traceback


class AccessType(enum.Enum):
    """Whether an access only reads (``torch.cuda._sanitizer.AccessType``).

    Example:
        >>> import tcuda._sanitizer
        >>> [type.name for type in tcuda._sanitizer.AccessType]
        ['READ', 'WRITE']
    """

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

    Example:
        >>> side = tcuda.Stream()
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     x = xp.ones(1000)
        ...     with tcuda.stream(side):
        ...         y = x * 2  # side does not wait for the default stream
        >>> current, previous = report.races[0].torchs_accesses
        >>> current.operator, current.type.name, previous.type.name
        ('multiply', 'READ', 'WRITE')
    """

    type: AccessType
    seq_num: int
    stream: int | None
    operator: str
    aliases: list[str]
    is_output: bool
    stack_trace: traceback.StackSummary

    def text(self) -> str:
        """Return torch's description of the access.

        Example:
            >>> print(current.text().splitlines()[0])  # the access above
            multiply
        """
        arguments = f" argument(s) {', '.join(self.aliases)}" if self.aliases else ""
        output = (", and to the output" if self.aliases else " the output") if self.is_output else ""
        stack = "".join(self.stack_trace.format())
        return f"{self.operator}\n{self.type}{arguments}{output}\nWith stack trace:\n{stack}\n"

    def heading(self) -> str:
        """Return the beginning of torch's description, up to the stream.

        Example:
            >>> current.heading() == f"by stream {side.cuda_stream}"  # the access above
            True
        """
        return "by the host" if self.stream is None else f"by stream {self.stream}"


def torchs_text(data_ptr: int, allocation: traceback.StackSummary | None, current: Access, previous: Access) -> str:
    """Return torch's text of a race.

    Args:
        data_ptr: The address of the array.
        allocation: The stack of the allocation.
        current: The access that found the race.
        previous: The earlier access.
    """
    if allocation:
        allocated = f"Tensor was allocated with stack trace:\n{''.join(allocation.format())}"
    else:
        allocated = "Trace for tensor allocation not found."
    return (
        "============================\n"
        f"CSAN detected a possible data race on tensor with data pointer {data_ptr}\n"
        f"Access {current.heading()} during kernel:\n{current.text()}"
        f"Previous access {previous.heading()} during kernel:\n{previous.text()}"
        f"{allocated}"
    )
