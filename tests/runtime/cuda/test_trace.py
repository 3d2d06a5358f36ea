"""The trace of GPUs, over a library that stands for CUPTI."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tcuda._runtime.cuda.trace import CudaTrace

KINDS = ("CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET", "SYNCHRONIZATION")


class CuptiError(Exception):
    """An error of the library."""


class Cupti:
    """The library; ``on`` has the kinds of records that are on."""

    ActivityKind = SimpleNamespace(**{kind: kind for kind in KINDS})
    cuptiError = CuptiError

    def __init__(self) -> None:
        self.on: set[str] = set()
        self.activity_enable = self.on.add
        self.activity_disable = self.on.remove

    def activity_register_callbacks(self, *_: object) -> None:
        pass

    def activity_flush_all(self, flag: int) -> None:
        pass

    def get_timestamp(self) -> int:
        return 0


@pytest.fixture
def cupti(monkeypatch: pytest.MonkeyPatch) -> Cupti:
    cupti = Cupti()
    monkeypatch.setitem(sys.modules, "cupti", SimpleNamespace(cupti=cupti))
    return cupti


def fail(*_: object) -> Any:
    raise CuptiError("mine")


def test_a_trace_ends_if_a_wait_for_a_device_fails(cupti: Cupti) -> None:
    trace = CudaTrace(fail)
    assert cupti.on == set(KINDS)
    with pytest.raises(CuptiError, match="mine"):
        trace.end((0,))
    assert not cupti.on


def test_a_trace_that_gets_no_time_does_not_begin(cupti: Cupti, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti, "get_timestamp", fail)
    with pytest.raises(RuntimeError, match=r"CUPTI cannot record a trace: mine\."):
        CudaTrace(fail)
    assert not cupti.on
