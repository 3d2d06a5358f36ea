"""The private modules of CuPy that have objects of their own which libraries use."""

from __future__ import annotations

MODULES = {
    "cupy._core": "tcuda.emulation.as_cupy.internals.core",
    "cupy._core._accelerator": "tcuda.emulation.as_cupy.internals.accelerators",
    "cupy._core._dtype": "tcuda.emulation.as_cupy.internals.dtypes",
    "cupy._core._kernel": "tcuda.emulation.as_cupy.internals.core",
    "cupy._core._routines_indexing": "tcuda.emulation.as_cupy.internals.indexing",
    "cupy._core._scalar": "tcuda.emulation.as_cupy.internals.scalar",
    "cupy._core.core": "tcuda.emulation.as_cupy.internals.core",
    "cupy._core.flags": "tcuda.emulation.as_cupy.internals.flags",
    "cupy._core.internal": "tcuda.emulation.as_cupy.internals.internal",
    "cupy._util": "tcuda.emulation.as_cupy.internals.util",
    "cupy._version": "tcuda.emulation.as_cupy.internals.version",
    "cupy.cublas": "tcuda.emulation.arrays.cublas",
    "cupy.linalg._util": "tcuda.emulation.as_cupy.internals.matrix_checks",
    "cupyx.scipy.ndimage._util": "tcuda.emulation.as_cupy.internals.image_settings",
    "cupyx.scipy.signal._iir_utils": "tcuda.emulation.as_cupy.internals.recursive_filters",
}
"""The modules of CuPy, and the modules of tcuda with their names."""
