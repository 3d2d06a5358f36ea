"""The types of arrays that the demo's signatures name."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[numpy.uint8]
"""Digits on the host. Each row has the 64 pixels of an image and then the digit."""

Indices: TypeAlias = NDArray[numpy.int64]
"""Indices of rows, on the host."""

Floats: TypeAlias = NDArray[numpy.float32]
"""Numbers on the host."""

RngState: TypeAlias = NDArray[numpy.uint8]
"""The state of a random number generator, on the host."""

DeviceArray: TypeAlias = Any
"""An array of ``tcuda.xp``: ``cupy.ndarray``, or its emulated counterpart."""
