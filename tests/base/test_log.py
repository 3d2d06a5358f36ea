"""The logger ``tcuda``, and the variable ``TCUDA_LOG``."""

from __future__ import annotations

import logging
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda import _core
from tcuda._base import log
from tcuda._process.ledger import _log_segments

if TYPE_CHECKING:
    from support.fixture_types import OutputOf, RunPython

CODE = """
import tcuda
x = tcuda.xp.zeros(4)
graph = tcuda.CUDAGraph()
with tcuda.graph(graph):
    x += 1
"""


def test_a_capture_is_logged(xp: Any, caplog: pytest.LogCaptureFixture) -> None:
    x = xp.zeros(4)
    with caplog.at_level(logging.DEBUG, logger="tcuda"):
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            x += 1
            x += 1
    begin, end = [record.getMessage() for record in caplog.records if "capture" in record.getMessage()]
    assert re.fullmatch(r"A capture begins on stream 0x[0-9a-f]+ of device 0\.", begin)
    assert re.fullmatch(r"The capture on stream 0x[0-9a-f]+ ends with 2 nodes\.", end)
    assert {record.name for record in caplog.records} == {"tcuda"}


def _of_memory(caplog: pytest.LogCaptureFixture, place: str) -> list[str]:
    begin = f"{place}: "
    return [m.removeprefix(begin) for m in (record.getMessage() for record in caplog.records) if m.startswith(begin)]


@pytest.mark.parametrize("in_thread", [False, True])
def test_memory_that_comes_from_the_driver_and_goes_back_is_logged_by_the_main_thread(
    xp: Any, caplog: pytest.LogCaptureFixture, in_thread: bool
) -> None:
    tcuda.synchronize()
    tcuda.empty_cache()

    def use() -> None:
        x = xp.empty(100 << 20, dtype="uint8")
        del x
        tcuda.synchronize()
        tcuda.empty_cache()

    with caplog.at_level(logging.DEBUG, logger="tcuda"):
        if in_thread:
            thread = threading.Thread(target=use)
            thread.start()
            thread.join()
        else:
            use()
    said = " ".join(_of_memory(caplog, "Device 0"))
    assert re.search(r"1\d\d MiB mapped, ", said)
    assert re.search(r"1\d\d MiB unmapped, ", said)
    reserved = tcuda.memory_reserved() / 2**20
    assert said.endswith(f" {reserved:.4g} MiB reserved.")
    assert {record.threadName for record in caplog.records} == {"MainThread"}


def test_an_allocation_that_maps_nothing_is_no_event(xp: Any, caplog: pytest.LogCaptureFixture) -> None:
    kept = xp.empty(1 << 20, dtype="uint8")
    free = xp.empty_like(kept)
    del free
    with caplog.at_level(logging.DEBUG, logger="tcuda"):
        for _ in range(10):
            xp.empty_like(kept)
    assert not _of_memory(caplog, "Device 0")


def test_page_locked_memory_is_logged(xp: Any, caplog: pytest.LogCaptureFixture) -> None:
    tcuda.memory.empty_host_cache()
    # More than any block of an earlier test has, which may become free just now.
    size = tcuda.host_memory_stats()["allocated_bytes.current"] + (100 << 20)
    with caplog.at_level(logging.DEBUG, logger="tcuda"):
        kept: Any = tcuda.memory.empty_pinned(size, "uint8")
        mapped = _of_memory(caplog, "Page-locked memory")[-1]
        caplog.clear()
        kept = None
        tcuda.memory.empty_host_cache()
    assert re.search(r"\b[\d.e+]+ MiB mapped, ", mapped)
    (unmapped,) = _of_memory(caplog, "Page-locked memory")
    allocated = tcuda.host_memory_stats()["allocated_bytes.current"] / 2**20
    assert re.search(rf"\b[\d.e+]+ MiB unmapped, {allocated:.4g} MiB reserved\.$", unmapped)
    del kept


def test_a_listener_that_fails_raises_in_the_main_thread_and_none_hears_nothing(xp: Any) -> None:
    heard = []

    def fail() -> None:
        heard.append(1)
        raise RuntimeError("a handler of the program")

    def use() -> None:
        xp.empty(100 << 20, dtype="uint8")
        for _ in range(10):
            tcuda.synchronize()  # the call comes at the latest here

    tcuda.synchronize()
    tcuda.empty_cache()
    _core.listen_to_segments(fail)
    try:
        with pytest.raises(RuntimeError, match="a handler of the program"):
            use()
        _core.listen_to_segments(None)
        tcuda.synchronize()
        tcuda.empty_cache()
        assert heard == [1]
    finally:
        _core.listen_to_segments(_log_segments)


@pytest.mark.emulated
def test_the_compile_of_a_kernel_is_logged_and_then_its_place_in_the_cache(
    xp: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from tcuda.emulation.rtc.build import build

    monkeypatch.setenv("TCUDA_CACHE_DIR", str(tmp_path))
    source = 'extern "C" __global__ void logged_kernel(float* x) { x[0] = 1; }'
    with caplog.at_level(logging.DEBUG, logger="tcuda"):
        for _ in range(2):
            build(source)
    messages = [record.getMessage() for record in caplog.records if "logged_kernel" in record.getMessage()]
    assert re.fullmatch(r"Kernels logged_kernel were compiled in \d+ ms by .+\.", messages[0])
    assert re.fullmatch(r"Kernels logged_kernel were compiled before: \d+ bytes in the cache\.", messages[1])


@pytest.mark.emulated
def test_the_variable_prints_the_events(run_python: RunPython) -> None:
    done = run_python(CODE, TCUDA_LOG="debug")
    lines = done.stderr.splitlines()
    assert all(re.match(r"tcuda DEBUG at \d+ ms: ", line) for line in lines)
    events = [line.partition(": ")[2] for line in lines]
    assert events[0] == "The runtime is emulated."
    assert any(re.fullmatch(r"tcuda is initialised\. The number of devices is \d+\.", event) for event in events)
    assert events[-1].endswith("ends with 1 nodes.")


def test_nothing_is_printed_or_imported_without_the_variable(fresh_output_of: OutputOf, run_python: RunPython) -> None:
    assert fresh_output_of("import sys, tcuda; print('logging' in sys.modules)") == "False"
    assert run_python(CODE).stderr == ""
    done = run_python(CODE, TCUDA_LOG="warning")
    assert done.stderr == ""


def test_a_level_that_does_not_exist_is_refused(run_python: RunPython) -> None:
    done = run_python("import tcuda; tcuda.init()", TCUDA_LOG="loud")
    assert "ValueError: TCUDA_LOG is 'loud'; it can be 'debug', 'info', 'warning', 'error'." in done.stderr


def test_an_event_without_logging_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "logging", None)
    log.debug("Nobody reads %s.", "this")
