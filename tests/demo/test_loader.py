"""The loader of the demo: its batches, its buffers, and the order of copies and computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcuda
from support.events import mark
from support.training import DIGITS
from tcuda.demo.loader import Loader
from tcuda.demo.phases import Phases

BUSY = 5_000_000  # clock cycles: milliseconds, much longer than a copy of a batch


@pytest.fixture(params=[True, False], ids=["overlap", "one stream"])
def overlap(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def order() -> Any:
    return np.random.default_rng(0).permutation(len(DIGITS.train))[: 6 * 32].reshape(6, 32)


def test_batches_arrive_whole_and_in_order(overlap: bool, order: Any) -> None:
    loader = Loader(DIGITS.train, 32, overlap=overlap, phases=Phases())
    seen = []
    for _ in range(2):  # all slots are in use at the start of the second epoch
        for batch in loader.batches(order):
            tcuda._sleep(BUSY)
            seen.append(batch.copy())
    expected = np.concatenate([DIGITS.train[order], DIGITS.train[order]])
    np.testing.assert_array_equal(np.stack([batch.get() for batch in seen]), expected)


def test_copy_and_computation_wait_for_each_other(overlap: bool, order: Any) -> None:
    phases = Phases()
    begun, done = [], []
    loader = Loader(DIGITS.train, 32, overlap=overlap, phases=phases)
    with tcuda.stream(loader._copy_stream):
        tcuda._sleep(BUSY)  # delays the first copies
    for _ in loader.batches(order):
        begun.append(mark())
        tcuda._sleep(BUSY)
        done.append(mark())
    tcuda.synchronize()
    copies = [(start, end) for _, start, end in phases._marks]
    assert len(copies) == len(begun) == len(order)
    for (_, copied), computing in zip(copies, begun, strict=True):
        assert copied.elapsed_time(computing) >= 0, "a batch was read before its copy was complete"
    for computed, (copying, _) in zip(done, copies[2:], strict=False):
        assert computed.elapsed_time(copying) >= 0, "a batch was overwritten while it was read"
    beside = [computing.elapsed_time(copied) > 0 for computing, (_, copied) in zip(begun, copies[1:], strict=False)]
    assert any(beside) == overlap, "copies overlap the computation if and only if `overlap` is set"


def test_host_memory_is_not_rewritten_before_its_copy_is_complete(overlap: bool, order: Any) -> None:
    loader = Loader(DIGITS.train, 32, overlap=overlap, phases=Phases())
    tcuda._sleep(BUSY)
    before = tcuda.host_memory_stats()["active_requests.current"]
    seen = [batch.copy() for batch in loader.batches(order)]  # the host has queued all copies before the first runs
    assert tcuda.host_memory_stats()["active_requests.current"] == before
    np.testing.assert_array_equal(np.stack([batch.get() for batch in seen]), DIGITS.train[order])
