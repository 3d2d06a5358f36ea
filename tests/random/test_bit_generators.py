"""Bit generators, and the class ``Generator``, which draws from them: both have their state on the device."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.distributions import LAWS, SEED, p_value, pairs
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("runtime")

COUNT = 20_000
LEAST = 1e-4
KINDS = ["XORWOW", "MRG32k3a", "Philox4x3210"]
kinds = pytest.mark.parametrize("kind", KINDS)
needs_two = pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")

NAMES = [
    *("beta", "binomial", "chisquare", "exponential", "f", "gamma", "geometric", "hypergeometric", "logseries"),
    *("poisson", "power", "random", "standard_exponential", "standard_gamma", "standard_normal", "uniform"),
]
WITH_ARRAYS = [name for name in NAMES if LAWS[name].first and name != "exponential"]
OF_INTEGERS = {"binomial", "geometric", "hypergeometric", "logseries", "poisson"}


@pytest.fixture(scope="module")
def stats() -> Any:
    return pytest.importorskip("scipy.stats")


@pytest.fixture
def generator() -> Any:
    return xp.random.Generator(xp.random.Philox4x3210(SEED))


def dtype_of(name: str) -> str:
    return "int64" if name in OF_INTEGERS else "float64"


class TestBitGenerators:
    @kinds
    def test_the_seed_decides_the_bits(self, kind: str) -> None:
        make = getattr(xp.random, kind)
        assert issubclass(make, xp.random.BitGenerator)
        first, again, other, free, unseeded = (make(seed).random_raw(10) for seed in (3, 3, 4, None, None))
        assert isinstance(first, xp.ndarray)
        assert (first.dtype, first.shape) == ("int32", (10,))
        assert first.tolist() == again.tolist()
        assert len({tuple(bits.tolist()) for bits in (first, other, free, unseeded)}) == 4

    def test_the_classes_draw_different_bits(self) -> None:
        assert len({tuple(getattr(xp.random, kind)(3).random_raw(5).tolist()) for kind in KINDS}) == 3

    @kinds
    def test_a_seed_may_be_an_integer_integers_or_a_seed_sequence(self, kind: str) -> None:
        make = getattr(xp.random, kind)
        same = [7, np.int8(7), np.random.SeedSequence(7), [7], np.array([7]), xp.asarray([7])]
        assert len({tuple(make(seed).random_raw(5).tolist()) for seed in same}) == 1

    @kinds
    @pytest.mark.parametrize(("seed", "error"), [(1.5, TypeError), (1j, TypeError), (-1, ValueError)])
    def test_a_wrong_seed_is_refused(self, kind: str, seed: Any, error: type[Exception]) -> None:
        with pytest.raises(error):
            getattr(xp.random, kind)(seed)

    @kinds
    def test_every_bit_is_as_often_0_as_1(self, kind: str) -> None:
        words = getattr(xp.random, kind)(SEED).random_raw((100, COUNT // 100)).get().view(np.uint32)
        ones = [(words >> place & 1).sum() for place in range(32)]
        assert max(abs(np.array(ones) - COUNT / 2)) < 4 * np.sqrt(COUNT) / 2
        assert len(np.unique(words)) > COUNT - 10

    @kinds
    def test_draws_go_on_from_the_state_also_with_few_threads(self, kind: str) -> None:
        source = getattr(xp.random, kind)(1, size=256)
        first, second = source.random_raw(1000).tolist(), source.random_raw(1000).tolist()
        assert first != second
        assert source.random_raw() is not None
        assert source.random_raw().shape == ()
        assert source.random_raw(5, output=False) is None

    def test_the_base_class_draws_nothing(self) -> None:
        with pytest.raises(NotImplementedError):
            xp.random.BitGenerator(1).random_raw(3)

    @needs_two
    def test_the_state_is_of_the_device_on_which_it_was_made(self) -> None:
        source = xp.random.XORWOW(1)
        with tcuda.device(1), pytest.raises(RuntimeError, match="allocated in a different device"):
            source.random_raw(3)


class TestLaws:
    @pytest.mark.parametrize("name", NAMES)
    def test_of_numbers(self, name: str, generator: Any, stats: Any) -> None:
        law = LAWS[name]
        drawn = getattr(generator, name)(*law.first, size=COUNT)
        assert (drawn.dtype, drawn.shape) == (dtype_of(name), (COUNT,))
        assert p_value(stats, drawn.get(), law.scipy(stats, *law.first)) > LEAST

    @pytest.mark.parametrize("name", ["random", "standard_exponential", "standard_normal"])
    def test_of_float32(self, name: str, generator: Any, stats: Any) -> None:
        drawn = getattr(generator, name)(COUNT, "float32")
        assert drawn.dtype == "float32"
        assert p_value(stats, drawn.get(), LAWS[name].scipy(stats)) > LEAST

    @pytest.mark.parametrize("name", WITH_ARRAYS)
    def test_of_arrays(self, name: str, generator: Any, stats: Any) -> None:
        law = LAWS[name]
        drawn = getattr(generator, name)(*pairs(law), size=(COUNT, 2))
        assert drawn.dtype == dtype_of(name)
        for column, parameters in zip(drawn.get().T, (law.first, law.second), strict=True):
            assert p_value(stats, column, law.scipy(stats, *parameters)) > LEAST

    @pytest.mark.parametrize(
        ("low", "high", "dtype"),
        [(0, 5, "int64"), (-128, 128, "int8"), (0, 1 << 32, "int64"), (-(1 << 63), 1 << 63, "int64"), (7, 8, "uint8")],
    )
    def test_of_integers(self, low: int, high: int, dtype: str, generator: Any, stats: Any) -> None:
        for drawn in (
            generator.integers(low, high, COUNT // 10, dtype),
            generator.integers(low, high - 1, COUNT // 10, dtype, endpoint=True),
        ):
            assert drawn.dtype == dtype
            numbers = drawn.tolist()
            assert low <= min(numbers)
            assert max(numbers) < high
            parts = min(high - low, 16)
            observed = np.bincount([(number - low) * parts // (high - low) for number in numbers], minlength=parts)
            wide = [-(-(part + 1) * (high - low) // parts) - -(-part * (high - low) // parts) for part in range(parts)]
            expected = [len(numbers) * width / (high - low) for width in wide]
            assert parts == 1 or stats.chisquare(observed, expected).pvalue > LEAST

    def test_of_components_of_dirichlet(self, generator: Any, stats: Any) -> None:
        alpha = [0.6, 2.0, 3.5]
        drawn = generator.dirichlet(xp.asarray(alpha), COUNT).get()
        np.testing.assert_allclose(drawn.sum(axis=1), 1)
        for component, weight in zip(drawn.T, alpha, strict=True):
            assert stats.kstest(component, stats.beta(weight, sum(alpha) - weight).cdf).pvalue > LEAST


class TestShapes:
    @pytest.mark.parametrize("size", [None, (), 0, (0, 3), 7, (3, 1, 5)], ids=str)
    @pytest.mark.parametrize("name", NAMES)
    def test_of_sizes(self, name: str, size: Any, generator: Any) -> None:
        drawn = getattr(generator, name)(*LAWS[name].first, size=size)
        shape = () if size is None else (size,) if isinstance(size, int) else size
        assert (drawn.shape, drawn.dtype) == (shape, dtype_of(name))
        assert np.isfinite(drawn.get()).all()

    @pytest.mark.parametrize("name", WITH_ARRAYS)
    def test_of_parameters_that_broadcast(self, name: str, generator: Any) -> None:
        first, *others = pairs(LAWS[name])
        shape = (2, 2) if others else (2, 1)
        assert getattr(generator, name)(first.reshape(2, 1), *others).shape == shape
        assert getattr(generator, name)(first.reshape(2, 1), *others, size=(5, *shape)).shape == (5, *shape)
        with pytest.raises(ValueError, match=r"(?i)broadcast"):
            getattr(generator, name)(first.reshape(2, 1), *others, size=(3, 3))


class TestDefaultRng:
    def test_makes_a_generator_of_a_seed(self) -> None:
        first, again, other = (xp.random.default_rng(seed) for seed in (5, 5, None))
        assert isinstance(first, xp.random.Generator)
        assert isinstance(first.bit_generator, xp.random.XORWOW)
        numbers = first.random(5).tolist()
        assert again.random(5).tolist() == numbers
        assert other.random(5).tolist() != numbers
        assert first.random(5).tolist() != numbers

    def test_takes_a_bit_generator_and_a_generator(self) -> None:
        source = xp.random.MRG32k3a(1)
        generator = xp.random.default_rng(source)
        assert generator.bit_generator is source
        assert xp.random.default_rng(generator) is generator

    def test_does_not_move_the_default_generator(self) -> None:
        before = tcuda.get_rng_state()
        xp.random.default_rng(1).standard_normal(10)
        np.testing.assert_array_equal(tcuda.get_rng_state(), before)


REFUSED: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    **{
        f"{name} of a list": (TypeError, lambda g, name=name: getattr(g, name)(*[[1.0]] * len(LAWS[name].first)))
        for name in (
            "beta",
            "binomial",
            "chisquare",
            "f",
            "geometric",
            "hypergeometric",
            "logseries",
            "poisson",
            "power",
        )
    },
    "standard_gamma of a list": (ValueError, lambda g: g.standard_gamma([1.0])),
    "standard_gamma of None": (TypeError, lambda g: g.standard_gamma(None)),
    "standard_gamma of integers": (TypeError, lambda g: g.standard_gamma(1.0, 3, "int64")),
    "standard_normal of float16": (TypeError, lambda g: g.standard_normal(3, "float16")),
    "binomial, p an integer": (TypeError, lambda g: g.binomial(3, 1, 3)),
    "dirichlet of a list": (TypeError, lambda g: g.dirichlet([1.0, 2.0])),
    "hypergeometric, good": (ValueError, lambda g: g.hypergeometric(-1, 2, 3, 3)),
    "hypergeometric, bad": (ValueError, lambda g: g.hypergeometric(1, -2, 3, 3)),
    "hypergeometric, sample": (ValueError, lambda g: g.hypergeometric(1, 2, -3, 3)),
    "integers(0)": (ValueError, lambda g: g.integers(0, size=3)),
    "integers below int8": (ValueError, lambda g: g.integers(-129, 0, 3, "int8")),
    "integers above uint8": (ValueError, lambda g: g.integers(0, 257, 3, "uint8")),
    "the method zig": (NotImplementedError, lambda g: g.standard_exponential(3, method="zig")),
    "out of another type": (TypeError, lambda g: g.random(out=xp.zeros(3, "float32"))),
    "out of another shape": (ValueError, lambda g: g.standard_normal(4, out=xp.zeros(3))),
    "out with gaps": (ValueError, lambda g: g.standard_exponential(3, out=xp.zeros(6)[::2])),
}


@pytest.mark.parametrize("call", REFUSED)
def test_a_refused_call_draws_nothing(call: str, generator: Any) -> None:
    error, refused = REFUSED[call]
    with pytest.raises(error):
        refused(generator)
    assert generator.random(3).tolist() == xp.random.Generator(xp.random.Philox4x3210(SEED)).random(3).tolist()


def test_threads_never_draw_the_same_numbers(generator: Any) -> None:
    threads, draws = 4, 200

    def work(_: int) -> list[int]:
        return [int(generator.integers(0, 1 << 60)) for _ in range(draws)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            found = [number for numbers in pool.map(work, range(threads)) for number in numbers]
    finally:
        sys.setswitchinterval(interval)
    assert len(set(found)) == len(found) == threads * draws


@pytest.mark.parametrize("name", ["random", "standard_exponential", "standard_normal"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_out_is_filled_and_returned(name: str, dtype: str, generator: Any) -> None:
    out = xp.zeros((3, 5), dtype)
    assert getattr(generator, name)((3, 5), dtype, out=out) is out
    assert len(np.unique(out.get())) == 15


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_out_of_standard_gamma_has_the_shape(dtype: str, generator: Any) -> None:
    out = xp.zeros((3, 5), dtype)
    assert generator.standard_gamma(2.0, dtype=dtype, out=out) is out
    assert len(np.unique(out.get())) == 15


@pytest.mark.emulated
def test_parameters_out_of_range_give_fixed_numbers(generator: Any) -> None:
    nan = float("nan")
    for source in (generator, xp.random):
        assert source.binomial(xp.asarray([5, 5, -2, 5]), xp.asarray([-0.5, 1.5, 0.9, nan])).tolist() == [
            0,
            5,
            -2,
            0,
        ]
        assert source.poisson(xp.asarray([-1.0, nan, 0.0])).tolist() == [0, 0, 0]
        assert source.geometric(xp.asarray([1.0, 2.0])).tolist() == [1, 1]
        assert source.hypergeometric(xp.asarray([2, 3, 5]), xp.asarray([3, 2, 5]), xp.asarray([9, 9, 0])).tolist() == [
            *(2, 7, 0)
        ]
        drawn = source.beta(xp.asarray([0.0, 1.0, -1.0]), xp.asarray([1.0, 0.0, 1.0])).get()
        np.testing.assert_array_equal(drawn, [0, 1, nan])
        np.testing.assert_array_equal(source.standard_gamma(xp.asarray([-1.0, nan, 0.0])).get(), [0, nan, 0])
    assert generator.logseries(xp.asarray([0.0, 1.0, 2.0])).tolist() == [1, 2, 2]
