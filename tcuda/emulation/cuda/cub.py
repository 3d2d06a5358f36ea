"""The library CUB, which emulated devices do not need (``cupy.cuda.cub``)."""

from __future__ import annotations

available = False
