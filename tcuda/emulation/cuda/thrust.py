"""The library Thrust, which emulated devices do not need (``cupy.cuda.thrust``)."""

from __future__ import annotations

available = False
