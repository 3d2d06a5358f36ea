"""The state of a generator, and the kernels that fill an array."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import numpy as np
import pytest

from support.threads import in_threads
from tcuda._core import PhiloxState, philox_passes
from tcuda.random._philox import derived_seed, most_blocks

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
