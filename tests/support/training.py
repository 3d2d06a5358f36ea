"""Short trainings of the demo, and their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda import xp
from tcuda.demo import digits, network
from tcuda.demo.config import Config
from tcuda.demo.train import train

if TYPE_CHECKING:
    from tcuda.demo.checkpoint import Checkpoint
    from tcuda.demo.result import Result


DIGITS = digits.load()
ONE_OR_TWO = range(1, min(2, tcuda.device_count()) + 1)
ONE_OR_LONG_TWO = [pytest.param(devices, marks=[pytest.mark.long] * (devices == 2)) for devices in ONE_OR_TWO]
"""The same, for tests that take long with two devices."""


def trained(**settings: Any) -> Result:
    """Return the result of a training with these settings."""
    return train(Config(**settings), DIGITS)


def initial_parameters(hidden_units: int) -> Any:
    """Draw initial parameters; every call returns equal ones."""
    with tcuda.random.fork_rng([0]), tcuda.device(0):
        tcuda.manual_seed(0)
        return network.initial_parameters(hidden_units)


def assert_same(result: Result, expected: Result) -> None:
    """Check that two trainings have the same results, bit for bit."""
    assert result.parameters.tobytes() == expected.parameters.tobytes()
    assert result.epochs == expected.epochs
    assert result.accuracy == expected.accuracy


def checkpoint_of(**settings: Any) -> Checkpoint:
    """Train with these settings, and return the only checkpoint of the training."""
    made: list[Checkpoint] = []
    train(Config(**settings), DIGITS, on_checkpoint=made.append)
    (checkpoint,) = made
    return checkpoint


def on_device(device: int, rows: Any) -> Any:
    """Return the rows as an array of a device."""
    with tcuda.device(device):
        return xp.array(rows)
