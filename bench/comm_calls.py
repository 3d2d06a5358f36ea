"""The table of the measured calls over several devices, each with the same work in plain CuPy."""

from __future__ import annotations

import math
from typing import NamedTuple

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30

SIZES = {"1 KiB": _KIB, "64 KiB": 64 * _KIB, "4 MiB": 4 * _MIB, "256 MiB": 256 * _MIB, "2 GiB": 2 * _GIB}
"""The bytes of the array of a call, by the text in the name of the call."""

COUNT, LENGTH = 200, 1024
"""The number of small arrays of a coalesced call, and the float32 numbers of each."""

ALIVE = 10_000
"""The arrays that are alive in the last row."""


class CommCall(NamedTuple):
    """A call over several devices. ``comm_sides.py`` explains the names in the statements.

    Attributes:
        surface: The statement of tcuda and torch, in which ``comm`` is ``tcuda.comm`` or ``torch.cuda.comm``.
        cupy: The same work in plain CuPy.
        size: The bytes of the array, for which the names are made.
        is_whole: Whether the call moves the whole array, and not only the parts of the other devices.
        at_most: The most microseconds that the call may take with two devices.
        of_torch: The most time as a multiple of torch's.
        alive: The arrays that are alive on each device during the call.
    """

    surface: str
    cupy: str
    size: int = _KIB
    is_whole: bool = True
    at_most: float = math.inf
    of_torch: float = 1.0
    alive: int = 0

    def bytes_moved(self, devices: int) -> float:
        """Return the bytes whose time gives the bandwidth in the report."""
        return self.size * (1.0 if self.is_whole else (devices - 1) / devices)


_BROADCAST = "comm.broadcast(x, devices)"
_BROADCAST_OF_CUPY = "[x, *[copied(x, device) for device in devices[1:]]]"
_COALESCED_OF_CUPY = "[small, *[[copied(each, device) for each in small] for device in devices[1:]]]"
_COALESCED_OF_TORCH = 0.33
_LEAST_BANDWIDTH = 370e3  # bytes in a microsecond
_LONGEST_SMALL = 12.0


def _sized(name: str, size: int) -> dict[str, CommCall]:
    longest = {_KIB: _LONGEST_SMALL, 256 * _MIB: 256 * _MIB / _LEAST_BANDWIDTH}.get(size, math.inf)
    return {
        f"broadcast {name}": CommCall(_BROADCAST, _BROADCAST_OF_CUPY, size, at_most=longest),
        f"scatter {name}": CommCall(
            "comm.scatter(x, devices)",
            "[copied(part, device) for part, device in zip(cut(x), devices)]",
            size,
            is_whole=False,
        ),
        f"scatter {name} of the host": CommCall(
            "comm.scatter(host, devices)", "[uploaded(part, device) for part, device in zip(cut(host), devices)]", size
        ),
        f"gather {name}": CommCall(
            "comm.gather(parts, 0, 0)",
            "joined([copied(part, 0) for part in parts])",
            size,
            is_whole=False,
        ),
        f"reduce_add {name}": CommCall(
            "comm.reduce_add(copies, 0)", "summed([copied(each, 0) for each in copies])", size
        ),
    }


CALLS: dict[str, CommCall] = {}
for _name, _size in SIZES.items():
    CALLS |= _sized(_name, _size)
CALLS |= {
    f"broadcast_coalesced {COUNT} x 4 KB": CommCall(
        "comm.broadcast_coalesced(small, devices)", _COALESCED_OF_CUPY, COUNT * LENGTH * 4, of_torch=_COALESCED_OF_TORCH
    ),
    f"reduce_add_coalesced {COUNT} x 4 KB": CommCall(
        "comm.reduce_add_coalesced(gradients, 0)",
        "[summed([copied(each, 0) for each in column]) for column in zip(*gradients)]",
        COUNT * LENGTH * 4,
    ),
    "broadcast 1 KiB, busy stream": CommCall(f"keep_busy(); made = {_BROADCAST}", f"keep_busy(); {_BROADCAST_OF_CUPY}"),
    f"broadcast 1 KiB, {ALIVE:,} arrays alive": CommCall(_BROADCAST, _BROADCAST_OF_CUPY, alive=ALIVE),
}
"""The measured calls, by their names in results and reports. Each is measured with several numbers of devices."""
