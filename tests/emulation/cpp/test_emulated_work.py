"""The times of work on emulated devices, and when the core begins such work itself."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from support.threads import in_thread
from tcuda import _core

LAST = 2**63 - 1
KERNEL = _core.KernelTime(1000, 2, 4, 8)


class Stream(_core.EmulatedTimeline):
    def __init__(self, device: int = 0, *, blocking: bool = True) -> None:
        super().__init__()
        self.device, self.blocking, self.multiprocessors = device, blocking, 8


class Machine:
    """One device with a default stream, a stream that waits for the default stream, and a stream that does not."""

    def __init__(self) -> None:
        self.clock = _core.EmulatedClock(threading.RLock())
        self.default, self.other, self.apart = Stream(), Stream(), Stream(blocking=False)
        self.activity = _core.EmulatedActivity()
        devices = [(self.default, self.activity)]
        self.times = _core.EmulatedTimes(self.clock, devices, 10)


class Current:
    """A stream with a handle."""

    def __init__(self, ptr: int, device: int = -1) -> None:
        self.ptr, self.device_id = ptr, device


def test_each_operation_takes_time_of_the_host_and_of_its_stream() -> None:
    machine = Machine()
    assert machine.times.occupy(machine.apart, 100) == 110
    assert machine.times.occupy(machine.apart, 5) == 115
    assert (machine.clock._now, machine.apart.ready) == (20, 115)
    assert [machine.activity.until(now) for now in (10, 20, 110, 115, 120)] == [0, 10, 100, 105, 105]


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
    assert machine.activity.until(1000) == 0


def test_times_end_at_the_last_nanosecond_of_64_bits() -> None:
    machine = Machine()
    assert machine.times.extend(machine.default, 2**70) == LAST
    assert machine.times.occupy(machine.default, 2**62) == LAST
    assert machine.times.occupy(machine.other, 1) == LAST
    machine.clock._now = LAST - 1
    assert machine.times.start(machine.apart) == LAST


def test_a_stream_of_an_unknown_device_is_refused() -> None:
    machine = Machine()
    with pytest.raises(IndexError, match="device of a stream"):
        machine.times.start(Stream(device=1))
    with pytest.raises(TypeError):
        machine.times.start(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _core.EmulatedTimes(object(), [], 10)  # type: ignore[arg-type]


def test_a_time_beyond_64_bits_becomes_the_last_one() -> None:
    clock = _core.EmulatedClock(threading.RLock())
    clock._now = 2**70
    assert clock._now == LAST
    for wrong in ("1", 1.5, None):
        with pytest.raises(TypeError):
            clock._now = wrong  # type: ignore[assignment]
    assert clock._now == LAST


def test_a_kernel_takes_the_longer_one_of_the_times_for_bytes_and_operations() -> None:
    kernel = _core.KernelTime(1000, 2, 4, 8)
    assert [kernel(0), kernel(200), kernel(200, 4000)] == [1000, 1100, 2000]
    assert kernel(200, multiprocessors=2) == 1000 + 4 * 100


class TestThreads:
    """The current device and the current streams of a thread."""

    @pytest.fixture
    def thread(self) -> _core.EmulatedThread:
        return _core.EmulatedThread(2, "default")

    def test_each_thread_has_a_state_of_its_own(self, thread: _core.EmulatedThread) -> None:
        stream, found = Current(7, 1), []
        thread.device = 1
        thread.use_stream(stream)

        def look() -> None:
            found.append((thread.device, thread.current_stream(), thread.current_stream(1)))

        other = threading.Thread(target=look)
        other.start()
        other.join()
        look()
        assert found == [(0, "default", "default"), (1, stream, stream)]
        assert thread.current_stream(0) == "default"

    def test_each_runtime_has_threads_of_its_own(self, thread: _core.EmulatedThread) -> None:
        thread.device = 1
        assert _core.EmulatedThread(2, "default").device == 0

    def test_streams_are_left_in_the_order_of_their_device(self, thread: _core.EmulatedThread) -> None:
        first, second, third = Current(1, 0), Current(2, 1), Current(3, 0)
        thread.enter_stream(first)
        thread.device = 1
        thread.enter_stream(second)
        thread.device = 0
        thread.use_stream(third)
        thread.enter_stream(third)
        found = []
        for _ in range(3):
            thread.exit_stream()
            found.append((thread.current_stream(0), thread.current_stream(1)))
        assert found == [(first, second), (first, "default"), ("default", "default")]
        with pytest.raises(IndexError, match="no stream was entered"):
            thread.exit_stream()

    def test_devices_that_do_not_exist_are_refused(self, thread: _core.EmulatedThread) -> None:
        for device in (-1, 2):
            with pytest.raises(IndexError):
                thread.device = device
        for device in (-2, 2):
            with pytest.raises(IndexError):
                thread.current_stream(device)
        with pytest.raises(RuntimeError, match=r"created on \(1\) does not match with the current device \(0\)"):
            thread.use_stream(Current(1, 1))
        assert (thread.device, thread.current_stream()) == (0, "default")


class TestHostWork:
    """Work that the core begins and ends."""

    @pytest.fixture
    def machine(self) -> Machine:
        return Machine()

    @pytest.fixture
    def obstacles(self) -> list[object]:
        return []

    @pytest.fixture
    def thread(self) -> _core.EmulatedThread:
        return _core.EmulatedThread(1, Current(0))

    @pytest.fixture
    def work(self, machine: Machine, obstacles: list[object], thread: _core.EmulatedThread) -> _core.EmulatedWork:
        work = _core.EmulatedWork()
        created: dict[int, Any] = {7: machine.apart}
        work.use(machine.times, thread, created, ([], obstacles), KERNEL)
        return work

    def test_no_work_begins_without_a_runtime(self) -> None:
        assert _core.EmulatedWork().begin() is None

    def test_work_takes_the_time_of_a_kernel_on_the_share_of_its_stream(
        self, work: _core.EmulatedWork, machine: Machine
    ) -> None:
        assert work.begin() == (machine.default, 0)
        work.end(machine.apart, 200, 4000)
        assert machine.apart.ready == 10 + KERNEL(200, 4000)
        machine.apart.multiprocessors = 2
        work.end(machine.apart, 200)
        assert machine.apart.ready == 10 + KERNEL(200, 4000) + KERNEL(200, 0, 2)

    def test_no_work_begins_while_there_is_an_obstacle(self, work: _core.EmulatedWork, obstacles: list[object]) -> None:
        obstacles.append("a capture")
        assert work.begin() is None
        obstacles.clear()
        assert work.begin() is not None

    def test_work_begins_on_the_current_stream_of_each_thread(
        self, work: _core.EmulatedWork, machine: Machine, thread: _core.EmulatedThread
    ) -> None:
        thread.use_stream(Current(7))
        found: list[object] = []
        for _ in range(2):
            found += [in_thread(work.begin), work.begin()]
        assert found == [(machine.default, 0), (machine.apart, 0)] * 2

    def test_no_work_begins_on_a_stream_that_does_not_exist(
        self, work: _core.EmulatedWork, thread: _core.EmulatedThread
    ) -> None:
        thread.use_stream(Current(8))
        assert work.begin() is None

    def test_another_runtime_takes_the_place_of_the_first(self, work: _core.EmulatedWork, machine: Machine) -> None:
        assert work.begin() == (machine.default, 0)
        other = Machine()
        thread = _core.EmulatedThread(1, Current(0))
        work.use(other.times, thread, {}, (), KERNEL)
        del machine
        assert work.begin() == (other.default, 0)
