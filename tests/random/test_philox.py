"""The state of a generator, the kernels that fill an array, and the numbers that torch drew on an H200."""

from __future__ import annotations

import hashlib
import json
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from support.folders import DATA
from support.threads import in_threads
from tcuda._core import PhiloxState, philox_passes
from tcuda.emulation.random import philox
from tcuda.random._philox import derived_seed, most_blocks

DRAWS = json.loads((DATA / "torch_random.json").read_text())["draws"]
H200 = most_blocks({"multiProcessorCount": 132, "maxThreadsPerMultiProcessor": 2048})


class TestState:
    def test_advance_returns_the_state_before_the_advance(self) -> None:
        state = PhiloxState(7)
        assert state.advance(4) == (7, 0)
        assert state.advance(8) == (7, 4)
        assert state.read() == (7, 12)

    def test_seed_and_offset_have_64_bits_and_the_offset_wraps_around(self) -> None:
        state = PhiloxState((1 << 64) - 1, (1 << 64) - 4)
        assert state.advance(8) == ((1 << 64) - 1, (1 << 64) - 4)
        assert state.read() == ((1 << 64) - 1, 4)
        with pytest.raises(TypeError):
            state.write(1 << 64, 0)
        assert state.read() == ((1 << 64) - 1, 4)

    def test_write_sets_seed_and_offset_and_move_to_only_the_offset(self) -> None:
        state = PhiloxState(1, 4)
        state.move_to(40)
        assert state.read() == (1, 40)
        state.write(2, 8)
        assert state.read() == (2, 8)

    def test_a_state_is_stored_in_16_bytes_and_loaded_again(self) -> None:
        state = PhiloxState(1 << 63, 8)
        target = np.zeros(16, np.uint8)
        state.store(target)
        assert target.view("<u8").tolist() == [1 << 63, 8]
        other = PhiloxState(0)
        assert other.load(target)
        assert other.read() == (1 << 63, 8)

    @pytest.mark.parametrize(
        "source",
        [np.zeros(8, np.uint8), np.zeros(32, np.uint8)[::2], np.array([1, 6], "<u8"), "text of 16 bytes"],
        ids=["short", "apart", "half a draw", "text"],
    )
    def test_an_invalid_state_is_not_loaded(self, source: Any) -> None:
        state = PhiloxState(5, 4)
        assert not state.load(source)
        assert state.read() == (5, 4)

    @pytest.mark.parametrize("target", [bytearray(15), bytes(16), np.zeros(32, np.uint8)[::2]])
    def test_an_unsuitable_target_is_refused(self, target: Any) -> None:
        with pytest.raises(ValueError, match="a state has 16 bytes, which lie side by side"):
            PhiloxState(5).store(target)

    def test_threads_get_different_offsets(self) -> None:
        state = PhiloxState(0)
        start = threading.Barrier(8)
        taken: list[list[int]] = [[] for _ in range(8)]

        def take(mine: list[int]) -> None:
            start.wait()
            mine.extend(state.advance(4)[1] for _ in range(2000))

        in_threads(take, zip(taken))
        assert sorted(offset for mine in taken for offset in mine) == list(range(0, 8 * 2000 * 4, 4))
        assert state.read() == (0, 8 * 2000 * 4)

    def test_derived_seeds_differ_by_seed_and_offset(self) -> None:
        seeds = {derived_seed(seed, offset) for seed in (0, 1, 2**64 - 1) for offset in range(0, 400, 4)}
        assert len(seeds) == 300
        assert max(seeds) > 2**60
        assert derived_seed(42, 8) == int.from_bytes(
            hashlib.blake2b((42).to_bytes(8, "little") + (8).to_bytes(8, "little"), digest_size=8).digest(), "little"
        )


class TestPasses:
    def test_most_blocks_fills_the_multiprocessors(self) -> None:
        assert H200 == 1056
        assert most_blocks({"multiProcessorCount": 8, "maxThreadsPerMultiProcessor": 1536}) == 48

    @pytest.mark.parametrize(
        ("size", "lanes", "blocks", "increment"),
        [
            (1, 4, 1, 4),
            (256, 4, 1, 4),
            (257, 4, 2, 4),
            (1056 * 256, 4, 1056, 4),
            (1056 * 256 * 4, 4, 1056, 4),
            (1056 * 256 * 4 + 1, 4, 1056, 8),
            (1056 * 256 * 2 + 1, 2, 1056, 8),
            (3_000_000, 4, 1056, 12),
        ],
    )
    def test_the_grid_grows_until_the_device_is_full(self, size: int, lanes: int, blocks: int, increment: int) -> None:
        assert philox_passes(size, 4, lanes, H200) == [(0, size, blocks, increment)]

    def test_an_empty_array_needs_no_kernel(self) -> None:
        assert philox_passes(0, 4, 4, H200) == []

    @pytest.mark.parametrize(("size", "itemsize"), [((1 << 29), 4), ((1 << 28), 8), ((1 << 31) - 1, 1)])
    def test_an_array_within_an_index_of_32_bits_is_filled_by_one_kernel(self, size: int, itemsize: int) -> None:
        # The offset of the last element in bytes must fit into 31 bits.
        assert len(philox_passes(size, itemsize, 4, H200)) == 1
        assert len(philox_passes(size + 1, itemsize, 4, H200)) == 3

    def test_larger_arrays_are_halved_after_the_offset_has_moved_for_the_whole_array(self) -> None:
        size = 5 * (1 << 28) + 3
        waste, *parts = philox_passes(size, 4, 4, H200)
        assert waste == (0, 0, 0, philox_passes(size, 1, 4, H200)[0][3])
        assert [start for start, *_ in parts] == [0, size // 4, size // 2, size // 2 + (size - size // 2) // 2]
        ends = [start + part for start, part, _, _ in parts]
        assert ends == [*(start for start, *_ in parts[1:]), size]


def drawn(name: str, size: int, seed: int) -> tuple[np.ndarray[Any, Any], int]:
    """Return the numbers of a kernel on a device like the H200, and the offset afterwards."""
    kind, *rest = name.split()
    numbers, lanes, dtype = {
        "rand float32": (philox.uniforms, 4, np.float32),
        "rand float64": (philox.double_uniforms, 2, np.float64),
        "randn float32": (philox.normals, 4, np.float32),
        "randn float64": (philox.double_normals, 2, np.float64),
        "randint 0 10": (philox.words, 4, np.int64),
        "randint -5 4294967296": (philox.long_words, 2, np.int64),
    }[name]

    def finished(words: list[Any]) -> Any:
        made = numbers(words)
        if kind == "randint":
            low, high = map(int, rest)
            return (made % made.dtype.type(high - low)).astype(np.int64) + low
        return np.where(made == 1, 0, made) if kind == "rand" else made

    out = np.empty(size, dtype)
    state = PhiloxState(seed, 8)
    for start, part, blocks, increment in philox_passes(size, out.itemsize, lanes, H200):
        philox.fill(out[start : start + part], blocks, *state.advance(increment), lanes, finished)
    return out, state.read()[1]


@pytest.mark.parametrize("fact", DRAWS, ids=lambda fact: f"{fact['draw']}-{fact['size']}-{fact['seed']}")
def test_emulated_kernels_draw_the_numbers_of_torch_on_an_h200(fact: dict[str, Any]) -> None:
    numbers, offset = drawn(fact["draw"], fact["size"], fact["seed"])
    assert offset == fact["offset"]
    if "sha256" in fact:
        assert hashlib.sha256(numbers.tobytes()).hexdigest() == fact["sha256"]
        return
    # A GPU rounds sine, cosine and logarithm in another way than the host, and less exactly for float32.
    tolerance = 4e-6 if numbers.dtype == np.float32 else 4e-15
    for key, part in (("first8", numbers[:8]), ("last8", numbers[-8:])):
        np.testing.assert_allclose(part, [float.fromhex(text) for text in fact[key]], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("factor", "addend"), [(10.4, -3.3), (1.0, 0.0), (1e-3, 1e3), (-7.7, 7.7)])
def test_a_product_and_a_sum_are_rounded_once(dtype: Any, factor: float, addend: float) -> None:
    numbers = np.random.default_rng(0).random(2000).astype(dtype)
    factor, addend = dtype(factor), dtype(addend)
    exact = [Fraction(float(number)) * Fraction(float(factor)) + Fraction(float(addend)) for number in numbers]
    rounded = [float(value) if dtype is np.float64 else np.float32(float(value)) for value in exact]
    np.testing.assert_array_equal(philox.fused(numbers, factor, addend), np.array(rounded, dtype))


def test_known_answers_of_philox() -> None:
    """The known answers come from Random123, the library of the authors of Philox (``kat_vectors``)."""

    def answer(counter: list[int], key: list[int]) -> list[int]:
        position, subsequence = (np.array([low | high << 32], np.uint64) for low, high in (counter[:2], counter[2:]))
        return [int(word[0]) for word in philox.philox(key[0] | key[1] << 32, position, subsequence)]

    assert answer([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert answer([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert answer([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == [
        *(0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ]
