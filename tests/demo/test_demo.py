"""The demo: it learns, it is deterministic to the bit, and its streams wait for each other as they must."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import itertools
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tcuda
from tcuda import xp
from tcuda.cli import main
from tcuda.demo import digits, network
from tcuda.demo.captured_replica import CapturedReplica
from tcuda.demo.checkpoint import Checkpoint
from tcuda.demo.config import DECIDING, Config
from tcuda.demo.loader import Loader
from tcuda.demo.optimizer import Momentum
from tcuda.demo.phases import Phases
from tcuda.demo.replica import Replica
from tcuda.demo.result import Epoch
from tcuda.demo.shapes import parameter_count
from tcuda.demo.train import train, train_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tcuda.demo.result import Result

DIGITS = digits.load()
ONE_OR_TWO = range(1, min(2, tcuda.device_count()) + 1)
BUSY = 5_000_000  # clock cycles: milliseconds, many times what a copy of a batch takes


def trained(**settings: Any) -> Result:
    return train(Config(**settings), DIGITS)


def initial_parameters(hidden_units: int) -> Any:
    """Draw parameters, the same at every call."""
    with tcuda.random.fork_rng([0]), tcuda.device(0):
        tcuda.manual_seed(0)
        return network.initial_parameters(hidden_units)


def assert_same(result: Result, expected: Result) -> None:
    assert result.parameters.tobytes() == expected.parameters.tobytes()
    assert result.epochs == expected.epochs
    assert result.accuracy == expected.accuracy


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
    start = initial_parameters(hidden_units)
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
    assert_same(side_by_side, in_a_row)


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_seed_decides_every_bit(devices: int) -> None:
    first, again, other = (trained(epochs=2, devices=devices, seed=seed) for seed in (3, 3, 4))
    assert_same(again, first)
    assert first.parameters.tobytes() != other.parameters.tobytes()


def test_current_device_and_its_generator_change_no_bit() -> None:
    expected = trained(epochs=1)
    last = tcuda.device_count() - 1
    with tcuda.random.fork_rng([last]), tcuda.device(last):
        tcuda.manual_seed(99)
        assert_same(trained(epochs=1), expected)


@pytest.mark.parametrize("interrupted", [False, True])
def test_generators_go_on_from_where_the_caller_left_them(interrupted: bool) -> None:
    def on_epoch(epoch: Epoch) -> None:
        if interrupted:
            raise KeyboardInterrupt

    before = tcuda.get_rng_state_all()
    try:
        train(Config(epochs=1), DIGITS, on_epoch)
    except KeyboardInterrupt:
        assert interrupted
    np.testing.assert_array_equal(tcuda.get_rng_state_all(), before)


# Checkpoints


def checkpoint_of(**settings: Any) -> Checkpoint:
    """Train with these settings, and return the checkpoint that was made."""
    made: list[Checkpoint] = []
    train(Config(**settings), DIGITS, on_checkpoint=made.append)
    (checkpoint,) = made
    return checkpoint


def small_checkpoint() -> Checkpoint:
    """Return a checkpoint after two epochs that nothing was trained for."""
    config = Config(3, 2**64 - 1, devices=2, batch_size=16, hidden_units=4, learning_rate=0.1, momentum=0.8)
    size = parameter_count(config.hidden_units)
    parameters, velocity = np.random.default_rng(0).standard_normal((2, size), np.float32)
    return Checkpoint(
        config, parameters, velocity, np.arange(16, dtype=np.uint8), (Epoch(1, 1 / 3, 0.5), Epoch(2, 0.2, 2 / 3))
    )


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_resumed_training_is_the_same_to_the_bit(devices: int, tmp_path: Path) -> None:
    expected = trained(epochs=4, devices=devices)
    made: list[Checkpoint] = []
    saving = train(Config(epochs=4, devices=devices, save_at=2), DIGITS, on_checkpoint=made.append)
    assert_same(saving, expected)
    (checkpoint,) = made
    assert checkpoint.epochs == tuple(expected.epochs[:2])
    checkpoint.save(tmp_path / "file.npz")
    config = Config(epochs=4, devices=devices)
    later: list[Epoch] = []
    resumed = train(config, DIGITS, later.append, resume_from=Checkpoint.load(tmp_path / "file.npz"))
    assert_same(resumed, expected)
    assert later == expected.epochs[2:]
    assert (saving.resumed_after, resumed.resumed_after) == (None, 2)


def test_checkpoint_may_be_resumed_otherwise_where_that_changes_no_bit() -> None:
    checkpoint = checkpoint_of(epochs=2, save_at=1, overlap=True)
    made: list[Checkpoint] = []
    config = Config(epochs=3, save_at=2, overlap=False)
    resumed = train(config, DIGITS, on_checkpoint=made.append, resume_from=checkpoint)
    assert_same(resumed, trained(epochs=3))
    assert [later.epoch for later in made] == [2]


def test_checkpoint_holds_what_the_next_epoch_begins_with() -> None:
    checkpoint = checkpoint_of(epochs=1, seed=5, save_at=1)
    seed, offset = checkpoint.rng_state.view("<u8")
    assert seed == 5
    assert offset > 0
    assert np.abs(checkpoint.velocity).max() > 0
    assert checkpoint.parameters.tobytes() == trained(epochs=1, seed=5).parameters.tobytes()


def test_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    saved = small_checkpoint()
    saved.save(tmp_path / "file")  # with this very name, no suffix added
    loaded = Checkpoint.load(tmp_path / "file")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    assert (loaded.config, loaded.epochs, loaded.epoch) == (saved.config, saved.epochs, 2)
    for name in ("parameters", "velocity", "rng_state"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(saved, name), strict=True)


def test_failed_save_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file.npz"
    path.write_text("before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        small_checkpoint().save(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_file_that_cannot_take_its_place_is_not_left_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        small_checkpoint().save(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


OTHERS = {"seed": 1, "devices": 2, "batch_size": 16, "hidden_units": 64, "learning_rate": 0.1, "momentum": 0.8}


@pytest.mark.parametrize("name", DECIDING)
def test_settings_that_decide_the_result_are_those_of_the_checkpoint(name: str) -> None:
    checkpoint = dataclasses.replace(small_checkpoint(), config=Config())
    message = rf"made with {name} {getattr(Config, name)}, .* with {name} {OTHERS[name]}\."
    with pytest.raises(ValueError, match=message):
        train(Config(**{name: OTHERS[name]}), DIGITS, resume_from=checkpoint)


def test_all_settings_that_differ_are_named() -> None:
    checkpoint = dataclasses.replace(small_checkpoint(), config=Config())
    with pytest.raises(ValueError, match=r"with seed 0 and momentum 0\.9, .* with seed 1 and momentum 0\.5"):
        checkpoint.require_fitting(Config(seed=1, momentum=0.5))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 2}, "was made after epoch 2, and epochs is 2; ask for more"),
        ({"epochs": 4, "save_at": 2}, "was made after epoch 2, and save_at is 2; it must be 3 to 4"),
    ],
)
def test_epochs_that_are_over_cannot_be_asked_for(settings: dict[str, int], message: str) -> None:
    checkpoint = small_checkpoint()
    with pytest.raises(ValueError, match=message):
        train(dataclasses.replace(checkpoint.config, **settings), DIGITS, resume_from=checkpoint)


def test_file_that_is_missing_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Checkpoint.load(tmp_path / "file.npz")


class Trap:
    """Says so if it is unpickled."""

    def __reduce__(self) -> Any:
        return pytest.fail, ("the file was unpickled",)


@pytest.mark.parametrize(
    "changed",
    [
        {"format": "tcuda demo checkpoint 2"},
        {"seed": -1},
        {"hidden_units": 5},
        {"parameters": np.zeros(10, np.float32)},
        {"velocity": np.zeros(parameter_count(4))},
        {"rng_state": np.zeros(15, np.uint8)},
        {"loss": np.zeros((2, 1))},
        {"accuracy": np.zeros(3)},
        {"velocity": np.array([Trap()])},
        {"velocity": None},
    ],
    ids=lambda changed: " ".join(changed),
)
def test_file_with_other_arrays_is_no_checkpoint(changed: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    small_checkpoint().save(path)
    with np.load(path) as arrays:
        content = {**arrays, **changed}
    np.savez(path, **{name: array for name, array in content.items() if array is not None})
    with pytest.raises(ValueError, match=r"'.*file\.npz' is no checkpoint of tcuda demo"):
        Checkpoint.load(path)


NO_WHOLE_NUMBERS: tuple[Any, ...] = (2.5, "15", "many", np.nan, np.inf, -1, 10**30, True, b"5", [1, 2], None)
NO_FRACTIONS: tuple[Any, ...] = ("0.5", np.nan, np.inf, -1.0, 1e30, True, b"5", [0.1, 0.2], None)
BAD_VALUES = [
    *((name, value) for name in ("epochs", *DECIDING[:4]) for value in NO_WHOLE_NUMBERS),
    *((name, value) for name in DECIDING[4:] for value in NO_FRACTIONS),
]


@pytest.mark.parametrize(("name", "value"), BAD_VALUES)
def test_file_with_a_setting_that_is_none_is_no_checkpoint(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    small_checkpoint().save(path)
    with np.load(path) as arrays:
        content = {**arrays, name: value}
    np.savez(path, **content)
    with pytest.raises(ValueError, match=r"'.*file\.npz' is no checkpoint of tcuda demo"):
        Checkpoint.load(path)


def test_file_with_numbers_that_are_none_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    small_checkpoint().save(path)
    with np.load(path) as arrays:
        content = dict(arrays)
    for name in ("parameters", "velocity", "loss", "accuracy"):
        np.savez(path, **{**content, name: np.full_like(content[name], np.nan)})
        with pytest.raises(ValueError, match="is no checkpoint"):
            Checkpoint.load(path)


def test_file_that_grows_when_it_is_read_is_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.npz"
    np.savez_compressed(path, parameters=np.zeros(1 << 27, np.uint8))
    assert path.stat().st_size < 1 << 20
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(ValueError, match="is no checkpoint"):
        Checkpoint.load(path)


@given(st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_training_goes_on_from_any_file_or_says_in_a_line_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    path = tmp_path / "file.npz"
    small_checkpoint().save(path)
    with np.load(path) as arrays:
        content = dict(arrays)
    for name in data.draw(st.lists(st.sampled_from(sorted(content)), min_size=1, max_size=2, unique=True)):
        as_bytes = st.binary(min_size=content[name].nbytes, max_size=content[name].nbytes)
        flipped = as_bytes.map(lambda raw, old=content[name]: np.frombuffer(raw, old.dtype).reshape(old.shape))
        content[name] = data.draw(flipped | st.sampled_from(NO_WHOLE_NUMBERS[:-1]))
    np.savez(path, **content)
    with np.errstate(all="ignore"):
        status = main(["demo", "--resume", "--epochs", "3", "--checkpoint", str(path)])
    said = capsys.readouterr()
    assert status in (0, 1)
    assert len(said.err.splitlines()) == status


def test_file_with_anything_else_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    small_checkpoint().save(path)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(small_checkpoint().velocity.tobytes())] ^= 1
    np.save(tmp_path / "array.npy", np.zeros(3))
    array = (tmp_path / "array.npy").read_bytes()
    for content in (b"", b"weights\n", array, whole[:-100], whole[:100], bytes(damaged)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is no checkpoint of tcuda demo"):
            Checkpoint.load(path)


# Graphs

SMALL: Any = {"batch_size": 205, "hidden_units": 16}  # 7 batches an epoch, so that the next begins in either buffer
KINDS = [Replica, CapturedReplica]


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[None]]:
    """Replace a function by one that does the same and counts its calls, which are what comes back."""

    def counted(owner: Any, name: str) -> list[None]:
        function, calls = getattr(owner, name), []

        def counting(*arguments: Any) -> Any:
            calls.append(None)
            return function(*arguments)

        monkeypatch.setattr(owner, name, counting)
        return calls

    return counted


@pytest.mark.parametrize("devices", ONE_OR_TWO)
@pytest.mark.parametrize("overlap", [True, False])
def test_graph_changes_no_bit(devices: int, overlap: bool) -> None:
    captured, launched = (trained(epochs=2, devices=devices, overlap=overlap, graph=graph) for graph in (True, False))
    assert_same(captured, launched)


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
    assert len(forward) == buffers + 1  # the digits that were held out
    assert len(updates) == (buffers if devices == 1 else steps)


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_capture_does_nothing_to_the_training(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcuda.CUDAGraph, "replay", lambda graph: None)
    config = Config(devices=devices)
    start = initial_parameters(config.hidden_units)
    replica = CapturedReplica(devices - 1, start, config, velocity=start)
    replica.compute_gradients(on_device(replica.device, DIGITS.train[: config.batch_size]))
    assert replica.parameters_on_host().tobytes() == start.tobytes()
    assert replica.velocity_on_host().tobytes() == start.tobytes()
    assert replica.take_score() == (0, 0)


def pools_of_graphs() -> set[tuple[int, tuple[int, int]]]:
    """Return the device and the number of each pool that has memory, beside the common one."""
    pools = {(segment["device"], segment["segment_pool_id"]) for segment in tcuda.memory_snapshot()}
    return {(device, number) for device, number in pools if number != (0, 0)}


@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_graphs_of_a_device_share_memory_and_give_it_back(devices: int) -> None:
    gc.collect()
    before, during = pools_of_graphs(), []
    config = Config(**SMALL, epochs=1, devices=devices, graph=True)
    gc.disable()  # it comes back at once
    try:
        train(config, DIGITS, lambda epoch: during.append(pools_of_graphs()))
        tcuda.empty_cache()
        assert pools_of_graphs() == before
    finally:
        gc.enable()
    [added] = [pools - before for pools in during]
    assert sorted(device for device, _ in added) == list(range(devices))


# Devices


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_devices_share_a_batch_and_agree(devices: int, kind: type[Replica]) -> None:
    config = Config(devices=devices, hidden_units=32, batch_size=17)  # not shared evenly by two
    start = initial_parameters(config.hidden_units)
    together = [kind(device, start, config) for device in range(devices)]
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_no_device_is_done_with_a_step_before_all_are(devices: int, kind: type[Replica]) -> None:
    config = Config(devices=devices)
    start = initial_parameters(config.hidden_units)
    replicas = [kind(device, start, config) for device in range(devices)]
    batch = [on_device(device, DIGITS.train[: config.batch_size][config.share(device)]) for device in range(devices)]
    train_step(replicas, batch, config.batch_size)  # waits, if it captures
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
    for _ in range(2):  # the first time it may be captured
        other.compute_gradients(batch)
        root.add_gradients_of(other)
        tcuda.synchronize(0)
        assert tcuda.current_stream(1).query()


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
]


@pytest.mark.parametrize("settings", IMPOSSIBLE)
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\d"):
        Config(**settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("epochs", *DECIDING[:4]) for value in ("15", 2.5, True, None, [1])),
        *((name, value) for name in DECIDING[4:] for value in ("0.5", True, None, 1j)),
        *((name, value) for name in ("overlap", "graph") for value in ("yes", 1, None)),
        *(("save_at", value) for value in ("1", 1.0, True)),
    ],
)
def test_settings_of_another_type_are_refused(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"^{name} is .*; it must be "):
        Config(**{name: value})


def test_a_batch_may_have_all_digits_that_there_are() -> None:
    assert Config(batch_size=len(DIGITS.train)).batch_size == len(DIGITS.train)


def test_devices_are_told_with_the_memory_that_the_network_takes() -> None:
    tcuda.empty_cache()
    free, total = tcuda.mem_get_info(0)
    result = trained(epochs=1)
    (device,) = result.devices
    assert (device.index, device.name) == (0, tcuda.get_device_name(0))
    assert free - device.free >= 3 * result.parameters.nbytes  # parameters, gradients, velocity
    assert device.used + device.free == total


# Time


@pytest.mark.parametrize(
    ("settings", "phases"),
    [
        ({"devices": 1}, ["copy", "forward", "backward", "update"]),
        ({"devices": 2}, ["copy", "forward", "backward", "exchange", "update"]),
        ({"devices": 1, "graph": True}, ["copy", "step"]),
        ({"devices": 2, "graph": True}, ["copy", "step", "exchange", "update"]),
    ],
)
def test_every_phase_takes_time(settings: dict[str, int], phases: list[str]) -> None:
    devices = settings["devices"]
    if devices not in ONE_OR_TWO:
        pytest.skip("needs more devices")
    result = trained(epochs=2, overlap=False, **settings)
    assert list(result.phases) == phases
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
