"""Each operation in the tables of docs/graphs.md is captured, or refused, as the tables say."""

from __future__ import annotations

import math
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._runtime.protocol import Runtime


class Inputs:
    """The arrays that the operations use; :meth:`change` puts other numbers into the same memory."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.host = np.ones((4, 4), np.float32)
        self.x = xp.empty((16, 16), xp.float32)
        self.double = xp.empty((16, 16))
        self.other = xp.empty((16, 16), xp.float32)
        self.mask = xp.empty((16, 16), bool)
        self.indices = xp.arange(10)
        self.target = xp.zeros((16, 16), xp.float32)
        self.change(0)

    def change(self, turn: int) -> None:
        rng = np.random.default_rng(turn)
        numbers = rng.permutation(256).reshape(16, 16)
        self.x[...] = self.xp.asarray(numbers.astype(np.float32))
        self.double[...] = self.xp.asarray(rng.random((16, 16)))
        self.other[...] = self.x.T
        self.mask[...] = self.x > 100
        self.indices[...] = self.xp.asarray(rng.permutation(10))
        self.target[...] = 0


def written(write: Callable[[Inputs], object]) -> Callable[[Inputs], Any]:
    """Return an operation whose result is the array that ``write`` changes."""

    def operate(i: Inputs) -> Any:
        write(i)
        return i.target

    return operate


CAPTURED: dict[str, dict[str, Callable[[Inputs], Any]]] = {
    "elementwise": {
        "arithmetic": lambda i: i.x * 2 + i.other,
        "comparison": lambda i: (i.x > 3) & i.mask,
        "functions": lambda i: i.xp.sqrt(i.x) + i.xp.exp(-i.x),
        "in place": written(lambda i: i.target.__iadd__(i.x)),
        "where": lambda i: i.xp.where(i.mask, i.x, 0),
        "clip": lambda i: i.x.clip(3, 100),
        "astype": lambda i: i.x.astype(np.float64),
        "isin": lambda i: i.xp.isin(i.x, i.other[0]),
    },
    "reductions": {
        "sum": lambda i: i.x.sum(),
        "sum along an axis": lambda i: i.x.sum(1),
        "mean": lambda i: i.x.mean(0),
        "std": lambda i: i.x.std(),
        "max": lambda i: i.x.max(),
        "argmax": lambda i: i.x.argmax(1),
        "any": lambda i: i.mask.any(),
        "count_nonzero": lambda i: i.xp.count_nonzero(i.mask),
        "allclose": lambda i: i.xp.allclose(i.x, i.other),
        "norm": lambda i: i.xp.linalg.norm(i.x),
        "percentile": lambda i: i.xp.percentile(i.x, 30),
        "median": lambda i: i.xp.median(i.x),
        "trace": lambda i: i.x.trace(),
    },
    "scans": {
        "cumsum": lambda i: i.x.cumsum(),
        "cumprod": lambda i: i.double.cumprod(1),
        "diff": lambda i: i.xp.diff(i.x),
        "gradient": lambda i: i.xp.gradient(i.x[0]),
    },
    "sorting": {
        "sort": lambda i: i.xp.sort(i.x),
        "sort all": lambda i: i.xp.sort(i.x.ravel()),
        "argsort": lambda i: i.xp.argsort(i.x),
        "lexsort": lambda i: i.xp.lexsort(i.x[:2]),
        "partition": lambda i: i.xp.sort(i.xp.partition(i.x, 5)[:, :5]),
        "searchsorted": lambda i: i.xp.searchsorted(i.xp.sort(i.x[0]), i.x[1]),
        "digitize": lambda i: i.xp.digitize(i.x[0], i.xp.sort(i.x[1])),
    },
    "indexing": {
        "slices": lambda i: i.x[2:8, ::3] + 1,
        "take": lambda i: i.x[i.indices],
        "put": written(lambda i: i.target.__setitem__(i.indices, i.x[0])),
        "assign a slice": written(lambda i: i.target.__setitem__(slice(2, 5), i.x[2:5])),
        "fill": written(lambda i: i.target.fill(3)),
    },
    "shapes": {
        "copy": lambda i: i.x.copy(),
        "copy of a transpose": lambda i: i.x.T.copy(),
        "concatenate": lambda i: i.xp.concatenate([i.x, i.other]),
        "stack": lambda i: i.xp.stack([i.x, i.other]),
        "tile": lambda i: i.xp.tile(i.x, 2),
        "repeat": lambda i: i.xp.repeat(i.x, 2),
        "pad": lambda i: i.xp.pad(i.x, 1),
        "roll": lambda i: i.xp.roll(i.x, 3),
        "flip": lambda i: i.xp.flip(i.x) + 0,
        "tril": lambda i: i.xp.tril(i.x),
    },
    "creation": {
        "zeros": lambda i: i.xp.zeros(100),
        "ones": lambda i: i.xp.ones(100),
        "full": lambda i: i.xp.full(100, 3.0),
        "arange": lambda i: i.xp.arange(10),
        "linspace": lambda i: i.xp.linspace(0, 1, 10),
        "eye": lambda i: i.xp.eye(10),
        "a scalar": lambda i: i.xp.asarray(3.0),
    },
    "products": {
        "matmul": lambda i: i.x @ i.other,
        "matmul of doubles": lambda i: i.double @ i.double.T,
        "of a stack": lambda i: i.xp.stack([i.x, i.other]) @ i.x,
        "of a vector": lambda i: i.x @ i.other[0],
        "dot": lambda i: i.x[0].dot(i.other[0]),
        "einsum": lambda i: i.xp.einsum("ij,kj->ik", i.x, i.other),
        "tensordot": lambda i: i.xp.tensordot(i.x, i.other),
        "outer": lambda i: i.xp.outer(i.x[0], i.other[0]),
        "kron": lambda i: i.xp.kron(i.x[:3, :3], i.other[:3, :3]),
    },
    "Fourier transforms": {
        "fft": lambda i: i.xp.fft.fft(i.x),
        "rfft2": lambda i: i.xp.fft.rfft2(i.double),
        "ifft": lambda i: i.xp.fft.ifft(i.x),
    },
    "interpolation": {
        "interp": lambda i: i.xp.interp(i.x[0], i.xp.arange(256.0), i.xp.arange(256.0) * 2),
        "vander": lambda i: i.xp.vander(i.double[0], 5),
        "cross": lambda i: i.xp.cross(i.x[:, :3], i.other[:, :3]),
    },
}

FROM_DEVICE = (RuntimeError, "the current stream is capturing, so D2H transfers are disallowed")
TO_DEVICE = (RuntimeError, "the current stream is capturing, so H2D transfers are disallowed")
SOLVER = (NotImplementedError, "API during stream capture is currently unsupported")
REFUSED: dict[str, tuple[tuple[type[Exception], str], Callable[[Inputs], object]]] = {
    "get": (FROM_DEVICE, lambda i: i.x.get()),
    "item": (FROM_DEVICE, lambda i: i.x[0, 0].item()),
    "float": (FROM_DEVICE, lambda i: float(i.x[0, 0])),
    "if": (FROM_DEVICE, lambda i: bool(i.mask[0, 0])),
    "print": (FROM_DEVICE, lambda i: str(i.x)),
    "set": (TO_DEVICE, lambda i: i.target[:4, :4].copy().set(i.host)),
    "nonzero": (FROM_DEVICE, lambda i: i.xp.nonzero(i.mask)),
    "a mask as index": (FROM_DEVICE, lambda i: i.x[i.mask]),
    "unique": (FROM_DEVICE, lambda i: i.xp.unique(i.x)),
    "bincount": (FROM_DEVICE, lambda i: i.xp.bincount(i.indices)),
    "histogram": (FROM_DEVICE, lambda i: i.xp.histogram(i.x)),
    "solve": (SOLVER, lambda i: i.xp.linalg.solve(i.double, i.double)),
    "inv": (SOLVER, lambda i: i.xp.linalg.inv(i.double)),
    "cholesky": (SOLVER, lambda i: i.xp.linalg.cholesky(i.double @ i.double.T + i.xp.eye(16))),
    "qr": (SOLVER, lambda i: i.xp.linalg.qr(i.double)),
    "svd": (SOLVER, lambda i: i.xp.linalg.svd(i.double)),
    "eigh": (SOLVER, lambda i: i.xp.linalg.eigh(i.double)),
    "det": (SOLVER, lambda i: i.xp.linalg.det(i.double)),
}

ROWS = [(kind, name) for kind, operations in CAPTURED.items() for name in operations]


@pytest.fixture
def inputs(runtime: Runtime) -> Inputs:
    return Inputs(tcuda.xp)


def bytes_of(result: Any) -> list[bytes]:
    parts = result if isinstance(result, (list, tuple)) else [result]
    return [part.get().tobytes() for part in parts]


@pytest.mark.parametrize(("kind", "name"), ROWS)
def test_is_captured(inputs: Inputs, kind: str, name: str) -> None:
    operate = CAPTURED[kind][name]
    operate(inputs)  # makes plans of transforms and loads kernels of libraries before the capture
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        result = operate(inputs)
    for turn in (1, 2):
        inputs.change(turn)
        graph.replay()
        replayed = bytes_of(result)
        inputs.change(turn)
        assert bytes_of(operate(inputs)) == replayed
    graph.reset()


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_before_the_capture_is_invalidated(inputs: Inputs, name: str) -> None:
    (error, words), operate = REFUSED[name]
    if error is NotImplementedError:
        operate(inputs)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        with pytest.raises(error, match=words):
            operate(inputs)
        inputs.target += 1
    graph.replay()
    assert (inputs.target.get() == 1).all()
    graph.reset()


@pytest.mark.emulated  # cuFFT may report another status on another GPU
@pytest.mark.parametrize("name", ["fft", "rfft2"])
def test_the_plan_of_a_transform_is_made_before_the_capture(inputs: Inputs, name: str) -> None:
    operate = CAPTURED["Fourier transforms"][name]
    cache = inputs.xp.fft.config.get_plan_cache()
    cache.clear()
    graph = tcuda.CUDAGraph()
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        graph.capture_begin()
        with pytest.raises(inputs.xp.cuda.cufft.CuFFTError, match="CUFFT_INTERNAL_ERROR"):
            operate(inputs)
        with pytest.raises(tcuda.AcceleratorError):
            graph.capture_end()
    operate(inputs)
    with tcuda.graph(graph):
        operate(inputs)
    graph.reset()


@pytest.mark.emulated  # CUDA refuses the capture only if the transform needs memory, or has to load a kernel
def test_a_transform_without_a_plan_says_to_call_it_before_the_capture(inputs: Inputs) -> None:
    inputs.xp.fft.config.get_plan_cache().clear()
    with (
        pytest.raises(
            inputs.xp.cuda.cufft.CuFFTError, match="CUFFT_.*call the transform once before the capture"
        ) as caught,
        tcuda.graph(tcuda.CUDAGraph()),
    ):
        CAPTURED["Fourier transforms"]["fft"](inputs)
    assert pickle.loads(pickle.dumps(caught.value)).result == caught.value.result


@pytest.mark.emulated
def test_a_plan_may_be_made_in_a_relaxed_capture(inputs: Inputs) -> None:
    inputs.xp.fft.config.get_plan_cache().clear()
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph, capture_error_mode="relaxed"):
        result = inputs.xp.fft.fft(inputs.x)
    inputs.change(1)
    graph.replay()
    replayed = bytes_of(result)
    inputs.change(1)
    assert bytes_of(inputs.xp.fft.fft(inputs.x)) == replayed
    graph.reset()


@pytest.mark.parametrize("kind", ["elementwise", "reductions", "products", "sorting", "creation"])
def test_needs_no_call_before_the_capture(inputs: Inputs, kind: str, output_of: Any) -> None:
    """CuPy can compile its kernels during a capture."""
    code = f"""
import sys
sys.path.insert(0, {str(__file__).rsplit("/", 1)[0]!r})
import tcuda
from test_operations import CAPTURED, Inputs, bytes_of
inputs = Inputs(tcuda.xp)
for name, operate in CAPTURED[{kind!r}].items():
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        result = operate(inputs)
    inputs.change(0)
    graph.replay()
    replayed = bytes_of(result)
    inputs.change(0)
    assert bytes_of(operate(inputs)) == replayed, name
print("fine")
"""
    assert output_of(code) == "fine"


class TestKernelsOfOnesOwn:
    """Kernels of the user."""

    @pytest.fixture
    def kernels(self, xp: Any) -> dict[str, Callable[[Inputs], Any]]:
        raw = xp.RawKernel(
            'extern "C" __global__ void triple(float *x, float *y) { y[threadIdx.x] = 3 * x[threadIdx.x]; }', "triple"
        )
        elementwise = xp.ElementwiseKernel("float32 a", "float32 b", "b = a * 3", "tcuda_test_triple")
        reduction = xp.ReductionKernel("float32 a", "float32 b", "a", "a + b", "b = a", "0", "tcuda_test_total")

        @xp.fuse()  # type: ignore[untyped-decorator]
        def fused(a: Any, b: Any) -> Any:
            return a * 2 + b

        def run_raw(i: Inputs) -> Any:
            y = xp.empty(256, xp.float32)
            raw((1,), (256,), (i.x, y))
            return y

        return {
            "RawKernel": run_raw,
            "ElementwiseKernel": lambda i: elementwise(i.x),
            "ReductionKernel": lambda i: reduction(i.x),
            "fuse": lambda i: fused(i.x, i.other),
        }

    @pytest.mark.parametrize("name", ["RawKernel", "ElementwiseKernel", "ReductionKernel", "fuse"])
    def test_are_captured(self, inputs: Inputs, kernels: dict[str, Callable[[Inputs], Any]], name: str) -> None:
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            result = kernels[name](inputs)
        for turn in (1, 2):
            inputs.change(turn)
            graph.replay()
            assert bytes_of(kernels[name](inputs)) == bytes_of(result)
        graph.reset()


@pytest.mark.gpu
class TestKernelsOfLibraries:
    """Kernels of CUDA's libraries."""

    def test_of_cusparse_are_refused(self, inputs: Inputs) -> None:
        from cupyx.scipy import sparse

        matrix = sparse.eye(16, dtype="f", format="csr")
        matrix.dot(inputs.x[0])
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            with pytest.raises(NotImplementedError, match="cuSPARSE"):
                matrix.dot(inputs.x[0])
            inputs.target += 1
        graph.replay()
        assert (inputs.target.get() == 1).all()
        graph.reset()

    def test_of_cublas_are_refused_in_a_capture_of_cupy(self, inputs: Inputs) -> None:
        import cupy

        tcuda.make_graphed_callables(lambda x: x @ x, (inputs.x,))  # allows products in later captures of tcuda
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            with pytest.raises(NotImplementedError, match="cuBLAS"):
                inputs.x @ inputs.other
            stream.end_capture()

    def test_products_are_bitwise_equal_inside_and_outside_of_a_graph(self, inputs: Inputs) -> None:
        import cupy

        a, b = (cupy.random.random((300, 784), cupy.float32) for _ in range(2))
        for left, right in ((a, b.T), (a.T, b), (a.astype("e"), b.T.astype("e"))):
            graph = tcuda.CUDAGraph()
            with tcuda.graph(graph):
                product = left @ right
            graph.replay()
            assert (product == left @ right).all()
            assert math.isfinite(float(product.astype("f").sum()))
            graph.reset()
