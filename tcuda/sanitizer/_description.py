"""The description of a race that the core has found, made while the functions of the program still run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda.sanitizer._advice import missing_order
from tcuda.sanitizer._doubt import doubt_of
from tcuda.sanitizer._race import Race, access_of, allocation_of
from tcuda.sanitizer._stacks import frames, is_asked_for, users
from tcuda.sanitizer._stream_names import stream_names
from tcuda.sanitizer._words import TOUCHES

if TYPE_CHECKING:
    from tcuda import _core
    from tcuda.sanitizer._stacks import Frame


class Stacks(NamedTuple):
    """The whole stacks of a race.

    Attributes:
        all: The stacks of both accesses, then those of launches.
        key: A value that is equal for equal races.
    """

    all: tuple[tuple[Frame, ...], ...]
    key: Any


def stacks_of(found: _core.Race) -> Stacks:
    """Return the stacks of a race."""
    key: list[Any] = [found.kind, found.use_after_free]
    stacks = []
    for access in (found.current, found.previous):
        stacks += [frames(access.stack), frames(access.launch_stack)]
        key += [access.operation, access.label, access.kind, access.host, access.confidence]
    return Stacks(tuple(stacks), (*key, *stacks))


def race_of(found: _core.Race) -> Race:
    """Return a race of the core in plain values, with the names of the streams and the missing order."""
    overlap = found.overlap
    names = stream_names(_stream(found.current), _stream(found.previous))
    touched = found.current.host and found.current.operation in TOUCHES
    current = access_of(found.current, overlap, names.current, found.previous if touched else None)
    previous = access_of(found.previous, overlap, names.previous)
    earlier = allocation_of(found.previous_allocation) if found.use_after_free else None
    return Race(
        kind=found.kind,
        use_after_free=found.use_after_free,
        current=current,
        previous=previous,
        overlap=overlap,
        allocation=allocation_of(found.allocation),
        previous_allocation=earlier,
        missing=missing_order(current, previous, names, earlier),
        doubt=doubt_of(current, previous, is_overlap_exact=found.is_overlap_exact),
        neighbours=_neighbours(found),
    )


def _stream(access: _core.RaceAccess) -> tuple[int, int] | None:
    return None if access.host else (access.device, access.stream)


def _neighbours(found: _core.Race) -> tuple[dict[str, Any], ...]:
    """Return the steps of the program before the race.

    Instead of its stack, each step has its place, and says whether tcuda made the event for itself.
    """
    steps = []
    for step in found.recent:
        stack = frames(step["stack"])
        place = next(iter(users(stack)), None)
        made = {name: value for name, value in step.items() if name != "stack"}
        made["file"], made["line"] = (None, None) if place is None else (place.filename, place.line)
        made["own"] = step["kind"] in ("record", "wait") and not is_asked_for(stack)
        steps.append(made)
    return tuple(steps)
