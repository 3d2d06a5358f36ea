"""The calls that the core does as a whole: the results are those of the functions in Python."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.placed_arrays import on
from tcuda.comm import broadcast, broadcast_coalesced, gather, reduce_add, reduce_add_coalesced, scatter
from tcuda.comm._routes import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._backend import Backend
    from tcuda._backend.transfers import Transfers

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices"),
]
NAMES = "broadcast", "scatter", "gather", "reduce_add", "broadcast_coalesced", "reduce_add_coalesced"
SHAPES: list[tuple[int, ...]] = [(), (1,), (5,), (4, 1), (3, 1, 4), (1, 2, 1), (7, 3), (1, 1, 5), (9, 1, 1)]


@pytest.fixture
def transfers(backend: Backend) -> Transfers:
    return backend.transfers()


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)


def calls(shape: tuple[int, ...], dtype: str) -> dict[str, Callable[[], Any]]:
    near, far = on(0, values(shape, dtype)), on(1, values(shape, dtype, 1))
    more, empty = [on(place, values((3, 3), "i", place)) for place in (0, 1)], on(0, np.ones((0, 3)))
    found: dict[str, Callable[[], Any]] = {
        "broadcast": lambda: broadcast(near, (0, 1)),
        "broadcast twice": lambda: broadcast(near, [1, 1, 0]),
        "reduce_add": lambda: reduce_add([near, far], 1),
        "reduce_add of three": lambda: reduce_add((far, near, far), 0),
        "broadcast_coalesced": lambda: broadcast_coalesced([near, near, empty, more[0]], [0, 1]),
        "reduce_add_coalesced": lambda: reduce_add_coalesced([[near, near, more[0]], (far, far, more[1])], 0),
        "reduce_add_coalesced on 1": lambda: reduce_add_coalesced([[near, more[0]], (far, more[1])], 1),
    }
    if shape:
        found |= {
            "scatter": lambda: scatter(near, [0, 1]),
            "scatter in three": lambda: scatter(near[:], (1, 0, 1)),
            "gather": lambda: gather([far, near, near], 0, 1),
            "gather on 0": lambda: gather((near, far), 0, 0),
        }
    return found


def arrays_in(made: Any) -> Iterator[Any]:
    if isinstance(made, (list, tuple)):
        for each in made:
            yield from arrays_in(each)
    else:
        yield made


@pytest.mark.parametrize("dtype", ["?", "b", "e", "f", "D"])
@pytest.mark.parametrize("shape", SHAPES)
def test_results_are_those_of_the_functions_in_python(
    transfers: Transfers, shape: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, made = [], {}
    for name in NAMES:
        method = getattr(transfers, name)
        monkeypatch.setattr(transfers, name, lambda *args, method=method: whole.append(method(*args)) or whole[-1])
    actions = calls(shape, dtype)
    for name, action in actions.items():
        made[name] = action()
        assert whole.pop() is made[name], name
    for name in NAMES:
        monkeypatch.setattr(transfers, name, lambda *args: None)
    for name, action in actions.items():
        expected = action()
        assert type(made[name]) is type(expected)
        for array, other in itertools.zip_longest(arrays_in(made[name]), arrays_in(expected)):
            for attribute in ("shape", "strides", "dtype", "size", "nbytes", "device"):
                assert repr(getattr(array, attribute, None)) == repr(getattr(other, attribute, None)), (name, attribute)
            assert repr(array.flags) == repr(other.flags), name
            assert (array.base is None) == (other.base is None), name
            assert array.get().tobytes() == other.get().tobytes(), name


def test_other_arguments_are_left_to_the_functions_in_python(transfers: Transfers) -> None:
    near, far = on(0, np.ones((4, 4))), on(1, np.ones((4, 4)))
    large = on(0, np.ones(SMALL))
    grid = [[near, near], [far, far]]
    for made in (
        transfers.broadcast(near, iter((0, 1)), SMALL),
        transfers.broadcast(near, (0, tcuda.device_count()), SMALL),
        transfers.broadcast(near, (0, -1), SMALL),
        transfers.broadcast(near, (0, 1 << 70), SMALL),
        transfers.broadcast(near, ("cuda:1",), SMALL),
        transfers.broadcast(near, None, SMALL),
        transfers.broadcast(near[:, 1:], (0, 1), SMALL),
        transfers.broadcast(near[:0], (0, 1), SMALL),
        transfers.broadcast(np.ones(3), (0, 1), SMALL),
        transfers.broadcast(large, (0, 1, 1), SMALL),
        transfers.scatter(near, []),
        transfers.scatter(near.T[1:], [0, 1]),
        transfers.scatter(on(0, np.ones(())), [0, 1]),
        transfers.gather([], 0),
        transfers.gather([near, far], None),
        transfers.gather([near, far], True),
        transfers.gather([near, far], -1),
        transfers.gather([near, far[:, 1:]], 0),
        transfers.gather([near, on(1, np.ones((4, 4), "f"))], 0),
        transfers.gather([near, np.ones((4, 4))], 0),
        transfers.reduce_add([near], 0, SMALL),
        transfers.reduce_add([near, near], 1, SMALL),
        transfers.reduce_add([near, far[:2]], 0, SMALL),
        transfers.reduce_add([near, on(1, np.ones((4, 4), "f"))], 0, SMALL),
        transfers.reduce_add([large, large, large], 0, SMALL),
        transfers.broadcast_coalesced([near], [0, 1], 1000, SMALL),
        transfers.broadcast_coalesced([near, far], [0, 1], 1000, SMALL),
        transfers.broadcast_coalesced([near, near], [0], 1000, SMALL),
        transfers.broadcast_coalesced([near, near], [0, 0], 1000, SMALL),
        transfers.broadcast_coalesced([near, near], [0, 1], 256, SMALL),
        transfers.broadcast_coalesced([near, near], [0, 1], -1, SMALL),
        transfers.broadcast_coalesced([near, near], [0, 1], 1 << 70, SMALL),
        transfers.reduce_add_coalesced(grid, 0, 255, SMALL),
        transfers.reduce_add_coalesced(grid[:1], 0, 1000, SMALL),
        transfers.reduce_add_coalesced([], 0, 1000, SMALL),
        transfers.reduce_add_coalesced([[near], [far, far]], 0, 1000, SMALL),
        transfers.reduce_add_coalesced([[near, far], [far, far]], 0, 1000, SMALL),
        transfers.reduce_add_coalesced([[near, near], [far, far[:2]]], 0, 1000, SMALL),
    ):
        assert made is None


def test_a_call_during_a_capture_is_left_to_the_functions_in_python(transfers: Transfers) -> None:
    near, far, graph = on(0, np.ones(4)), on(1, np.ones(4)), tcuda.CUDAGraph()
    with tcuda.graph(graph):
        near += 1
        assert transfers.broadcast(near, (0, 1), SMALL) is None
        assert transfers.reduce_add([near, far], 0, SMALL) is None


def test_memory_comes_back_when_the_results_have_gone(memory_comes_back: None) -> None:
    for action in calls((64, 4), "f").values():
        made = action()
        del made
