"""The properties of a jiterator function that are known before its first call."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tcuda._core import ElementwiseState


class Signature(NamedTuple):
    """A function of the user.

    Attributes:
        code: The user's code.
        kernel: The name of the function that computes one element.
        by_reference: Whether the function ``kernel`` writes to references, and returns nothing.
        num_outputs: The number of outputs.
        state: The calls that the core can compute without Python.
    """

    code: str
    kernel: str
    by_reference: bool
    num_outputs: int
    state: ElementwiseState
