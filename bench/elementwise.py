"""The same functions of every element of arrays, for jiterator and for CuPy's kernels."""

from __future__ import annotations

from typing import Any

_AXPY = "template <typename T> T axpy(T x, T y, T alpha) { return alpha * x + y; }"
_SUM = "template <typename T> T total(T a, T b, T c, T d) { return a + b + c + d; }"
_RAW_AXPY = """
extern "C" __global__ void axpy(const float *x, const float *y, float *out, float alpha, int size) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size)
        out[i] = alpha * x[i] + y[i];
}
"""


def jitted(cuda: Any, ones: Any) -> dict[str, Any]:
    """Return the functions that ``cuda.jiterator`` makes, and their inputs.

    Args:
        cuda: ``tcuda`` or ``torch.cuda``.
        ones: Returns an array of the shape that it gets.
    """
    names = inputs(ones)
    names["axpy"] = cuda.jiterator._create_jit_fn(_AXPY, alpha=2.0)
    names["total"] = cuda.jiterator._create_jit_fn(_SUM)
    return names


def compiled(xp: Any, ones: Any) -> dict[str, Any]:
    """Return the kernels that ``xp``, the array library, makes, and their inputs."""
    names = inputs(ones)
    names["axpy"] = xp.ElementwiseKernel("T x, T y, T alpha", "T out", "out = alpha * x + y", "axpy")
    names["total"] = xp.ElementwiseKernel("T a, T b, T c, T d", "T out", "out = a + b + c + d", "total")
    names["raw_axpy"] = xp.RawKernel(_RAW_AXPY, "axpy")
    names["alpha"], names["size"] = xp.float32(2.0), xp.int32(1000)
    return names


def inputs(ones: Any) -> dict[str, Any]:
    """Return arrays of float32: ``floats`` of 1,000 elements, and ``row`` and ``column`` that are broadcast."""
    return {"floats": ones(1000), "others": ones(1000), "row": ones((1, 40)), "column": ones((25, 1))}
