"""The parameter that tells a kernel the axes of its loop: ``tcuda_Narrow`` and ``tcuda_Wide`` of the source."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.jiterator import _source

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tcuda.jiterator._plan import Axis


@functools.lru_cache(maxsize=512)
def layout_of(kernel: str, loop: tuple[Axis, ...], inputs: int) -> npt.NDArray[Any]:
    """Return the argument ``layout`` of ``kernel``, as an array with one element."""
    narrow = kernel == _source.STRIDED
    most = _source.NARROW_AXES if narrow else _source.WIDE_AXES
    lengths = [axis.length for axis in loop]
    words = [len(loop), *_filled(lengths, most, 1)]
    if narrow:
        multipliers, shifts = zip(*map(multiplier_and_shift, lengths), strict=True)
        words += [*_filled(multipliers, most, 1), *_filled(shifts, most, 0)]
    for place in range(inputs):
        words += _filled([axis.strides[place] for axis in loop], most, 0)
    packed = np.array(words, np.int64).astype(np.int32 if narrow else np.int64)
    # CuPy passes an array with a structured dtype by value.
    return packed.view([("words", packed.dtype, (packed.size,))])


def multiplier_and_shift(divisor: int) -> tuple[int, int]:
    """Return ``(multiplier, shift)``: ``n // divisor == ((n * multiplier >> 32) + n) >> shift`` for n below 2**31."""
    shift = (divisor - 1).bit_length()
    return ((1 << 32) * ((1 << shift) - divisor)) // divisor + 1, shift


def _filled(numbers: Sequence[int], length: int, filler: int) -> list[int]:
    return [*numbers, *[filler] * (length - len(numbers))]
