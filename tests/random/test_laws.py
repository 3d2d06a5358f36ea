"""The numbers of each drawing function of ``xp.random`` have the right distribution, which the tests call a law.

The tests of laws have a fixed seed, so every run of a runtime has the same result. The tests ask for a p-value above
1e-4: with 49 of 50 seeds all of the about 200 tests pass if the laws are right, so a failure is more likely a bug than
bad luck. 20,000 numbers are enough to find a wrong law: a wrong law passes only if its distribution function is off by
less than 0.016. A normal law with the mean 0.04, or with the scale 1.07, is off by about 0.016.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.distributions import (
    ALPHA,
    CHANCES,
    COVARIANCE,
    KINDS,
    LAWS,
    MEAN,
    ROWS,
    SEED,
    STANDARD_UNIFORM,
    WITH_ARRAYS,
    default_dtype,
    draw,
    multivariate_normal,
    p_value,
    pairs,
    shuffled,
)
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[[Any, int], Any]

# CuPy gives this warning for multivariate_normal.
pytestmark = [
    pytest.mark.filterwarnings("ignore:cupy.random.* is experimental:FutureWarning"),
    pytest.mark.usefixtures("states_as_found"),
]

COUNT = 20_000
LEAST = 1e-4


# The laws


@pytest.fixture(scope="module")
def stats() -> Any:
    return pytest.importorskip("scipy.stats")


@pytest.mark.parametrize(("name", "dtype"), KINDS)
def test_law(name: str, dtype: str, stats: Any) -> None:
    law = LAWS[name]
    tcuda.manual_seed(SEED)
    drawn = draw(name, xp.random, law.first, COUNT, dtype).get()
    assert drawn.dtype == dtype
    assert p_value(stats, drawn, law.scipy(stats, *law.first)) > LEAST


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_law_of_arrays(name: str, stats: Any) -> None:
    law = LAWS[name]
    tcuda.manual_seed(SEED)
    drawn = draw(name, xp.random, pairs(law), (COUNT, 2), default_dtype(name)).get()
    for column, parameters in zip(drawn.T, (law.first, law.second), strict=True):
        assert p_value(stats, column, law.scipy(stats, *parameters)) > LEAST


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_law_of_randint_of_arrays(kind: str, stats: Any) -> None:
    low, high = (np.broadcast_to(np.array(ends, kind), (COUNT, 2)).copy() for ends in ([-3, 0], [12, 7]))
    tcuda.manual_seed(SEED)
    drawn = xp.random.randint(xp.asarray(low), xp.asarray(high), (COUNT, 2), kind).get()
    assert drawn.dtype == kind
    for column, ends in zip(drawn.T, ((-3, 12), (0, 7)), strict=True):
        assert p_value(stats, column, stats.randint(*ends)) > LEAST


SHARES = np.arange(len(CHANCES)), CHANCES
FURTHER: dict[str, tuple[Draw, Callable[[Any], Any]]] = {
    "choice": (lambda r, n: r.choice(50, n), lambda s: s.randint(0, 50)),
    "choice by chances": (lambda r, n: r.choice(4, n, p=xp.asarray(CHANCES)), lambda s: s.rv_discrete(values=SHARES)),
    "choice of an array": (lambda r, n: r.choice(xp.arange(5, 55), n), lambda s: s.randint(5, 55)),
    "random_integers": (lambda r, n: r.random_integers(-3, 12, n), lambda s: s.randint(-3, 13)),
    "random_integers from 1": (lambda r, n: r.random_integers(12, size=n), lambda s: s.randint(1, 13)),
    "randint from 0": (lambda r, n: r.randint(12, size=n), lambda s: s.randint(0, 12)),
    "tomaxint": (lambda r, n: r.get_random_state().tomaxint(n) / 2.0**63, lambda s: s.uniform()),
    # Each component of a vector has a law of its own.
    **{
        f"dirichlet {dtype} {i}": (
            lambda r, n, i=i, dtype=dtype: r.dirichlet(xp.asarray(ALPHA), n, dtype)[:, i],
            lambda s, i=i: s.beta(ALPHA[i], sum(ALPHA) - ALPHA[i]),
        )
        for i in range(len(ALPHA))
        for dtype in ("float64", "float32")
    },
    **{
        f"multinomial {i}": (
            lambda r, n, i=i: r.multinomial(30, xp.asarray(CHANCES), n)[:, i],
            lambda s, i=i: s.binom(30, CHANCES[i]),
        )
        for i in range(len(CHANCES))
    },
    **{
        f"multivariate_normal {method} {dtype} {i}": (
            lambda r, n, i=i, method=method, dtype=dtype: multivariate_normal(r, n, method=method, dtype=dtype)[:, i],
            lambda s, i=i: s.norm(MEAN[i], COVARIANCE[i][i] ** 0.5),
        )
        for i in range(len(MEAN))
        for method in ("cholesky", "eigh", "svd")
        for dtype in ("float64", "float32")
    },
}


@pytest.mark.parametrize("name", FURTHER)
def test_further_law(name: str, stats: Any) -> None:
    draw, law = FURTHER[name]
    tcuda.manual_seed(SEED)
    drawn = draw(xp.random, COUNT).get()
    assert drawn.shape == (COUNT,)
    assert p_value(stats, drawn, law(stats)) > LEAST


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_covariance_of_multivariate_normal(method: str, dtype: str) -> None:
    tcuda.manual_seed(SEED)
    drawn = multivariate_normal(xp.random, COUNT, method=method, dtype=dtype).get()
    assert drawn.shape == (COUNT, 3)
    assert drawn.dtype == dtype
    covariance = np.array(COVARIANCE)
    variances = np.diag(covariance)
    errors = np.sqrt((np.outer(variances, variances) + covariance**2) / COUNT)
    assert (abs(np.cov(drawn.T) - covariance) < 4 * errors).all()
    assert (abs(drawn.mean(axis=0) - MEAN) < 4 * np.sqrt(variances / COUNT)).all()


def test_components_of_dirichlet_and_multinomial_have_their_sum_and_correlation() -> None:
    shares = xp.random.dirichlet(xp.asarray(ALPHA), COUNT).get()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    counts = xp.random.multinomial(30, xp.asarray(CHANCES), COUNT).get()
    assert (counts.sum(axis=1) == 30).all()
    # The components have a fixed sum, so the correlation of two components is negative.
    for parts, weights in ((shares, ALPHA), (counts, CHANCES)):
        first, second = (weight / sum(weights) for weight in weights[:2])
        expected = -math.sqrt(first * second / ((1 - first) * (1 - second)))
        assert np.corrcoef(parts.T)[0, 1] == pytest.approx(expected, abs=4 / math.sqrt(COUNT))


ORDERS: dict[str, Callable[[Any], Any]] = {
    "choice": lambda random: random.choice(xp.arange(4), 4, replace=False),
    "permutation": lambda random: random.permutation(4),
    "permutation of an array": lambda random: random.permutation(xp.arange(4)),
    "shuffle": lambda random: shuffled(random, xp.arange(4)),
}


@pytest.mark.parametrize("name", ORDERS)
def test_every_order_is_equally_likely(name: str, stats: Any) -> None:
    tcuda.manual_seed(SEED)
    found = [tuple(ORDERS[name](xp.random).get()) for _ in range(1200)]
    observed = [found.count(order) for order in itertools.permutations(range(4))]
    assert sum(observed) == len(found)
    assert stats.chisquare(observed).pvalue > LEAST


@pytest.mark.parametrize("items", ["a number", "an array"])
def test_every_item_is_equally_likely_at_every_place(items: str, stats: Any) -> None:
    tcuda.manual_seed(SEED)
    count = 20
    source = count if items == "a number" else xp.arange(count)
    found = np.array([xp.random.choice(source, (3, 2), replace=False).get().ravel() for _ in range(1000)])
    assert all(len(set(chosen)) == 6 for chosen in found)
    for place in found.T:
        assert stats.chisquare(np.bincount(place, minlength=count)).pvalue > LEAST


def test_permutations_keep_rows_whole() -> None:
    array = np.arange(300).reshape(100, 3)
    for permuted in (xp.random.permutation(xp.asarray(array)), shuffled(xp.random, xp.asarray(array))):
        host = permuted.get()
        assert (host != array).any()
        np.testing.assert_array_equal(host[np.argsort(host[:, 0])], array)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_numbers_are_independent(name: str, dtype: str) -> None:
    count = 100_001
    tcuda.manual_seed(SEED)
    first, second = (getattr(xp.random, name)(count, dtype=dtype).get().astype(float) for _ in range(2))
    assert_independent(first, second)
    for distance in (1, 2, 3, 4, 32, 256, 1024):
        assert_independent(first[:-distance], first[distance:])


def assert_independent(one: Any, other: Any) -> None:
    for power in (1, 2):  # numbers without a correlation may have correlated squares
        correlation = np.corrcoef((one - one.mean()) ** power, (other - other.mean()) ** power)[0, 1]
        assert abs(correlation) < 4 / math.sqrt(one.size)


@pytest.mark.parametrize("name", ["rand float64", "rand float32", "randn float64", "randn float32", "tomaxint"])
def test_numbers_of_one_thread_are_independent(name: str, stats: Any) -> None:
    """A thread of the GPU draws two or four numbers at once and stores them a whole grid apart, then draws again."""
    properties = tcuda.get_device_properties(0)
    threads = properties.multi_processor_count * properties.max_threads_per_multi_processor
    tcuda.manual_seed(SEED)
    law = LAWS.get(name.split()[0], STANDARD_UNIFORM)
    drawn = ROWS[name](xp.random, 5 * threads + 1).get()[:-1].reshape(5, threads).astype(float)
    drawn /= 2.0**63 if name == "tomaxint" else 1
    for lane in drawn:
        assert p_value(stats, lane[:COUNT], law.scipy(stats)) > LEAST
    for one, other in itertools.combinations(drawn, 2):
        assert_independent(one, other)


def test_uniform_numbers_are_below_1() -> None:
    """The 128 largest words of 32 bits round to 1 as float32; the functions return 0 instead."""
    tcuda.manual_seed(0)
    tcuda.default_generators[0].set_offset(4 * 19169)  # at this offset, thread 157 draws one of these words
    state = tcuda.get_rng_state()
    drawn = xp.random.rand(256, dtype="float32").get()
    assert drawn[157] == 0
    assert (drawn > 0).sum() == 255
    tcuda.set_rng_state(state)
    assert (xp.random.uniform(-5, 3, 256, "float32").get()[157]) == -5
    tcuda.set_rng_state(state)
    # The logarithm is taken of a number above 0 and up to 1, so the result may be 0.
    assert xp.random.standard_exponential(256, "float32").get()[157] == 0


# Ranges of integers

RANGES = [
    *((0, 1, "int64"), (5, 6, "int32"), (-128, -127, "int8"), ((1 << 64) - 1, 1 << 64, "uint64")),
    *((-100, -50, "int64"), (-100, -50, "int8"), (200, 250, "uint8"), (0, 10, "l"), (0, 1000, "uint16")),
    *((0, (1 << 28) - 1, "int32"), (0, 1 << 28, "int32"), (0, 1 << 31, "int32"), (-(1 << 31), 1 << 31, "int32")),
    *((0, 1 << 31, "int64"), (0, 1 << 32, "uint32"), (0, 1 << 32, "int64"), (7, (1 << 32) + 8, "int64")),
    *((0, 1 << 63, "int64"), (-(1 << 63), 0, "int64"), (-(1 << 63), 1 << 63, "int64"), (-(1 << 62), 1 << 62, "int64")),
    *((0, 1 << 63, "uint64"), (1 << 63, 1 << 64, "uint64"), (3, 1 << 64, "uint64"), (0, 1 << 64, "uint64")),
]


@pytest.mark.parametrize(("low", "high", "dtype"), RANGES)
def test_ranges_of_randint(low: int, high: int, dtype: str, stats: Any) -> None:
    tcuda.manual_seed(SEED)
    array = xp.random.randint(low, high, COUNT // 10, dtype)
    assert array.dtype == dtype
    drawn = array.get().tolist()
    assert low <= min(drawn)
    assert max(drawn) < high
    parts = min(high - low, 16)
    observed = np.bincount([(number - low) * parts // (high - low) for number in drawn], minlength=parts)
    wide = [-(-(part + 1) * (high - low) // parts) - -(-part * (high - low) // parts) for part in range(parts)]
    expected = [len(drawn) * width / (high - low) for width in wide]
    assert parts == 1 or stats.chisquare(observed, expected).pvalue > LEAST


@pytest.mark.parametrize(
    ("dtype", "count"),
    [("int8", 1 << 14), ("uint8", 1 << 14), ("int16", 1 << 21), ("uint16", 1 << 21)],
)
def test_every_integer_is_reached(dtype: str, count: int) -> None:
    limits = np.iinfo(dtype)
    tcuda.manual_seed(SEED)
    found = xp.random.randint(limits.min, limits.max + 1, count, dtype).get().astype(np.int64) - limits.min
    assert (np.bincount(found, minlength=limits.max - limits.min + 1) > 0).all()


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64"])
def test_randint_between_arrays_of_limits(kind: str) -> None:
    """The distance between the smallest and the largest number of a signed type does not fit into the type."""
    limits = np.iinfo(kind)
    low = np.array([[limits.min], [limits.min // 2], [limits.max - 10]], kind)
    high = np.array([limits.max, limits.max - 1, limits.max - 5, limits.max - 9], kind)
    tcuda.manual_seed(SEED)
    drawn = np.stack([xp.random.randint(xp.asarray(low), xp.asarray(high), dtype=kind).get() for _ in range(200)])
    assert drawn.dtype == kind
    assert drawn.shape == (200, 3, 4)
    assert (drawn >= low).all()
    assert (drawn < high).all()
    middle = limits.min // 2 + limits.max // 2
    assert 60 < (drawn[:, 0, 0] > middle).sum() < 140
    assert set(drawn[:, 2, 2].tolist()) == set(range(int(limits.max) - 10, int(limits.max) - 5))
    assert (drawn[:, 2, 3] == low[2]).all()


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint32", "int64"])
def test_randint_of_arrays_has_the_requested_dtype(dtype: str) -> None:
    low, high = xp.asarray([[0], [3]]), xp.asarray([4, 5, 6])
    drawn = xp.random.randint(low, high, (2, 3), dtype)
    assert drawn.dtype == dtype
    assert drawn.shape == (2, 3)
    assert ((drawn >= low) & (drawn < high)).all()
    below = xp.random.randint(xp.asarray([1, 2, 3]), size=(3,), dtype=dtype)
    assert below.dtype == dtype
    assert (below.get() < [1, 2, 3]).all()
