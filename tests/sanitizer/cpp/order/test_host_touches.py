"""Touches of page-locked memory by the program, while a copy may still use the memory."""

from __future__ import annotations

import mmap
import os
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.core import for_tests
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import OutputOf

pytestmark = [
    pytest.mark.usefixtures("runtime"),
    pytest.mark.skipif(not for_tests.watches_pages(), reason="this machine does not tell reads from writes"),
]

ON_CUDA = os.environ["TCUDA_RUNTIME"] == "cuda"
"""On CUDA, the race is told when Python's main thread runs Python code again, and a copy may not be complete."""

SIZE = 2 * mmap.PAGESIZE


@pytest.fixture
def buffer() -> Iterator[Any]:
    """A page-locked array of whole pages."""
    array = np.frombuffer(mmap.mmap(-1, SIZE), np.uint8)
    tcuda.check_error(tcuda.cudart().cudaHostRegister(array.ctypes.data, SIZE, 0))
    yield array
    tcuda.check_error(tcuda.cudart().cudaHostUnregister(array.ctypes.data))


@pytest.fixture
def x() -> Any:
    made = xp.full(SIZE, 7, dtype="uint8")
    tcuda.synchronize()
    return made


def test_a_read_during_a_copy_to_the_host_is_a_race_at_its_line(buffer: Any, x: Any) -> None:
    side = tcuda.Stream()
    with tcuda.sanitizer.check(mode="collect") as report:
        x.get(stream=side, out=buffer, blocking=False)
        seen = buffer[100]  # read
    assert seen == 7 or ON_CUDA
    (race,) = report
    assert (race.kind, race.current.host, race.current.kind) == ("read after write", True, "read")
    assert race.missing.call == "side.synchronize()"
    assert race.overlap == (buffer.ctypes.data + 100, 1)
    lines = Path(__file__).read_text().splitlines()
    assert lines[race.current.stack[0].line - 1].endswith("# read")


def test_a_write_during_a_copy_from_the_host_is_found_once(buffer: Any, x: Any) -> None:
    side = tcuda.Stream()
    with tcuda.sanitizer.check(mode="collect") as report:
        x.set(buffer, stream=side)
        buffer[5000] = 1
        side.synchronize()
    (race,) = report
    assert (race.kind, race.current.kind) == ("write after read", "write")
    assert report.count(race) == 1


def test_a_read_of_memory_that_the_device_only_reads_is_no_race(buffer: Any, x: Any) -> None:
    side = tcuda.Stream()
    with tcuda.sanitizer.check():
        x.set(buffer, stream=side)
        assert buffer[100] == 0
        side.synchronize()


def test_the_host_may_use_the_memory_after_a_wait_for_the_copy(buffer: Any, x: Any, tmp_path: Path) -> None:
    copying, last = tcuda.Stream(), tcuda.Stream()
    waits = {
        "stream": copying.synchronize,
        "event": lambda: copying.record_event().synchronize(),
        "device": tcuda.synchronize,
        "query": copying.query,
        "a stream that has waited": lambda: (last.wait_stream(copying), last.synchronize()),
    }
    with tcuda.sanitizer.check(), (tmp_path / "file").open("wb") as file:
        for wait in waits.values():
            x.get(stream=copying, out=buffer, blocking=False)
            tcuda._sleep(1_000_000)
            if wait() is False:
                copying.synchronize()
            assert os.write(file.fileno(), buffer) == SIZE


def test_a_wait_for_another_stream_does_not_help(buffer: Any, x: Any) -> None:
    copying, other = tcuda.Stream(), tcuda.Stream()
    with tcuda.sanitizer.check(mode="collect") as report:
        x.get(stream=copying, out=buffer, blocking=False)
        other.synchronize()
        buffer.sum()
    (race,) = report
    assert race.missing.call == "copying.synchronize()"


def test_two_copies_of_one_buffer_guard_what_both_need(buffer: Any, x: Any) -> None:
    side, y = tcuda.Stream(), xp.zeros(SIZE, dtype="uint8")
    tcuda.synchronize()
    with tcuda.sanitizer.check(mode="collect") as report:
        x.get(stream=side, out=buffer, blocking=False)
        y.set(buffer, stream=side)
        buffer[0].item()
    assert [race.kind for race in report] == ["read after write"]
    side.synchronize()
    assert int(y[0]) == 7


def test_the_memory_is_free_of_guards_after_the_check(buffer: Any, x: Any, tmp_path: Path) -> None:
    side = tcuda.Stream()
    with tcuda.sanitizer.check(mode="collect") as report:
        x.get(stream=side, out=buffer, blocking=False)
    (tmp_path / "file").write_bytes(buffer)
    assert (tmp_path / "file").stat().st_size == SIZE
    assert not report


@pytest.mark.parametrize("call", ["write", "send"])
def test_a_system_call_that_reads_the_memory_is_a_race_at_its_line(
    call: str, buffer: Any, x: Any, tmp_path: Path
) -> None:
    side = tcuda.Stream()
    first, second = socket.socketpair()
    with first, second, (tmp_path / "file").open("wb", buffering=0) as file:
        use = file.write if call == "write" else first.send
        with tcuda.sanitizer.check(mode="collect") as report:
            x.get(stream=side, out=buffer, blocking=False)
            done = use(buffer)  # read by the system
    assert done == SIZE
    (race,) = report
    assert (race.kind, race.current.host, race.current.kind) == ("read after write", True, "read")
    assert race.missing.call == "side.synchronize()"
    assert race.overlap == (buffer.ctypes.data, 1)
    lines = Path(__file__).read_text().splitlines()
    assert lines[race.current.stack[0].line - 1].endswith("# read by the system")


@pytest.mark.parametrize("call", ["readinto", "recv_into"])
def test_a_system_call_that_writes_the_memory_is_a_race_at_its_line(
    call: str, buffer: Any, x: Any, tmp_path: Path
) -> None:
    side = tcuda.Stream()
    (tmp_path / "file").write_bytes(b"5" * SIZE)
    first, second = socket.socketpair()
    with first, second, (tmp_path / "file").open("rb", buffering=0) as file:
        first.send(b"5" * SIZE)
        use = file.readinto if call == "readinto" else second.recv_into  # type: ignore[attr-defined]
        with tcuda.sanitizer.check(mode="collect") as report:
            x.set(buffer, stream=side)
            done = use(buffer)  # written by the system
            side.synchronize()
    assert done == SIZE
    assert bytes(buffer) == b"5" * SIZE
    (race,) = report
    assert (race.kind, race.current.host, race.current.kind) == ("write after read", True, "write")
    assert race.missing.call == "side.synchronize()"
    lines = Path(__file__).read_text().splitlines()
    assert lines[race.current.stack[0].line - 1].endswith("# written by the system")


def test_a_system_call_raises_the_error_of_its_race_when_it_is_done(buffer: Any, x: Any, tmp_path: Path) -> None:
    side = tcuda.Stream()

    def write() -> None:
        with tcuda.sanitizer.check():
            x.get(stream=side, out=buffer, blocking=False)
            (tmp_path / "file").write_bytes(buffer)

    with pytest.raises(tcuda.sanitizer.CUDASanitizerErrors):
        write()
    assert (tmp_path / "file").stat().st_size == SIZE


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_touch_raises_at_the_end_of_the_block(buffer: Any, x: Any) -> None:
    side = tcuda.Stream()

    def read() -> None:
        with tcuda.sanitizer.check():
            x.get(stream=side, out=buffer, blocking=False)
            buffer[0].item()

    with pytest.raises(tcuda.sanitizer.CUDASanitizerErrors, match="by the host"):
        read()


class TestSmallArrays:
    """Arrays of the allocator, which share pages with other arrays unless a check is active."""

    def test_one_number_is_watched(self) -> None:
        loss, side = xp.ones(1, dtype="float32"), tcuda.Stream()
        tcuda.synchronize()
        with tcuda.sanitizer.check(mode="collect") as report:
            host = tcuda.memory.zeros_pinned(1, "float32")
            loss.get(stream=side, out=host, blocking=False)
            host[0].item()
        assert [race.kind for race in report] == ["read after write"]

    def test_arrays_beside_the_array_are_free(self) -> None:
        x, side = xp.ones(10), tcuda.Stream()
        tcuda.synchronize()
        with tcuda.sanitizer.check():
            arrays = [tcuda.memory.zeros_pinned(10) for _ in range(5)]
            x.get(stream=side, out=arrays[2], blocking=False)
            for place in (0, 1, 3, 4):
                arrays[place][:] = place
            side.synchronize()
        assert [int(array[0]) for array in arrays] == [0, 1, 1, 3, 4]

    def test_an_array_from_before_the_check_is_not_protected_beyond_its_bytes(self, tmp_path: Path) -> None:
        x, side = xp.ones(10), tcuda.Stream()
        arrays = [tcuda.memory.zeros_pinned(10) for _ in range(200)]
        tcuda.synchronize()
        with tcuda.sanitizer.check():
            x.get(stream=side, out=arrays[100], blocking=False)
            for place, array in enumerate(arrays):
                if place != 100:
                    (tmp_path / "file").write_bytes(array)
            side.synchronize()

    def test_blocks_come_and_go_during_and_after_a_check(self) -> None:
        side = tcuda.Stream()
        sizes = [1, 10, 600, 5000, 40_000, 200_000, 1_000_000, 3_000_000]
        kept = [tcuda.memory.zeros_pinned(size, "uint8") for size in sizes]
        with tcuda.sanitizer.check() as report:
            for turn in range(20):
                made = [tcuda.memory.empty_pinned(size, "uint8") for size in sizes]
                assert all(array.ctypes.data % mmap.PAGESIZE == 0 for array in made)
                for array in made:
                    array[:] = turn
                    x = xp.zeros(array.size, dtype="uint8")
                    tcuda.synchronize()
                    x.set(array, stream=side)
                    side.synchronize()
                    assert int(x[-1]) == turn
                kept.append(made[turn % len(made)])
        after = [tcuda.memory.zeros_pinned(size, "uint8") for size in sizes]
        for array in kept + after:
            array[:] = 7
        assert not report

    def test_memory_that_is_handed_out_again_is_free(self, tmp_path: Path) -> None:
        x, side = xp.ones(4096, dtype="uint8"), tcuda.Stream()
        tcuda.synchronize()
        with tcuda.sanitizer.check():
            for _ in range(50):
                host = tcuda.memory.empty_pinned(4096, "uint8")
                (tmp_path / "file").write_bytes(host)  # fails with protected memory
                x.get(stream=side, out=host, blocking=False)
                del host
            side.synchronize()


def test_a_function_of_the_stream_may_tell_that_the_copy_is_complete(buffer: Any, x: Any) -> None:
    copying = xp.cuda.Stream(non_blocking=True)
    complete = threading.Event()
    seen: list[int] = []

    def tell(_: object) -> None:
        seen.append(int(buffer[5]))
        complete.set()

    with tcuda.sanitizer.check():
        x.get(stream=copying, out=buffer, blocking=False)
        copying.launch_host_func(tell, None)
        assert complete.wait(60)
        assert buffer[100] == 7
    assert seen == [7]
    copying.synchronize()


def test_a_function_of_the_stream_may_use_the_memory_between_two_copies(buffer: Any, x: Any) -> None:
    copying = xp.cuda.Stream(non_blocking=True)
    seen: list[int] = []

    def look(_: object) -> None:
        seen.append(int(buffer[5]))

    with tcuda.sanitizer.check():
        for _ in range(3):
            x.get(stream=copying, out=buffer, blocking=False)
            copying.launch_host_func(look, None)
        copying.synchronize()
    assert seen == [7, 7, 7]


def test_copies_in_both_directions_move_the_right_bytes() -> None:
    side = tcuda.Stream()
    with tcuda.sanitizer.check():
        for size in (1, 100, 4096, 65_536, 100_000, 3 << 20):
            up, down = (tcuda.memory.empty_pinned(size, "uint8") for _ in range(2))
            up[:] = np.arange(size) % 251
            x = xp.zeros(size, dtype="uint8")
            tcuda.synchronize()
            for _ in range(3):  # the same memory again and again, without a wait of the host
                x.set(up, stream=side)
                x.get(stream=side, out=down, blocking=False)
                x.set(down, stream=side)
                x.get(stream=side, out=down, blocking=False)
            side.synchronize()
            assert (up == down).all()


def test_the_two_buffers_of_a_loop_take_turns() -> None:
    copying, working = tcuda.Stream(), tcuda.Stream()
    buffers = [tcuda.memory.empty_pinned((64, 64), "float32") for _ in range(2)]
    batches = [xp.empty((64, 64), dtype="float32") for _ in range(2)]
    sums = tcuda.memory.zeros_pinned(50, "float32")
    copied, used = [tcuda.Event() for _ in range(2)], [tcuda.Event() for _ in range(2)]
    tcuda.synchronize()
    with tcuda.sanitizer.check():
        for turn in range(50):
            side = turn % 2
            if turn > 1:
                copied[side].synchronize()
                copying.wait_event(used[side])
            buffers[side][...] = turn
            batches[side].set(buffers[side], stream=copying)
            copied[side].record(copying)
            with tcuda.stream(working):
                working.wait_event(copied[side])
                batches[side].sum(keepdims=True).reshape(1).get(out=sums[turn : turn + 1], blocking=False)
                used[side].record(working)
        working.synchronize()
        assert [float(each) for each in sums] == [4096.0 * turn for turn in range(50)]


@pytest.mark.gpu
class TestWithTheDriver:
    """What the driver does with protected memory."""

    def test_a_copy_by_the_processor_uses_memory_of_a_copy_before(self, buffer: Any, x: Any) -> None:
        other, plain = tcuda.memory.empty_pinned(SIZE, "uint8"), np.zeros(SIZE, np.uint8)
        runtime = xp.cuda.runtime
        side = tcuda.Stream()
        with tcuda.sanitizer.check():
            x.get(stream=side, out=buffer, blocking=False)
            for target in (other, plain):
                runtime.memcpyAsync(target.ctypes.data, buffer.ctypes.data, SIZE, runtime.memcpyDefault, side.ptr)
            side.synchronize()
            assert (other == 7).all()
            assert (plain == 7).all()

    def test_cupys_own_copies_are_no_races(self) -> None:
        with tcuda.sanitizer.check():
            for size in (1, 1000, 100_000):
                host = np.arange(size)
                for _ in range(20):
                    x = xp.asarray(host)
                    assert (xp.asnumpy(x) == host).all()
                    assert int(x[0]) == 0
                    xp.asarray(host, blocking=True)

    def test_memory_is_freed_while_a_copy_is_in_progress(self, x: Any) -> None:
        side = tcuda.Stream()
        with tcuda.sanitizer.check():
            for _ in range(20):
                memory = xp.cuda.runtime.hostAlloc(SIZE, 0)
                xp.cuda.runtime.memcpyAsync(memory, x.data.ptr, SIZE, xp.cuda.runtime.memcpyDefault, side.ptr)
                xp.cuda.runtime.freeHost(memory)  # waits for the copy
            side.synchronize()

    @pytest.mark.alone
    def test_a_large_copy_is_as_fast_as_without_a_check(self) -> None:
        size = 256 << 20
        x, host, side = xp.zeros(size, dtype="uint8"), tcuda.memory.zeros_pinned(size, "uint8"), tcuda.Stream()

        def seconds() -> float:
            begin, end = (tcuda.Event(enable_timing=True) for _ in range(2))
            side.synchronize()
            begin.record(side)
            x.get(stream=side, out=host, blocking=False)
            end.record(side)
            side.synchronize()
            return begin.elapsed_time(end)

        plain = min(seconds() for _ in range(5))
        with tcuda.sanitizer.check():
            checked = min(seconds() for _ in range(5))
        assert checked < 1.2 * plain


@pytest.mark.parametrize("install", ["signal.signal(signal.SIGSEGV, print)", "faulthandler.enable()"])
def test_a_handler_that_is_installed_during_a_copy_takes_no_touch(install: str, output_of: OutputOf) -> None:
    code = f"""
import faulthandler, signal
import tcuda
from tcuda import xp
host, x, side = tcuda.memory.zeros_pinned(1 << 20, "u1"), xp.empty(1 << 20, "u1"), tcuda.Stream()
tcuda.synchronize()
with tcuda.sanitizer.check(mode="collect") as report:
    tcuda.memory.copy_async(x, host, side)
    {install}
    signal.alarm(30)  # ends an endless loop
    host[0] = 1
    side.synchronize()
print(len(report))
"""
    assert output_of(code) == "1"
