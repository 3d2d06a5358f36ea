"""The logger ``tcuda``, and the variable ``TCUDA_LOG``."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda._base import log
from tcuda.emulation.rtc.build import build

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


@pytest.mark.emulated
def test_the_compile_of_a_kernel_is_logged_and_then_its_place_in_the_cache(
    xp: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
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
    done = run_python("import tcuda", TCUDA_LOG="loud")
    assert "ValueError: TCUDA_LOG is 'loud'; it can be 'debug', 'info', 'warning', 'error'." in done.stderr


def test_an_event_without_logging_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "logging", None)
    log.debug("Nobody reads %s.", "this")
