"""What private modules of CuPy have that libraries use, beside the objects of the public modules."""

from __future__ import annotations

MODULES = {
    "cupy._core": "tcuda.emulation.internals.core",
    "cupy._core._kernel": "tcuda.emulation.internals.core",
    "cupy._core._routines_indexing": "tcuda.emulation.internals.indexing",
    "cupy._core._scalar": "tcuda.emulation.internals.scalar",
    "cupy._core.core": "tcuda.emulation.internals.core",
    "cupy._core.internal": "tcuda.emulation.internals.internal",
    "cupy.cublas": "tcuda.emulation.cublas",
}
"""The modules of CuPy, and the modules of tcuda with their names."""
