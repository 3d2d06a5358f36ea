"""The protocol :class:`~tcuda._backend.transfers.Transfers` on emulated devices."""

from __future__ import annotations

from tcuda.comm._plain import PlainTransfers
from tcuda.emulation import xp


class Transfers(PlainTransfers):
    """Work on arrays of several emulated devices."""

    def __init__(self) -> None:
        super().__init__(xp)
