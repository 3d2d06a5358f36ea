"""The library cuTENSOR, which emulated devices do not need (``cupy.cuda.cutensor``)."""

from __future__ import annotations

available = False
