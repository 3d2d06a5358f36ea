"""The scheduler's choice of a device for each worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcuda.dask._directory import Directory

if TYPE_CHECKING:
    from distributed import Scheduler

_NO_SCHEDULER = cast("Scheduler", None)


def address(number: int, host: str = "10.0.0.1") -> str:
    return f"tcp://{host}:{number}"


@settings(deadline=None)
@given(names=st.permutations(range(8)), devices=st.integers(1, 8))
def test_workers_with_numbers_get_the_same_devices_in_any_order(names: list[int], devices: int) -> None:
    directory = Directory()
    uuids = [f"uuid-{index}" for index in range(devices)]
    if 8 % devices:
        names = [name for name in names if name < 8 - 8 % devices]
    chosen = {name: directory.place(address(name), name, uuids, None) for name in names}
    assert all(sum(uuid == found for found in chosen.values()) == len(names) // devices for uuid in uuids)
    if devices == 8:
        assert chosen == {name: uuids[name] for name in range(8)}


def test_a_device_has_no_more_workers_than_it_may_have() -> None:
    directory = Directory()
    assert directory.place(address(1), "a", ["x"], 1) == "x"
    with pytest.raises(RuntimeError, match="finds no free device on 10.0.0.1: each of the 1 devices has 1"):
        directory.place(address(2), "b", ["x"], 1)
    assert directory.place(address(2), "b", ["x"], 2) == "x"


def test_the_devices_of_other_machines_do_not_count() -> None:
    directory = Directory()
    assert directory.place(address(1, "10.0.0.1"), "a", ["x"], 1) == "x"
    assert directory.place(address(1, "10.0.0.2"), "b", ["x"], 1) == "x"


def test_a_worker_that_has_gone_leaves_its_device() -> None:
    directory = Directory()
    directory.place(address(1), "a", ["x"], 1)
    directory.remove_worker(_NO_SCHEDULER, address(1))
    assert directory.place(address(2), "b", ["x"], 1) == "x"


def test_a_worker_that_starts_again_takes_its_own_place() -> None:
    directory = Directory()
    directory.place(address(1), "a", ["x"], 1)
    assert directory.place(address(2), "a", ["x"], 1) == "x"
    with pytest.raises(RuntimeError, match="no free device"):
        directory.place(address(3), "b", ["x"], 1)
