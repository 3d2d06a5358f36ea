"""Streams of other libraries."""

from __future__ import annotations


class ForeignStream:
    """A stream of another library, which has only the protocol ``__cuda_stream__`` in common with tcuda."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle
