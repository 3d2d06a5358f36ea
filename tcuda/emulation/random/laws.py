"""The laws of random numbers: functions that draw from a generator of NumPy, as CuPy's kernels draw on a device.

A kernel of CuPy does not check its parameters, and work on a device cannot raise an error. So each function here gives
a number for any parameters: the number of CuPy's kernel where the kernel gives a definite number, and NaN or 0 where
the kernel gives a meaningless number or does not end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Numbers = npt.NDArray[Any]
    Shape = tuple[int, ...]
    Law = Callable[..., Numbers]
    Random = np.random.Generator

_LARGEST_MEAN = 9.2233720064847708e18
"""The largest mean for which NumPy draws from the law of Poisson."""


def beta(random: Random, shape: Shape, a: Any, b: Any) -> Numbers:
    a, b = _real(a), _real(b)
    valid = (a > 0) & (b > 0)
    drawn = random.beta(np.where(valid, a, 1), np.where(valid, b, 1), shape)
    return np.select([valid, (a == 0) & (b > 0), (a > 0) & (b == 0)], [drawn, 0.0, 1.0], np.nan)


def binomial(random: Random, shape: Shape, n: Any, p: Any) -> Numbers:
    n, p = _whole(n), _real(p)
    chance = np.clip(np.where(np.isnan(p), 0, p), 0, 1)
    drawn = random.binomial(np.maximum(n, 0), chance, shape)
    return np.where((n < 0) & (p > 0.5), n, drawn)


def chisquare(random: Random, shape: Shape, df: Any) -> Numbers:
    return np.asarray(2 * standard_gamma(random, shape, _real(df) / 2))


def exponential(random: Random, shape: Shape) -> Numbers:
    return -np.log1p(-random.random(shape))


def f(random: Random, shape: Shape, dfnum: Any, dfden: Any) -> Numbers:
    numerator = chisquare(random, shape, dfnum) * _real(dfden)
    return np.asarray(numerator / (chisquare(random, shape, dfden) * _real(dfnum)))


def geometric(random: Random, shape: Shape, p: Any) -> Numbers:
    p = _real(p)
    trials = np.ceil(np.log1p(-random.random(shape)) / np.log1p(-p))
    # The logarithm of 0 is no number of trials. A uniform number of 0 stands for the first trial.
    return np.where(p >= 1, 1, np.where((p > 0) & (trials < 1), 1, trials)).astype(np.int64)


def hypergeometric(random: Random, shape: Shape, ngood: Any, nbad: Any, nsample: Any) -> Numbers:
    good, bad, sample = _whole(ngood), _whole(nbad), _whole(nsample)
    valid = (good >= 0) & (bad >= 0) & (sample > 0) & (sample <= good + bad)
    # NumPy's Generator refuses a population of more than 10**9. The older RandomState does not.
    older = np.random.RandomState(random.bit_generator)
    drawn = older.hypergeometric(np.where(valid, good, 1), np.where(valid, bad, 0), np.where(valid, sample, 1), shape)
    return np.select([valid, sample <= 0, good > bad], [drawn, 0, sample - bad], good)


def integers(random: Random, shape: Shape, most: int, kind: type[np.unsignedinteger[Any]]) -> Numbers:
    return random.integers(0, most, shape, kind, endpoint=True)


def logistic(random: Random, shape: Shape, loc: Any, scale: Any) -> Numbers:
    uniform = random.random(shape) + 2.0**-54  # in (0, 1)
    return np.asarray((np.log(uniform) - np.log1p(-uniform)) * scale + loc)


def logseries(random: Random, shape: Shape, p: Any) -> Numbers:
    p = _real(p)
    valid = (p > 0) & (p < 1)
    return np.select([valid, p <= 0], [random.logseries(np.where(valid, p, 0.5), shape), 1], 2)


def noncentral_chisquare(random: Random, shape: Shape, df: Any, nonc: Any) -> Numbers:
    df, nonc = _real(df), _real(nonc)
    valid = (df > 0) & (nonc >= 0)
    return np.where(valid, random.noncentral_chisquare(np.where(valid, df, 1), np.where(valid, nonc, 0), shape), np.nan)


def noncentral_f(random: Random, shape: Shape, dfnum: Any, dfden: Any, nonc: Any) -> Numbers:
    numerator = noncentral_chisquare(random, shape, dfnum, nonc) * _real(dfden)
    return np.asarray(numerator / (chisquare(random, shape, dfden) * _real(dfnum)))


def poisson(random: Random, shape: Shape, lam: Any) -> Numbers:
    lam = _real(lam)
    return np.asarray(random.poisson(np.clip(np.where(np.isnan(lam), 0, lam), 0, _LARGEST_MEAN), shape))


def standard_gamma(random: Random, shape: Shape, a: Any) -> Numbers:
    a = _real(a)
    return np.where(np.isnan(a), np.nan, random.standard_gamma(np.fmax(a, 0), shape))


def standard_normal(random: Random, shape: Shape, kind: type[np.floating[Any]]) -> Numbers:
    return np.asarray(random.standard_normal(shape, kind))


def standard_t(random: Random, shape: Shape, df: Any) -> Numbers:
    half = _real(df) / 2
    return np.sqrt(half) * random.standard_normal(shape) / np.sqrt(standard_gamma(random, shape, half))


def subset(random: Random, shape: Shape, count: Any) -> Numbers:
    """Return different integers from 0 to ``count - 1``; each choice is equally likely."""
    return random.choice(int(count), shape, replace=False)


def uniform(random: Random, shape: Shape, kind: type[np.floating[Any]]) -> Numbers:
    return np.asarray(random.random(shape, kind))


def vonmises(random: Random, shape: Shape, mu: Any, kappa: Any) -> Numbers:
    mu, kappa = _real(mu), _real(kappa)
    drawn = random.vonmises(mu, np.fmax(kappa, 0), shape)
    return np.where(np.isnan(kappa), np.nan, drawn)


def words(random: Random, shape: Shape) -> Numbers:
    return random.integers(0, 1 << 32, shape, np.uint32)


def zipf(random: Random, shape: Shape, a: Any) -> Numbers:
    a = _real(a)
    valid = a > 1
    return np.where(valid, random.zipf(np.where(valid, a, 2), shape), 0)


def _real(parameter: Any) -> Numbers:
    return np.asarray(parameter).astype(np.float64)


def _whole(parameter: Any) -> Numbers:
    return np.asarray(parameter).astype(np.int64)
