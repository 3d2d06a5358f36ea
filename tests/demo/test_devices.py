"""The demo on several devices, and settings that it refuses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tcuda
from support.events import mark
from support.training import DIGITS, ONE_OR_TWO, initial_parameters, on_device, trained
from tcuda import xp
from tcuda.demo import network
from tcuda.demo.captured_replica import CapturedReplica
from tcuda.demo.config import DECIDING, Config
from tcuda.demo.replica import Replica
from tcuda.demo.train import train_step

BUSY = 5_000_000  # clock cycles: milliseconds, much longer than a copy of a batch
KINDS = [Replica, CapturedReplica]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_devices_share_a_batch_and_agree(devices: int, kind: type[Replica]) -> None:
    config = Config(devices=devices, hidden_units=32, batch_size=17)  # an odd size: two devices get unequal shares
    start = initial_parameters(config.hidden_units)
    together = [kind(device, start, config) for device in range(devices)]
    alone = [Replica(0, start, Config(hidden_units=32, batch_size=17))]
    for first in range(0, 5 * config.batch_size, config.batch_size):
        rows = DIGITS.train[first : first + config.batch_size]
        train_step(together, [on_device(device, rows[config.share(device)]) for device in range(devices)], len(rows))
        train_step(alone, [xp.array(rows)], len(rows))
    expected, *others = (replica.parameters.flat.get() for replica in together)
    assert not np.allclose(start, expected, atol=1e-3)  # the training changed the parameters
    assert all(other.tobytes() == expected.tobytes() for other in others)
    np.testing.assert_allclose(expected, alone[0].parameters.flat.get(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_no_device_completes_a_step_before_the_others(devices: int, kind: type[Replica]) -> None:
    config = Config(devices=devices)
    start = initial_parameters(config.hidden_units)
    replicas = [kind(device, start, config) for device in range(devices)]
    batch = [on_device(device, DIGITS.train[: config.batch_size][config.share(device)]) for device in range(devices)]
    train_step(replicas, batch, config.batch_size)  # the first step may capture, which waits for the devices
    for late, waiting in itertools.product(range(devices), repeat=2):
        with tcuda.device(late):
            tcuda._sleep(BUSY)
            awake = mark()
        train_step(replicas, batch, config.batch_size)
        with tcuda.device(waiting):
            mark().synchronize()
        assert awake.query(), f"device {waiting} did not wait for device {late}"
        tcuda.synchronize(late)


@pytest.mark.skipif(tcuda.device_count() < 2, reason="needs more devices")
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_added_after_they_were_computed(kind: type[Replica], monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(*arguments: Any) -> None:
        backward(*arguments)
        tcuda._sleep(BUSY)

    backward = network.backward
    monkeypatch.setattr(network, "backward", slowly)
    config = Config(devices=2)
    root, other = (kind(device, initial_parameters(config.hidden_units), config) for device in range(2))
    batch = on_device(1, DIGITS.train[: config.batch_size])
    for _ in range(2):  # the first call may capture
        other.compute_gradients(batch)
        computed = tcuda.current_stream(1).record_event()
        root.add_gradients_of(other)
        tcuda.synchronize(0)
        assert computed.query()  # the stream itself may still wait for the addition


def test_too_many_devices_is_an_error_that_names_both_numbers() -> None:
    there_are = tcuda.device_count()
    with pytest.raises(RuntimeError, match=rf"invalid device ordinal.* {there_are + 1} devices.* has {there_are};"):
        trained(devices=there_are + 1)


IMPOSSIBLE = [
    {"epochs": 0},
    {"seed": -1},
    {"seed": 2**64},
    {"devices": 0},
    {"devices": 33},
    {"save_at": 0},
    {"epochs": 3, "save_at": 4},
    {"epochs": 10**20},
    {"devices": 1438, "batch_size": 1438},
    {"batch_size": 1438},
    {"hidden_units": 0},
    {"hidden_units": 10**9},
    {"learning_rate": float("nan")},
    {"learning_rate": -0.1},
    {"momentum": float("inf")},
    {"kernel": "kernel 1"},
]


@pytest.mark.parametrize("settings", IMPOSSIBLE)
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\d"):
        Config(**settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("epochs", *DECIDING[:4]) for value in ("15", 2.5, True, None, [1])),
        *((name, value) for name in DECIDING[4:6] for value in ("0.5", True, None, 1j)),
        *((name, value) for name in ("overlap", "graph") for value in ("yes", 1, None)),
        *(("kernel", value) for value in (b"raw", 1, None, True, ["raw"])),
        *(("save_at", value) for value in ("1", 1.0, True)),
    ],
)
def test_settings_of_another_type_are_refused(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"^{name} is .*; it must be "):
        Config(**{name: value})


def test_a_batch_may_have_all_digits() -> None:
    assert Config(batch_size=len(DIGITS.train)).batch_size == len(DIGITS.train)


@pytest.mark.alone
def test_result_has_the_memory_of_each_device() -> None:
    earlier = xp.ones(8)  # an array of another test may have a segment with room for the arrays of the training, too
    free, total = tcuda.mem_get_info(0)
    with tcuda.use_mem_pool(tcuda.MemPool()):  # takes no memory from segments that are there
        result = trained(epochs=1)
    del earlier
    (device,) = result.devices
    assert (device.index, device.name) == (0, tcuda.get_device_name(0))
    assert free - device.free >= 3 * result.parameters.nbytes  # parameters, gradients, velocity
    assert device.used + device.free == total
