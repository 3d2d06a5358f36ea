"""Touches of page-locked memory by the program, while a copy may still use the memory."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda import xp

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("runtime")]

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
        assert buffer[100] == 7  # read
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
            assert os.write(file.fileno(), buffer) == SIZE  # a system call fails with guarded memory


def test_a_wait_for_another_stream_does_not_help(buffer: Any, x: Any) -> None:
    copying, other = tcuda.Stream(), tcuda.Stream()
    with tcuda.sanitizer.check(mode="collect") as report:
        x.get(stream=copying, out=buffer, blocking=False)
        other.synchronize()
        assert buffer.sum() == 7 * SIZE
    (race,) = report
    assert race.missing.call == "copying.synchronize()"


def test_two_copies_of_one_buffer_guard_what_both_need(buffer: Any, x: Any) -> None:
    side, y = tcuda.Stream(), xp.zeros(SIZE, dtype="uint8")
    tcuda.synchronize()
    with tcuda.sanitizer.check(mode="collect") as report:
        x.get(stream=side, out=buffer, blocking=False)
        y.set(buffer, stream=side)
        assert buffer[0] == 7
    assert [race.kind for race in report] == ["read after write"]
    assert int(y[0]) == 7


def test_the_memory_is_free_of_guards_after_the_check(buffer: Any, x: Any, tmp_path: Path) -> None:
    side = tcuda.Stream()
    with tcuda.sanitizer.check(mode="collect") as report:
        x.get(stream=side, out=buffer, blocking=False)
    (tmp_path / "file").write_bytes(buffer)
    assert (tmp_path / "file").stat().st_size == SIZE
    assert not report


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_touch_raises_at_the_end_of_the_block(buffer: Any, x: Any, capfd: pytest.CaptureFixture[str]) -> None:
    side = tcuda.Stream()

    def read() -> None:
        with tcuda.sanitizer.check():
            x.get(stream=side, out=buffer, blocking=False)
            assert buffer[0] == 7

    with pytest.raises(tcuda.sanitizer.CUDASanitizerErrors):
        read()
    assert "by the host" in capfd.readouterr().err
