"""Why a race is only possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda.sanitizer._found import FoundRace
    from tcuda.sanitizer._race import RaceAccess


def is_possible(found: FoundRace) -> bool:
    """Return whether a race is only possible."""
    return "possible" in (found.current.confidence, found.previous.confidence)


def doubt_of(current: RaceAccess, previous: RaceAccess, *, is_overlap_exact: bool) -> str | None:
    """Return why a race is only possible, or None for a race that is exact.

    Args:
        current: The access that found the race.
        previous: The earlier access.
        is_overlap_exact: Whether the views of both accesses have a byte in common for certain.
    """
    if not is_overlap_exact:
        return "It is not known whether both views have an element in common."
    sentences = [_sentence(access) for access in (previous, current) if access.confidence == "possible"]
    return " ".join(dict.fromkeys(sentences)) or None


def _sentence(access: RaceAccess) -> str:
    operation = f"`{access.operation}`"
    begin = f"{operation} gets a pointer into this memory"
    if access.kind == "read and write":
        return f"{begin}, and it is not known what {operation} does there."
    return f"{begin} and may {access.kind} there, and it is not known which bytes {operation} {access.kind}s."
