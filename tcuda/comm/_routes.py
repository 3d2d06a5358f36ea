"""Routes: the copies by which an array reaches several devices.

The choice follows a model of the time on GPUs that NVLink and NVSwitch connect. Four H200s took, in microseconds from
the call until all devices had finished:

=========  =======  ======  ======  ========================
devices    bytes    flat    tree    chain (pieces)
=========  =======  ======  ======  ========================
2          1 KiB    11.8    12.4
3          1 KiB    14.6    16.4
4          1 KiB    19.0    20.4
4          1 MiB    26.8    27.7    64 (4), 110 (8)
3          4 MiB    35.7    36.0    56 (4), 79 (8)
4          4 MiB    50.8    46.7    72 (4), 118 (8)
3          32 MiB   187     191     143 (4), 142 (8)
4          32 MiB   280     196     177 (4), 165 (8)
2          256 MiB  695     695     700 (4), 716 (8)
3          256 MiB  1,391   1,374   829 (8), 817 (16)
4          256 MiB  2,054   1,376   923 (8), 871 (16)
=========  =======  ======  ======  ========================

NCCL took longer than the fastest route for copies: 29 microseconds for 1 KiB on 2 devices, 87 for 4 MiB on 4 devices,
232 for 32 MiB on 4 devices, 917 for 256 MiB on 4 devices.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from tcuda._backend.transfers import Hop

_LATENCY = 8.0
"""Microseconds that no route can save: the call, and the wait for the last device."""

_HOP = 3.5
"""Microseconds from one copy to the next of a stream."""

_ROUND = 1.0
"""Microseconds from the arrival of an array at a device to the next copy there."""

_PIECE = 4.5
"""Microseconds from one piece of an array to the next in a chain."""

_BANDWIDTH = 390e3
"""Bytes that a device sends in a microsecond."""

_SMALL = 1 << 16
"""The number of bytes below which a flat route is the fastest for any number of devices up to 4."""

_PIECES = 4, 8, 16, 32, 64
_ALIGNMENT = 512
_KEPT_ROUTES = 64


class Way(NamedTuple):
    """A kind of route.

    Attributes:
        kind: ``"flat"``, ``"tree"`` or ``"chain"``.
        pieces: The number of pieces into which the array is cut.
    """

    kind: str
    pieces: int = 1


def best_way(devices: int, nbytes: int) -> Way:
    """Return the kind of route that takes the shortest time.

    Args:
        devices: The number of devices, with that of the source.
        nbytes: The bytes of the array.
    """
    if devices <= 2 or nbytes < _SMALL:
        return Way("flat")
    ways = [Way("flat"), Way("tree"), *(Way("chain", pieces) for pieces in _PIECES)]
    return min(ways, key=lambda way: duration(way, devices, nbytes))


def duration(way: Way, devices: int, nbytes: int) -> float:
    """Return the microseconds that the model gives for a route."""
    hops, transfer = devices - 1, nbytes / _BANDWIDTH
    if way.kind == "flat":
        return _LATENCY + hops * (_HOP + transfer)
    if way.kind == "tree":
        return _LATENCY + hops * _HOP + hops.bit_length() * (_ROUND + transfer)
    pipeline = (way.pieces + hops - 1) * (_PIECE + transfer / way.pieces)
    return _LATENCY + max(pipeline, way.pieces * hops * _PIECE)


@functools.lru_cache(_KEPT_ROUTES)
def route(devices: int, nbytes: int) -> tuple[Hop, ...]:
    """Return the copies that take an array from the first of ``devices`` places to all others.

    Args:
        devices: The number of devices, with that of the source, which is place 0.
        nbytes: The bytes of the array.
    """
    way = best_way(devices, nbytes)
    if way.kind == "flat":
        return tuple(Hop(0, place, 0, nbytes, 0) for place in range(1, devices))
    if way.kind == "tree":
        return tuple(_tree(devices, nbytes))
    return tuple(
        Hop(place, place + 1, begin, end, begin)
        for begin, end in cuts(nbytes, way.pieces)
        for place in range(devices - 1)
    )


def _tree(devices: int, nbytes: int) -> list[Hop]:
    """Return the hops of a tree: in each round, every device that has the array sends it to one that lacks it."""
    hops = []
    have = 1
    while have < devices:
        hops += [Hop(place, place + have, 0, nbytes, 0) for place in range(min(have, devices - have))]
        have *= 2
    return hops


def cuts(nbytes: int, pieces: int, unit: int = _ALIGNMENT) -> list[tuple[int, int]]:
    """Return the beginning and the end of each piece of an array; fewer pieces if the array is too small.

    Args:
        nbytes: The bytes of the array.
        pieces: The number of pieces.
        unit: The number of bytes of which every piece but the last is a multiple.
    """
    length = -(-nbytes // (pieces * unit)) * unit or unit
    return [(begin, min(begin + length, nbytes)) for begin in range(0, nbytes, length)]


_SUM_ROUND = 10.0
"""Microseconds of a sum of small arrays, with the waits of the streams."""


@functools.lru_cache(_KEPT_ROUTES)
def best_sum(devices: int, nbytes: int) -> Way:
    """Return how a sum over ``devices`` takes the shortest time: ``"flat"`` or ``"chain"``.

    A flat sum reads all arrays on the device of the result, whose incoming bandwidth limits it. In a chain, every
    device adds its own array to the sum that it reads from the next device, piece by piece.
    """
    hops, transfer = devices - 1, nbytes / _BANDWIDTH
    flat = _SUM_ROUND + hops * transfer

    def chain(pieces: int) -> float:
        pipeline = (pieces + hops - 1) * (_SUM_ROUND + transfer / pieces)
        return _LATENCY + max(pipeline, pieces * hops * _SUM_ROUND)

    pieces = min(_PIECES, key=chain)
    return Way("chain", pieces) if hops > 1 and chain(pieces) < flat else Way("flat")
