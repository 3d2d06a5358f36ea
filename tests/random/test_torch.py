"""tcuda and torch draw the same numbers, bit for bit, and have the same offset after each draw."""

from __future__ import annotations

import importlib.util
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch, which is not installed"),
]

SEEDS = [42, 0, (1 << 64) - 1, 0x123456789ABCDEF]
SIZES = [1, 2, 3, 255, 256, 257, 1000, 270_336, 270_337, 540_673, 1_081_344, 1_081_345, 3_000_000, 10_000_000]
DTYPES = ["float32", "float64"]


@pytest.fixture(scope="module")
def torch() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the import of torch warns
        import torch

        torch.cuda.init()
    return torch


@pytest.fixture
def same(torch: Any) -> Callable[..., None]:
    """Check that both libraries draw the same numbers, at the beginning and in the middle of a sequence."""

    def check(ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
        mine, other = tcuda.default_generators[0], torch.cuda.default_generators[0]
        for seed in SEEDS:
            tcuda.manual_seed(seed)
            torch.cuda.manual_seed(seed)
            for _ in range(2):
                # A comparison on the device is much faster than a copy to the host.
                drawn, expected = torch.as_tensor(ours(), device="cuda"), theirs()
                assert drawn.dtype == expected.dtype
                assert drawn.shape == expected.shape
                assert torch.equal(drawn.reshape(-1).view(torch.uint8), expected.reshape(-1).view(torch.uint8))
                assert mine.get_offset() == other.get_offset()

    return check


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
class TestSizes:
    def test_uniform(self, torch: Any, same: Callable[..., None], size: int, dtype: str) -> None:
        options = {"dtype": getattr(torch, dtype), "device": "cuda"}
        same(lambda: xp.random.rand(size, dtype=dtype), lambda: torch.rand(size, **options))
        same(lambda: xp.random.random_sample(size, dtype=dtype), lambda: torch.rand(size, **options))
        same(lambda: xp.random.uniform(0.0, 1.0, size, dtype=dtype), lambda: torch.rand(size, **options))

    def test_normal(self, torch: Any, same: Callable[..., None], size: int, dtype: str) -> None:
        options = {"dtype": getattr(torch, dtype), "device": "cuda"}
        same(lambda: xp.random.randn(size, dtype=dtype), lambda: torch.randn(size, **options))
        same(lambda: xp.random.standard_normal(size, dtype=dtype), lambda: torch.randn(size, **options))


@pytest.mark.parametrize("size", SIZES)
def test_integers(torch: Any, same: Callable[..., None], size: int) -> None:
    same(lambda: xp.random.randint(0, 10, size), lambda: torch.randint(0, 10, (size,), device="cuda"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes_and_parameters(torch: Any, same: Callable[..., None], dtype: str) -> None:
    def empty(*shape: int) -> Any:
        return torch.empty(shape, dtype=getattr(torch, dtype), device="cuda")

    same(lambda: xp.random.rand(3, 5, 7, dtype=dtype), lambda: empty(3, 5, 7).uniform_())
    same(lambda: xp.random.random_sample(dtype=dtype), lambda: empty().uniform_())
    same(lambda: xp.random.uniform(-3.3, 7.1, 9999, dtype=dtype), lambda: empty(9999).uniform_(-3.3, 7.1))
    same(lambda: xp.random.normal(-3.3, 7.1, (99, 101), dtype=dtype), lambda: empty(99, 101).normal_(-3.3, 7.1))
    same(lambda: xp.random.lognormal(-0.3, 0.7, 9999, dtype=dtype), lambda: empty(9999).log_normal_(-0.3, 0.7))


@pytest.mark.parametrize(
    ("low", "high"),
    [
        *((-5, 1 << 27), (0, (1 << 28) - 1), (0, 1 << 28), (-7, (1 << 28) - 6), (0, 1 << 31), (0, 1 << 32), (5, 6)),
        *((0, (1 << 32) + 5), (-(1 << 62), 1 << 62), (-(1 << 63), (1 << 63) - 1)),
    ],
)
def test_ranges_of_integers(torch: Any, same: Callable[..., None], low: int, high: int) -> None:
    same(lambda: xp.random.randint(low, high, 99_999), lambda: torch.randint(low, high, (99_999,), device="cuda"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_types_of_integers(torch: Any, same: Callable[..., None], dtype: str) -> None:
    options = {"dtype": getattr(torch, dtype), "device": "cuda"}
    limit = min(int(np.iinfo(dtype).max), 1 << 30)
    low = int(np.iinfo(dtype).min) // 2
    same(lambda: xp.random.randint(low, limit, 9999, dtype), lambda: torch.randint(low, limit, (9999,), **options))


@pytest.mark.parametrize(("size", "dtype"), [((1 << 29) + 10, "float32"), ((1 << 28) + 7, "float64")])
def test_arrays_beyond_an_index_of_32_bits(torch: Any, size: int, dtype: str) -> None:
    """Each library draws only once, because the arrays take gigabytes."""
    if tcuda.mem_get_info()[0] < 12 << 30:
        pytest.skip("needs 12 GiB of memory")
    tcuda.manual_seed(1)
    torch.cuda.manual_seed(1)
    drawn = torch.as_tensor(xp.random.rand(size, dtype=dtype), device="cuda")
    assert torch.equal(drawn, torch.rand(size, dtype=getattr(torch, dtype), device="cuda"))
    assert tcuda.default_generators[0].get_offset() == torch.cuda.default_generators[0].get_offset() > 4
    del drawn
    tcuda.empty_cache()
    torch.cuda.empty_cache()


def test_states_can_be_passed_between_the_libraries(torch: Any) -> None:
    torch.cuda.manual_seed(5)
    torch.rand(77, device="cuda")
    tcuda.set_rng_state(torch.cuda.get_rng_state())
    ours = xp.random.rand(99, dtype="f").get()
    np.testing.assert_array_equal(ours, torch.rand(99, device="cuda").cpu().numpy())
    torch.randn(5, device="cuda")
    xp.random.randn(5, dtype="f")
    torch.cuda.set_rng_state(torch.from_numpy(tcuda.get_rng_state()))
    np.testing.assert_array_equal(
        xp.random.randint(0, 9, 99).get(), torch.randint(9, (99,), device="cuda").cpu().numpy()
    )


def test_a_tensor_on_a_device_or_of_another_dtype_is_no_state(torch: Any) -> None:
    with pytest.raises(TypeError, match="RNG state must be a torch.ByteTensor"):
        tcuda.set_rng_state(torch.cuda.get_rng_state().cuda())
    with pytest.raises(TypeError, match=r"got torch.float32"):
        tcuda.set_rng_state(torch.zeros(16))


def test_a_thread_without_a_current_context_can_draw(output_of: OutputOf) -> None:
    """The test starts a process whose main thread uses the device: a new thread then has no current context."""
    code = """
import threading, tcuda
xp = tcuda.xp
first = xp.random.rand(5)
drawn = []
def work():
    generator = tcuda.Generator().manual_seed(3)
    for draw in (generator.rand, generator.tomaxint):
        drawn.append(draw(5).get().tobytes())
    assert generator.get_offset() == 8
thread = threading.Thread(target=work)
thread.start(); thread.join()
generator = tcuda.Generator().manual_seed(3)
print([draw(5).get().tobytes() for draw in (generator.rand, generator.tomaxint)] == drawn)
"""
    assert output_of(code) == "True"


def emulated(numbers: Callable[..., Any], like: np.ndarray[Any, Any], seed: int) -> np.ndarray[Any, Any]:
    """Return the numbers of an emulated device with as many multiprocessors as the GPU."""
    from tcuda._core import philox_passes
    from tcuda.emulation.random import philox
    from tcuda.random._philox import most_blocks

    made = np.empty_like(like)
    lanes = 16 // like.itemsize
    blocks = most_blocks(xp.cuda.runtime.getDeviceProperties(0))
    for start, part, grid, _ in philox_passes(like.size, like.itemsize, lanes, blocks):
        philox.fill(made[start : start + part], grid, seed, 0, lanes, numbers)
    return made


@pytest.mark.wings
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.3, 7.1), (1e-3, 1e3)])
def test_uniform_numbers_of_emulated_devices_equal_those_of_a_gpu(dtype: str, low: float, high: float) -> None:
    from tcuda.emulation.random import philox
    from tcuda.emulation.random.philox import RULES

    generator: Any = tcuda.Generator().manual_seed(11)
    drawn = generator.uniform(low, high, 1_000_000, dtype).get()
    unit = philox.uniforms if dtype == "float32" else philox.double_uniforms
    kind = np.dtype(dtype).type
    same = emulated(lambda words: RULES["Between"](unit(words), kind(low), kind(high)), drawn, 11)
    np.testing.assert_array_equal(drawn, same)


@pytest.mark.wings
@pytest.mark.parametrize("dtype", DTYPES)
def test_normal_numbers_of_emulated_devices_are_near_those_of_a_gpu(dtype: str) -> None:
    from tcuda.emulation.random import philox

    generator: Any = tcuda.Generator().manual_seed(11)
    drawn = generator.standard_normal(1_000_000, dtype).get()
    numbers, tolerance = (philox.normals, 4e-6) if dtype == "float32" else (philox.double_normals, 4e-15)
    near = emulated(numbers, drawn, 11)
    assert np.abs(drawn - near).max() < tolerance
    assert np.median(np.abs(drawn - near) / np.spacing(np.abs(drawn))) <= 4
