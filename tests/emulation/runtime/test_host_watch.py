"""A race detector is told when the host uses page-locked memory that an operation still uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from support.core import for_tests
from support.emulated_streams import new_stream
from tcuda import _core
from tcuda._runtime.protocol import (
    CAPTURE_RELAXED,
    EVENT_DISABLE_TIMING,
    MEMCPY_DEVICE_TO_HOST,
    MEMCPY_HOST_TO_DEVICE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(not for_tests.watches_pages(), reason="this machine does not tell reads from writes"),
]

SIZE = 1 << 16


class Copies(NamedTuple):
    """A stream, memory of the device, page-locked memory of the host, and the races that were found."""

    r: EmulatedRuntime
    stream: int
    device: int
    host: np.ndarray[Any, Any]
    races: list[_core.Race]

    def download(self) -> None:
        self.r.memcpyAsync(self.host.ctypes.data, self.device, SIZE, MEMCPY_DEVICE_TO_HOST, self.stream)

    def upload(self) -> None:
        self.r.memcpyAsync(self.device, self.host.ctypes.data, SIZE, MEMCPY_HOST_TO_DEVICE, self.stream)

    def found(self) -> list[tuple[str, str, int]]:
        """Return the kind, the operation of the host and the offset of its access, for each race."""
        return [
            (race.kind, race.current.operation, race.overlap[0] - self.host.ctypes.data)
            for race in self.races
            if race.current.host
        ]


@pytest.fixture
def copies(r: EmulatedRuntime) -> Iterator[Copies]:
    memory = np.zeros(SIZE + 4096, np.uint8)
    begin = -memory.ctypes.data % 4096
    host = memory[begin : begin + SIZE]
    r.hostRegister(host.ctypes.data, SIZE, 0)
    races: list[_core.Race] = []
    r.watchRaces(_core.RaceDetector(races.append))
    yield Copies(r, new_stream(r), r.malloc(SIZE), host, races)
    r.watchRaces(None)
    host[:] = 0  # no page is watched any more


def test_a_read_before_the_copy_to_the_host_is_complete_is_a_race(copies: Copies) -> None:
    copies.download()
    assert copies.host[5000] is not None
    assert copies.found() == [("read after write", "read by the host", 5000)]


def test_a_write_before_the_copy_to_the_host_is_complete_is_a_race(copies: Copies) -> None:
    copies.download()
    copies.host[7] = 1
    assert copies.found() == [("write after write", "write by the host", 7)]


def test_a_write_to_a_buffer_that_the_device_reads_is_a_race(copies: Copies) -> None:
    copies.upload()
    assert copies.host.sum() == 0  # both only read
    assert not copies.found()
    copies.host[9000:] = 1
    assert copies.found() == [("write after read", "write by the host", 9000)]


@pytest.mark.parametrize("way", ["stream", "device", "event", "query", "other thread's stream"])
def test_the_host_may_use_the_memory_when_it_knows_that_the_copy_is_complete(copies: Copies, way: str) -> None:
    r, stream = copies.r, copies.stream
    copies.download()
    if way == "stream":
        r.streamSynchronize(stream)
    elif way == "device":
        r.deviceSynchronize()
    elif way == "event":
        event = r.eventCreateWithFlags(EVENT_DISABLE_TIMING)
        r.eventRecord(event, stream)
        r.eventSynchronize(event)
    elif way == "query":
        r.clock.advance(10**9)
        assert r.streamQuery(stream) == 0
    else:
        event, other = r.eventCreateWithFlags(EVENT_DISABLE_TIMING), new_stream(r)
        r.eventRecord(event, stream)
        r.streamWaitEvent(other, event)
        r.streamSynchronize(other)
    copies.host[:] = 1
    assert not copies.found()


def test_an_event_recorded_before_the_copy_does_not_help(copies: Copies) -> None:
    r = copies.r
    event = r.eventCreateWithFlags(EVENT_DISABLE_TIMING)
    r.eventRecord(event, copies.stream)
    copies.download()
    r.eventSynchronize(event)
    copies.host[0] = 1
    assert len(copies.found()) == 1


def test_operations_use_the_memory_in_the_order_of_the_stream(copies: Copies) -> None:
    copies.host[:] = 3
    copies.upload()
    copies.download()
    copies.upload()
    assert not copies.races
    assert copies.host[1] == 3
    assert copies.found() == [("read after write", "read by the host", 1)]


def test_a_launch_of_a_graph_uses_the_memory(copies: Copies) -> None:
    r, stream = copies.r, copies.stream
    r.streamBeginCapture(stream, CAPTURE_RELAXED)
    copies.download()
    executable = r.graphInstantiate(r.streamEndCapture(stream), 0)
    copies.host[0] = 1
    assert not copies.found()
    r.graphLaunch(executable, stream)
    copies.host[0] = 1
    assert copies.found() == [("write after write", "write by the host", 0)]
    r.streamSynchronize(stream)
    copies.races.clear()
    copies.host[:] = 1
    assert not copies.races


def test_memory_that_is_not_page_locked_any_more_is_not_watched(copies: Copies) -> None:
    copies.upload()
    copies.r.hostUnregister(copies.host.ctypes.data)
    copies.host[:] = 1
    assert not copies.found()


def test_memory_that_becomes_page_locked_during_the_watch_is_watched(copies: Copies) -> None:
    copies.r.hostUnregister(copies.host.ctypes.data)
    copies.r.hostRegister(copies.host.ctypes.data, SIZE, 0)
    copies.upload()
    copies.host[:] = 1
    assert copies.found() == [("write after read", "write by the host", 0)]


def test_the_error_of_a_report_reaches_the_program(r: EmulatedRuntime, copies: Copies) -> None:
    def refuse(race: _core.Race) -> None:
        raise LookupError(race.kind)

    r.watchRaces(_core.RaceDetector(refuse))
    copies.upload()
    with pytest.raises(LookupError, match="write after read"):
        copies.host.fill(1)
    assert (copies.host == 1).all()


def test_a_copy_of_rows_with_gaps_is_not_watched(copies: Copies) -> None:
    # The host may use the gaps, and the pages of a row begin and end in the middle of a gap.
    copies.r.memcpy2DAsync(
        copies.device, 64, copies.host.ctypes.data, 128, 64, 100, MEMCPY_HOST_TO_DEVICE, copies.stream
    )
    copies.host[:] = 1
    assert not copies.found()
