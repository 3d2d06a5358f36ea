"""Arrays of several devices, one on each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tcuda
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def on_each(hosts: Iterable[Any], devices: Iterable[int] | None = None) -> list[Any]:
    """Return the arrays ``hosts`` on the devices ``devices``, or on the first devices if None."""
    made = []
    for place, host in zip(range(tcuda.device_count()) if devices is None else devices, hosts):  # noqa: B905
        with tcuda.device(place):
            made.append(xp.array(host))
    return made


def read(arrays: Sequence[Any]) -> list[Any]:
    """Return the elements of arrays of any devices in NumPy arrays."""
    hosts = []
    for array in arrays:
        with tcuda.device(array.data.device_id):
            hosts.append(array.get())
    return hosts
