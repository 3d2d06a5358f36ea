"""The demo: it learns, it is deterministic to the bit, and its streams wait for each other as they must."""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda import xp
from tcuda.demo import digits, network
from tcuda.demo.config import Config
from tcuda.demo.loader import Loader
from tcuda.demo.phases import Phases
from tcuda.demo.replica import Replica
from tcuda.demo.train import train, train_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda.demo.result import Result

DIGITS = digits.load()
ONE_OR_TWO = range(1, min(2, tcuda.device_count()) + 1)
BUSY = 5_000_000  # clock cycles: milliseconds, many times what a copy of a batch takes


def trained(**settings: Any) -> Result:
    return train(Config(**settings), DIGITS)


def mark() -> tcuda.Event:
    """Return an event, recorded on the current stream, that knows its time."""
    event = tcuda.Event(enable_timing=True)
    event.record()
    return event


# Data


def test_digits_are_those_of_uci() -> None:
    rows = np.concatenate(DIGITS)
    assert rows.dtype == np.uint8
    assert [len(part) for part in DIGITS] == [1437, 360]
    assert rows[:, :64].max() == digits.BRIGHTEST
    assert set(rows[:, 64]) == set(range(digits.CLASSES))
    in_order = np.ascontiguousarray(rows[np.lexsort(rows.T)])
    assert (
        hashlib.sha256(in_order.tobytes()).hexdigest()
        == "922f8bcf7625699058bfcdca9f67ada239072ee6998c6c7618869bf9ed8adc35"
    )


def test_every_class_is_held_out_alike() -> None:
    train_counts, test_counts = (np.bincount(part[:, 64]) for part in DIGITS)
    assert np.abs(train_counts / 4 - test_counts).max() <= 1


# Learning


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_defaults_reach_97_percent(devices: int) -> None:
    result = trained(devices=devices)
    assert result.accuracy >= 0.97
    losses = [epoch.loss for epoch in result.epochs]
    assert losses[-1] < 0.05 * losses[0]
    assert result.epochs[-1].accuracy > 0.99 > result.epochs[0].accuracy


@pytest.mark.parametrize("seed", [1, 2])
def test_other_seeds_reach_97_percent(seed: int) -> None:
    assert trained(seed=seed).accuracy >= 0.97


def test_gradients_are_the_slope_of_the_loss() -> None:
    hidden_units, step = 16, 3e-3
    random = np.random.default_rng(0)
    start = network.initial_parameters(hidden_units, random)
    pixels, targets = network.unpack(xp.array(DIGITS.train[:32]))

    def loss_at(flat: Any) -> float:
        parameters = network.Parameters(xp.array(flat), hidden_units)
        return float(network.loss(network.forward(parameters, pixels), targets))

    parameters = network.Parameters(xp.array(start), hidden_units)
    gradients = network.Parameters(xp.full_like(parameters.flat, np.nan), hidden_units)
    network.backward(parameters, network.forward(parameters, pixels), targets, gradients)
    for _ in range(8):
        direction = random.standard_normal(start.shape, np.float32)
        direction /= np.linalg.norm(direction)
        slope = (loss_at(start + step * direction) - loss_at(start - step * direction)) / (2 * step)
        assert float((gradients.flat * xp.array(direction)).sum()) == pytest.approx(slope, rel=0.1, abs=0.1)


# Determinism


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_overlap_changes_no_bit(devices: int) -> None:
    side_by_side = trained(epochs=3, devices=devices, overlap=True)
    in_a_row = trained(epochs=3, devices=devices, overlap=False)
    assert side_by_side.parameters.tobytes() == in_a_row.parameters.tobytes()
    assert side_by_side.epochs == in_a_row.epochs
    assert side_by_side.accuracy == in_a_row.accuracy


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_seed_decides_every_bit(devices: int) -> None:
    first, again, other = (trained(epochs=2, devices=devices, seed=seed) for seed in (3, 3, 4))
    assert first.parameters.tobytes() == again.parameters.tobytes()
    assert first.epochs == again.epochs
    assert first.parameters.tobytes() != other.parameters.tobytes()


# Devices


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_devices_share_a_batch_and_agree(devices: int) -> None:
    config = Config(devices=devices, hidden_units=32, batch_size=17)  # not shared evenly by two
    random = np.random.default_rng(0)
    start = network.initial_parameters(config.hidden_units, random)
    together = [Replica(device, start, config) for device in range(devices)]
    alone = [Replica(0, start, Config(hidden_units=32, batch_size=17))]
    for first in range(0, 5 * config.batch_size, config.batch_size):
        rows = DIGITS.train[first : first + config.batch_size]
        train_step(together, [on_device(device, rows[config.share(device)]) for device in range(devices)], len(rows))
        train_step(alone, [xp.array(rows)], len(rows))
    expected, *others = (replica.parameters.flat.get() for replica in together)
    assert not np.allclose(start, expected, atol=1e-3)  # it has moved
    assert all(other.tobytes() == expected.tobytes() for other in others)
    np.testing.assert_allclose(expected, alone[0].parameters.flat.get(), rtol=1e-4, atol=1e-5)


def on_device(device: int, rows: Any) -> Any:
    with tcuda.device(device):
        return xp.array(rows)


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_no_device_is_done_with_a_step_before_all_are(devices: int) -> None:
    config = Config(devices=devices)
    start = network.initial_parameters(config.hidden_units, np.random.default_rng(0))
    replicas = [Replica(device, start, config) for device in range(devices)]
    batch = [on_device(device, DIGITS.train[: config.batch_size][config.share(device)]) for device in range(devices)]
    for late, waiting in itertools.product(range(devices), repeat=2):
        with tcuda.device(late):
            tcuda._sleep(BUSY)
            awake = mark()
        train_step(replicas, batch, config.batch_size)
        with tcuda.device(waiting):
            mark().synchronize()
        assert awake.query(), f"device {waiting} did not wait for device {late}"
        tcuda.synchronize(late)


def test_too_many_devices_is_an_error_that_names_both_numbers() -> None:
    there_are = tcuda.device_count()
    with pytest.raises(RuntimeError, match=rf"invalid device ordinal.* {there_are + 1} devices.* has {there_are};"):
        trained(devices=there_are + 1)


@pytest.mark.parametrize("settings", [{"epochs": 0}, {"seed": -1}, {"devices": 0}, {"devices": 33}])
def test_impossible_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"\d"):
        Config(**settings)


def test_devices_are_told_with_the_memory_that_the_network_takes() -> None:
    tcuda.empty_cache()
    free, total = tcuda.mem_get_info(0)
    result = trained(epochs=1)
    (device,) = result.devices
    assert (device.index, device.name) == (0, tcuda.get_device_name(0))
    assert free - device.free >= 3 * result.parameters.nbytes  # parameters, gradients, velocity
    assert device.used + device.free == total


# Time


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_every_phase_takes_time(devices: int) -> None:
    result = trained(epochs=2, devices=devices, overlap=False)
    exchange = {"exchange"} if devices > 1 else set()
    assert set(result.phases) == {"copy", "forward", "backward", "update"} | exchange
    assert all(milliseconds > 0 for milliseconds in result.phases.values())
    assert sum(result.phases.values()) <= devices * result.elapsed


def test_phases_add_up_over_blocks() -> None:
    phases = Phases()
    for _ in range(2):
        with phases.measure("busy"):
            tcuda._sleep(BUSY)
        phases.collect()
    once = Phases()
    with once.measure("busy"):
        tcuda._sleep(BUSY)
    once.collect()
    assert phases.milliseconds["busy"] > 1.5 * once.milliseconds["busy"] > 0


# Loader


@pytest.fixture(params=[True, False], ids=["overlap", "one stream"])
def overlap(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def order() -> Any:
    return np.random.default_rng(0).permutation(len(DIGITS.train))[: 6 * 32].reshape(6, 32)


def test_batches_arrive_whole_and_in_order(overlap: bool, order: Any) -> None:
    with Loader(DIGITS.train, 32, overlap=overlap, phases=Phases()) as loader:
        seen = []
        for _ in range(2):  # the second epoch finds the slots in use
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
            tcuda._sleep(BUSY)  # the first copies come late
        for _ in loader.batches(order):
            begun.append(mark())
            tcuda._sleep(BUSY)
            done.append(mark())
        tcuda.synchronize()
    copies = [(start, end) for _, start, end in phases._marks]
    assert len(copies) == len(begun) == len(order)
    for (_, copied), computing in zip(copies, begun, strict=True):
        assert copied.elapsed_time(computing) >= 0, "a batch was read before it was there"
    for computed, (copying, _) in zip(done, copies[2:], strict=False):
        assert computed.elapsed_time(copying) >= 0, "a batch was overwritten while it was read"
    beside = [computing.elapsed_time(copied) > 0 for computing, (_, copied) in zip(begun, copies[1:], strict=False)]
    assert any(beside) == overlap, "copies run beside the computation where they may, and only there"


def test_host_buffer_is_not_rewritten_before_its_copy_is_complete(overlap: bool, order: Any) -> None:
    phases = Phases()

    class Watched:
        """The digits; whoever takes some of them is about to write into a host buffer."""

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
    with pytest.raises(KeyboardInterrupt), loader:  # noqa: PT012 - both are what happens inside
        assert cudart.cudaHostRegister(address, size, 0) == 712  # cudaErrorHostMemoryAlreadyRegistered
        raise KeyboardInterrupt
    tcuda.check_error(cudart.cudaHostRegister(address, size, 0))
    tcuda.check_error(cudart.cudaHostUnregister(address))


@pytest.fixture(autouse=True)
def _nothing_left_running() -> Iterator[None]:
    yield
    for device in range(tcuda.device_count()):
        tcuda.synchronize(device)
