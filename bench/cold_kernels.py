"""The processor time of the compiles of emulated kernels: ``python bench/cold_kernels.py [--markdown]``.

The first process has an empty cache, and the second process has the cache of the first. The layer below is the compile
of an empty C++ file into a shared library, with the same compiler. Each figure is the smallest of several turns, and is
the time of the process and of the compilers that it starts, without the collection of garbage. The exit status is 1 if
a figure is above its bound in ``targets.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from table import markdown, plain
from targets import COLD_KERNELS

from tcuda.emulation.rtc import compiler

_TURNS = 3
_PROGRAM = """
import gc, json, resource
from tcuda import xp
from tcuda.emulation.rtc import precompiled

def seconds():
    return sum(sum(resource.getrusage(each)[:2]) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

def source(name):
    return 'extern "C" __global__ void %s(float* x) { x[threadIdx.x] += 1; }' % name

x = xp.zeros(32, xp.float32)
found = {}
gc.collect()
gc.disable()  # a full collection takes 20 ms, and the objects of the whole process decide in which row it falls

def measure(kernel, compile):
    start = seconds()
    compile()
    found[kernel] = seconds() - start

def raw(name):
    xp.RawKernel(source(name), name).compile()

measure("the first kernel", lambda: raw("first"))
measure("the second kernel", lambda: raw("second"))
for number in range(2, precompiled.WORTH - 1):
    raw("more%d" % number)
measure("the kernel that makes the precompiled header", lambda: raw("making"))
measure("a later kernel", lambda: raw("later"))
measure("a module of eight kernels", lambda: xp.RawModule(code="".join(map(source, "abcdefgh"))).compile())
measure("the first ElementwiseKernel", lambda: xp.ElementwiseKernel("T x", "T y", "y = x + 1", "add_one")(x))
print(json.dumps(found))
"""
CACHED = "all of them in a second process"


class Costs(NamedTuple):
    """The processor time of the compiles.

    Attributes:
        empty: The seconds for an empty C++ file.
        kernels: The seconds for each kernel, and for all of them in a second process.
    """

    empty: float
    kernels: dict[str, float]

    def ratios(self) -> dict[str, float]:
        """Return the times as multiples of the time for an empty file."""
        return {kernel: seconds / self.empty for kernel, seconds in self.kernels.items()}

    def above(self) -> list[str]:
        """Return the kernels whose ratio is above the bound."""
        return [f"{kernel}: {ratio:.2f}" for kernel, ratio in self.ratios().items() if ratio > COLD_KERNELS[kernel]]


def empty_file(folder: Path) -> float:
    """Return the seconds of the compile of an empty C++ file into a shared library."""
    (folder / "empty.cpp").touch()
    start = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    command = [*compiler.find().command, "-shared", "-fPIC", "-o", "empty.so", "empty.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - start


def kernels(folder: Path) -> dict[str, float]:
    """Return the seconds for each kernel, with compiled kernels in ``folder``."""
    environment = {**os.environ, "TCUDA_RUNTIME": "emulated", "TCUDA_CACHE_DIR": str(folder)}
    environment.pop("TCUDA_EMULATED_CHECKS", None)
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure() -> Costs:
    """Return the smallest costs of several turns."""
    turns = []
    for _ in range(_TURNS):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            empty = min(empty_file(folder) for _ in range(_TURNS))
            cold = kernels(folder)
            turns.append(Costs(empty, {**cold, CACHED: sum(kernels(folder).values())}))
    least = {kernel: min(turn.kernels[kernel] for turn in turns) for kernel in turns[0].kernels}
    return Costs(min(turn.empty for turn in turns), least)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="print the table for a document")
    options = parser.parse_args(arguments)
    costs = measure()
    ratios = costs.ratios()
    rows = [["compile", "seconds", "ratio", "at most"], ["an empty C++ file", f"{costs.empty:.3f}", "1.0", ""]]
    rows += [
        [kernel, f"{seconds:.3f}", f"{ratios[kernel]:.1f}", f"{COLD_KERNELS[kernel]:g}"]
        for kernel, seconds in costs.kernels.items()
    ]
    print((markdown if options.markdown else plain)(rows))
    above = costs.above()
    if above:
        print(f"above the bound: {', '.join(above)}", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
