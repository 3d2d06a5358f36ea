"""Collectives in which calls of the runtime and of the library fail, or are interrupted."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.device_arrays import on_each, read
from tcuda import nccl
from tcuda._process import lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._backend import Backend

pytestmark = pytest.mark.emulated

Arrays = list[Any]

COLLECTIVES: dict[str, Callable[[Arrays, Arrays, list[tcuda.Stream]], None]] = {
    "all_reduce": lambda inputs, outputs, streams: nccl.all_reduce(inputs, streams=streams),
    "reduce": lambda inputs, outputs, streams: nccl.reduce(inputs, streams=streams),
    "broadcast": lambda inputs, outputs, streams: nccl.broadcast(inputs, streams=streams),
    "all_gather": lambda inputs, outputs, streams: nccl.all_gather(inputs, outputs, streams),
    "reduce_scatter": lambda inputs, outputs, streams: nccl.reduce_scatter(outputs, inputs, streams=streams),
}


class Failing:
    """Let one call of the runtime fail.

    Args:
        patch: The fixture.
        runtime: The runtime.
        failing: The place of the call that fails, counted from 0.

    Attributes:
        calls: The names of the calls.
    """

    def __init__(self, patch: pytest.MonkeyPatch, runtime: Any, failing: int) -> None:
        self.calls: list[str] = []
        self._failing = failing
        for name in dir(runtime):
            method = getattr(runtime, name)
            if name[0] != "_" and callable(method):
                patch.setattr(runtime, name, self._counted(name, method))
                patch.setitem(vars(lazy.cuda), name, getattr(runtime, name))

    def _counted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            if len(self.calls) - 1 == self._failing:
                raise tcuda.AcceleratorError(999, name)
            return method(*args, **kwargs)

        return call


@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_call_of_the_runtime_fails_once(name: str, runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = [np.arange(4.0), np.arange(4.0) + 1]
    inputs, outputs = on_each(hosts), on_each([np.zeros(8)] * 2)
    streams = [tcuda.Stream(device=device) for device in (0, 1)]
    statuses = []
    for failing in range(100):
        with monkeypatch.context() as patch:
            faults = Failing(patch, runtime, failing)
            try:
                COLLECTIVES[name](inputs, outputs, streams)
            except tcuda.AcceleratorError as error:
                statuses.append(error.error_code)
            else:
                break
        assert all((got == was).all() for got, was in zip(read(inputs), hosts, strict=True))
        assert not np.any(read(outputs))
        assert tcuda.current_device() == 0
    assert 0 < failing == len(faults.calls)
    assert statuses == [999] * failing
    for stream in streams:
        stream.synchronize()
    changed = [*read(inputs), *read(outputs)]
    assert any((got != was).any() for got, was in zip(changed, [*hosts, *np.zeros((2, 8))], strict=True))


def test_a_clique_that_cannot_be_made_is_made_by_the_next_call(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcuda._base.errors import NcclError
    from tcuda.nccl import _communicators

    _communicators.cliques.clear()

    def refuse(devices: Any) -> Any:
        raise NcclError(1)

    arrays = on_each([np.ones(4)] * 2)
    with monkeypatch.context() as patch:
        patch.setattr(backend.nccl(), "communicators", refuse)
        with pytest.raises(RuntimeError, match="NCCL Error 1: unhandled cuda error"):
            nccl.all_reduce(arrays)
    assert not _communicators.cliques
    nccl.all_reduce(arrays)
    assert [got.tolist() for got in read(arrays)] == [[2] * 4] * 2
    assert list(_communicators.cliques) == [(0, 1)]


def test_the_communicators_of_the_same_devices_in_the_same_order_are_made_once(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcuda.nccl import _communicators

    _communicators.cliques.clear()
    made: list[tuple[int, ...]] = []
    real = backend.nccl().communicators
    monkeypatch.setattr(backend.nccl(), "communicators", lambda devices: made.append(devices) or real(devices))
    arrays = on_each([np.ones(4)] * 2)
    for _ in range(3):
        nccl.all_reduce(arrays)
        nccl.broadcast(arrays[::-1])
        nccl.all_reduce(arrays[1:])
    assert made == [(0, 1), (1, 0), (1,)]


def test_threads_may_call_collectives_of_the_same_devices() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                arrays = on_each([np.ones(100)] * 2)
                nccl.all_reduce(arrays)
                assert all((got == 2).all() for got in read(arrays))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_interrupt_ends_the_wait_for_other_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcuda.emulation.backend.nccl import wire

    uid, receive = nccl.unique_id(), wire.receive

    def interrupted(connection: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return receive(connection)

    with monkeypatch.context() as patch:
        patch.setattr(wire, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            nccl.init_rank(2, uid, 0)
    with tcuda.device(1), pytest.raises(RuntimeError, match=r"NCCL Error 6.*\nRank 0 is gone"):
        nccl.init_rank(2, uid, 1)
