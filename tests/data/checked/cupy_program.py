"""A program of a user of CuPy. mypy and pyright check its types in their strict modes, with what tcuda stubs writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cupy as cp
import cupy.cuda
from cupy import typing as cpt
from cupy.cuda import runtime
from cupy.cuda.memory_hooks import LineProfileHook
from cupy.linalg import norm
from typing_extensions import Self

if TYPE_CHECKING:
    import numpy as np


class Mesh(cp.ndarray):
    """An array of one value."""

    def __new__(cls, shape: int, value: float = 0.0) -> Self:
        """Return a new array."""
        made = cp.ndarray.__new__(cls, shape=shape, dtype="f8")
        made.fill(value)
        return made


def normalized(x: cp.ndarray) -> cpt.NDArray[np.float32]:
    """Return an array with the norm 1."""
    return x / norm(x)


def computed() -> None:
    """Use what CuPy has."""
    x: cp.ndarray = Mesh(3, value=1.0)
    total: float = cp.sum(normalized(x) + 1, axis=0, keepdims=True).item()
    with cp.cuda.Device(0), cupy.cuda.Stream(non_blocking=True) as stream:
        stream.synchronize()
    with LineProfileHook():
        pointer = cp.cuda.alloc(16) + 8
    square = cp.poly1d([1, 0, 0]) * 2
    kernel = cp.RawKernel('extern "C" __global__ void f() {}', "f")
    kernel((1,), (1,), ())
    print(total, runtime.getDeviceCount(), cp.asnumpy(x), cp.float32(1), cp.pi, int(pointer), [*x.flat], square(3))


def refused() -> None:
    """Use what CuPy does not have: both checkers must refuse these lines."""
    cp.onez(3)  # type: ignore[attr-defined]
    cp.zeros(3).summ()  # type: ignore[attr-defined]
    cp.zeros(3, dtipe=cp.float32)  # type: ignore[call-arg]
    cp.sum([1, 2, 3])  # type: ignore[arg-type]
    cp.linalg.inverse(cp.eye(2))  # type: ignore[attr-defined]
    cp.cuda.Strem()  # type: ignore[attr-defined]
    cupy.typing.NDarray  # type: ignore[attr-defined]  # noqa: B018
    normalized(1.5)  # type: ignore[arg-type]
