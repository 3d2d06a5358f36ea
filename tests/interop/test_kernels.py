"""Kernels of CuPy in streams, graphs and memory pools of tcuda, on a real GPU."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import keep_busy

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:cupyx.jit.rawkernel is experimental:FutureWarning"),
]

RAW = 'extern "C" __global__ void plus_one(float *x, float *y) { y[threadIdx.x] = x[threadIdx.x] + 1; }'
JIT = """
from cupyx import jit

@jit.rawkernel()
def plus_one(x, y):
    y[jit.threadIdx.x] = x[jit.threadIdx.x] + 1
"""
SIZE = 64


@pytest.fixture
def cupy() -> Any:
    return importlib.import_module("cupy")


def raw(cupy: Any) -> Callable[[Any, Any], object]:
    kernel = cupy.RawKernel(RAW, "plus_one")
    return lambda x, y: kernel((1,), (SIZE,), (x, y))


def raw_module(cupy: Any) -> Callable[[Any, Any], object]:
    kernel = cupy.RawModule(code=RAW).get_function("plus_one")
    return lambda x, y: kernel((1,), (SIZE,), (x, y))


def elementwise(cupy: Any) -> Callable[[Any, Any], object]:
    kernel = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x + 1", "plus_one_elementwise")
    return lambda x, y: kernel(x, y)


def fused(cupy: Any) -> Callable[[Any, Any], object]:
    @cupy.fuse()
    def plus_one(x: Any) -> Any:
        return x + 1

    def launch(x: Any, y: Any) -> None:
        y[...] = plus_one(x)

    return launch


def reduction(cupy: Any) -> Callable[[Any, Any], object]:
    kernel = cupy.ReductionKernel("float32 x", "float32 y", "x", "a + b", "y = a + 1", "0", "one_more_than_the_sum")
    return lambda x, y: kernel(x[:, None], y, axis=1)


def jit(_: Any) -> Callable[[Any, Any], object]:
    rawkernel = importlib.import_module("jit_kernels").plus_one
    return lambda x, y: rawkernel((1,), (SIZE,), (x, y))


def compiled(_: Any) -> Callable[[Any, Any], object]:
    kernel = tcuda._compile_kernel(RAW, "plus_one")
    return lambda x, y: kernel(1, SIZE, (x, y))


KINDS = [raw, raw_module, elementwise, fused, reduction, jit, compiled]


@pytest.fixture(params=KINDS, ids=[kind.__name__ for kind in KINDS])
def launch(request: pytest.FixtureRequest, cupy: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """A function of two arrays that launches a kernel of one kind; the kernel has run once, and is compiled."""
    # The compiler of cupyx.jit reads the source from a file.
    (tmp_path / "jit_kernels.py").write_text(JIT)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "jit_kernels", raising=False)
    function = request.param(cupy)
    x = cupy.zeros(SIZE, dtype=cupy.float32)
    y = cupy.empty_like(x)
    function(x, y)
    assert (y == 1).all()
    return function


def test_a_kernel_runs_on_the_current_stream_of_tcuda(cupy: Any, launch: Any) -> None:
    x = cupy.full(SIZE, 4, dtype=cupy.float32)
    y = cupy.zeros_like(x)
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        # The first launch compiles. A fused function allocates its result, and the first allocation of a stream takes
        # memory from the driver. With other processes on the GPU, both may take longer than the stream is busy.
        launch(x, cupy.zeros_like(x))
        tcuda.synchronize()
        keep_busy(stream)
        launch(x, y)
        assert not stream.query()
    stream.synchronize()
    assert (y == 5).all()


def test_a_graph_of_tcuda_captures_a_kernel(cupy: Any, launch: Any) -> None:
    x = cupy.full(SIZE, 4, dtype=cupy.float32)
    y = cupy.zeros_like(x)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        launch(x, y)
    assert (y == 0).all()
    x.fill(7)
    graph.replay()
    tcuda.synchronize()
    assert (y == 8).all()


def test_a_kernel_uses_memory_of_a_pool_of_tcuda(cupy: Any, launch: Any) -> None:
    pool = tcuda.MemPool()
    with tcuda.use_mem_pool(pool):
        x = cupy.full(SIZE, 4, dtype=cupy.float32)
        y = cupy.zeros_like(x)
        launch(x, y)
    assert (y == 5).all()
    assert pool.snapshot()
