"""A typed program that computes with ``tcuda.xp``; mypy and pyright check it in their strict modes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import tcuda
import tcuda.emulation
import tcuda.testing

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self

xp = tcuda.xp


class Mesh(xp.ndarray):
    """An array with a name."""

    name: str = ""

    def __new__(cls, shape: int, value: float = 0.0) -> Self:
        """Return an array of ``shape`` elements with the same value."""
        made = xp.ndarray.__new__(cls, shape=shape, dtype="f8")
        made.fill(value)
        return made

    def __array_finalize__(self, obj: object, /) -> None:
        """Take the name of the array that this array comes from."""
        self.name = getattr(obj, "name", "")


def halved(x: xp.typing.NDArray[np.float64], like: xp.typing.DTypeLike = np.float64) -> xp.typing.NDArray[np.float64]:
    """Return the halves of the elements."""
    return xp.asarray(x / 2, dtype=like)


def normalized(x: tcuda.emulation.ndarray) -> tcuda.emulation.ndarray:
    """Return the rows with the length 1."""
    lengths = xp.sqrt((x * x).sum(axis=1, keepdims=True))
    return x / xp.maximum(lengths, 1e-12)


def total_memory(device: tcuda.DeviceArgument) -> int:
    """Return the bytes of a device."""
    return tcuda.mem_get_info(device)[1]


def main() -> None:
    """Use functions, methods, dtypes and modules of the namespace."""
    x = xp.linspace(0, 1, 12, dtype=xp.float32).reshape(3, 4)
    total: float = xp.zeros(3).sum().item()
    on_host: npt.NDArray[np.float32] = normalized(x).get()
    assert total == 0
    assert on_host.shape == (3, 4)
    values, step = xp.linspace(0, 1, 5, retstep=True)
    assert float(step) == 0.25
    joined = xp.concatenate([values, xp.asarray([2.0, 3.0])], axis=0)
    rows, columns = xp.nonzero(x > 0.5)
    assert len(rows) == len(columns)
    u, s, vh = xp.linalg.svd(xp.eye(3))
    assert (u.shape, s.shape, vh.shape) == ((3, 3), (3,), (3, 3))
    assert xp.fft.fft(joined).dtype == xp.complex128
    assert xp.random.default_rng(1).random(3).shape == (3,)
    fraction, whole = xp.modf(joined)
    assert (fraction + whole == joined).all()
    x[0] = -x[1] @ xp.eye(4, dtype=x.dtype)
    x += 1
    x[x > 1] = 0
    assert x.astype(np.int32).T.flatten().max() >= 0
    assert xp.where(x > 0, x, 0).ndim == 2
    with xp.cuda.Device(0):
        assert xp.asnumpy(x).dtype == np.float32
    square = xp.ElementwiseKernel("T x", "T y", "y = x * x", "square")
    assert isinstance(square, xp.ElementwiseKernel)
    assert total_memory("cuda:0") == total_memory(None) == total_memory(xp.cuda.Device(0))
    assert tcuda.Stream(priority=-1).priority <= 0
    tcuda.testing.assert_array_equal(xp.arange(3) * 2, [0, 2, 4])
    mesh: Mesh = Mesh(3, value=2.0)
    bits: np.dtype[np.float64] = halved(mesh).dtype
    older: type[np.float64] = xp.float_
    assert (older, bits.itemsize, mesh.name, float(halved(mesh).sum())) == (np.float64, 8, "", 3.0)


def refused() -> None:
    """Use what CuPy does not have: both checkers must refuse these lines."""
    xp.onez(3)  # type: ignore[attr-defined]
    xp.zeros(3).summ()  # type: ignore[attr-defined]
    xp.zeros(3, dtipe=xp.float32)  # type: ignore[call-arg]
    xp.sum([1, 2, 3])  # type: ignore[arg-type]
    xp.sin("1")  # type: ignore[arg-type]
    xp.ndarray(3, colour="red")  # type: ignore[call-arg]
    xp.typing.NDarray  # type: ignore[attr-defined]  # noqa: B018
    tcuda.sanitizer.enable("wran")  # type: ignore[arg-type]
    tcuda.CUDAGraph().capture_begin(capture_error_mode="globl")  # type: ignore[arg-type]
    tcuda.memory.empty_pinned(3, order="A")  # type: ignore[arg-type]
    tcuda.set_sync_debug_mode("wran")  # type: ignore[arg-type]
    tcuda.sanitizer.check("wran")  # type: ignore[arg-type]
    xp.linalg.inverse(xp.eye(2))  # type: ignore[attr-defined]
    total_memory(1.5)  # type: ignore[arg-type]
    xp.concatenate(1.0)  # type: ignore[arg-type]
    tcuda.Stream(prio=3)  # type: ignore[call-arg]
    tcuda.Stream(stream_ptr="0")  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
    print("done")
