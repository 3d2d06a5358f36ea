"""Each drawing function of ``xp.random`` uses and moves the state of the generator, for all shapes and parameters."""

from __future__ import annotations

import itertools
import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.distributions import (
    ALPHA,
    CHANCES,
    COVARIANCE,
    LAWS,
    MEAN,
    REALS,
    ROWS,
    SEED,
    WITH_ARRAYS,
    default_dtype,
    digests,
    draw,
    multivariate_normal,
    numbers,
    offset,
    pairs,
)
from support.folders import TESTS
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf

    Draw = Callable[[Any, int], Any]

# CuPy gives this warning for multivariate_normal.
pytestmark = [
    pytest.mark.filterwarnings("ignore:cupy.random.* is experimental:FutureWarning"),
    pytest.mark.usefixtures("states_as_found"),
]


NOT_DRAWING = {
    *("RandomState", "bytes", "default_rng", "get_random_state", "reset_states", "seed", "set_random_state"),
    *("BitGenerator", "Generator", "MRG32k3a", "Philox4x3210", "XORWOW"),
}
rows = pytest.mark.parametrize("row", ROWS)


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
        import json, warnings
        from support.distributions import digests
        warnings.filterwarnings("ignore", "cupy.random.* is experimental", FutureWarning)
        print(json.dumps(digests({state!r})))
    """
    there = json.loads(output_of(code, PYTHONPATH=str(TESTS)))
    here = digests(state)
    assert {row for row in ROWS if there[row] != here[row]} == set()


@rows
def test_draws_on_another_stream_continue_the_sequence_and_other_devices_do_not_affect_it(row: str) -> None:
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
def test_a_refused_call_draws_nothing(call: str) -> None:
    error, refused = REFUSED[call]
    state = tcuda.get_rng_state()
    with pytest.raises(error):
        refused(xp.random)
    np.testing.assert_array_equal(tcuda.get_rng_state(), state)


@pytest.mark.parametrize(("method", "text"), [("cholesky", r"\*is\* invalid"), ("eigh", "may be"), ("svd", "may be")])
def test_a_covariance_that_is_indefinite_is_told_with_warn(method: str, text: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"covariance is not positive-semidefinite, output {text}"):
        drawn = xp.random.multivariate_normal([0.0, 0.0], INDEFINITE, 3, check_valid="warn", method=method)
    assert drawn.shape == (3, 2)


@pytest.mark.parametrize("method", ["eigh", "svd"])
def test_a_covariance_without_a_cholesky_factor_is_valid_for_other_methods(method: str) -> None:
    singular = [[1.0, 1.0], [1.0, 1.0]]
    for check in ("warn", "raise", "ignore"):
        tcuda.manual_seed(SEED)
        drawn = xp.random.multivariate_normal([0.0, 5.0], singular, 100, check_valid=check, method=method).get()
        np.testing.assert_allclose(drawn[:, 0] + 5, drawn[:, 1], atol=1e-6)


@pytest.mark.emulated
def test_an_indefinite_covariance_that_is_ignored_gives_nan() -> None:
    assert np.isnan(xp.random.multivariate_normal([0.0, 0.0], INDEFINITE, 3).get()).any()


def test_multivariate_normal_is_experimental() -> None:
    with pytest.warns(FutureWarning, match="cupy.random.* is experimental"):
        xp.random.multivariate_normal([0.0], [[1.0]])


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
    """The first parameter varies by rows, the other parameters by columns."""
    first, *others = pairs(LAWS[name])
    shape = (2, 2) if others else (2, 1)
    for size, expected in ((None, shape), ((5, *shape), (5, *shape)), ((0, *shape), (0, *shape))):
        drawn = draw(name, xp.random, [first.reshape(2, 1), *others], size, default_dtype(name))
        assert drawn.shape == expected
        assert drawn.dtype == default_dtype(name)
        assert np.isfinite(drawn.get()).all()


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_parameters_that_do_not_broadcast_to_the_size_are_refused(name: str) -> None:
    parameters = [values.reshape(2, 1) for values in pairs(LAWS[name])]
    for size in ((2,), (3, 3), (1, 1)):
        with pytest.raises(ValueError, match=r"(?i)broadcast|shape"):
            draw(name, xp.random, parameters, size, default_dtype(name))


@pytest.mark.parametrize("name", ["exponential", "power", "rayleigh", "weibull"])
def test_nan_as_a_parameter_is_not_out_of_range(name: str) -> None:
    drawn = getattr(xp.random, name)(xp.asarray([math.nan, 1.0])).get()
    assert np.isnan(drawn).tolist() == [True, False]


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_a_parameter_may_be_an_array_beside_a_scalar(name: str) -> None:
    first, *others = LAWS[name].first
    for dtype in ("float64", "float32") if name in REALS else ("l", "int32"):
        drawn = draw(name, xp.random, [xp.asarray([first] * 3), *others], None, dtype)
        assert drawn.shape == (3,)
        assert drawn.dtype == dtype


@pytest.mark.parametrize("size", [(), 0, 5, (2, 3)], ids=str)
def test_sizes_of_functions_without_a_law(size: Any) -> None:
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


def test_calls_without_a_size() -> None:
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


def test_zero_trials_and_an_empty_choice() -> None:
    assert xp.random.multinomial(0, xp.asarray(CHANCES), 5).get().tolist() == [[0] * 4] * 5
    assert xp.random.choice(0, 0).shape == (0,)


def test_power_and_weibull_with_the_parameter_0() -> None:
    """CuPy computes with 1 / 0 = infinity, and Python would raise an exception."""
    assert xp.random.power(0.0, 3).get().tolist() == xp.random.power(0, 3).get().tolist() == [0.0] * 3
    assert set(xp.random.weibull(0.0, 100).get().tolist()) <= {0.0, 1.0, math.inf}
