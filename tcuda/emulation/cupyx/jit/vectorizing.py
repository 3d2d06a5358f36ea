"""The types of the results of vectorized functions, which CuPy finds by a translation of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda.emulation.cupyx.jit.translator import Program
from tcuda.emulation.cupyx.jit.types import Scalar, Tuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np


def types_of_results(
    function: Callable[..., Any], types: Sequence[np.dtype[Any]]
) -> tuple[np.dtype[Any], ...] | np.dtype[Any] | None:
    """Return the type of the result of ``function``, or the types if the function returns a tuple.

    Args:
        function: The function.
        types: The types of the arguments.

    Returns:
        The type or the types; None if Python has no source of the function, or if the translation does not know a part
        of the source.

    Raises:
        TypeError: The types in the source do not fit together, or the function returns something else than numbers.
        ValueError: The source has several functions where the function is, or returns results of several types.
    """
    try:
        result = Program("numpy").add(function, tuple(map(Scalar, types)))[1]
    except (NotImplementedError, RuntimeError):
        return None
    if isinstance(result, Scalar):
        return result.dtype
    if not isinstance(result, Tuple) or not all(isinstance(item, Scalar) for item in result.types):
        raise TypeError(f"Invalid return type: {result}. A vectorized function returns scalars.")
    return tuple(item.dtype for item in result.types if isinstance(item, Scalar))
