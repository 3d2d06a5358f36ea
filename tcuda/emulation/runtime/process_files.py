"""Files in memory that a process shares with other processes, and the name of such a file in a handle.

Another process of the same user opens the file through ``/proc``. The number of a process may be given to a new process
later, so the name has the time at which the process began, too.
"""

from __future__ import annotations

import functools
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tcuda._base.statuses import Status

if TYPE_CHECKING:
    from typing_extensions import Self

_LAYOUT = struct.Struct("<qQqQ")
_ENDED = frozenset("ZXx")
"""The states of a process that has ended and that its parent has not noticed yet."""


class FileUnavailable(Exception):
    """The file of another process cannot be opened.

    Attributes:
        status: The status of CUDA: 201 for the file of this process, 304 if the system forbids the access, and 400 if
            the process has ended.
    """

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


class ProcessFile(NamedTuple):
    """The name of a file in memory of a process.

    Attributes:
        process: The number of the process.
        began: The time at which the process began, in units of the system.
        descriptor: The descriptor of the file in the process.
        number: The number that the system has given to the file.
    """

    process: int
    began: int
    descriptor: int
    number: int

    @classmethod
    def of_this_process(cls, descriptor: int) -> Self:
        """Return the name of the file of ``descriptor``."""
        process = os.getpid()
        return cls(process, _began_here(process), descriptor, os.fstat(descriptor).st_ino)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the name of which :meth:`pack` has made the first bytes of ``packed``."""
        return cls(*_LAYOUT.unpack_from(packed))

    def pack(self) -> bytes:
        """Return the name as bytes."""
        return _LAYOUT.pack(*self)

    def open(self) -> int:
        """Return a new descriptor for the file.

        Raises:
            FileUnavailable: The file is of this process, the process has ended, or the system forbids the access.
        """
        if self.process == os.getpid():
            raise FileUnavailable(Status.DEVICE_UNINITIALIZED)
        if _began(self.process) != self.began:
            raise FileUnavailable(Status.INVALID_RESOURCE_HANDLE)
        try:
            descriptor = os.open(f"/proc/{self.process}/fd/{self.descriptor}", os.O_RDWR | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError):
            raise FileUnavailable(Status.INVALID_RESOURCE_HANDLE) from None
        except OSError:
            ended = _began(self.process) != self.began
            raise FileUnavailable(Status.INVALID_RESOURCE_HANDLE if ended else Status.OPERATING_SYSTEM) from None
        if os.fstat(descriptor).st_ino != self.number:
            os.close(descriptor)
            raise FileUnavailable(Status.INVALID_RESOURCE_HANDLE)
        return descriptor


SIZE = _LAYOUT.size
"""The bytes of a packed name."""


@functools.cache
def _began_here(process: int) -> int:
    """Return the time at which this process began; a forked child has another number ``process``."""
    return _began(process) or 0


def _began(process: int) -> int | None:
    """Return the time at which ``process`` began, None if the process has ended."""
    try:
        line = Path(f"/proc/{process}/stat").read_text()
    except (OSError, ValueError):
        return None
    state, *facts = line.rpartition(")")[2].split()  # the name of the program, in brackets, may have any characters
    return None if state in _ENDED else int(facts[18])
