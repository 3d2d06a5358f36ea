"""The states of generators of any kind: saved in the middle, and gone on with bit for bit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tcuda
from tcuda import xp

pytestmark = pytest.mark.usefixtures("runtime")

KINDS = ["XORWOW", "MRG32k3a", "Philox4x3210"]
MAKERS = {
    **{kind: (lambda seed, kind=kind: xp.random.Generator(getattr(xp.random, kind)(seed))) for kind in KINDS},
    "default_rng": lambda seed: xp.random.default_rng(seed),
    "tcuda": lambda seed: tcuda.random.default_rng(seed=seed),
    # CuPy fills arrays only if the number of threads is a multiple of 256.
    "of fewer threads": lambda seed: xp.random.Generator(xp.random.XORWOW(seed, size=256)),
}


@pytest.fixture(params=MAKERS, ids=lambda name: name.replace(" ", "-"))
def make(request):
    return MAKERS[request.param]


def _draws(generator):
    return [generator.random(5).get(), generator.standard_normal(1000).get(), generator.integers(0, 1 << 40, 7).get()]


def _same(first, second):
    return all((one == other).all() for one, other in zip(first, second, strict=True))


def test_a_generator_goes_on_from_the_middle(make):
    generator, other = make(7), make(8)
    _draws(generator)
    state = tcuda.random.get_state(generator)
    assert (state.dtype, type(state)) == (np.uint8, np.ndarray)
    expected = _draws(generator)
    assert not _same(_draws(generator), expected)
    tcuda.random.set_state(other, state)
    assert _same(_draws(other), expected)
    tcuda.random.set_state(generator, state)
    assert _same(_draws(generator), expected)


@pytest.mark.parametrize(
    "copied", [lambda each: pickle.loads(pickle.dumps(each)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_a_pickle_has_the_state(make, copied):
    generator = make(7)
    _draws(generator)
    if copied is copy.deepcopy and isinstance(generator, tcuda.Generator):
        pytest.skip("a generator of tcuda refuses copies")
    again = copied(generator)
    assert type(again) is type(generator)
    assert _same(_draws(again), _draws(generator))


def test_the_state_of_a_bit_generator_is_that_of_its_generator():
    generator = xp.random.default_rng(3)
    generator.random(4)
    state = tcuda.random.get_state(generator.bit_generator)
    assert (state == tcuda.random.get_state(generator)).all()


def test_the_state_is_read_in_the_order_of_the_stream():
    generator = xp.random.default_rng(3)
    with tcuda.stream(tcuda.Stream()):
        tcuda._sleep(1_000_000)
        generator.random(4)
        state = tcuda.random.get_state(generator)
        first = generator.random(4).get()
        tcuda.random.set_state(generator, state)
        assert (generator.random(4).get() == first).all()


def test_states_of_other_classes_and_sizes_are_refused():
    small, large = (xp.random.XORWOW(1, size=size) for size in (4, 8))
    with pytest.raises(RuntimeError, match="wrong size"):
        tcuda.random.set_state(large, tcuda.random.get_state(small))
    with pytest.raises(RuntimeError, match="of another class than MRG32k3a"):
        tcuda.random.set_state(xp.random.MRG32k3a(1, size=4), tcuda.random.get_state(small))
    with pytest.raises(TypeError, match="RNG state must be"):
        tcuda.random.set_state(small, [1, 2])
    for call in (tcuda.random.get_state, lambda each: tcuda.random.set_state(each, np.zeros(4, np.uint8))):
        with pytest.raises(TypeError, match="takes a generator of tcuda"):
            call(np.random.default_rng(1))


def test_a_capture_refuses_to_read_the_state():
    generator = xp.random.default_rng(3)
    out = xp.ones(3)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        out *= 2
        with pytest.raises(RuntimeError, match="during CUDA graph capture"):
            tcuda.random.get_state(generator)
    graph.replay()
    assert out.tolist() == [2, 2, 2]


@pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")
def test_the_device_of_the_state_must_be_current():
    generator = xp.random.default_rng(3)
    with tcuda.device(1), pytest.raises(RuntimeError, match="different device"):
        tcuda.random.get_state(generator)
