"""The demo with kernels of CUDA C++: the numbers of the array operations, the same bits, and the same accuracy."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from support.training import DIGITS, ONE_OR_TWO, assert_same, checkpoint_of, initial_parameters, trained
from tcuda import xp
from tcuda.demo import network
from tcuda.demo.config import Config
from tcuda.demo.raw_forward import RawForward
from tcuda.demo.train import train

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

SMALL: Any = {"batch_size": 205, "hidden_units": 16, "kernel": "raw"}


@pytest.mark.parametrize("images", [1, 45])
@pytest.mark.parametrize("hidden_units", [1, 128, 300])
def test_kernels_compute_the_activations_of_the_array_operations(images: int, hidden_units: int) -> None:
    parameters = network.Parameters(xp.array(initial_parameters(hidden_units)), hidden_units)
    parameters.hidden_bias[...] = 0.1
    parameters.output_bias[...] = xp.arange(10)
    pixels, _ = network.unpack(xp.array(DIGITS.train[:images]))
    activations, expected = (forward(parameters, pixels) for forward in (RawForward(), network.forward))
    for name in ("pixels", "hidden", "log_probabilities"):
        array, other = getattr(activations, name), getattr(expected, name)
        np.testing.assert_allclose(array.get(), other.get(), rtol=1e-4, atol=1e-4, strict=True)


def test_large_scores_do_not_overflow() -> None:
    parameters = network.Parameters(xp.array(1000 * initial_parameters(16)), 16)
    pixels, _ = network.unpack(xp.array(DIGITS.train[:8]))
    log_probabilities = RawForward()(parameters, pixels).log_probabilities.get()
    assert log_probabilities.min() < -1e5
    np.testing.assert_array_equal(log_probabilities.max(axis=1), 0)


@pytest.mark.long
@pytest.mark.parametrize("devices", ONE_OR_TWO)
def test_training_with_kernels_reaches_97_percent(devices: int) -> None:
    result = trained(epochs=7, devices=devices, kernel="raw")
    assert result.accuracy >= 0.97
    (first,) = trained(epochs=1, devices=devices).epochs
    assert result.epochs[0].loss == pytest.approx(first.loss, rel=1e-2)


@pytest.mark.long
@pytest.mark.parametrize("devices", ONE_OR_TWO)
@pytest.mark.parametrize("settings", [{"graph": True}, {"graph": True, "overlap": False}, {"overlap": False}])
def test_graph_and_overlap_change_no_bit_with_kernels(settings: dict[str, bool], devices: int) -> None:
    assert_same(trained(**SMALL, epochs=2, devices=devices, **settings), trained(**SMALL, epochs=2, devices=devices))


@pytest.mark.parametrize("graph", [False, True])
def test_training_with_kernels_is_resumed_to_the_same_bits(graph: bool) -> None:
    checkpoint = checkpoint_of(**SMALL, epochs=3, save_at=1)
    resumed = train(Config(**SMALL, epochs=3, graph=graph), DIGITS, resume_from=checkpoint)
    assert_same(resumed, trained(**SMALL, epochs=3))
