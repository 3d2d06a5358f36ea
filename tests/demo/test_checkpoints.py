"""Checkpoints of the demo: the same bits after a resumption, and files that are no checkpoints."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.examples import examples
from support.training import DIGITS, ONE_OR_TWO, assert_same, checkpoint_of, trained
from tcuda.cli import main
from tcuda.demo.checkpoint import Checkpoint
from tcuda.demo.config import DECIDING, Config
from tcuda.demo.result import Epoch
from tcuda.demo.shapes import parameter_count
from tcuda.demo.train import train

if TYPE_CHECKING:
    from pathlib import Path


def small_checkpoint() -> Checkpoint:
    """Return a checkpoint of a small network after two epochs, without any training."""
    config = Config(3, 2**64 - 1, devices=2, batch_size=16, hidden_units=4, learning_rate=0.1, momentum=0.8)
    size = parameter_count(config.hidden_units)
    parameters, velocity = np.random.default_rng(0).standard_normal((2, size), np.float32)
    return Checkpoint(
        config, parameters, velocity, np.arange(16, dtype=np.uint8), (Epoch(1, 1 / 3, 0.5), Epoch(2, 0.2, 2 / 3))
    )


@pytest.mark.long
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


def test_checkpoint_may_be_resumed_with_other_settings_that_change_no_bit() -> None:
    checkpoint = checkpoint_of(epochs=2, save_at=1, overlap=True)
    made: list[Checkpoint] = []
    config = Config(epochs=3, save_at=2, overlap=False)
    resumed = train(config, DIGITS, on_checkpoint=made.append, resume_from=checkpoint)
    assert_same(resumed, trained(epochs=3))
    assert [later.epoch for later in made] == [2]


def test_checkpoint_holds_the_state_at_the_start_of_the_next_epoch() -> None:
    checkpoint = checkpoint_of(epochs=1, seed=5, save_at=1)
    seed, offset = checkpoint.rng_state.view("<u8")
    assert seed == 5
    assert offset > 0
    assert np.abs(checkpoint.velocity).max() > 0
    assert checkpoint.parameters.tobytes() == trained(epochs=1, seed=5).parameters.tobytes()


def test_loading_returns_the_saved_checkpoint(tmp_path: Path) -> None:
    saved = small_checkpoint()
    saved.save(tmp_path / "file")  # NumPy would add a suffix to this name
    loaded = Checkpoint.load(tmp_path / "file")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    assert (loaded.config, loaded.epochs, loaded.epoch) == (saved.config, saved.epochs, 2)
    for name in ("parameters", "velocity", "rng_state"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(saved, name), strict=True)


def test_checkpoint_of_a_version_without_kernels_is_one_of_the_array_operations(tmp_path: Path) -> None:
    saved = small_checkpoint()
    saved.save(tmp_path / "file.npz")
    with np.load(tmp_path / "file.npz") as arrays:
        content = {name: array for name, array in arrays.items() if name != "kernel"}
    np.savez(tmp_path / "file.npz", **content)
    assert Checkpoint.load(tmp_path / "file.npz").config == saved.config


def test_failed_save_does_not_change_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file.npz"
    path.write_text("before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        small_checkpoint().save(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_saving_follows_no_link_that_somebody_has_planted(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".tcuda-demo.{os.getpid()}.tmp").symlink_to(victim)
    small_checkpoint().save(tmp_path / "file.npz")
    assert victim.read_text() == "precious"
    assert Checkpoint.load(tmp_path / "file.npz").epoch == 2


def test_failed_save_to_a_folder_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        small_checkpoint().save(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


OTHERS = {
    "seed": 1,
    "devices": 2,
    "batch_size": 16,
    "hidden_units": 64,
    "learning_rate": 0.1,
    "momentum": 0.8,
    "kernel": "raw",
}


@pytest.mark.parametrize("name", DECIDING)
def test_settings_that_decide_the_result_must_equal_those_of_the_checkpoint(name: str) -> None:
    checkpoint = dataclasses.replace(small_checkpoint(), config=Config())
    message = rf"made with {name} {getattr(Config, name)}; .* with {name} {OTHERS[name]} cannot"
    with pytest.raises(ValueError, match=message):
        train(Config(**{name: OTHERS[name]}), DIGITS, resume_from=checkpoint)


def test_all_settings_that_differ_are_named() -> None:
    checkpoint = dataclasses.replace(small_checkpoint(), config=Config())
    with pytest.raises(ValueError, match=r"with seed 0 and momentum 0\.9; .* with seed 1 and momentum 0\.5"):
        checkpoint.require_fitting(Config(seed=1, momentum=0.5))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 2}, "was made after epoch 2, and epochs is 2; ask for more"),
        ({"epochs": 4, "save_at": 2}, "was made after epoch 2, and save_at is 2; it must be 3 to 4"),
    ],
)
def test_settings_for_epochs_that_are_over_are_refused(settings: dict[str, int], message: str) -> None:
    checkpoint = small_checkpoint()
    with pytest.raises(ValueError, match=message):
        train(dataclasses.replace(checkpoint.config, **settings), DIGITS, resume_from=checkpoint)


def test_file_that_is_missing_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Checkpoint.load(tmp_path / "file.npz")


class Trap:
    """An object that fails the test if something unpickles it."""

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
    with pytest.raises(ValueError, match=r"'.*file\.npz' is not a checkpoint of tcuda demo"):
        Checkpoint.load(path)


NO_WHOLE_NUMBERS: tuple[Any, ...] = (2.5, "15", "many", np.nan, np.inf, -1, 10**30, True, b"5", [1, 2], None)
NO_FRACTIONS: tuple[Any, ...] = ("0.5", np.nan, np.inf, -1.0, 1e30, True, b"5", [0.1, 0.2], None)
BAD_VALUES = [
    *((name, value) for name in ("epochs", *DECIDING[:4]) for value in NO_WHOLE_NUMBERS),
    *((name, value) for name in DECIDING[4:6] for value in NO_FRACTIONS),
    *(("kernel", value) for value in ("", "Raw", b"raw", 1, None, True, ["raw", "raw"])),
]


@pytest.mark.parametrize(("name", "value"), BAD_VALUES)
def test_file_with_an_impossible_setting_is_no_checkpoint(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    small_checkpoint().save(path)
    with np.load(path) as arrays:
        content = {**arrays, name: value}
    np.savez(path, **content)
    with pytest.raises(ValueError, match=r"'.*file\.npz' is not a checkpoint of tcuda demo"):
        Checkpoint.load(path)


def test_file_with_nan_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    small_checkpoint().save(path)
    with np.load(path) as arrays:
        content = dict(arrays)
    for name in ("parameters", "velocity", "loss", "accuracy"):
        np.savez(path, **{**content, name: np.full_like(content[name], np.nan)})
        with pytest.raises(ValueError, match="is not a checkpoint"):
            Checkpoint.load(path)


def test_file_with_too_much_compressed_data_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.npz"
    np.savez_compressed(path, parameters=np.zeros(1 << 27, np.uint8))
    assert path.stat().st_size < 1 << 20
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        Checkpoint.load(path)


@pytest.mark.long
@given(st.data())
@settings(deadline=None, max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_training_resumes_from_any_file_or_refuses_it_in_one_line(
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


def test_file_with_other_content_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    small_checkpoint().save(path)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(small_checkpoint().velocity.tobytes())] ^= 1
    np.save(tmp_path / "array.npy", np.zeros(3))
    array = (tmp_path / "array.npy").read_bytes()
    for content in (b"", b"weights\n", array, whole[:-100], whole[:100], bytes(damaged)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a checkpoint of tcuda demo"):
            Checkpoint.load(path)
