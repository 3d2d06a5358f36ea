"""Every function of ``xp.random`` that draws: it goes on from the state of the generator, and has the law of its name.

The tests of laws have a fixed seed, so that a runtime passes all of them at every run, or fails the same ones. They ask
for a p-value above 1e-4: some 200 tests of right laws all pass with 49 of 50 seeds, so that a failure is a bug rather
than bad luck. And 20,000 numbers tell a wrong law: it passes only where its distribution function is off by less than
0.016, as that of a normal law with a mean of 0.04 is, or with a scale of 1.07.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

    Draw = Callable[[Any, int], Any]

# CuPy says so of multivariate_normal.
pytestmark = pytest.mark.filterwarnings("ignore:cupy.random.* is experimental:FutureWarning")

SEED = 20_240_229
COUNT = 20_000
LEAST = 1e-4


@pytest.fixture(autouse=True)
def _state_of_generators_as_found(runtime: Runtime) -> Iterator[None]:
    states = tcuda.get_rng_state_all()
    yield
    tcuda.set_rng_state_all(states)


@dataclasses.dataclass(frozen=True)
class Law:
    """The law of a function.

    Attributes:
        first: Parameters of the function.
        second: Others; what algorithms of NumPy's and CuPy's have other branches for.
        scipy: Returns the law with given parameters, as the module ``scipy.stats`` has it.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    scipy: Callable[..., Any]


def on_circle(line: Any) -> Any:
    """Return a law of angles in [-pi, pi], of SciPy's which goes on around the circle."""
    return types.SimpleNamespace(cdf=lambda angles: line.cdf(angles) - line.cdf(-np.pi))


def triangle(s: Any, left: float, mode: float, right: float) -> Any:
    return s.triang((mode - left) / (right - left), left, right - left)


STANDARD_UNIFORM = Law((), (), lambda s: s.uniform())
STANDARD_NORMAL = Law((), (), lambda s: s.norm())

REALS = {
    "beta": Law((2.0, 3.0), (0.5, 0.7), lambda s, a, b: s.beta(a, b)),
    "chisquare": Law((3.0,), (0.7,), lambda s, df: s.chi2(df)),
    "exponential": Law((2.5,), (0.3,), lambda s, scale: s.expon(0, scale)),
    "f": Law((5.0, 7.0), (2.5, 12.0), lambda s, dfnum, dfden: s.f(dfnum, dfden)),
    "gamma": Law((2.5, 1.5), (0.4, 3.0), lambda s, shape, scale: s.gamma(shape, 0, scale)),
    "gumbel": Law((1.0, 2.0), (-3.0, 0.5), lambda s, loc, scale: s.gumbel_r(loc, scale)),
    "laplace": Law((1.0, 2.0), (-3.0, 0.5), lambda s, loc, scale: s.laplace(loc, scale)),
    "logistic": Law((1.0, 2.0), (-3.0, 0.5), lambda s, loc, scale: s.logistic(loc, scale)),
    "lognormal": Law((0.5, 0.75), (-1.0, 0.2), lambda s, mean, sigma: s.lognorm(sigma, 0, math.exp(mean))),
    "noncentral_chisquare": Law((3.0, 2.0), (0.6, 1.5), lambda s, df, nonc: s.ncx2(df, nonc)),
    "noncentral_f": Law((5.0, 7.0, 2.0), (0.8, 9.0, 1.0), lambda s, dfnum, dfden, nonc: s.ncf(dfnum, dfden, nonc)),
    "normal": Law((1.0, 2.0), (-3.0, 0.5), lambda s, loc, scale: s.norm(loc, scale)),
    "pareto": Law((3.0,), (0.8,), lambda s, a: s.lomax(a)),
    "power": Law((3.0,), (0.5,), lambda s, a: s.powerlaw(a)),
    "rand": STANDARD_UNIFORM,
    "randn": STANDARD_NORMAL,
    "random": STANDARD_UNIFORM,
    "random_sample": STANDARD_UNIFORM,
    "ranf": STANDARD_UNIFORM,
    "rayleigh": Law((2.0,), (0.5,), lambda s, scale: s.rayleigh(0, scale)),
    "sample": STANDARD_UNIFORM,
    "standard_cauchy": Law((), (), lambda s: s.cauchy()),
    "standard_exponential": Law((), (), lambda s: s.expon()),
    "standard_gamma": Law((2.5,), (0.4,), lambda s, shape: s.gamma(shape)),
    "standard_normal": STANDARD_NORMAL,
    "standard_t": Law((3.0,), (10.0,), lambda s, df: s.t(df)),
    "triangular": Law((-1.0, 0.5, 2.0), (0.0, 0.0, 1.0), triangle),
    "uniform": Law((-2.0, 5.0), (1.0, 1.5), lambda s, low, high: s.uniform(low, high - low)),
    "vonmises": Law((1.0, 2.0), (3.0, 0.5), lambda s, mu, kappa: on_circle(s.vonmises(kappa, mu))),
    "wald": Law((2.0, 3.0), (0.5, 1.0), lambda s, mean, scale: s.invgauss(mean / scale, 0, scale)),
    "weibull": Law((1.5,), (0.6,), lambda s, a: s.weibull_min(a)),
}
INTEGERS = {
    "binomial": Law((20, 0.3), (200, 0.6), lambda s, n, p: s.binom(n, p)),
    "geometric": Law((0.5,), (0.1,), lambda s, p: s.geom(p)),
    "hypergeometric": Law(
        (15, 10, 8), (60, 90, 50), lambda s, good, bad, sample: s.hypergeom(good + bad, good, sample)
    ),
    "logseries": Law((0.6,), (0.95,), lambda s, p: s.logser(p)),
    "negative_binomial": Law((5.0, 0.4), (2.5, 0.7), lambda s, n, p: s.nbinom(n, p)),
    "poisson": Law((3.5,), (40.0,), lambda s, lam: s.poisson(lam)),
    "randint": Law((-3, 12), (0, 7), lambda s, low, high: s.randint(low, high)),
    "zipf": Law((2.5,), (4.0,), lambda s, a: s.zipf(a)),
}
LAWS = REALS | INTEGERS
KINDS = [(name, dtype) for name in REALS for dtype in ("float64", "float32")] + [
    (name, dtype) for name in INTEGERS for dtype in ("int64", "int32")
]
# CuPy's randint takes arrays of the full shape alone, and has a test of its own below.
WITH_ARRAYS = [name for name, law in LAWS.items() if law.first and name != "randint"]

MEAN = [1.0, -2.0, 0.5]
COVARIANCE = [[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]]
CHANCES = [0.1, 0.2, 0.3, 0.4]
ALPHA = [0.6, 2.0, 3.5]


def draw(name: str, random: Any, parameters: Sequence[Any], size: Any, dtype: Any) -> Any:
    """Return what the function of that name, which has a law, draws."""
    function = getattr(random, name)
    if name in ("rand", "randn"):
        return function(*((size,) if isinstance(size, int) else size or ()), dtype=dtype)
    return function(*parameters, size, dtype)


def pairs(law: Law) -> list[Any]:
    """Return each parameter as an array of both values."""
    return [xp.asarray(values) for values in zip(law.first, law.second, strict=True)]


def default_dtype(name: str) -> str:
    return "float64" if name in REALS else "int64"


def multivariate_normal(random: Any, count: int, **options: Any) -> Any:
    return random.multivariate_normal(xp.asarray(MEAN), xp.asarray(COVARIANCE), count, **options)


def shuffled(random: Any, array: Any) -> Any:
    random.shuffle(array)
    return array


def row_of_law(name: str, dtype: str) -> Draw:
    return lambda random, count: draw(name, random, LAWS[name].first, count, dtype)


def row_of_arrays(name: str) -> Draw:
    return lambda random, count: draw(name, random, pairs(LAWS[name]), (count, 2), default_dtype(name))


ROWS: dict[str, Draw] = {
    **{f"{name} {dtype}": row_of_law(name, dtype) for name, dtype in KINDS},
    **{f"{name} of arrays": row_of_arrays(name) for name in WITH_ARRAYS},
    "choice": lambda random, count: random.choice(50, count),
    "choice of an array": lambda random, count: random.choice(xp.arange(50.0), count),
    "choice by chances": lambda random, count: random.choice(4, count, p=xp.asarray(CHANCES)),
    "choice without replacement": lambda random, count: random.choice(2 * count, count, replace=False),
    "choice of an array without replacement": lambda random, count: random.choice(xp.arange(2 * count), count, False),
    "dirichlet": lambda random, count: random.dirichlet(xp.asarray(ALPHA), count),
    "dirichlet float32": lambda random, count: random.dirichlet(xp.asarray(ALPHA), count, "float32"),
    "multinomial": lambda random, count: random.multinomial(30, xp.asarray(CHANCES), count),
    "multivariate_normal": multivariate_normal,
    "multivariate_normal float32": lambda random, count: multivariate_normal(random, count, dtype="float32"),
    "multivariate_normal eigh": lambda random, count: multivariate_normal(random, count, method="eigh"),
    "multivariate_normal svd": lambda random, count: multivariate_normal(random, count, method="svd"),
    "permutation": lambda random, count: random.permutation(count),
    "permutation of an array": lambda random, count: random.permutation(xp.arange(3.0 * count).reshape(count, 3)),
    "randint of arrays": lambda random, count: random.randint(xp.full(count, -3), xp.arange(count) + 100, (count,)),
    "randint of 64 bits": lambda random, count: random.randint(-(1 << 63), 1 << 63, count, "int64"),
    "random_integers": lambda random, count: random.random_integers(-3, 12, count),
    "shuffle": lambda random, count: shuffled(random, xp.arange(count)),
    "shuffle of rows": lambda random, count: shuffled(random, xp.arange(3.0 * count).reshape(count, 3)),
    "tomaxint": lambda random, count: random.get_random_state().tomaxint(count),
}
NOT_DRAWING = {
    *("RandomState", "bytes", "default_rng", "get_random_state", "reset_states", "seed", "set_random_state"),
    *("BitGenerator", "Generator", "MRG32k3a", "Philox4x3210", "XORWOW"),
}
NUMBERS = 101  # odd, and so many that no row draws the same ones twice by chance

rows = pytest.mark.parametrize("row", ROWS)


def numbers(row: str, count: int = NUMBERS) -> bytes:
    """Return the bits of what a row draws."""
    host = ROWS[row](xp.random, count).get()
    return f"{host.dtype} {host.shape} ".encode() + host.tobytes()


def offset() -> int:
    return tcuda.default_generators[0].get_offset()


def digests(state: str) -> dict[str, str]:
    """Return a digest of what each row draws from a state."""
    found = {}
    for row in ROWS:
        tcuda.set_rng_state(np.frombuffer(bytes.fromhex(state), np.uint8))
        found[row] = hashlib.sha256(numbers(row)).hexdigest()
    return found


def test_the_table_has_every_function() -> None:
    functions = {name for name in dir(xp.random) if not name.startswith("_") and callable(getattr(xp.random, name))}
    methods = {"tomaxint"}
    assert {row.split()[0] for row in ROWS} == functions - NOT_DRAWING | methods


# The state


@rows
def test_a_state_that_is_restored_gives_the_same_numbers(row: str) -> None:
    tcuda.manual_seed(SEED)
    first = numbers(row)
    state, before = tcuda.get_rng_state(), offset()
    second = numbers(row)
    after = offset()
    assert after > before
    assert (after - before) % 4 == 0
    tcuda.set_rng_state(state)
    assert numbers(row) == second
    assert offset() == after
    assert second != first
    assert numbers(row) not in (first, second)


@rows
def test_a_seed_gives_the_same_numbers(row: str) -> None:
    found = []
    for seed in (SEED, SEED, SEED + 1):
        tcuda.manual_seed(seed)
        found.append([numbers(row), numbers(row)])
    first, again, other = found
    assert again == first
    assert not set(other) & set(first)


def test_another_process_draws_the_same_numbers(output_of: OutputOf) -> None:
    tcuda.manual_seed(SEED)
    tcuda.default_generators[0].set_offset(4 * 1234)
    state = tcuda.get_rng_state().tobytes().hex()
    code = f"""if True:
        import importlib.util, json, sys, warnings
        warnings.filterwarnings("ignore", "cupy.random.* is experimental", FutureWarning)
        spec = importlib.util.spec_from_file_location("rows", {__file__!r})
        module = sys.modules["rows"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        print(json.dumps(module.digests({state!r})))
    """
    there = json.loads(output_of(code))
    here = digests(state)
    assert {row for row in ROWS if there[row] != here[row]} == set()


@rows
def test_another_device_and_another_stream_change_nothing(row: str) -> None:
    tcuda.manual_seed(SEED)
    state = tcuda.get_rng_state()
    expected = [numbers(row), numbers(row)]
    after = offset()

    tcuda.set_rng_state(state)
    first = numbers(row)
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        assert [first, numbers(row)] == expected
    assert offset() == after

    if tcuda.device_count() > 1:
        tcuda.set_rng_state(state)
        first = numbers(row)
        with tcuda.device(1):
            numbers(row)
        assert [first, numbers(row)] == expected
        assert offset() == after


@rows
def test_threads_never_draw_the_same_numbers(row: str) -> None:
    tcuda.manual_seed(SEED)
    before = offset()
    numbers(row)
    increment = offset() - before
    draws, threads = 4, 2
    start = threading.Barrier(threads)

    def work() -> list[bytes]:
        start.wait(60)
        return [numbers(row) for _ in range(draws)]

    with ThreadPoolExecutor(threads) as pool:
        found = [future.result() for future in [pool.submit(work) for _ in range(threads)]]
    assert len(set(itertools.chain(*found))) == threads * draws
    assert offset() == before + increment * (1 + threads * draws)


# The laws


@pytest.fixture(scope="module")
def stats() -> Any:
    return pytest.importorskip("scipy.stats")


def p_value(stats: Any, drawn: Any, law: Any) -> float:
    """Return how likely numbers of a law are as far from it as those drawn."""
    if drawn.dtype.kind == "f":
        return float(stats.kstest(drawn.astype(float), law.cdf).pvalue)
    least, largest = law.support()
    assert least <= drawn.min()
    assert drawn.max() <= largest
    return float(stats.chisquare(*cells(drawn, law)).pvalue)


def cells(drawn: Any, law: Any) -> tuple[Any, Any]:
    """Return how many integers there are, and how many are to be expected, in cells of ten or more."""
    ends = []
    last = 0.0
    for value in range(int(drawn.min()), min(int(drawn.max()), int(drawn.min()) + 1000)):
        below = float(law.cdf(value))
        if min(below - last, 1 - below) * drawn.size >= 10:
            ends.append(value)
            last = below
    observed = np.bincount(np.searchsorted(ends, drawn), minlength=len(ends) + 1)
    return observed, np.diff([0.0, *law.cdf(ends), 1.0]) * drawn.size


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
    # The parts of several numbers have laws too.
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


def test_parts_of_dirichlet_and_multinomial_belong_together() -> None:
    shares = xp.random.dirichlet(xp.asarray(ALPHA), COUNT).get()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    counts = xp.random.multinomial(30, xp.asarray(CHANCES), COUNT).get()
    assert (counts.sum(axis=1) == 30).all()
    # Where one part takes much, little is left for the others.
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
def test_every_item_is_chosen_as_often_at_every_place(items: str, stats: Any) -> None:
    tcuda.manual_seed(SEED)
    count = 20
    source = count if items == "a number" else xp.arange(count)
    found = np.array([xp.random.choice(source, (3, 2), replace=False).get().ravel() for _ in range(1000)])
    assert all(len(set(chosen)) == 6 for chosen in found)
    for place in found.T:
        assert stats.chisquare(np.bincount(place, minlength=count)).pvalue > LEAST


def test_rows_are_kept_whole() -> None:
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
    for power in (1, 2):  # the sizes of numbers may depend on each other where the numbers do not correlate
        correlation = np.corrcoef((one - one.mean()) ** power, (other - other.mean()) ** power)[0, 1]
        assert abs(correlation) < 4 / math.sqrt(one.size)


@pytest.mark.parametrize("name", ["rand float64", "rand float32", "randn float64", "randn float32", "tomaxint"])
def test_numbers_of_one_thread_are_independent(name: str, stats: Any) -> None:
    """A thread makes two or four numbers of a draw, which lie a whole grid apart, and then draws again."""
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


def test_one_is_no_uniform_number() -> None:
    """Of float32, the 128 largest words of 2**32 round to 1."""
    tcuda.manual_seed(0)
    tcuda.default_generators[0].set_offset(4 * 19169)  # where thread 157 draws one of these words
    state = tcuda.get_rng_state()
    drawn = xp.random.rand(256, dtype="float32").get()
    assert drawn[157] == 0
    assert (drawn > 0).sum() == 255
    tcuda.set_rng_state(state)
    assert (xp.random.uniform(-5, 3, 256, "float32").get()[157]) == -5
    tcuda.set_rng_state(state)
    # Of numbers that have their logarithm taken, it is 0 that must not be one.
    assert xp.random.standard_exponential(256, "float32").get()[157] == 0


# Refusals

INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]

REFUSED: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "exponential(-1)": (ValueError, lambda r: r.exponential(-1.0, 3)),
    "exponential([1, -1])": (ValueError, lambda r: r.exponential(xp.asarray([1.0, -1.0]), (3, 2))),
    "rayleigh(-1)": (ValueError, lambda r: r.rayleigh(-1.0, 3)),
    "power(-1)": (ValueError, lambda r: r.power(-1.0, 3)),
    "weibull(-1)": (ValueError, lambda r: r.weibull(-1.0, 3)),
    "triangular, left > mode": (ValueError, lambda r: r.triangular(2.0, 1.0, 3.0, 3)),
    "triangular, mode > right": (ValueError, lambda r: r.triangular(1.0, 3.0, 2.0, 3)),
    "triangular, left == right": (ValueError, lambda r: r.triangular(1.0, 1.0, 1.0, 3)),
    "negative_binomial, n": (ValueError, lambda r: r.negative_binomial(0, 0.5, 3)),
    "negative_binomial, p < 0": (ValueError, lambda r: r.negative_binomial(1, -0.5, 3)),
    "negative_binomial, p > 1": (ValueError, lambda r: r.negative_binomial(1, 1.5, 3)),
    "zipf(1)": (ValueError, lambda r: r.zipf(1.0, 3)),
    "zipf([2, 1])": (ValueError, lambda r: r.zipf(xp.asarray([2.0, 1.0]))),
    "logseries(0)": (ValueError, lambda r: r.logseries(0.0, 3)),
    "logseries(1)": (ValueError, lambda r: r.logseries(1.0, 3)),
    "hypergeometric, good": (ValueError, lambda r: r.hypergeometric(-1, 5, 3, 3)),
    "hypergeometric, bad": (ValueError, lambda r: r.hypergeometric(5, -1, 3, 3)),
    "hypergeometric, sample": (ValueError, lambda r: r.hypergeometric(5, 5, 0, 3)),
    "noncentral_chisquare, df": (ValueError, lambda r: r.noncentral_chisquare(0.0, 1.0, 3)),
    "noncentral_chisquare, nonc": (ValueError, lambda r: r.noncentral_chisquare(1.0, -1.0, 3)),
    "noncentral_f, dfnum": (ValueError, lambda r: r.noncentral_f(0.0, 1.0, 1.0, 3)),
    "noncentral_f, dfden": (ValueError, lambda r: r.noncentral_f(1.0, 0.0, 1.0, 3)),
    "noncentral_f, nonc": (ValueError, lambda r: r.noncentral_f(1.0, 1.0, -1.0, 3)),
    **{
        f"{name} of float16": (TypeError, lambda r, name=name: draw(name, r, LAWS[name].first, 3, "float16"))
        for name in (
            *("exponential", "gumbel", "laplace", "lognormal", "normal", "pareto", "power", "rand", "randn", "random"),
            *("random_sample", "rayleigh", "standard_cauchy", "standard_exponential", "standard_normal", "triangular"),
            *("uniform", "wald", "weibull"),
        )
    },
    "rand of integers": (TypeError, lambda r: r.rand(3, dtype="int64")),
    "rand, wrong keyword": (TypeError, lambda r: r.rand(3, size=3)),
    "randint(0)": (ValueError, lambda r: r.randint(0, size=3)),
    "randint(5, 5)": (ValueError, lambda r: r.randint(5, 5, 3)),
    "randint(3, 1)": (ValueError, lambda r: r.randint(3, 1, 3)),
    "randint below int8": (ValueError, lambda r: r.randint(-129, 0, 3, "int8")),
    "randint above int8": (ValueError, lambda r: r.randint(0, 129, 3, "int8")),
    "randint below uint8": (ValueError, lambda r: r.randint(-1, 10, 3, "uint8")),
    "randint above uint32": (ValueError, lambda r: r.randint(0, (1 << 32) + 1, 3, "uint32")),
    "randint above int64": (ValueError, lambda r: r.randint(0, (1 << 63) + 1, 3, "int64")),
    "randint above uint64": (ValueError, lambda r: r.randint(0, (1 << 64) + 1, 3, "uint64")),
    "randint of arrays of float64": (ValueError, lambda r: r.randint(xp.zeros(3), xp.full(3, 5.0), (3,))),
    "randint of float64": (ValueError, lambda r: r.randint(0, 5, 3, "float64")),
    "random_integers(3, 2)": (ValueError, lambda r: r.random_integers(3, 2, 3)),
    "random_integers(0)": (ValueError, lambda r: r.random_integers(0, size=3)),
    "choice(None)": (ValueError, lambda r: r.choice(None, 3)),
    "choice(0)": (ValueError, lambda r: r.choice(0, 3)),
    "choice(-1)": (ValueError, lambda r: r.choice(-1, 3)),
    "choice of two axes": (ValueError, lambda r: r.choice(xp.ones((2, 2)), 3)),
    "choice of no axis": (NotImplementedError, lambda r: r.choice(xp.asarray(3), 3)),
    "choice of more than there are": (ValueError, lambda r: r.choice(3, 4, replace=False)),
    "choice of more than an array has": (ValueError, lambda r: r.choice(xp.arange(3), (2, 2), replace=False)),
    "choice, axes of p": (ValueError, lambda r: r.choice(3, 3, p=xp.ones((3, 1)))),
    "choice, size of p": (ValueError, lambda r: r.choice(3, 3, p=xp.asarray([0.5, 0.5]))),
    "choice, p < 0": (ValueError, lambda r: r.choice(2, 3, p=xp.asarray([1.5, -0.5]))),
    "choice, sum of p": (ValueError, lambda r: r.choice(2, 3, p=xp.asarray([0.5, 0.6]))),
    "choice without size": (NotImplementedError, lambda r: r.choice(3)),
    "choice by p without replacement": (NotImplementedError, lambda r: r.choice(2, 1, False, xp.asarray([0.5, 0.5]))),
    "multinomial, sum of p": (ValueError, lambda r: r.multinomial(3, xp.asarray([0.5, 0.6]), 3)),
    "shuffle of a list": (TypeError, lambda r: r.shuffle([1, 2, 3])),
    "shuffle of NumPy's array": (TypeError, lambda r: r.shuffle(np.arange(3))),
    "shuffle of no axis": (TypeError, lambda r: r.shuffle(xp.asarray(3))),
    "multivariate_normal, mean": (ValueError, lambda r: r.multivariate_normal([[0.0]], [[1.0]], 3)),
    "multivariate_normal, axes": (ValueError, lambda r: r.multivariate_normal([0.0], [1.0], 3)),
    "multivariate_normal, square": (ValueError, lambda r: r.multivariate_normal([0.0], [[1.0, 0.0]], 3)),
    "multivariate_normal, length": (ValueError, lambda r: r.multivariate_normal([0.0, 0.0], [[1.0]], 3)),
    "multivariate_normal, method": (ValueError, lambda r: r.multivariate_normal([0.0], [[1.0]], 3, method="lu")),
    "multivariate_normal, check": (ValueError, lambda r: r.multivariate_normal([0.0], [[1.0]], 3, check_valid="no")),
    "multivariate_normal, indefinite": (
        np.linalg.LinAlgError,
        lambda r: r.multivariate_normal([0.0, 0.0], INDEFINITE, 3, check_valid="raise"),
    ),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused_draws_nothing(call: str) -> None:
    error, refused = REFUSED[call]
    state = tcuda.get_rng_state()
    with pytest.raises(error):
        refused(xp.random)
    np.testing.assert_array_equal(tcuda.get_rng_state(), state)


# Shapes

SIZES: dict[Any, tuple[int, ...]] = {
    None: (),
    (): (),
    0: (0,),
    (0, 3): (0, 3),
    1: (1,),
    7: (7,),
    4097: (4097,),
    (3, 1, 5): (3, 1, 5),
}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", LAWS)
def test_sizes(name: str, size: Any) -> None:
    for dtype in ("float64", "float32") if name in REALS else ("l", "int32"):
        drawn = draw(name, xp.random, LAWS[name].first, size, dtype)
        assert isinstance(drawn, xp.ndarray)
        assert drawn.shape == SIZES[size]
        assert drawn.dtype == dtype
        assert np.isfinite(drawn.get()).all()


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_parameters_broadcast(name: str) -> None:
    """Columns by the first parameter, rows by the others."""
    first, *others = pairs(LAWS[name])
    shape = (2, 2) if others else (2, 1)
    for size, expected in ((None, shape), ((5, *shape), (5, *shape)), ((0, *shape), (0, *shape))):
        drawn = draw(name, xp.random, [first.reshape(2, 1), *others], size, default_dtype(name))
        assert drawn.shape == expected
        assert drawn.dtype == default_dtype(name)
        assert np.isfinite(drawn.get()).all()


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_a_parameter_may_be_an_array_beside_a_scalar(name: str) -> None:
    first, *others = LAWS[name].first
    for dtype in ("float64", "float32") if name in REALS else ("l", "int32"):
        drawn = draw(name, xp.random, [xp.asarray([first] * 3), *others], None, dtype)
        assert drawn.shape == (3,)
        assert drawn.dtype == dtype


@pytest.mark.parametrize("size", [(), 0, 5, (2, 3)], ids=str)
def test_sizes_of_what_has_no_law_of_one_number(size: Any) -> None:
    random = xp.random
    shape = (size,) if isinstance(size, int) else size
    assert random.choice(5, size).shape == shape
    assert random.choice(xp.arange(5.0), size).shape == shape
    assert random.choice(xp.arange(5.0), size).dtype == "float64"
    assert random.choice(4, size, p=xp.asarray(CHANCES)).shape == shape
    if size != 0:
        assert random.choice(9, size, replace=False).shape == shape
    assert random.choice(xp.arange(9), size, replace=False).shape == shape
    assert random.random_integers(5, size=size).shape == shape
    assert random.get_random_state().tomaxint(size).shape == shape
    assert random.multinomial(10, xp.asarray(CHANCES), size).shape == (*shape, 4)
    assert random.dirichlet(xp.asarray(ALPHA), size).shape == (*shape, 3)
    assert multivariate_normal(random, size).shape == (*shape, 3)


def test_sizes_that_are_left_out() -> None:
    random = xp.random
    assert random.multinomial(10, xp.asarray(CHANCES)).shape == (4,)
    assert random.dirichlet(xp.asarray(ALPHA)).shape == (3,)
    assert random.multivariate_normal(xp.asarray(MEAN), xp.asarray(COVARIANCE)).shape == (3,)
    assert random.rand().shape == random.randn().shape == random.get_random_state().tomaxint().shape == ()
    assert random.random_integers(5).shape == ()
    assert random.permutation(1).get().tolist() == [0]


@pytest.mark.parametrize("name", LAWS)
def test_a_size_may_be_a_list(name: str) -> None:
    if name not in ("rand", "randn"):
        assert draw(name, xp.random, LAWS[name].first, [2, 3], default_dtype(name)).shape == (2, 3)


def test_a_size_may_be_an_integer_of_numpy() -> None:
    size = np.int64(5)
    assert xp.random.random_sample(size).shape == xp.random.gamma(2.0, 1.0, size).shape == (5,)
    assert xp.random.dirichlet(xp.asarray(ALPHA), size).shape == (5, 3)
    assert multivariate_normal(xp.random, size).shape == (5, 3)


def test_no_trials() -> None:
    assert xp.random.multinomial(0, xp.asarray(CHANCES), 5).get().tolist() == [[0] * 4] * 5
    assert xp.random.choice(0, 0).shape == (0,)


def test_powers_of_zero() -> None:
    """CuPy goes on with 1 / 0, which is infinite, where Python raises an exception."""
    assert xp.random.power(0.0, 3).get().tolist() == xp.random.power(0, 3).get().tolist() == [0.0] * 3
    assert set(xp.random.weibull(0.0, 100).get().tolist()) <= {0.0, 1.0, math.inf}


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
def test_randint_between_the_ends_of_arrays(kind: str) -> None:
    """The distance of the ends of a signed type does not fit into it."""
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
def test_randint_of_arrays_has_the_type_asked_for(dtype: str) -> None:
    low, high = xp.asarray([[0], [3]]), xp.asarray([4, 5, 6])
    drawn = xp.random.randint(low, high, (2, 3), dtype)
    assert drawn.dtype == dtype
    assert drawn.shape == (2, 3)
    assert ((drawn >= low) & (drawn < high)).all()
    below = xp.random.randint(xp.asarray([1, 2, 3]), size=(3,), dtype=dtype)
    assert below.dtype == dtype
    assert (below.get() < [1, 2, 3]).all()
