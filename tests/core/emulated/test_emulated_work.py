"""The times of work on emulated devices, and when the core begins such work itself."""

from __future__ import annotations

import threading

import pytest

from tcuda import _core

LAST = 2**63 - 1


class Clock:
    __slots__ = ("_now",)

    def __init__(self) -> None:
        self._now = 0


class Stream:
    __slots__ = ("blocking", "device", "multiprocessors", "ready")

    def __init__(self, device: int = 0, *, blocking: bool = True) -> None:
        self.device, self.blocking, self.ready, self.multiprocessors = device, blocking, 0, 8


class Machine:
    """One device with a default stream, a stream that waits for the default stream, and a stream that does not."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.default, self.other, self.apart = Stream(), Stream(), Stream(blocking=False)
        self.activity: list[tuple[int, int]] = []
        devices = [(self.default, [self.other], self.activity.append)]
        self.times = _core.EmulatedTimes(self.clock, Stream, devices, 10)


class Thread(threading.local):
    device = 0


class Current:
    """A stream with a handle."""

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


class Streams(threading.local):
    def __init__(self, default: Current) -> None:
        self.streams = (default,), None


def test_each_operation_takes_time_of_the_host_and_of_its_stream() -> None:
    machine = Machine()
    assert machine.times.occupy(machine.apart, 100) == 110
    assert machine.times.occupy(machine.apart, 5) == 115
    assert (machine.clock._now, machine.apart.ready) == (20, 115)
    assert machine.activity == [(10, 110), (110, 115)]


def test_the_default_stream_and_blocking_streams_wait_for_each_other() -> None:
    machine = Machine()
    assert machine.times.occupy(machine.other, 100) == 110
    assert machine.times.start(machine.default) == 110
    assert machine.times.start(machine.apart) == 30
    assert machine.times.occupy(machine.default, 50) == 160
    assert machine.times.start(machine.other) == 160


def test_an_operation_without_duration_is_no_activity() -> None:
    machine = Machine()
    assert machine.times.occupy(machine.default, 0) == 10
    assert machine.activity == []


def test_times_end_at_the_last_nanosecond_of_64_bits() -> None:
    machine = Machine()
    machine.default.ready = 2**70
    assert machine.times.occupy(machine.default, 2**62) == LAST
    assert machine.times.occupy(machine.other, 1) == LAST
    machine.clock._now = LAST - 1
    assert machine.times.start(machine.apart) == LAST


def test_a_stream_of_an_unknown_device_is_refused() -> None:
    machine = Machine()
    with pytest.raises(IndexError, match="device of a stream"):
        machine.times.start(Stream(device=1))
    with pytest.raises(TypeError):
        machine.times.start(object())


class TestHostWork:
    """Work that the core begins and ends."""

    @pytest.fixture
    def machine(self) -> Machine:
        return Machine()

    @pytest.fixture
    def obstacles(self) -> list[object]:
        return []

    @pytest.fixture
    def default(self) -> Current:
        return Current(0)

    @pytest.fixture
    def streams(self, default: Current) -> Streams:
        return Streams(default)

    @pytest.fixture
    def work(self, machine: Machine, obstacles: list[object], default: Current, streams: Streams) -> _core.EmulatedWork:
        lock = threading.RLock()
        work = _core.EmulatedWork()
        created = {7: machine.apart}
        lists = [], obstacles
        work.use(machine.times, lock.acquire, lock.release, Thread(), streams, default, created, lists, 1000, 2, 4, 8)
        return work

    def test_no_work_begins_without_a_runtime(self) -> None:
        assert _core.EmulatedWork().begin() is None

    def test_work_takes_the_longer_one_of_the_times_for_bytes_and_operations(
        self, work: _core.EmulatedWork, machine: Machine
    ) -> None:
        begun = work.begin()
        assert begun == (machine.default, 0)
        work.end(machine.apart, 200)
        assert machine.apart.ready == 10 + 1000 + 100
        work.end(machine.apart, 200, 4000)
        assert machine.apart.ready == 1110 + 1000 + 1000

    def test_work_takes_longer_on_a_share_of_the_multiprocessors(
        self, work: _core.EmulatedWork, machine: Machine
    ) -> None:
        machine.apart.multiprocessors = 2
        work.end(machine.apart, 200)
        assert machine.apart.ready == 10 + 1000 + 100 * 4

    def test_no_work_begins_while_there_is_an_obstacle(self, work: _core.EmulatedWork, obstacles: list[object]) -> None:
        obstacles.append("a capture")
        assert work.begin() is None
        obstacles.clear()
        assert work.begin() is not None

    def test_work_begins_on_the_current_stream_of_each_thread(
        self, work: _core.EmulatedWork, machine: Machine, streams: Streams
    ) -> None:
        streams.streams = (Current(7),), None
        found: list[object] = []
        for _ in range(2):
            thread = threading.Thread(target=lambda: found.append(work.begin()))
            thread.start()
            thread.join()
            found.append(work.begin())
        assert found == [(machine.default, 0), (machine.apart, 0)] * 2

    def test_no_work_begins_on_a_stream_that_does_not_exist(self, work: _core.EmulatedWork, streams: Streams) -> None:
        streams.streams = (Current(8),), None
        assert work.begin() is None

    def test_another_runtime_takes_the_place_of_the_first(
        self, work: _core.EmulatedWork, machine: Machine, default: Current
    ) -> None:
        assert work.begin() == (machine.default, 0)
        other, lock = Machine(), threading.RLock()
        work.use(other.times, lock.acquire, lock.release, Thread(), Streams(default), default, {}, (), 1, 1, 1, 8)
        del machine
        assert work.begin() == (other.default, 0)
