"""compute-sanitizer finds accesses beyond an array, although the segment of the array goes on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SANITIZER = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(SANITIZER is None, reason="the CUDA toolkit has compute-sanitizer")]

SIZES = 512, 1000, 512 * 7, 4096 + 512, 1 << 20, (1 << 20) + 4, 10_000_000, 25_000_000
"""The bytes of arrays, of small segments and of large ones."""

PLANTED = f"""
import tcuda
from tcuda import xp
write = xp.RawKernel('extern "C" __global__ void write(char* x, long long place) {{ x[place] = 1; }}', "write")
arrays = [xp.zeros(size, "uint8") for size in {SIZES}]
tcuda.synchronize()
for array in arrays:
    write((1,), (1,), (array, xp.int64(array.nbytes)))
    tcuda.synchronize()
"""

RIGHT = """
import tcuda
from tcuda import xp
slow = xp.RawKernel(
    'extern "C" __global__ void slow(float* x, int n) {'
    ' for (int round = 0; round < 2000; ++round) for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] += 1; }',
    "slow",
)
for size in (1, 3, 128, 1000, 100_000):  # memory is freed while kernels use it, and is used again
    for _ in range(20):
        x = xp.zeros(size, "float32")
        slow((1,), (256,), (x, xp.int32(size)))
        del x
side = tcuda.Stream()
with tcuda.stream(side):
    y = xp.ones(1000)
    slow((1,), (256,), (y.view("float32"), xp.int32(2000)))
tcuda.synchronize()
a = xp.random.rand(100, 100)
(a @ a).sum(), xp.sort(a), xp.fft.fft(a), xp.cumsum(a), xp.argmax(a), xp.linalg.inv(a), a[a > 0.5].sum()
graph = tcuda.CUDAGraph()
x = xp.ones(1000)
tcuda.synchronize()
with tcuda.graph(graph):
    z = (x * 2).sum() + (x + 1).sum()
for _ in range(3):
    graph.replay()
del z
graph.replay()
tcuda.synchronize()
tcuda.empty_cache()
again = xp.zeros(5000)
again += 1
tcuda.synchronize()
print("done", float(again.sum()))
"""


def checked(code: str, folder: Path, **variables: str) -> str:
    """Run ``code`` under memcheck in ``folder``, and return the report."""
    assert SANITIZER is not None
    # tcuda asks the driver questions whose answer may be an error, which is no fault.
    options = ["--nvtx", "yes", "--report-api-errors", "no", "--destroy-on-device-error", "kernel"]
    command = [SANITIZER, *options, sys.executable, "-c", code]
    env = {**os.environ, "TCUDA_NVTX_MEMORY": "1", **variables}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def errors(report: str) -> int:
    found = re.search(r"ERROR SUMMARY: (\d+) error", report)
    assert found, report[-3000:]
    return int(found[1])


def test_every_write_one_element_beyond_an_array_is_found(tmp_path: Path) -> None:
    report = checked(PLANTED, tmp_path)
    assert len(re.findall("Invalid __global__ write", report)) == len(SIZES), report[-3000:]


def test_right_programs_are_not_accused(tmp_path: Path) -> None:
    report = checked(RIGHT, tmp_path)
    assert "done 5000.0" in report
    assert errors(report) == 0, report[:6000]


def test_without_the_variable_the_writes_are_not_found(tmp_path: Path) -> None:
    report = checked(PLANTED, tmp_path, TCUDA_NVTX_MEMORY="0")
    assert len(re.findall("Invalid __global__ write", report)) < len(SIZES)
