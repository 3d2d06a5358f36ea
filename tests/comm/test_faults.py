"""Calls of the runtime that fail in the middle of copies and sums.

On CUDA the core makes the calls of the driver, and ``tests/core/transfers/test_transfers.py`` lets them fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.failing_calls import refused_calls
from support.placed_arrays import on
from tcuda._backend.transfers import Hop
from tcuda.comm import (
    _reduce,
    broadcast,
    broadcast_coalesced,
    gather,
    reduce_add,
    reduce_add_coalesced,
    scatter,
)
from tcuda.comm._routes import Way

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._backend import Backend

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices"),
    pytest.mark.usefixtures("memory_comes_back"),
]


def rows(device: int) -> Any:
    return on(device, np.ones((4, 200)))


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "broadcast": lambda near, far: broadcast(near, [1, 1, 1]),
    "broadcast of a view": lambda near, far: broadcast(near.T, [1]),
    "broadcast to arrays": lambda near, far: broadcast(near, out=[on(1, np.zeros((4, 400)))[:, ::2], rows(1)]),
    "broadcast from the host": lambda near, far: broadcast(np.ones(100), [0, 1]),
    "scatter": lambda near, far: scatter(near, [0, 1]),
    "scatter with streams": lambda near, far: scatter(near, [1, 1], dim=1, streams=[tcuda.Stream(1)]),
    "scatter of a view": lambda near, far: scatter(near[:, ::2], [1, 0], dim=1),
    "scatter from the host": lambda near, far: scatter(np.ones((4, 4)), [0, 1], dim=1),
    "scatter of rows from the host": lambda near, far: scatter(np.ones((5, 4)), [0, 1, 1]),
    "gather": lambda near, far: gather([near, far], 0, 0),
    "gather of rows": lambda near, far: gather([near, far], 1, 1),
    "gather of a view": lambda near, far: gather([near[::2], far], 0, 1),
    "gather to the host": lambda near, far: gather([near, far], 1, "cpu"),
    "sum": lambda near, far: reduce_add([near, far[:, ::-1], near], 0),
    "many copies": lambda near, far: broadcast_coalesced([near, near[::2], near], [0, 1, 0], 2000),
    "many sums": lambda near, far: reduce_add_coalesced([[near, near[::2]], [far, far[::2]]], 0),
}
TRANSFERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "copy_rows": lambda transfers, near, far: transfers.copy_rows(far, 80, near, 80, 40, 10),
    "relay": lambda transfers, near, far: transfers.relay([near, far], [Hop(0, 1, 0, 400, 0), Hop(0, 1, 400, 800, 0)]),
    "pack": lambda transfers, near, far: transfers.pack([near, near], 0, 9999),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_of_the_runtime_fails_once(name: str) -> None:
    near, far = rows(0), rows(1)
    tcuda.Stream(1)
    assert refused_calls(lambda: CALLS[name](near, far))


def test_every_call_of_the_runtime_in_a_chain_of_sums_fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reduce, "best_sum", lambda devices, nbytes: Way("chain", 2))
    near, far = rows(0), rows(1)
    assert refused_calls(lambda: reduce_add([near, far[:, ::-1], near], 0))


@pytest.mark.parametrize("name", TRANSFERS)
def test_every_call_of_the_runtime_in_a_transfer_fails_once(backend: Backend, name: str) -> None:
    near, far = rows(0), rows(1)
    assert refused_calls(lambda: TRANSFERS[name](backend.transfers(), near, far))
