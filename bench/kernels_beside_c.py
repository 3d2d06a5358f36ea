"""Measures kernels of plain loops on emulated devices beside the same loops in C: ``python bench/kernels_beside_c.py``.

The compiler that compiles the kernels compiles the loops too, with ``-O2``. Each kernel runs without checks, with the
check of memory, and as a loop, in turns in one process. Prints the processor times as a Markdown table. If a kernel
is slower than its bounds, the exit status is 1, and the last lines name such kernels.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import tcuda.emulation
from tcuda.emulation.rtc import compiler
from tcuda.emulation.rtc.checks import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

_TURNS = 7
_SIDE = 512
_SIZE = _SIDE * _SIDE
_FLOATS = "const float* a, const float* b, float* out"


class Work(NamedTuple):
    """The work on one element, which a kernel and a loop in C do.

    Attributes:
        body: The statements for the element ``i``, or for the element in row ``y`` and column ``x``.
        arrays: The declarations of the arrays.
        axes: 1 or 2.
        size: The number of elements along each axis.
        least: The bound of the speed without checks, where the loop in C has the speed 1. The bounds are about two
            thirds of what is reached, because other programs may slow one side down.
        least_checked: The bound of the speed with the check of memory.
    """

    body: str
    arrays: str = _FLOATS
    axes: int = 1
    size: int = _SIZE
    least: float = 0.45
    least_checked: float = 0.2

    @property
    def kernel(self) -> str:
        """The kernel."""
        if self.axes == 1:
            place = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;"
        else:
            place = """int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;"""
        return f'extern "C" __global__ void kernel({self.arrays}, int n) {{\n    {place}\n    {self.body}\n}}\n'

    @property
    def loop(self) -> str:
        """The loop in C."""
        inner = f"[&] {{ {self.body} }}();" if "return" in self.body else f"{{ {self.body} }}"
        loops = (
            "for (int i = 0; i < n; i++)"
            if self.axes == 1
            else "for (int y = 0; y < n; y++) for (int x = 0; x < n; x++)"
        )
        return f'extern "C" void loop({self.arrays}, int n) {{\n    {loops} {inner}\n}}\n'

    @property
    def launch(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The grid and the block."""
        if self.axes == 1:
            return (-(-self.size // 256),), (256,)
        return (-(-self.size // 32), -(-self.size // 8)), (32, 8)


WORKS = {
    "axpy": Work("out[i] = 2.5f * a[i] + b[i];", least=0.3, least_checked=0.06),
    "polynomial": Work("float x = a[i], s = b[i]; for (int k = 0; k < 16; k++) s = s * x + 0.5f; out[i] = s;"),
    "exponential and root": Work("out[i] = expf(-a[i]) * sqrtf(b[i]);"),
    "gather": Work("out[i] = a[(i * 7919u) % (unsigned)n] + b[i];"),
    "bytes to grey": Work(
        "out[i] = (77 * a[3 * i] + 150 * a[3 * i + 1] + 29 * a[3 * i + 2]) >> 8;",
        "const unsigned char* a, const unsigned char* b, unsigned char* out",
        least=0.25,
        least_checked=0.08,
    ),
    "branches": Work("out[i] = a[i] > 1.0f ? a[i] - b[i] : a[i] < 0.5f ? b[i] : a[i] * b[i];"),
    "sums of rows": Work(
        "float s = 0; for (int k = 0; k < n; k++) s += a[i * n + k]; out[i] = s;", size=_SIDE, least_checked=0.1
    ),
    "Mandelbrot set": Work(
        """float u = 3.0f * x / n - 2, v = 2.0f * y / n - 1, p = 0, q = 0;
    int k = 0;
    for (; k < 50 && p * p + q * q < 4; k++) { float t = p * p - q * q + u; q = 2 * p * q + v; p = t; }
    out[y * n + x] = k;""",
        axes=2,
        size=_SIDE,
    ),
    "stencil": Work(
        """if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
        out[y * n + x] =
            0.2f * (a[y * n + x] + a[y * n + x - 1] + a[y * n + x + 1] + a[y * n - n + x] + a[y * n + n + x]);""",
        axes=2,
        size=_SIDE,
        least=0.16,
        least_checked=0.05,
    ),
    "transpose": Work("out[x * n + y] = a[y * n + x];", axes=2, size=_SIDE),
    "plain product": Work(
        "float s = 0; for (int k = 0; k < n; k++) s += a[y * n + k] * b[k * n + x]; out[y * n + x] = s;",
        axes=2,
        size=192,
        least_checked=0.1,
    ),
    "forces of bodies": Work(
        """float s = 0;
    for (int k = 0; k < n; k++) { float d = a[k] - a[i], r = d * d + 0.01f; s += b[k] * d / (r * sqrtf(r)); }
    out[i] = s;""",
        size=1024,
    ),
}
"""The works by their names."""


def _host_arrays(work: Work) -> list[np.ndarray[Any, Any]]:
    numbers = np.random.default_rng(0)
    if "char" in work.arrays:
        return [numbers.integers(0, 256, 3 * _SIZE).astype(np.uint8), np.zeros(1, np.uint8), np.zeros(_SIZE, np.uint8)]
    return [*(numbers.random(_SIZE).astype(np.float32) + 0.3 for _ in range(2)), np.zeros(_SIZE, np.float32)]


def _loop(work: Work, folder: str) -> Callable[..., Any]:
    source, library = Path(folder, "loop.cpp"), Path(folder, f"{abs(hash(work))}.so")
    source.write_text(f"#include <math.h>\n{work.loop}", encoding="utf-8")
    command = [*compiler.find().command, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    loop: Callable[..., Any] = ctypes.CDLL(str(library)).loop
    return loop


def _compiled(work: Work, checks: str) -> Any:
    os.environ[VARIABLE] = checks
    return tcuda.emulation.xp.RawModule(code=work.kernel).get_function("kernel")


def measure(work: Work, turns: int) -> list[float]:
    """Return the least processor times, in seconds: of the loop, of the kernel without checks, and with the check."""
    xp = tcuda.emulation.xp
    host = _host_arrays(work)
    device = [xp.asarray(array) for array in host]
    with tempfile.TemporaryDirectory() as folder:
        loop = _loop(work, folder)
    kernels = [_compiled(work, checks) for checks in ("0", "memory")]
    addresses = [ctypes.c_void_p(array.ctypes.data) for array in host]
    arguments = (*device, np.int32(work.size))
    grid, block = work.launch
    sides: list[Callable[[], Any]] = [lambda: loop(*addresses, ctypes.c_int(work.size))]
    sides += [lambda kernel=kernel: kernel(grid, block, arguments) for kernel in kernels]
    times: list[list[float]] = [[] for _ in sides]
    for turn in range(turns + 1):
        for side, found in zip(sides, times, strict=True):
            begin = time.process_time()
            side()
            tcuda.synchronize()
            if turn != 0:
                found.append(time.process_time() - begin)
    np.testing.assert_allclose(device[-1].get(), host[-1], rtol=1e-5, atol=1e-6)
    return [min(found) for found in times]


def main() -> int:
    """Print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="the kernels (all)")
    parser.add_argument("--turns", type=int, default=_TURNS, help=f"the launches of each side ({_TURNS})")
    chosen = parser.parse_args()
    tcuda.emulation.enable(devices=1, memory="1GiB")
    print("| kernel | loop in C, ms | kernel, ms | with the check, ms | speed | speed with the check |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    slow = []
    for name in chosen.names or WORKS:
        loop, plain, checked = measure(WORKS[name], chosen.turns)
        if loop / plain < WORKS[name].least or loop / checked < WORKS[name].least_checked:
            slow.append(name)
        times = " | ".join(f"{1e3 * each:.2f}" for each in (loop, plain, checked))
        print(f"| {name} | {times} | {loop / plain:.2f} | {loop / checked:.2f} |", flush=True)
    for name in slow:
        print(f"slow: {name}", file=sys.stderr)
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main())
