"""Numbers at the ends of their types: NumPy's code writes to wrong memory, or does not end, for some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.emulated

LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("value", [MOST, MOST - 1, 2**60, 2**63, 2**64 - 1])
@pytest.mark.parametrize("weights", [None, [1.0]])
def test_bincount_has_no_room_for_a_large_number(xp: Any, value: int, weights: Any) -> None:
    x = xp.asarray([value])
    weights = None if weights is None else xp.asarray(weights)
    with pytest.raises(tcuda.OutOfMemoryError, match="what bincount"):
        xp.bincount(x, weights)


def test_bincount_has_no_room_for_an_infinity_that_became_an_integer(xp: Any) -> None:
    with pytest.raises(tcuda.OutOfMemoryError, match="what bincount"):
        xp.bincount(xp.asarray([0.0, np.inf]).astype(np.int64))
    with pytest.raises(tcuda.OutOfMemoryError, match="what bincount"):
        xp.bincount(xp.asarray([1]), minlength=MOST)
    with pytest.raises(ValueError, match="no negative elements"):
        xp.bincount(xp.asarray([MOST, -np.inf]).astype(np.int64))


@pytest.mark.parametrize(
    ("shape", "axis", "repeats"),
    [
        ((3,), None, [MOST, MOST, 3]),  # whose sum is 1, modulo 2**64
        ((1, 3), 1, [MOST, MOST, 3]),
        ((16,), None, 2**60),  # times 16 is 0
        ((16,), None, 2**60 + 1),
        ((16, 1), 0, 2**60 + 1),
        ((2, 2**20), 0, 2**44),
        ((2,), None, 2**62),
        ((2,), 0, [2**62, 2**62]),
    ],
)
@pytest.mark.parametrize("place", ["host", "device"])
def test_repeat_has_no_room_for_so_many(xp: Any, shape: Any, axis: int | None, repeats: Any, place: str) -> None:
    x = xp.ones(shape)
    for call in (lambda *args: xp.repeat(x, *args), x.repeat):
        with pytest.raises(tcuda.OutOfMemoryError, match="what repeat"):
            call(repeats if place == "host" else xp.asarray(repeats), axis)


def test_repeat_takes_large_numbers_of_nothing(xp: Any) -> None:
    assert xp.repeat(xp.ones((0, 3)), 2**62, axis=0).shape == (0, 3)
    with pytest.raises(ValueError, match="negative"):
        xp.repeat(xp.ones(2), [MOST, -1])


@pytest.mark.parametrize("bins", [MOST, MOST - 1, 2**62])
def test_histogram_has_no_room_for_so_many_bins(xp: Any, bins: int) -> None:
    with pytest.raises(tcuda.OutOfMemoryError, match="what histogram"):
        xp.histogram(xp.ones(2), bins=bins)


@pytest.mark.parametrize("index", [MOST, MOST - 1, LEAST, LEAST + 1, 2**40, -7, 2, 5])
@pytest.mark.parametrize(
    "call",
    [
        lambda xp, x, index: xp.put(x, index, 9),
        lambda xp, x, index: x.put(index, 9, mode="wrap"),
        lambda xp, x, index: xp.choose(index, x[:, None], mode="wrap", out=x[:1]),
        lambda xp, x, index: index.choose(x[:, None], mode="wrap", out=x[:1]),
    ],
)
def test_an_index_wraps_at_once(xp: Any, index: int, call: Callable[..., Any]) -> None:
    x, y = xp.arange(3.0), np.arange(3.0)
    call(xp, x, xp.asarray([index]))
    call(np, y, np.asarray([index % 3]))
    assert x.tolist() == y.tolist()


def test_a_large_index_that_wraps_tells_the_elements_that_are_used(xp: Any) -> None:
    x, choices = xp.zeros(3), xp.arange(6.0).reshape(3, 2)
    index = xp.asarray([MOST, LEAST])
    tcuda.synchronize()
    with tcuda.sanitizer.check() as report:
        xp.put(x, index, xp.ones(2))
        assert xp.choose(index, choices, mode="wrap").tolist() == [
            choices[MOST % 3, 0].item(),
            choices[LEAST % 3, 1].item(),
        ]
    assert not report
    assert x.tolist() == [1.0 if place in (MOST % 3, LEAST % 3) else 0.0 for place in range(3)]
