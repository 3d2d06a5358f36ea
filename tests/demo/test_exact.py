"""The exact kernel of the demo: the same bits for all shares of a batch, in every order, on every machine."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import examples
from support.training import DIGITS, ONE_OR_TWO, assert_same, checkpoint_of, trained
from tcuda import xp
from tcuda.demo import exact, network
from tcuda.demo.config import Config
from tcuda.demo.network import Parameters
from tcuda.demo.shapes import parameter_count
from tcuda.demo.train import train

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

BATCH = 32
HIDDEN = 16


def parameters_of(scale: float, hidden_units: int = HIDDEN) -> Parameters:
    """Return random parameters, the same on every machine."""
    flat = np.random.default_rng(1).standard_normal(parameter_count(hidden_units), np.float32)
    return Parameters(xp.array(flat * np.float32(scale)), hidden_units)


def gradients_of(rows: Any, parameters: Parameters) -> tuple[Any, float]:
    """Return the sums of the gradients and of the loss over the rows."""
    pixels, targets = network.unpack(xp.array(rows))
    activations = exact.forward(parameters, pixels)
    hidden_units = parameters.hidden_bias.size
    gradients = Parameters(xp.full(parameters.flat.shape, np.nan, xp.float64), hidden_units)
    exact.backward(parameters, activations, targets, gradients)
    return gradients.flat.get() + 0.0, float(network.loss(activations, targets))


# Scales of 1000 are far beyond the limits of the grids, as after a training with too large steps.
@settings(max_examples=examples(30), deadline=None)
@given(st.data(), st.sampled_from([0.01, 0.2, 1.0, 1000.0]))
def test_shares_of_any_size_and_in_any_order_have_the_same_sum(data: st.DataObject, scale: float) -> None:
    rows = DIGITS.train[:BATCH]
    owners = np.array(data.draw(st.lists(st.integers(0, 7), min_size=BATCH, max_size=BATCH)))
    parameters = parameters_of(scale)
    expected, expected_loss = gradients_of(rows, parameters)
    total, loss = np.zeros_like(expected), 0.0
    for owner in data.draw(st.permutations(sorted(set(owners.tolist())))):
        part, part_of_loss = gradients_of(np.flip(rows[owners == owner], axis=0), parameters)
        total, loss = total + part, loss + part_of_loss
    assert total.tobytes() == expected.tobytes()
    assert loss == expected_loss


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16, 32])
def test_equal_shares_have_the_same_sum(count: int) -> None:
    rows = DIGITS.train[:BATCH]
    parameters = parameters_of(0.2, hidden_units=128)
    expected, _ = gradients_of(rows, parameters)
    parts = [gradients_of(rows[share::count], parameters)[0] for share in range(count)]
    assert sum(parts[1:], parts[0]).tobytes() == expected.tobytes()
    assert sum(reversed(parts[:-1]), parts[-1]).tobytes() == expected.tobytes()


def test_the_largest_batch_and_network_need_at_most_53_bits() -> None:
    hidden_units = 1 << 16
    parameters = Parameters(xp.full(parameter_count(hidden_units), 1000.0, xp.float32), hidden_units)
    rows = np.full((4, 65), 16, np.uint8)
    rows[:, -1] = 0
    hidden = exact.forward(parameters, network.unpack(xp.array(rows))[0]).hidden
    scores = hidden @ exact.WEIGHTS.round(parameters.output_weight) + exact.WEIGHTS.limit
    assert float(scores.max()) == hidden_units * exact.HIDDEN.limit * exact.WEIGHTS.limit + exact.WEIGHTS.limit
    units = float(scores.max()) * 2.0 ** (exact.HIDDEN.digits + exact.WEIGHTS.digits)
    assert units < 2**53
    digits = len(DIGITS.train)
    for largest, finest in [
        (64 * exact.WEIGHTS.limit + exact.WEIGHTS.limit, 4 + exact.WEIGHTS.digits),
        (10 * exact.WEIGHTS.limit, exact.ERRORS.digits + exact.WEIGHTS.digits),
        (digits * exact.ERRORS.limit, 4 + exact.ERRORS.digits),
        (digits * exact.HIDDEN.limit, exact.HIDDEN.digits + exact.ERRORS.digits),
    ]:
        assert largest * 2.0**finest < 2**53


def test_bits_of_the_gradients_are_those_of_every_machine() -> None:
    gradients, loss = gradients_of(DIGITS.train[:BATCH], parameters_of(0.2))
    assert (
        hashlib.sha256(gradients.tobytes()).hexdigest()
        == "9373654e3d4cd7182582692e17c56aa8d67c94f5c40557103009e7efb2f70475"
    )
    assert loss.hex() == "0x1.374ab8f400000p+6"


def test_exponential_and_logarithm_are_close_to_those_of_the_library() -> None:
    exponents = np.linspace(-12, 1, 1000)
    np.testing.assert_allclose(exact.exponential(xp.array(exponents)).get(), np.exp(exponents), rtol=1e-6)
    assert float(exact.exponential(xp.array(-1e9))) < 2**-30
    numbers = np.linspace(1, 10, 1000)
    np.testing.assert_allclose(exact.logarithm(xp.array(numbers)).get(), np.log(numbers), rtol=1e-9, atol=1e-12)
    assert float(exact.exponential(xp.array(0.0))) == 1
    assert float(exact.logarithm(xp.array(1.0))) == 0


def test_a_grid_rounds_to_multiples_within_its_limit() -> None:
    grid = exact.Grid(2.0, 3)
    values = np.array([0.05, 0.0625, 0.07, -0.2, 1.99, 3.0, -math.inf, math.inf], np.float32)
    rounded = grid.round(xp.array(values))
    assert rounded.dtype == np.float64
    assert rounded.get().tolist() == [0, 0, 0.125, -0.25, 2, 2, -2, 2]


def test_gradients_are_close_to_those_of_the_array_kernel() -> None:
    parameters = parameters_of(0.2)
    pixels, targets = network.unpack(xp.array(DIGITS.train[:BATCH]))
    expected = Parameters(xp.zeros_like(parameters.flat), HIDDEN)
    network.backward(parameters, network.forward(parameters, pixels), targets, expected)
    gradients, _ = gradients_of(DIGITS.train[:BATCH], parameters)
    np.testing.assert_allclose(gradients, expected.flat.get(), rtol=0.02, atol=0.02)


def test_mean_gradients_that_are_zero_are_positive() -> None:
    """Require one kind of zero: the sum of two zeros has a sign that depends on theirs, and so on the shares."""
    mean = exact.mean(xp.array([-0.0, 0.0, 64.0]), 32).get()
    assert mean.dtype == np.float32
    assert mean.tolist() == [0, 0, 2]
    assert not np.signbit(mean).any()


# Training


@pytest.mark.long
def test_training_reaches_97_percent() -> None:
    assert trained(kernel="exact").accuracy >= 0.97


def test_captured_training_is_the_same_to_the_bit() -> None:
    assert_same(trained(kernel="exact", epochs=2, graph=True), trained(kernel="exact", epochs=2))


@pytest.mark.long
@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
def test_training_goes_on_with_another_number_of_devices(before: int, after: int) -> None:
    if max(before, after) > max(ONE_OR_TWO):
        pytest.skip("needs more devices")
    checkpoint = checkpoint_of(kernel="exact", epochs=1, save_at=1, devices=before)
    config = Config(kernel="exact", epochs=2, devices=after)
    assert_same(train(config, DIGITS, resume_from=checkpoint), trained(kernel="exact", epochs=2))


@pytest.mark.emulated
def test_any_number_of_devices_gives_the_same_bits(output_of: OutputOf) -> None:
    code = """
from tcuda.demo import digits
from tcuda.demo.config import Config
from tcuda.demo.train import train

some = digits.Digits(digits.load().train[:64], digits.load().test)
results = [train(Config(epochs=2, devices=count, kernel="exact"), some) for count in (1, 2, 4, 8, 16, 32)]
print(len({(result.parameters.tobytes(), tuple(result.epochs), result.accuracy) for result in results}))
"""
    assert output_of(code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_DEVICES="32") == "1"
