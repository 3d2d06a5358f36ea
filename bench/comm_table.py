"""The table of the calls over several devices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from comm_calls import CALLS, CommCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    Rows = list[tuple[str, ...]]

HEADER = ("call", "devices", "tcuda, µs", "CuPy, µs", "torch, µs", "tcuda / torch", "GB/s", "target", "met")


class Timed(NamedTuple):
    """The time of a call on one side.

    Attributes:
        call: The name of the call.
        devices: The number of devices.
        on: The side.
        microseconds: The median.
    """

    call: str
    devices: int
    on: str
    microseconds: float


def rows(timed: Sequence[Timed]) -> Rows:
    """Return a row for each call and number of devices; no rows if nothing was measured."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for each in timed:
        found.setdefault((each.call, each.devices), {})[each.on] = each.microseconds
    body = [_row(call, devices, sides) for (call, devices), sides in found.items() if "tcuda" in sides]
    return [HEADER, *body] if body else []


def _row(call: str, devices: int, sides: dict[str, float]) -> tuple[str, ...]:
    known = CALLS.get(call, CommCall("", ""))
    own, torch = sides["tcuda"], sides.get("torch")
    times = [f"{sides[on]:,.1f}" if on in sides else "-" for on in ("tcuda", "cupy", "torch")]
    of_torch = "-" if torch is None else f"{own / torch:.2f}"
    bandwidth = f"{known.bytes_moved(devices) / own / 1e3:,.1f}"
    at_most = known.at_most if devices == 2 else math.inf
    met = own <= at_most and (torch is None or own <= known.of_torch * torch)
    return (call, str(devices), *times, of_torch, bandwidth, _target(at_most, known.of_torch), "yes" if met else "NO")


def _target(at_most: float, of_torch: float) -> str:
    bounds = [f"≤ {at_most:.0f} µs"] if at_most < math.inf else []
    return ", ".join([*bounds, "≤ torch" if of_torch == 1 else f"≤ {of_torch:.3g} torch"])
