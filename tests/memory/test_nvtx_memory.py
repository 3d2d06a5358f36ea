"""``TCUDA_NVTX_MEMORY``: a tool hears of the arrays in segments, and of nothing that graphs may use later."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.folders import DATA

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import RunPython

BEGIN = "import sys, tcuda; from tcuda import xp; say = lambda text: print(text, file=sys.stderr, flush=True)\n"


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library of a tool that writes what it hears to stderr."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("the test needs a C compiler")
    library: Path = tmp_path_factory.mktemp("tool") / "tool.so"
    command = [compiler, "-w", "-shared", "-fPIC", "-o", library, DATA / "nvtx_memory_tool.c"]
    subprocess.run(command, check=True)
    return str(library)


def heard(run_python: RunPython, tool: str, code: str, **variables: str) -> list[str]:
    done = run_python(BEGIN + code, **{"NVTX_INJECTION64_PATH": tool, "TCUDA_NVTX_MEMORY": "1", **variables})
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def test_an_array_is_a_region_of_the_heap_of_its_segment(run_python: RunPython, tool: str) -> None:
    code = """
x = xp.empty(1000, dtype="uint8")
say(hex(x.data.ptr))
del x
tcuda.empty_cache()
"""
    heap, region, address, gone, end = heard(run_python, tool, code)[:5]
    found = re.fullmatch(r"heap 1 (\d+) (0x[0-9a-f]+) 1", heap)
    assert found, heap
    assert int(found[1]) >= 1000
    assert int(found[2], 16) <= int(address, 16) < int(found[2], 16) + int(found[1])
    assert region == f"region 1 1000 {address} 1"  # the size is not rounded up, so one more element is found
    assert gone == f"no region 1 {address}"
    assert end == "no heap 1"


def test_memory_of_a_graph_is_no_heap(run_python: RunPython, tool: str) -> None:
    code = """
x = xp.ones(1000)
tcuda.synchronize()
say("capture")
graph = tcuda.CUDAGraph()
with tcuda.graph(graph):
    y = x * 2
    del y
    z = x * 3
say("captured")
graph.replay()
"""
    lines = heard(run_python, tool, code)
    assert lines.index("captured") == lines.index("capture") + 1


@pytest.mark.parametrize(
    "variables", [{"TCUDA_NVTX_MEMORY": ""}, {"TCUDA_NVTX_MEMORY": "0"}, {"TOOL_REFUSES": "1"}], ids=str
)
def test_nothing_is_called_if_the_user_or_the_tool_does_not_want_it(
    run_python: RunPython, tool: str, variables: dict[str, str]
) -> None:
    assert heard(run_python, tool, "xp.ones(1000)", **variables) == []


@pytest.mark.parametrize("path", ["", "/absent/tool.so"])
def test_without_a_tool_the_program_runs_as_ever(run_python: RunPython, path: str) -> None:
    assert heard(run_python, path, "say(float(xp.ones(1000).sum()))") == ["1000.0"]


def test_another_value_is_an_error_that_says_what_is_allowed(run_python: RunPython, tool: str) -> None:
    done = run_python(BEGIN + "xp.ones(3)", TCUDA_NVTX_MEMORY="yes")
    assert "ValueError: TCUDA_NVTX_MEMORY is 'yes'; write 1 or 0, or remove the variable." in done.stderr


def test_arrays_do_not_touch_each_other(run_python: RunPython, tool: str) -> None:
    code = "a, b = xp.empty(512, 'uint8'), xp.empty(512, 'uint8'); say(abs(a.data.ptr - b.data.ptr))"
    assert [line for line in heard(run_python, tool, code) if line.isdigit()] == ["1024"]


REASON = r"hears of all arrays, because TCUDA_NVTX_MEMORY is 1\. .* Remove the variable to look for races\."


@pytest.mark.wings
def test_a_check_for_races_says_that_a_tool_hears_of_the_arrays(run_python: RunPython, tool: str) -> None:
    code = """
try:
    with tcuda.sanitizer.check():
        xp.ones(3)
except RuntimeError as error:
    say(f"refused: {error}")
x = xp.empty(1000, dtype="uint8")
"""
    lines = heard(run_python, tool, "tcuda.init()\n" + code)
    assert re.fullmatch(f"refused: The tool {tool} {REASON}", lines[0])
    assert any(line.startswith("region 1 1000 ") for line in lines)


@pytest.mark.wings
def test_the_race_detector_of_the_environment_stays_off_with_a_warning(run_python: RunPython, tool: str) -> None:
    code = "import warnings; warnings.simplefilter('always'); x = xp.empty(1000, dtype='uint8')"
    lines = heard(run_python, tool, code, TCUDA_SANITIZER="1")
    (warning,) = (line for line in lines if "RuntimeWarning" in line)
    assert re.search(f"The race detector stays off: The tool {tool} {REASON}", warning)
    assert any(line.startswith("region 1 1000 ") for line in lines)


@pytest.mark.wings
def test_the_race_detector_works_if_the_tool_does_not_hear(run_python: RunPython, tool: str) -> None:
    code = """
with tcuda.sanitizer.check() as report:
    xp.ones(3)
say(report.operations > 0)
"""
    assert heard(run_python, tool, code, TOOL_REFUSES="1") == ["True"]
