"""Philox4x32-10 on the host, which draws the same numbers as each thread of a kernel on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.random._philox import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Words = npt.NDArray[np.uint32]
    Numbers = npt.NDArray[Any]

_AT_A_TIME = 1 << 16
"""The number of draws that are made at a time; their arrays fit into a cache."""
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = 0x9E3779B9, 0xBB67AE85


def philox(seed: int, position: npt.NDArray[np.uint64], subsequence: npt.NDArray[np.uint64]) -> list[Words]:
    """Return the four words that each subsequence has at each position (Salmon et al., SC 2011).

    Args:
        seed: The key.
        position: The low half of the counters.
        subsequence: The high half of the counters. Each word has the shape to which both halves broadcast.
    """
    x, y = position & _LOW, position >> _HALF
    z, w = subsequence & _LOW, subsequence >> _HALF
    for round in range(10):
        first, second = (
            (seed >> shift) + round * step & 0xFFFFFFFF for shift, step in zip((0, 32), _WEYL, strict=True)
        )
        left, right = x * _MULTIPLIERS[0], z * _MULTIPLIERS[1]
        x, y = right >> _HALF ^ y ^ np.uint64(first), right & _LOW
        z, w = left >> _HALF ^ w ^ np.uint64(second), left & _LOW
    shape = np.broadcast_shapes(position.shape, subsequence.shape)
    return [np.broadcast_to(word, shape).astype(np.uint32) for word in (x, y, z, w)]


def fill(
    out: Numbers, blocks: int, seed: int, offset: int, lanes: int, numbers: Callable[[list[Words]], Numbers]
) -> None:
    """Fill an array as one kernel does.

    Args:
        out: The array, of one axis.
        blocks: The number of thread blocks of the kernel.
        seed: The seed.
        offset: The offset.
        lanes: The number of numbers that a draw gives.
        numbers: Converts the four words of many draws into numbers, along a new first axis.
    """
    threads = blocks * BLOCK
    subsequence = np.arange(threads, dtype=np.uint64)
    draws = -(-out.size // (threads * lanes))
    step = max(1, _AT_A_TIME // threads)
    for first in range(0, draws, step):
        position = np.arange(first, min(first + step, draws), dtype=np.uint64)[:, None] + np.uint64(offset // 4)
        drawn = np.moveaxis(numbers(philox(seed, position, subsequence)), 0, 1)  # draw, lane, thread: as in memory
        rest = out[first * lanes * threads :][: drawn.size]
        rest[...] = drawn.reshape(-1)[: rest.size]


def uniforms(words: list[Words]) -> Numbers:
    """Return four numbers of float32 in (0, 1], in steps of 2**-32."""
    unit = np.float32(2.0**-32)
    return np.asarray(np.stack(words).astype(np.float32) * unit + unit / np.float32(2))


def double_uniforms(words: list[Words]) -> Numbers:
    """Return two numbers of float64 in (0, 1], in steps of 2**-53."""
    return np.stack([_double(*words[:2]), _double(*words[2:])])


def normals(words: list[Words]) -> Numbers:
    """Return four normal numbers of float32, by the method of Box and Muller."""
    turn = np.float32(2.3283064e-10) * np.float32(6.2831855)
    lengths = np.sqrt(np.float32(-2) * np.log(uniforms([words[0], words[2]])))
    angles = np.stack([words[1], words[3]]).astype(np.float32) * turn + turn / np.float32(2)
    return np.stack([np.sin(angles) * lengths, np.cos(angles) * lengths], axis=1).reshape(4, *lengths.shape[1:])


def double_normals(words: list[Words]) -> Numbers:
    """Return two normal numbers of float64, by the method of Box and Muller."""
    lengths = np.sqrt(-2 * np.log(_double(*words[:2])))
    angles = 2 * np.pi * _double(*words[2:])
    return np.stack([np.sin(angles) * lengths, np.cos(angles) * lengths])


def words(words: list[Words]) -> Numbers:
    """Return four numbers of uint32."""
    return np.stack(words)


def long_words(words: list[Words]) -> Numbers:
    """Return two numbers of uint64."""
    x, y, z, w = (word.astype(np.uint64) for word in words)
    return np.stack([x << _HALF | y, z << _HALF | w])


def fused(numbers: Numbers, factor: Any, addend: Any) -> Numbers:
    """Return ``numbers * factor + addend``, rounded once, as on a GPU; all arguments have the same type."""
    if numbers.dtype == np.float32:
        return np.asarray(numbers.astype(np.float64) * np.float64(factor) + np.float64(addend)).astype(np.float32)
    # The rounding errors of Dekker's product and of Knuth's sum can be represented exactly in the same type.
    product = numbers * factor
    high, low = _halves(numbers)
    factor_high, factor_low = _halves(factor)
    lost = low * factor_low - (product - high * factor_high - low * factor_high - high * factor_low)
    total = product + addend
    part = total - product
    return np.asarray(total + ((product - (total - part)) + (addend - part) + lost))


def _halves(number: Any) -> tuple[Any, Any]:
    """Return two numbers of 26 bits whose sum is ``number``, a number of 53 bits."""
    high = number * 134217729.0
    high = high - (high - number)
    return high, number - high


def _double(low: Words, high: Words) -> Numbers:
    whole = low.astype(np.uint64) ^ high.astype(np.uint64) << np.uint64(21)
    return np.asarray(whole.astype(np.float64) * 2.0**-53 + 2.0**-54)


def _between(numbers: Any, low: Any, high: Any) -> Any:
    scaled = fused(numbers, high - low, low)
    return np.where(scaled == high, low, scaled)


RULES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "Between": _between,
    "Scaled": lambda numbers, location, scale: fused(numbers, scale, location),
    "Exponential": lambda numbers, location, scale: np.exp(fused(numbers, scale, location)),
}
"""The functions that make the result from the drawn numbers, by the name of the rule in the kernels for CuPy."""

NUMBERS: dict[tuple[str, int], tuple[Callable[[list[Any]], Any], int]] = {
    ("uniform", 4): (uniforms, 4),
    ("uniform", 8): (double_uniforms, 2),
    ("normal", 4): (normals, 4),
    ("normal", 8): (double_normals, 2),
    ("words", 4): (words, 4),
    ("words", 8): (long_words, 2),
}
"""By kind and size of the numbers: the function that converts the words of draws, and the numbers per draw."""
