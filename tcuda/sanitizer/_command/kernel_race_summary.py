"""The lines of the summary about a race inside a kernel, or about a read of unwritten memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.messages import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def heading(race: Mapping[str, Any]) -> str:
    """Return the kind of a race, with the kernel."""
    return f"{race['kind'].replace('a kernel', 'the kernel')} {printable(race['kernel'])}"


def details(race: Mapping[str, Any], place: Callable[[str, int], str]) -> Iterator[str]:
    """Yield what a summary says of a race, below its heading.

    Args:
        race: The race as plain data.
        place: The function that shows a file and a line.
    """
    accesses = [access for access in (race.get("previous"), race["current"]) if access is not None]
    for access in accesses:
        line = access["line"]
        where = "unknown line" if line is None else place(line["file"], line["line"])
        source = f": {access['source']}" if access["source"] else ""
        yield f"{where}  {access['words']}{printable(source)}"
    allocation = race["allocation"]
    allocated = _place(allocation["stack"] if allocation else (), ", allocated at ", place)
    yield f"{'both touch ' if len(accesses) > 1 else ''}{printable(race['memory']['text'])}{allocated}"
    access = race["current"]
    launched = _place(access["launch_stack"] or access["stack"], "launched at ", place)
    if launched:
        yield launched
    yield f"{'missing: ' if len(accesses) > 1 else ''}{printable(race['advice'])}"


def _place(stack: Any, words: str, place: Callable[[str, int], str]) -> str:
    """Return the innermost line of a stack after some words; an empty text for an empty stack."""
    return f"{words}{place(stack[0]['filename'], stack[0]['line'])}" if stack else ""


__all__ = ["details", "heading"]
