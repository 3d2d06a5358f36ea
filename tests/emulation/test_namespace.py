"""The names of the array namespace, their copies and pickles, and their signatures."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import tcuda
import tcuda.emulation
from tcuda.emulation import ndarray, xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


def test_every_listed_name_exists():
    for module in (xp, xp.linalg, xp.fft):
        names = dir(module)
        assert names == sorted(names)
        for name in names:
            getattr(module, name)
    assert xp.ndarray is tcuda.emulation.ndarray is ndarray
    assert xp.float32 is np.float32
    assert xp.newaxis is None
    assert xp.linalg.LinAlgError is np.linalg.LinAlgError


def test_an_import_of_all_names_binds_the_names_of_cupy_and_no_others():
    found = {}
    exec("from tcuda.emulation.xp import *", found)
    assert found.pop("__builtins__")
    assert sorted(found) == [name for name in dir(xp) if not name.startswith("_")]
    assert found["testing"] is xp.testing


@pytest.mark.parametrize(
    "name",
    # These names need a compiler, belong elsewhere, or are NumPy's and not CuPy's.
    ["block", "geomspace", "insert",
     "longdouble", "matvec", "nanpercentile", "nditer", "object_", "spacing", "unstack", "vecdot"],
)  # fmt: skip
def test_names_that_need_a_compiler_or_that_cupy_lacks_are_absent(name):
    with pytest.raises(AttributeError, match=rf"module 'tcuda.emulation.xp' has no attribute '{name}'"):
        getattr(xp, name)
    for module in (xp.linalg, xp.fft):
        with pytest.raises(AttributeError, match=name):
            getattr(module, name)


def public():
    """Return the public objects of the namespace, by dotted name."""
    modules = {"": xp, "linalg.": xp.linalg, "fft.": xp.fft, "random.": xp.random}
    found = {prefix + name: getattr(module, name) for prefix, module in modules.items() for name in dir(module)}
    return {name: value for name, value in found.items() if not inspect.ismodule(value)}


@pytest.mark.parametrize("name", sorted(public()))
def test_public_objects_are_pickled_and_copied(name):
    value = public()[name]
    for other in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        # Only numbers and NumPy's s_ may be copied as other objects.
        assert other is value or (type(other) is type(value) and not callable(value))


def test_methods_of_arrays_are_pickled():
    array = xp.arange(3.0)
    assert pickle.loads(pickle.dumps(ndarray.sum)) is ndarray.sum
    assert pickle.loads(pickle.dumps(array.sum))() == 3


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))])
def test_a_copy_of_a_random_state_continues_at_the_same_position(copied):
    for state in (xp.random.RandomState(3), tcuda.Generator()):
        state.random_sample(2)
        other = copied(state)
        assert type(other) is type(state)
        assert other.random_sample(3).tolist() == state.random_sample(3).tolist()
        state.random_sample(1)  # this call does not change the copy
        assert other.random_sample(3).tolist() != state.random_sample(3).tolist()


def test_functions_carry_the_signatures_of_cupy():
    assert xp.sum.__name__ == "sum"
    assert str(inspect.signature(xp.sum)) == "(a, axis=None, dtype=None, out=None, keepdims=False)"


def test_a_small_network_learns(runtime):
    """Train with one program on both array modules: the main use of the namespace."""

    def train(module):
        random = np.random.default_rng(1)
        data = module.asarray(random.standard_normal((64, 2)).astype(np.float32))
        labels = (data[:, 0] * data[:, 1] > 0).astype(module.int64)
        one_hot = module.eye(2, dtype=module.float32)[labels]
        weights = [
            module.asarray(random.standard_normal(shape).astype(np.float32))
            for shape in ((2, 16), (16,), (16, 2), (2,))
        ]
        for _ in range(200):
            hidden = module.maximum(data @ weights[0] + weights[1], 0)
            scores = hidden @ weights[2] + weights[3]
            scores -= scores.max(axis=1, keepdims=True)
            odds = module.exp(scores)
            odds /= odds.sum(axis=1, keepdims=True)
            wrong = (odds - one_hot) / len(data)
            back = (wrong @ weights[2].T) * (hidden > 0)
            for weight, gradient in zip(
                weights, (data.T @ back, back.sum(axis=0), hidden.T @ wrong, wrong.sum(axis=0)), strict=True
            ):
                weight -= 0.5 * gradient
        loss = -module.log(odds[module.arange(len(data)), labels]).mean()
        return float(loss), float((odds.argmax(axis=1) == labels).mean())

    loss, accuracy = train(xp)
    assert loss == pytest.approx(train(np)[0], rel=1e-3)
    assert accuracy > 0.9
