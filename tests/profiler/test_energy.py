"""Energy: all work of the block counts, of its device only, and a device without a counter is refused."""

from __future__ import annotations

import pytest

import tcuda
from tcuda.profiler import _energy

HALF_A_SECOND = 1_000_000_000
"""Cycles that keep every device busy for half a second or more."""


@pytest.mark.alone
def test_twice_the_work_needs_more_energy() -> None:
    with tcuda.profiler.energy() as once:
        tcuda._sleep(HALF_A_SECOND)
    with tcuda.profiler.energy() as twice:
        tcuda._sleep(2 * HALF_A_SECOND)
    assert 0 < once.joules < twice.joules


def test_the_energy_so_far_grows_until_the_end_of_the_block() -> None:
    with tcuda.profiler.energy() as used:
        before = used.joules
        tcuda._sleep(HALF_A_SECOND)
        tcuda.synchronize()
        during = used.joules
    assert type(used.joules) is float
    assert 0 <= before < during <= used.joules
    after = used.joules
    tcuda._sleep(HALF_A_SECOND)
    tcuda.synchronize()
    assert used.joules == after


@pytest.mark.emulated
def test_the_energy_is_that_of_the_model() -> None:
    with tcuda.profiler.energy() as used:
        tcuda._sleep(HALF_A_SECOND)  # one second on an emulated device
    assert used.joules == pytest.approx(700, abs=0.01)


@pytest.mark.emulated
def test_work_from_before_the_block_does_not_count() -> None:
    tcuda._sleep(HALF_A_SECOND)
    with tcuda.profiler.energy() as used:
        pass
    assert used.joules < 0.01


@pytest.mark.emulated
def test_very_many_kernels_count_to_the_last() -> None:
    tcuda.synchronize()
    with tcuda.profiler.energy() as used:
        for _ in range(10_000):
            tcuda._sleep(100_000)
    assert used.joules == pytest.approx(700, abs=0.01)


@pytest.mark.emulated
def test_the_work_of_another_device_does_not_count() -> None:
    with tcuda.profiler.energy(1) as idle, tcuda.profiler.energy("cuda:0") as busy:
        tcuda._sleep(HALF_A_SECOND)
    assert idle.joules == pytest.approx(70, abs=0.01)
    assert busy.joules == pytest.approx(700, abs=0.01)


@pytest.mark.emulated
def test_the_device_is_that_which_is_current_at_the_start_of_the_block() -> None:
    used = tcuda.profiler.energy()
    with tcuda.device(1):
        used.__enter__()
    tcuda._sleep(HALF_A_SECOND)
    tcuda.synchronize()
    used.__exit__(None, None, None)
    assert used.joules == pytest.approx(70, abs=0.01)


@pytest.mark.alone
def test_a_measurement_is_made_anew_for_each_block() -> None:
    used = tcuda.profiler.energy()
    assert used.joules == 0
    with used:
        tcuda._sleep(HALF_A_SECOND)
    first = used.joules
    with used:
        pass
    assert used.joules < first


def test_a_measurement_that_is_active_cannot_be_entered() -> None:
    used = tcuda.profiler.energy()
    with used, pytest.raises(RuntimeError, match=r"already active; make a tcuda\.profiler\.energy\(\) for every block"):
        used.__enter__()
    with used:  # works again
        pass


def test_an_error_of_the_block_ends_the_measurement() -> None:
    used = tcuda.profiler.energy()
    tcuda.synchronize()

    def block() -> None:
        with used:
            tcuda._sleep(HALF_A_SECOND)
            raise KeyError("of the program")

    with pytest.raises(KeyError, match="of the program"):
        block()
    assert used.joules > 0


def test_a_device_without_a_counter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(device: int) -> int:
        raise ValueError(f"device {device} has no counter")

    used = tcuda.profiler.energy(0)
    with monkeypatch.context() as patch:
        patch.setattr(_energy, "total_energy", refuse)
        with pytest.raises(ValueError, match="device 0 has no counter"), used:
            pass
    with used:  # works again
        pass


def test_a_device_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RuntimeError), tcuda.profiler.energy(99):
        pass
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"), tcuda.profiler.energy("cpu"):
        pass


def test_a_capture_is_refused_and_goes_on() -> None:
    x = tcuda.xp.zeros(3)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        with pytest.raises(RuntimeError, match="captur"), tcuda.profiler.energy():
            pass
        x += 1
    graph.replay()
    assert x.get().tolist() == [1, 1, 1]
