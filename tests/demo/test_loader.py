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
    with Loader(DIGITS.train, 32, overlap=overlap, phases=Phases()) as loader:
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
    with Loader(DIGITS.train, 32, overlap=overlap, phases=phases) as loader:
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


def test_host_buffer_is_not_rewritten_before_its_copy_is_complete(overlap: bool, order: Any) -> None:
    phases = Phases()

    class Watched:
        """The digits. The loader takes rows just before it writes them into a host buffer."""

        shape, dtype = DIGITS.train.shape, DIGITS.train.dtype
        takes = 0

        def __getitem__(self, indices: Any) -> Any:
            if self.takes >= 2:
                assert phases._marks[self.takes - 2][2].query()
            self.takes += 1
            return DIGITS.train[indices]

    rows: Any = Watched()
    with Loader(rows, 32, overlap=overlap, phases=phases) as loader:
        for _ in loader.batches(order):
            tcuda._sleep(BUSY)
    assert rows.takes == len(order)


def test_host_buffers_are_page_locked_while_the_loader_is_in_use() -> None:
    cudart = tcuda.cudart()
    loader = Loader(DIGITS.train, 32, overlap=True, phases=Phases())
    address, size = loader._host.ctypes.data, loader._host.nbytes
    with pytest.raises(KeyboardInterrupt), loader:  # noqa: PT012 - the scope of the loader has two statements
        assert cudart.cudaHostRegister(address, size, 0) == 712  # cudaErrorHostMemoryAlreadyRegistered
        raise KeyboardInterrupt
    tcuda.check_error(cudart.cudaHostRegister(address, size, 0))
    tcuda.check_error(cudart.cudaHostUnregister(address))
