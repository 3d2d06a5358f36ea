"""The version of CuPy (``cupy._version``)."""

from __future__ import annotations

from tcuda.emulation.names.catalogue import VERSION as __version__  # noqa: N811

__all__ = ["__version__"]
