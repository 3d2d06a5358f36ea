"""The protocol :class:`~tcuda._backend.Transfers` over CuPy."""

from __future__ import annotations

import cupy

from tcuda.comm._plain import PlainTransfers


class Transfers(PlainTransfers):
    """Work on CuPy's arrays of several devices."""

    def __init__(self) -> None:
        super().__init__(cupy)
