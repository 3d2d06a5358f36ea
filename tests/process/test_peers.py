"""Access of a device to the memory of a peer."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING

import pytest

import tcuda
from support.statuses import status_of
from tcuda._base.statuses import Status
from tcuda._process import peers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")


@pytest.fixture(autouse=True)
def _unknown_pairs(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let each test ask for pairs of devices of which nothing is known yet, and between which access is off."""
    if not runtime.deviceCanAccessPeer(0, 1):
        pytest.skip("the devices 0 and 1 cannot access each other's memory")
    pairs = (0, 1), (1, 0)
    _disable(runtime, pairs)
    with monkeypatch.context() as patched:
        patched.setattr(peers, "_reached", {})
        yield
    _disable(runtime, pairs)
    for device, peer in pairs:
        if peers._reached.get((device, peer)):  # other code remembers that the access is on
            _enable_again(runtime, device, peer)


def _disable(runtime: Runtime, pairs: Iterable[tuple[int, int]]) -> None:
    for device, peer in pairs:
        with tcuda.device(device):
            status_of(functools.partial(runtime.deviceDisablePeerAccess, peer))


def _enable_again(runtime: Runtime, device: int, peer: int) -> int:
    with tcuda.device(device):
        return status_of(lambda: runtime.deviceEnablePeerAccess(peer))


def test_access_is_enabled_for_the_named_device(runtime: Runtime) -> None:
    with tcuda.device(0):
        assert peers.reach(1, 0)
        assert tcuda.current_device() == 0
    assert _enable_again(runtime, 1, 0) == Status.PEER_ACCESS_ALREADY_ENABLED
    assert _enable_again(runtime, 0, 1) == Status.SUCCESS


def test_the_device_is_taken_into_use_for_imported_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    monkeypatch.setattr(peers, "ledger", lambda: types.SimpleNamespace(use=used.append))
    assert peers.reach(1, 0)
    assert peers.reach(1, 0)
    assert used == [1]


def test_access_that_is_enabled_already_is_a_success(runtime: Runtime) -> None:
    assert _enable_again(runtime, 0, 1) == Status.SUCCESS
    assert peers.reach(0, 1)


def test_a_later_call_asks_no_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    assert peers.reach(0, 1)
    monkeypatch.setattr(peers, "cuda", None)
    assert peers.reach(0, 1)


def test_a_device_reaches_its_own_memory() -> None:
    assert peers.reach(1, 1)


def test_a_device_without_access_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Apart:
        @staticmethod
        def deviceCanAccessPeer(device: int, peer: int) -> int:
            return 0

    monkeypatch.setattr(peers, "cuda", Apart)
    assert not peers.reach(0, 1)


def test_a_failure_leaves_the_pair_unknown_and_the_device_current(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(peer: int) -> None:
        raise tcuda.AcceleratorError(Status.UNKNOWN, "cudaDeviceEnablePeerAccess")

    with monkeypatch.context() as patched:
        patched.setattr(peers.cuda, "deviceEnablePeerAccess", fail)
        assert status_of(lambda: peers.reach(1, 0)) == Status.UNKNOWN
    assert tcuda.current_device() == 0
    assert peers.reach(1, 0)


def test_a_device_that_does_not_exist_is_refused() -> None:
    absent = tcuda.device_count()
    assert status_of(lambda: peers.reach(0, absent)) == Status.INVALID_DEVICE
