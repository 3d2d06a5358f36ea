"""The functions of ``xp.random`` that draw numbers, and the distributions of the numbers."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import types
from typing import TYPE_CHECKING, Any

import numpy as np

import tcuda
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Draw = Callable[[Any, int], Any]


SEED = 20_240_229


@dataclasses.dataclass(frozen=True)
class Law:
    """The distribution of the numbers that a function draws.

    Attributes:
        first: Parameters of the function.
        second: Other parameters, for which the algorithms of NumPy and CuPy take other branches.
        scipy: A function that returns the distribution of ``scipy.stats`` with given parameters.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    scipy: Callable[..., Any]


def on_circle(line: Any) -> Any:
    """Return the distribution of angles in [-pi, pi], from SciPy's distribution, which continues past pi."""
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
# CuPy's randint takes only arrays of the full shape; test_laws.py has a test of its own for randint.
WITH_ARRAYS = [name for name, law in LAWS.items() if law.first and name != "randint"]
MEAN = [1.0, -2.0, 0.5]
COVARIANCE = [[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]]
CHANCES = [0.1, 0.2, 0.3, 0.4]
ALPHA = [0.6, 2.0, 3.5]


def draw(name: str, random: Any, parameters: Sequence[Any], size: Any, dtype: Any) -> Any:
    """Return the numbers that the function ``name`` draws."""
    function = getattr(random, name)
    if name in ("rand", "randn"):
        return function(*((size,) if isinstance(size, int) else size or ()), dtype=dtype)
    return function(*parameters, size, dtype)


def pairs(law: Law) -> list[Any]:
    """Return each parameter as an array of its first and its second value."""
    return [xp.asarray(values) for values in zip(law.first, law.second, strict=True)]


def p_value(stats: Any, drawn: Any, law: Any) -> float:
    """Return the p-value of a test that the drawn numbers have the given law."""
    if drawn.dtype.kind == "f":
        return float(stats.kstest(drawn.astype(float), law.cdf).pvalue)
    least, largest = law.support()
    assert least <= drawn.min()
    assert drawn.max() <= largest
    return float(stats.chisquare(*cells(drawn, law)).pvalue)


def cells(drawn: Any, law: Any) -> tuple[Any, Any]:
    """Return the observed and the expected counts of integers, in cells that expect ten or more integers."""
    ends = []
    last = 0.0
    for value in range(int(drawn.min()), min(int(drawn.max()), int(drawn.min()) + 1000)):
        below = float(law.cdf(value))
        if min(below - last, 1 - below) * drawn.size >= 10:
            ends.append(value)
            last = below
    observed = np.bincount(np.searchsorted(ends, drawn), minlength=len(ends) + 1)
    return observed, np.diff([0.0, *law.cdf(ends), 1.0]) * drawn.size


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
NUMBERS = 101  # an odd number, and large enough that no row draws the same numbers twice by chance


def numbers(row: str, count: int = NUMBERS) -> bytes:
    """Return the bits of the numbers that a row draws."""
    host = ROWS[row](xp.random, count).get()
    return f"{host.dtype} {host.shape} ".encode() + host.tobytes()


def offset() -> int:
    return tcuda.default_generators[0].get_offset()


def digests(state: str) -> dict[str, str]:
    """Return a digest of the numbers that each row draws from a state."""
    found = {}
    for row in ROWS:
        tcuda.set_rng_state(np.frombuffer(bytes.fromhex(state), np.uint8))
        found[row] = hashlib.sha256(numbers(row)).hexdigest()
    return found
