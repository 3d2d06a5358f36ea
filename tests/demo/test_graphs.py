"""The demo with graphs: the same bits, one capture for each buffer, and shared memory."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.training import (
    DIGITS,
    ONE_OR_LONG_TWO,
    ONE_OR_TWO,
    assert_same,
    checkpoint_of,
    initial_parameters,
    on_device,
    trained,
)
from tcuda.demo import network
from tcuda.demo.captured_replica import CapturedReplica
from tcuda.demo.config import Config
from tcuda.demo.optimizer import Momentum
from tcuda.demo.train import train

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL: Any = {"batch_size": 205, "hidden_units": 16}  # 7 batches an epoch: epochs start in alternate buffers


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[None]]:
    """Return a function that wraps a function of an owner, and returns a list with an item for each call."""

    def counted(owner: Any, name: str) -> list[None]:
        function, calls = getattr(owner, name), []

        def counting(*arguments: Any) -> Any:
            calls.append(None)
            return function(*arguments)

        monkeypatch.setattr(owner, name, counting)
        return calls

    return counted


@pytest.mark.long
@pytest.mark.parametrize("devices", ONE_OR_TWO)
@pytest.mark.parametrize("overlap", [True, False])
def test_graph_changes_no_bit(devices: int, overlap: bool) -> None:
    captured, launched = (trained(epochs=2, devices=devices, overlap=overlap, graph=graph) for graph in (True, False))
    assert_same(captured, launched)


@pytest.mark.long
@pytest.mark.parametrize("devices", ONE_OR_TWO)
@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True), (True, True)])
def test_checkpoint_may_be_made_and_resumed_with_a_graph(devices: int, before: bool, after: bool) -> None:
    settings = {**SMALL, "epochs": 3, "devices": devices}
    checkpoint = checkpoint_of(**settings, graph=before, save_at=1)
    resumed = train(Config(**settings, graph=after), DIGITS, resume_from=checkpoint)
    assert_same(resumed, trained(**settings))


def test_checkpoint_is_the_same_with_a_graph() -> None:
    captured, launched = (checkpoint_of(**SMALL, epochs=2, save_at=2, graph=graph) for graph in (True, False))
    for name in ("parameters", "velocity", "rng_state"):
        assert getattr(captured, name).tobytes() == getattr(launched, name).tobytes()
    assert captured.epochs == launched.epochs


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_step_is_captured_once_for_each_buffer(devices: int, count: Callable[[Any, str], list[None]]) -> None:
    forward, backward = count(network, "forward"), count(network, "backward")
    updates, replays = count(Momentum, "step"), count(tcuda.CUDAGraph, "replay")
    trained(**SMALL, epochs=3, devices=devices, graph=True)
    steps, buffers = 3 * 7, 2 * devices
    assert len(replays) == steps * devices
    assert len(backward) == buffers
    assert len(forward) == buffers + 1  # one call for the digits that were held out
    assert len(updates) == (buffers if devices == 1 else steps)


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_capture_does_not_change_the_state_of_the_training(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcuda.CUDAGraph, "replay", lambda graph: None)
    config = Config(devices=devices)
    start = initial_parameters(config.hidden_units)
    replica = CapturedReplica(devices - 1, start, config, velocity=start)
    replica.compute_gradients(on_device(replica.device, DIGITS.train[: config.batch_size]))
    assert replica.parameters_on_host().tobytes() == start.tobytes()
    assert replica.velocity_on_host().tobytes() == start.tobytes()
    assert replica.take_score() == (0, 0)


def pools_of_graphs() -> set[tuple[int, tuple[int, int]]]:
    """Return the device and the number of each pool with memory, without the default pools."""
    pools = {(segment["device"], segment["segment_pool_id"]) for segment in tcuda.memory_snapshot()}
    return {(device, number) for device, number in pools if number != (0, 0)}


@pytest.mark.parametrize("devices", ONE_OR_LONG_TWO)
def test_graphs_of_a_device_share_memory_and_give_it_back(devices: int) -> None:
    gc.collect()
    tcuda.empty_cache()  # graphs of other tests may have released memory that is not given back yet
    before, during = pools_of_graphs(), []
    config = Config(**SMALL, epochs=1, devices=devices, graph=True)
    gc.disable()  # the pools must give their memory back without the garbage collector
    try:
        train(config, DIGITS, lambda epoch: during.append(pools_of_graphs()))
        tcuda.empty_cache()
        assert pools_of_graphs() == before
    finally:
        gc.enable()
    [added] = [pools - before for pools in during]
    assert sorted(device for device, _ in added) == list(range(devices))
