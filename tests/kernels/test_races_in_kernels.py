"""Races inside of kernels from the choice to the report: wrong kernels are found at their lines, right ones are not."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.cpp_compilers import needs_gcc
from support.environments import environment
from tcuda.sanitizer import KernelRace, KernelRaceError, check

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf

pytestmark = [pytest.mark.emulated, pytest.mark.eager, pytest.mark.usefixtures("kernels_are_searched")]

REVERSE = """
    __shared__ float part[64];
    part[threadIdx.x] = x[threadIdx.x];  // FIRST
    BARRIER
    x[threadIdx.x] = part[63 - threadIdx.x];  // SECOND
"""
SWAP = """
    __shared__ float part[64];
    part[threadIdx.x] = x[threadIdx.x];  // FIRST
    BARRIER
    x[threadIdx.x] = part[threadIdx.x ^ 1];  // SECOND
"""
ROUNDS = """
    __shared__ float part[64];
    for (int round = 0; round < 3; round++) {
        part[threadIdx.x] = x[threadIdx.x];  // SECOND
        __syncthreads();
        x[threadIdx.x] = part[63 - threadIdx.x];  // FIRST
        BARRIER
    }
"""
TOTAL = """
    WRONG(out[0] += x[threadIdx.x];)  // FIRST SECOND
    RIGHT(atomicAdd(&out[0], x[threadIdx.x]);)
"""
LAST = """
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        out[blockIdx.x] = x[blockIdx.x];  // FIRST
        RIGHT(__threadfence();)
        is_last = atomicAdd(count, 1) == gridDim.x - 1;
        RIGHT(__threadfence();)
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) out[3] = out[0] + out[1];  // SECOND
"""
SCOPE = """
    WRONG(atomicAdd_block(count, 1);)  // FIRST SECOND
    RIGHT(atomicAdd(count, 1);)
"""
KERNELS = {
    "barrier": (REVERSE, "__syncthreads()", "part"),
    "barrier of a loop": (ROUNDS, "__syncthreads()", "part"),
    "barrier of the warp": (SWAP, "__syncwarp()", "part"),
    "atomic function": (TOTAL, "atomicAdd(&out[0], ...)", "out"),
    "fence": (LAST, "__threadfence()", "out"),
    "scope": (SCOPE, "atomicAdd()", "count"),
}


def source(body: str, call: str, *, right: bool) -> str:
    """Return a kernel in its right or its wrong form."""
    body = re.sub(r"BARRIER", f"{call};" if right else "", body)
    body = re.sub(r"RIGHT\((.*)\)", r"\1" if right else "", body)
    body = re.sub(r"WRONG\((.*)\)", "" if right else r"\1", body)
    return f'extern "C" __global__ void kernel(float* x, float* out, int* count) {{{body}}}\n'


def line_of(code: str, mark: str) -> int:
    """Return the number of the line with a mark."""
    return next(number for number, line in enumerate(code.splitlines(), 1) if re.search(rf"//.*\b{mark}\b", line))


def launch(xp: Any, name: str, *, right: bool) -> str:
    """Launch a kernel of :data:`KERNELS` in two blocks, and return its source."""
    body, call, memory = KERNELS[name]
    code = source(body, call, right=right)
    if memory == "part":  # each block has elements of its own
        code = code.replace("x[threadIdx.x]", "x[blockIdx.x * 64 + threadIdx.x]")
    xp.RawKernel(code, "kernel")((2,), (64,), (xp.ones(128, "f"), xp.zeros(4, "f"), xp.zeros(1, "i")))
    return code


@pytest.mark.parametrize("name", KERNELS)
def test_a_wrong_kernel_is_found_at_its_lines(name: str, xp: Any) -> None:
    _, call, memory = KERNELS[name]
    with check(mode="collect") as report:
        code = launch(xp, name, right=False)
    (race,) = report.races
    assert isinstance(race, KernelRace)
    assert (race.missing.call, race.memory.name) == (call, memory)
    assert race.memory.space == ("shared" if memory == "part" else "global")
    assert race.previous.line is not None
    assert race.current.line is not None
    lines = {race.previous.line.line, race.current.line.line}
    assert lines == {line_of(code, "FIRST"), line_of(code, "SECOND")}
    if name == "barrier of a loop":
        assert race.missing.sentence.endswith(f"and line {line_of(code, 'SECOND')} of the next round orders them.")


@pytest.mark.parametrize("name", KERNELS)
def test_a_right_kernel_is_not_accused(name: str, xp: Any) -> None:
    launch(xp, name, right=True)  # raises an error for a race


UNUSED = {
    "a read": "int a = count[0]; if (threadIdx.x == 1) count[0] = 1;",
    "a read of shared memory": (
        "__shared__ float s[64]; s[threadIdx.x] = 1; float v = s[threadIdx.x ^ 1]; x[threadIdx.x] = s[threadIdx.x];"
    ),
    "a read in a condition": "if (count[0] == 2) {} if (threadIdx.x == 1) count[0] = 1;",
    "a sum": "float sum = 0; for (int i = 0; i < 4; i++) sum += out[i]; if (threadIdx.x == 1) out[2] = 1;",
    "a structure": "struct P { float a, b; }; P p = *(P*)x; if (threadIdx.x == 1) x[1] = 2;",
    "writes of a shared variable": "__shared__ int last; last = threadIdx.x;",
    "a write": "x[threadIdx.x] = 2; x[threadIdx.x ^ 1] = 3; x[threadIdx.x] = 4;",
}


@needs_gcc  # clang leaves such accesses out before its checks are added
@pytest.mark.parametrize("name", UNUSED)
def test_an_access_whose_value_nothing_uses_races_too(name: str, xp: Any) -> None:
    with pytest.raises(KernelRaceError):
        xp.RawKernel(source(UNUSED[name], "", right=True), "kernel")(
            (1,), (64,), (xp.ones(64, "f"), xp.zeros(4, "f"), xp.zeros(1, "i"))
        )


def test_the_error_comes_after_the_kernel_has_run(xp: Any) -> None:
    x, out, count = xp.ones(64, "f"), xp.zeros(4, "f"), xp.zeros(1, "i")
    with pytest.raises(KernelRaceError) as caught:
        xp.RawKernel(source(TOTAL, "", right=False), "kernel")((1,), (64,), (x, out, count))
    assert caught.value.error_code == 719
    assert out[0] == 64
    (race,) = caught.value.races
    assert race.memory.text == "element 0 of `out` (float32, shape (4,))"
    assert race.current.source.startswith("out[0] += x[threadIdx.x];")


FAILS = """
extern "C" __global__ void kernel(float* x, float* out, int* count) {
    count[0] = threadIdx.x;
    if (threadIdx.x == 63) *(int*)8 = count[0];
}
"""


def test_the_race_of_a_kernel_that_fails_comes_before_the_failure(xp: Any) -> None:
    kernel = xp.RawKernel(FAILS, "kernel")
    args = xp.ones(64, "f"), xp.zeros(4, "f"), xp.zeros(1, "i")
    with pytest.raises(KernelRaceError) as caught:
        kernel((1,), (64,), args)
    assert "700" in str(caught.value.__cause__)
    with check(mode="collect") as report, pytest.raises(Exception, match="700"):
        kernel((1,), (64,), args)
    assert report.races


def test_a_global_variable_is_memory_of_all_blocks(xp: Any) -> None:
    code = '__device__ int last;\nextern "C" __global__ void kernel() {\n  last = blockIdx.x;\n}'
    with pytest.raises(KernelRaceError) as caught:
        xp.RawModule(code=code).get_function("kernel")((2,), (1,), ())
    (race,) = caught.value.races
    assert (race.memory.space, race.memory.name) == ("global", "last")
    assert (race.previous.block, race.current.block) == ((0, 0, 0), (1, 0, 0))


def test_kernels_of_strings_and_of_functions_are_checked_too(xp: Any) -> None:
    wrong = xp.ElementwiseKernel("T x", "raw T y", "y[0] += x", "wrong")
    x, y = xp.ones(8), xp.zeros(4)
    with pytest.raises(KernelRaceError) as caught:
        wrong(x, y)
    (race,) = caught.value.races
    assert (race.kernel, race.memory.expression, race.current.source) == ("wrong", "y[0]", "y[0] += x")
    assert race.current.line is not None
    assert race.current.line[1:] == ("wrong: operation", 1)
    compiled = tcuda._compile_kernel("__global__ void f(float* x) {\n  x[0] = threadIdx.x;\n}", "f")
    with pytest.raises(KernelRaceError, match="kernel.cu:2"):
        compiled(1, 8, (xp.zeros(1, "f"),))


def test_usual_kernels_are_not_accused(xp: Any) -> None:
    x = xp.arange(300, dtype="f").reshape(20, 15)
    step = xp.ElementwiseKernel("raw T x, int32 n", "T y", "y = x[(i + 1) % n] - x[i]", "step_to_next")
    assert step(x, x.size, size=x.size).shape == (300,)
    length = xp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "length")
    assert length(x, axis=1).shape == (20,)
    assert float(length(x)) > 0
    double = tcuda.jiterator._create_jit_fn("template <typename T> T twice(T x) { return x + x; }")
    assert double(x).shape == x.shape

    @xp.fuse()
    def softplus(x: Any) -> Any:
        return xp.log(1 + xp.exp(-x))

    assert softplus(x).shape == x.shape
    assert float((xp.sqrt(x) + x).sum()) > 0
    assert xp.bincount(xp.asarray([1, 1, 2])).tolist() == [0, 2, 1]


def test_a_graph_is_checked_at_each_launch(xp: Any) -> None:
    kernel = xp.RawKernel(source(TOTAL, "", right=False), "kernel")
    arrays = xp.ones(64, "f"), xp.zeros(4, "f"), xp.zeros(1, "i")
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        kernel((1,), (64,), arrays)
    with check(mode="collect") as report:
        for _ in range(2):
            graph.replay()
    (race,) = report.races
    assert race.current.launch_stack is not None
    assert report.count(race) > 2
    with pytest.raises(KernelRaceError):
        graph.replay()


WRONG = """
import tcuda
from tcuda import xp

code = '''extern "C" __global__ void total(const float* x, float* out) {
    out[0] += x[threadIdx.x];
}'''
x, out = xp.ones(8, "f"), xp.zeros(1, "f")
"""


def test_with_the_late_schedule_the_wait_raises_the_error(output_of: OutputOf) -> None:
    code = (
        WRONG
        + """
xp.RawKernel(code, "total")((1,), (8,), (x, out))
print("launched")
try:
    tcuda.synchronize()
except tcuda.sanitizer.KernelRaceError as error:
    print(error.races[0].current.stack[0].line)
"""
    )
    printed = output_of(
        code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_SCHEDULE="late", TCUDA_EMULATED_CHECKS="memory,races"
    )
    line = 1 + code.splitlines().index('xp.RawKernel(code, "total")((1,), (8,), (x, out))')
    assert printed.splitlines() == ["launched", str(line)]


def test_a_program_that_uses_cupy_is_checked(tmp_path: Path) -> None:
    program = WRONG.replace("import tcuda\nfrom tcuda import xp", "import cupy as xp")
    (tmp_path / "program.py").write_text(program + 'xp.RawKernel(code, "total")((1,), (8,), (x, out))\n')
    done = subprocess.run(
        [sys.executable, "-m", "tcuda.emulation", "program.py"],
        cwd=tmp_path,
        env=environment(TCUDA_EMULATED_CHECKS="memory,races"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "KernelRaceError" in done.stderr
    assert (
        "    kernel.cu:2: thread (1, 0, 0) of block (0, 0, 0) reads\n        out[0] += x[threadIdx.x];" in done.stderr
    )
