"""Memory that arrays use and that the ledger has not allocated."""

from __future__ import annotations

import abc
from typing import Any


class Borrowed(abc.ABC):
    """The owner of memory of another process."""

    __slots__ = ()

    @abc.abstractmethod
    def record_stream(self, handle: int, stream: Any) -> None:
        """Give the memory back only after the work that ``stream`` has when the last array dies.

        Args:
            handle: The handle of the stream.
            stream: The stream, which is kept alive until then.
        """
