"""The lines of CUDA C++ source whose reads may be polls: reads that a loop repeats until another thread has written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.rtc.tokens import BRACKETS, closing, line_of, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcuda.emulation.rtc.tokens import Token

_HEADS = frozenset(["if", "for", "while", "switch"])


def polling_lines(source: str) -> set[int]:
    """Return the lines inside of loops without a counter, and inside of the functions that such loops call.

    A loop without a counter is ``while``, ``do``, or a ``for`` without an expression after each round. A ``for`` with
    such an expression reads one place after another, so its lines do not count, also inside of another loop.
    """
    found = [token for token in tokens(source) if token.kind != "directive"]
    loops = sorted(_loops(found), key=lambda loop: loop[0] - loop[1])  # outer loops come before inner loops
    polls = [False] * len(found)
    for first, last, counts in loops:
        polls[first:last] = [not counts] * (last - first)
    bodies = dict(_bodies(found))
    left = [place for place, polled in enumerate(polls) if polled]
    while left:
        body = bodies.pop(found[left.pop()].text, None)
        if body is not None:
            left += [place for place in range(*body) if not polls[place]]
            polls[slice(*body)] = [True] * (body[1] - body[0])
    return {line_of(source, token.start) for token, polled in zip(found, polls, strict=True) if polled}


def _loops(found: Sequence[Token]) -> Iterator[tuple[int, int, bool]]:
    """Yield the first token of each loop, the token after its end, and whether the loop has a counter."""
    for place, token in enumerate(found):
        if token.kind != "name" or place + 1 == len(found):
            continue
        if token.text == "do":
            end = _after_statement(found, place + 1)
            # The condition stands behind the body, in `while (...)`.
            yield place, closing(found, end + 1) + 1 if end + 1 < len(found) else len(found), False
        elif token.text in ("for", "while") and found[place + 1].text == "(":
            head = closing(found, place + 1) + 1
            steps = token.text == "for" and found[head - 2].text not in (";", "(")
            empty = head < len(found) and found[head].text == ";"
            yield place, _after_statement(found, head), steps and not empty


def _bodies(found: Sequence[Token]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the name and the body of each function. A method and a lambda may have other words before the body."""
    for place, token in enumerate(found):
        if token.kind != "name" or token.text in _HEADS or place + 1 == len(found) or found[place + 1].text != "(":
            continue
        head = closing(found, place + 1) + 1
        while head < len(found) and found[head].kind == "name":  # such as `const` and `noexcept`
            head += 1
        if head < len(found) and found[head].text == "{":
            yield token.text, (head, closing(found, head) + 1)


def _after_statement(found: Sequence[Token], place: int) -> int:
    """Return the place behind the statement that begins at ``place``."""
    if place >= len(found):
        return place
    text = found[place].text
    if text == "{":
        return closing(found, place) + 1
    if text == "do":
        end = _after_statement(found, place + 1)
        return _after_statement(found, end)  # `while (...);`
    if text in _HEADS and place + 1 < len(found) and found[place + 1].text == "(":
        end = _after_statement(found, closing(found, place + 1) + 1)
        if text == "if" and end < len(found) and found[end].text == "else":
            return _after_statement(found, end + 1)
        return end
    while place < len(found) and found[place].text != ";":
        place = closing(found, place) + 1 if found[place].text in BRACKETS else place + 1
    return place + 1


__all__ = ["polling_lines"]
