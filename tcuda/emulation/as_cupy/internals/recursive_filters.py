"""The functions of ``cupyx.scipy.signal._iir_utils`` that libraries call: filters that use their past outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcuda.emulation.cupyx.scipy.definitions import signal
from tcuda.emulation.cupyx.scipy.namespaces import of_scipy


@of_scipy
def apply_iir(x: Any, a: Any, axis: int = -1, zi: Any = None, dtype: Any = None, block_sz: int = 1024) -> Any:
    """Return the outputs ``y[n] = x[n] + a[0] * y[n - 1] + a[1] * y[n - 2] + ...`` along an axis.

    Args:
        x: The samples.
        a: The coefficients of the past outputs.
        axis: The axis.
        zi: The last ``len(a)`` outputs before ``x``; None for zeros.
        dtype: The type of the outputs; None for that of ``x`` and ``a`` together.
        block_sz: The number of samples that CuPy's kernels filter together. The outputs are the same for each number.
    """
    kind = np.dtype(dtype or np.result_type(x, a))
    weights = np.concatenate((np.ones(1, kind), -a.astype(kind)))
    past = None if zi is None else zi.astype(kind)
    made = signal.lfilter(np.ones(1, kind), weights, x.astype(kind), axis, past)
    return (made if zi is None else made[0]).astype(kind)


@of_scipy
def apply_iir_sos(
    x: Any,
    sos: Any,
    axis: int = -1,
    zi: Any = None,
    dtype: Any = None,
    block_sz: int = 1024,
    apply_fir: bool = True,
) -> Any:
    """Filter ``x`` along an axis by one section after the other, as ``sosfilt`` does.

    Args:
        x: The samples.
        sos: The coefficients of the sections.
        axis: The axis.
        zi: The last two inputs and the last two outputs of each section before ``x``; None for zeros.
        dtype: The type of the outputs; None for that of ``x`` and ``sos`` together.
        block_sz: The number of samples that CuPy's kernels filter together. The outputs are the same for each number.
        apply_fir: Whether past inputs count, too.

    Returns:
        The outputs; with ``zi``, also the last inputs and outputs of each section.
    """
    kind = np.dtype(dtype or np.result_type(x, sos))
    sections = sos.astype(kind)
    if not apply_fir:
        sections[:, :3] = [1, 0, 0]
    return signal.sosfilt(sections, x.astype(kind), axis, None if zi is None else zi.astype(kind))


__all__ = ["apply_iir", "apply_iir_sos"]
