"""The races of volatile accesses: the memory is data, unless a thread polls the memory in a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.rtc.polling import polling_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda import _core
    from tcuda.emulation.kernels.source_facts import SourceFacts

    Place = tuple[str, int]

_MOST_LINES = 100_000
"""The lines of a file in which reads may be polls."""


def races_of(launch: _core.EmulatedLaunch, module: SourceFacts) -> list[_core.KernelRace]:
    """Return the races of a launch, with those of volatile data."""

    def text(file: str) -> str:
        lines = module.excerpt(file, 1, _MOST_LINES)
        numbered = dict(lines)
        return "\n".join(numbered.get(number, "") for number in range(1, max(numbered, default=0) + 1))

    return [*launch.races(), *of_data(launch.volatile_races(), module.lines, text)]


def of_data(
    races: Sequence[_core.KernelRace],
    lines: Callable[[Sequence[int]], Sequence[Place | None]],
    text: Callable[[str], str],
) -> list[_core.KernelRace]:
    """Return the races whose memory is no flag.

    A flag is memory that one line polls, and that another line writes. A line that is not known may poll.

    Args:
        races: The races of volatile accesses.
        lines: Returns the file and the line of each place of the code.
        text: Returns the text of a file.
    """
    if not races:
        return []
    codes = sorted({access.code for race in races for access in (race.first, race.second)})
    places = dict(zip(codes, lines(codes), strict=True))
    polling = {place[0]: polling_lines(text(place[0])) for place in places.values() if place is not None}
    polls = {code for code, place in places.items() if place is None or place[1] in polling[place[0]]}

    def is_polled(access: _core.KernelAccess) -> bool:
        return access.code in polls and access.kind != "volatile write"

    flags = set(polls)
    for race in races:
        if is_polled(race.first) or is_polled(race.second):
            flags |= {race.first.code, race.second.code}
    return [race for race in races if not {race.first.code, race.second.code} & flags]


__all__ = ["of_data", "races_of"]
