"""What private modules of CuPy have that libraries use, beside the objects of the public modules."""

from __future__ import annotations

MODULES = {
    "cupy._core": "tcuda.emulation.internals.core",
    "cupy._core._dtype": "tcuda.emulation.internals.dtypes",
    "cupy._core._kernel": "tcuda.emulation.internals.core",
    "cupy._core._routines_indexing": "tcuda.emulation.internals.indexing",
    "cupy._core._scalar": "tcuda.emulation.internals.scalar",
    "cupy._core.core": "tcuda.emulation.internals.core",
    "cupy._core.internal": "tcuda.emulation.internals.internal",
    "cupy._util": "tcuda.emulation.internals.util",
    "cupy.cublas": "tcuda.emulation.cublas",
    "cupyx.scipy.ndimage._util": "tcuda.emulation.internals.image_settings",
    "cupyx.scipy.signal._iir_utils": "tcuda.emulation.internals.recursive_filters",
}
"""The modules of CuPy, and the modules of tcuda with their names."""
