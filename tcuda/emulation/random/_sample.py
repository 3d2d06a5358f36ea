"""The samples and permutations of ``xp.random``: functions that draw from the generator of the current device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tcuda.emulation.arrays import functions
from tcuda.emulation.random import _distributions
from tcuda.emulation.random.calls import admitting, drawing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tcuda.emulation.arrays.ndarray import ndarray

    Shape = int | Sequence[int] | None

_DRAWING = drawing(("choice", "permutation", "randint", "random_sample", "shuffle"))
choice, permutation, randint, random_sample, shuffle = _DRAWING.values()


@admitting
def rand(*size: int, dtype: npt.DTypeLike = float) -> ndarray:
    """Return uniform numbers in [0, 1) (``cupy.random.rand``)."""
    return cast("ndarray", random_sample(size=size, dtype=dtype))


@admitting
def randn(*size: int, dtype: npt.DTypeLike = float) -> ndarray:
    """Return normal numbers (``cupy.random.randn``)."""
    return cast("ndarray", _distributions.normal(size=size, dtype=dtype))


@admitting
def random_integers(low: int, high: int | None = None, size: Shape = None) -> ndarray:
    """Return integers from ``low`` to ``high``, or from 1 to ``low`` (``cupy.random.random_integers``)."""
    first, last = (1, low) if high is None else (low, high)
    return cast("ndarray", randint(first, last + 1, size))


@admitting
def multinomial(n: int, pvals: Any, size: Shape = None) -> ndarray:
    """Return how often each outcome occurs in ``n`` trials (``cupy.random.multinomial``)."""
    shape = () if size is None else (size,) if isinstance(size, int) else tuple(size)
    outcomes = len(pvals)
    drawn = choice(outcomes, (*shape, n), p=pvals)
    return cast("ndarray", (drawn[..., None] == functions.FUNCTIONS["arange"](outcomes)).sum(axis=-2))


FUNCTIONS = {
    **_DRAWING,
    **dict.fromkeys(("random", "ranf", "sample"), random_sample),
    "multinomial": multinomial,
    "rand": rand,
    "randn": randn,
    "random_integers": random_integers,
}
