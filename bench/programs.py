"""Whole programs in CuPy's spelling, which the benchmarks run with tcuda and with plain CuPy.

Seven programs use CuPy only; three of these are in ``docs/examples/cupy``. The other four are work of libraries that
use CuPy. A program is a function that returns a run: a function without arguments that does the whole work, from data
on the host to a result on the host, and returns the result as a number.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Run: TypeAlias = Callable[[], float]

_EXAMPLES = Path(__file__).parents[1] / "docs" / "examples" / "cupy"


def _example(name: str) -> Any:
    """Return a program of ``docs/examples/cupy`` as a module."""
    spec = importlib.util.spec_from_file_location(name, _EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _conjugate_gradient(cupy: Any, scale: int) -> Run:
    program = _example("conjugate_gradient")
    system = program.system(200 * scale)

    def run() -> float:
        solution, _ = program.solve(*map(cupy.asarray, system))
        return float(solution.sum())

    return run


def _kmeans(cupy: Any, scale: int) -> Run:
    program = _example("kmeans")
    data = program.clouds(20_000 * scale, 10)

    def run() -> float:
        centres, _, _ = program.fit(*map(cupy.asarray, data), most=20)
        return float(centres.sum())

    return run


def _option_prices(cupy: Any, scale: int) -> Run:
    program = _example("option_prices")
    data = program.market(100_000 * scale)

    def run() -> float:
        calls, puts = program.black_scholes(*map(cupy.asarray, data), 0.02, 0.3)
        return float(calls.mean()) + float(puts.mean()) + program.monte_carlo(20.0, 22.0, 2.0, 0.02, 0.3, 1000 * scale)

    return run


def _network(cupy: Any, scale: int) -> Run:
    """Train a network of two layers by gradient descent."""
    drawn = np.random.default_rng(0)
    shapes = (256 * scale, 64), (256 * scale, 10), (64, 512), (512, 10)
    data = [drawn.standard_normal(shape, np.float32) * np.float32(0.1) for shape in shapes]

    def run() -> float:
        rows, targets, first, second = map(cupy.asarray, data)
        for _ in range(50):
            hidden = cupy.maximum(rows @ first, 0)
            wrong = (hidden @ second - targets) / len(rows)
            back = (wrong @ second.T) * (hidden > 0)
            first -= 0.1 * (rows.T @ back)
            second -= 0.1 * (hidden.T @ wrong)
        return float((wrong**2).sum())

    return run


def _heat(cupy: Any, scale: int) -> Run:
    """Spread heat over a plate, by the explicit method."""
    plate = np.zeros((100 * scale, 100 * scale))
    plate[20:40, 20:40] = 1

    def run() -> float:
        heat = cupy.asarray(plate)
        for _ in range(100):
            inner = heat[1:-1, 1:-1]
            around = heat[:-2, 1:-1] + heat[2:, 1:-1] + heat[1:-1, :-2] + heat[1:-1, 2:]
            heat = heat.copy()
            heat[1:-1, 1:-1] += 0.2 * (around - 4 * inner)
        return float(heat.max())

    return run


def batches_of(scale: int) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """Return batches of signals, whose lengths differ."""
    drawn = np.random.default_rng(0)
    return [drawn.standard_normal((16 * scale, 1024 + 256 * batch)) for batch in range(10)]


def _spectra(cupy: Any, scale: int) -> Run:
    """Find the strongest frequencies of signals, batch after batch."""
    batches = batches_of(scale)

    def run() -> float:
        total = 0.0
        for batch in batches:
            signals = cupy.asarray(batch)
            power = cupy.abs(cupy.fft.rfft(signals * cupy.hanning(signals.shape[1]), axis=1)) ** 2
            strongest = cupy.sort(power, axis=1)[:, -10:]
            total += float(strongest.mean())
        return total

    return run


def _page_locked(cupy: Any, scale: int) -> Run:
    """Send signals to the device and their powers back, batch after batch, through page-locked memory."""
    batches = batches_of(scale)

    def empty(like: Any) -> Any:
        memory = cupy.cuda.alloc_pinned_memory(like.nbytes)
        return np.frombuffer(memory, like.dtype, like.size).reshape(like.shape)

    def run() -> float:
        total = 0.0
        for batch in batches:
            there, back = empty(batch), empty(batch)
            there[:] = batch
            signals = cupy.empty(batch.shape)
            signals.set(there)
            (signals * signals).get(out=back)
            total += float(back[0].sum())
        return total

    return run


def _cucim(cupy: Any, scale: int) -> Run:
    """Find and measure the bright spots of images with cuCIM."""
    from cucim.skimage import filters, measure, morphology

    drawn = np.random.default_rng(0)
    images = [(drawn.random((128 * scale, 128 * scale)) > 0.999).astype(np.float32) for _ in range(3)]

    def run() -> float:
        total = 0.0
        for image in images:
            smooth = filters.gaussian(cupy.asarray(image), sigma=3)
            spots = morphology.remove_small_objects(smooth > filters.threshold_otsu(smooth), max_size=16)
            labels = measure.label(spots)
            table = measure.regionprops_table(labels, smooth, properties=("label", "area", "mean_intensity"))
            total += float(table["area"].mean()) + float(table["mean_intensity"].sum())
        return total

    return run


def _sigpy(cupy: Any, scale: int) -> Run:
    """Reconstruct an image from a part of its frequencies with SigPy."""
    import sigpy
    from sigpy.mri import app

    drawn = np.random.default_rng(0)
    shape = 32 * scale, 32 * scale
    image = sigpy.shepp_logan(shape)
    distance = np.hypot(*np.meshgrid(*(np.linspace(-1, 1, side) for side in shape), indexing="ij"))
    coils = np.stack([np.exp(-((distance - 0.2 * coil) ** 2)) for coil in range(4)]).astype(np.complex64)
    kept = drawn.random(shape) < 0.4
    frequencies = (sigpy.fft(coils * image, axes=(-2, -1)) * kept).astype(np.complex64)

    def run() -> float:
        device = sigpy.Device(0)
        samples, maps = (sigpy.to_device(array, device) for array in (frequencies, coils))
        found = app.SenseRecon(samples, maps, lamda=0.01, max_iter=30, device=device, show_pbar=False).run()
        return float(cupy.abs(found).sum())

    return run


def _sparse(cupy: Any, scale: int) -> Run:
    """Solve Poisson's equation on a square with a sparse matrix."""
    from cupyx.scipy import sparse
    from cupyx.scipy.sparse import linalg

    side = 32 * scale

    def run() -> float:
        line = sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(side, side), format="csr")
        one = sparse.identity(side, format="csr")
        matrix = (sparse.kron(line, one) + sparse.kron(one, line)).tocsr()
        solution, _ = linalg.cg(matrix, cupy.ones(side * side), maxiter=200)
        return float(cupy.linalg.norm(solution))

    return run


def _thinc(cupy: Any, scale: int) -> Run:
    """Train a model of thinc."""
    import thinc.api as thinc

    drawn = np.random.default_rng(0)
    rows = drawn.standard_normal((512 * scale, 128), np.float32)
    right = np.eye(10, dtype=np.float32)[drawn.integers(10, size=len(rows))]

    def run() -> float:
        with thinc.use_ops("cupy"):
            thinc.fix_random_seed(0)
            model = thinc.chain(thinc.Relu(256), thinc.Relu(256), thinc.Softmax(10))
            optimizer, ops = thinc.Adam(0.001), model.ops
            inputs, outputs = ops.asarray2f(rows), ops.asarray2f(right)
            model.initialize(inputs[:2], outputs[:2])
            for batch in ops.multibatch(128 * scale, inputs, outputs, shuffle=False):
                guesses, backpropagate = model.begin_update(batch[0])
                backpropagate((guesses - batch[1]) / len(guesses))
                model.finish_update(optimizer)
            return float(((model.predict(inputs) - outputs) ** 2).mean())

    return run


PROGRAMS: dict[str, Callable[[Any, int], Run]] = {
    "conjugate gradient": _conjugate_gradient,
    "k-means": _kmeans,
    "option prices": _option_prices,
    "training of a network": _network,
    "heat equation": _heat,
    "spectra": _spectra,
    "page-locked batches": _page_locked,
    "cuCIM: bright spots": _cucim,
    "SigPy: reconstruction": _sigpy,
    "sparse solver": _sparse,
    "thinc: training": _thinc,
}
"""The programs by their names; the second argument is the size, 1 on emulated devices."""
