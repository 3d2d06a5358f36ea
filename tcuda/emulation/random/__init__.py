"""Random numbers on emulated devices: the module ``cupy.random``.

The functions draw from the default generator of the current device. A ``Generator`` draws from a ``BitGenerator``,
whose state is on the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.random import _bit_generator, _distributions, _generator, _generator_api, _sample
from tcuda.emulation.random.random_state import DeviceGenerator as DeviceGenerator  # the module by which it is pickled

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def _bytes(length: int) -> bytes:
    """Return random bytes of the host from ``numpy.random.bytes`` (``cupy.random.bytes``)."""
    return np.random.bytes(length)


_bytes.__name__ = _bytes.__qualname__ = "bytes"

_TABLE: dict[str, Any] = {
    **_distributions.FUNCTIONS,
    **_generator.FUNCTIONS,
    **_sample.FUNCTIONS,
    "BitGenerator": _bit_generator.BitGenerator,
    "Generator": _generator_api.Generator,
    "MRG32k3a": _bit_generator.MRG32k3a,
    "Philox4x3210": _bit_generator.Philox4x3210,
    "RandomState": _generator.RandomState,
    "XORWOW": _bit_generator.XORWOW,
    "bytes": _bytes,
    "default_rng": _generator_api.default_rng,
}


def __dir__() -> list[str]:
    return sorted(_TABLE)


# This is the last statement, because ``bytes`` hides a builtin from the rest of the module.
globals().update(_TABLE)
