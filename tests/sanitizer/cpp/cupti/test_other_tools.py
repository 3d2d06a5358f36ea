"""The race detector beside other tools that use CUPTI or watch the device: a clear message, no hang, and results."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tcuda._runtime import runtime
from tcuda.sanitizer._cuda import cupti

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.gpu

LIMIT = 150
"""Seconds for a program under a tool; without the tool, the program takes a few seconds."""

RACE = """
import tcuda
from tcuda import xp

def race():
    x = xp.ones(1000)
    with tcuda.stream(tcuda.Stream()):
        y = x * 2  # does not wait for the default stream
    tcuda.synchronize()
"""
PROGRAM = f"""
import sys
{RACE}
if sys.argv[1] == "unchecked":
    race()
else:
    with tcuda.sanitizer.check(mode="collect") as report:
        race()
    print("races:", len(report), flush=True)
"""
PROFILED = f"""
import json, warnings
import torch
{RACE}
def kernels_of_profile():
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        (torch.ones(1000, device="cuda") * 2).sum().item()
        race()
    profile.export_chrome_trace("trace.json")
    with open("trace.json") as file:
        return sum(event.get("cat") == "kernel" for event in json.load(file)["traceEvents"])

torch.zeros(1, device="cuda")
race()  # compiles the kernels; meanwhile, the device is done with the earlier work
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with tcuda.sanitizer.check(mode="collect") as around:
        race()
        kernels = kernels_of_profile()
    with tcuda.sanitizer.check(mode="collect") as later:
        race()
lines = [str(warning.message) for warning in caught if str(warning.message).startswith("The race detector")]
print(json.dumps({{"around": len(around), "kernels": kernels, "later": len(later), "lines": lines}}))
"""

TOOLS = {
    "compute-sanitizer": (("--tool=memcheck",), "ERROR SUMMARY"),
    "nsys": (("profile", "--trace=cuda", "--sample=none", "--cpuctxsw=none", "--output=trace"), "trace.nsys-rep"),
    "ncu": (("--clock-control=none", "--launch-count=1"), "==PROF== Profiling"),
    "cuda-gdb": (("--batch", "-ex", "run", "--args"), "exited normally"),
}
"""The arguments of each tool, and a text in the output that shows that the tool has worked."""


@pytest.fixture(autouse=True)
def _cupti() -> None:
    if cupti.find(runtime().driverGetVersion()) is None:
        pytest.skip("CUPTI is not installed")


def path_of(tool: str) -> str | None:
    """Return the path of a tool of the toolkit; None if the tool is not installed."""
    toolkits = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    folders = [os.environ.get("PATH", ""), *(f"{toolkit}/bin" for toolkit in toolkits if toolkit)]
    return shutil.which(tool, path=os.pathsep.join(folders))


def run(command: Sequence[str], folder: Path) -> str:
    """Run a command, and return what the command has printed; the time has a limit."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    files = " ".join(sorted(each.name for each in folder.iterdir()))
    return f"{done.stdout}\nstatus: {done.returncode}\nfiles: {files}"


def lines_of_detector(printed: str) -> list[str]:
    """Return the lines that the detector has printed."""
    return [line for line in printed.splitlines() if "RuntimeWarning: The race detector" in line]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_check_under_a_tool_sees_the_race_or_says_why_not(tool: str, tmp_path: Path) -> None:
    path = path_of(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    arguments, works = TOOLS[tool]
    for kind in ("unchecked", "checked"):
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "program.py").write_text(PROGRAM)
        printed = run([path, *arguments, sys.executable, "program.py", kind], folder)
        if kind == "unchecked" and (works not in printed or "status: 0" not in printed):
            pytest.skip(f"{tool} does not work here: {printed[-500:]}")
    assert works in printed, printed
    assert "status: 0" in printed, printed
    lines = lines_of_detector(printed)
    (found,) = (int(line.partition(":")[2]) for line in printed.splitlines() if line.startswith("races: "))
    if found:
        assert lines == []
    else:
        (line,) = lines
        assert "and so finds no races on CUDA devices: " in line


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch, which is not installed")
def test_torchs_profiler_beside_a_check_has_a_trace(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROFILED)
    printed = run([sys.executable, "program.py"], tmp_path)
    assert "status: 0" in printed, printed
    result = json.loads(next(line for line in printed.splitlines() if line.startswith('{"around"')))
    assert result["around"] == 1  # the race before the profile
    assert result["kernels"] >= 5  # three of torch and two of the race
    assert result["later"] == 0
    first, second = result["lines"]
    assert first.startswith(
        "The race detector sees no more CUDA work from here on, because torch's profiler needs CUPTI"
    )
    assert "and so finds no races on CUDA devices: " in second
