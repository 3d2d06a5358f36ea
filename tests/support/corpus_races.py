"""The races that the search on the processor finds in the kernels of the corpus."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from support.kernel_corpus import Out
from support.racing_kernels import launch
from tcuda.emulation.kernels.volatile_races import of_data
from tcuda.emulation.rtc.build import build
from tcuda.emulation.rtc.source_lines import source_lines

if TYPE_CHECKING:
    from support.kernel_corpus import Launch, Source
    from tcuda._core import KernelAccess, KernelRace


class Found(NamedTuple):
    """A race, with the lines of both accesses."""

    lines: frozenset[int | None]
    missing: str
    race: KernelRace


@functools.cache
def races(source: Source, order: int = 0) -> dict[str, list[Found]]:
    """Launch all kernels of a source in an order of their blocks and threads, and return the races of each."""
    found = {name: _races_of(source, name, one.launch, order) for name, one in source.kernels.items()}
    accesses = [access for several in found.values() for race in several for access in (race.first, race.second)]
    codes = sorted({access.code for access in accesses})
    library, _ = build(source.text, races=True)
    places = dict(zip(codes, source_lines(library, codes), strict=True))

    def line(access: KernelAccess) -> int | None:
        place = places[access.code]
        return place and place[1]

    return {
        name: [Found(frozenset([line(race.first), line(race.second)]), race.missing, race) for race in several]
        for name, several in found.items()
    }


def _races_of(source: Source, name: str, described: Launch, order: int) -> list[KernelRace]:
    arguments = [one.initial if isinstance(one, Out) else one for one in described.arguments]
    copies = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]  # live until the launch ends
    grid, block = (_three(sizes) for sizes in (described.grid, described.block))
    started = launch(source.text, *copies, grid=grid, block=block, shared=described.shared, name=name, order=order)
    failure = started.run()
    assert failure is None or (order != 0 and failure[0] in ("unfinished", "deadlock")), failure
    library, _ = build(source.text, races=True)
    return [
        *started.races(),
        *of_data(started.volatile_races(), lambda codes: source_lines(library, codes), lambda file: source.text),
    ]


def _three(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
