"""The trace of GPUs, over a library that stands for CUPTI."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tcuda import AcceleratorError
from tcuda._runtime.cuda.trace import CudaTrace
from tcuda._runtime.protocol import TracedWork

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = ("CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET", "SYNCHRONIZATION")


class CuptiError(Exception):
    """An error of the library."""


class Cupti:
    """The library; ``on`` has the kinds of records that are on, and ``give`` takes records to the trace."""

    ActivityKind = SimpleNamespace(**{kind: kind for kind in KINDS})
    cuptiError = CuptiError

    def __init__(self) -> None:
        self.on: set[str] = set()
        self.time = 0
        self.activity_enable = self.on.add
        self.activity_disable = self.on.remove

    def activity_register_callbacks(self, _: object, give: Callable[[list[object]], None]) -> None:
        self.give = give

    def activity_flush_all(self, flag: int) -> None:
        pass

    def get_timestamp(self) -> int:
        return self.time


@pytest.fixture
def cupti(monkeypatch: pytest.MonkeyPatch) -> Cupti:
    cupti = Cupti()
    monkeypatch.setitem(sys.modules, "cupti", SimpleNamespace(cupti=cupti))
    return cupti


def fail(*_: object) -> Any:
    raise CuptiError("mine")


def test_a_trace_has_its_work_although_the_wait_for_a_device_fails(cupti: Cupti) -> None:
    waited: list[int] = []

    def fail_on_the_second(device: int) -> None:
        waited.append(device)
        if device == 1:
            raise AcceleratorError(700)

    trace = CudaTrace(fail_on_the_second)
    assert cupti.on == set(KINDS)
    with pytest.raises(AcceleratorError, match="illegal memory access"):
        trace.wait((0, 1, 2))
    assert sorted(waited) == [0, 1, 2]
    cupti.give([SimpleNamespace(kind="MEMSET", bytes=8, device_id=0, stream_id=7, start=1, end=2)])
    cupti.time = 3
    assert trace.end() == [TracedWork("memset", "memset", 0, 7, 1, 2, 8)]
    assert not cupti.on


def test_a_trace_that_gets_no_time_does_not_begin(cupti: Cupti, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti, "get_timestamp", fail)
    with pytest.raises(RuntimeError, match=r"CUPTI cannot record a trace: mine\."):
        CudaTrace(fail)
    assert not cupti.on
