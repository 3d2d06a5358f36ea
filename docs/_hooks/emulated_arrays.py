"""The class of the arrays of emulated devices in the reference."""

from __future__ import annotations

from typing import Any

import griffe


class EmulatedArrays(griffe.Extension):
    """Shows the class of the emulated arrays, and not the types of CuPy's arrays that type checkers see."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Replace the alias of the types, once the package is loaded."""
        arrays = griffe.Alias("ndarray", "tcuda.emulation.arrays.ndarray.ndarray", parent=pkg["emulation"])
        pkg["emulation"].set_member("ndarray", arrays)
