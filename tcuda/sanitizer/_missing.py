"""The order that is missing between two accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tcuda.sanitizer._stacks import Frame


class Missing(NamedTuple):
    """The order that is missing.

    Attributes:
        call: The call that makes the order, such as ``"side.wait_stream(main)"``.
        before: The frame before whose line the call belongs; None if that line is not known.
        sentence: A sentence that names the call and the line.
        says_more: Whether the sentence says more than the call and the line.
        instead: What a program without tcuda writes in place of the call, such as ``"let s1 wait for s2"``; an empty
            text if the call is CuPy's, or the program uses tcuda.
    """

    call: str
    before: Frame | None
    sentence: str
    says_more: bool = True
    instead: str = ""
