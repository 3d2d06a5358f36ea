"""The elements to which the parameters of a kernel point, and the arrays that have other elements."""

from __future__ import annotations

import ctypes
import itertools
import struct
from typing import TYPE_CHECKING, Any

from tcuda.emulation import rtc
from tcuda.emulation.strided import Strided

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tcuda._core import EmulatedModule

_WHOLE = frozenset("iub")
_NAMES = {
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "g2": "bfloat16",
    **{f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)},
}


class ElementTypes:
    """The elements to which the parameters of a kernel point.

    Args:
        kinds: For each parameter, the kind of the elements, in the letters that ``EmulatedFunction`` has for
            parameters; ``"-"`` for a parameter that is no pointer.
        sizes: For each parameter, the size of an element.
    """

    def __init__(self, kinds: str = "", sizes: Sequence[int] = ()) -> None:
        # The elements of structures are not known, and bytes stand for elements of any type.
        self._expected: list[tuple[int, str, int, set[np.dtype[Any]]]] = [
            (place, kind, size, set())
            for place, (kind, size) in enumerate(zip(kinds, sizes, strict=True))
            if kind in "iufgb" and size > 1
        ]

    def mismatch(self, args: Sequence[Any]) -> str:
        """Return a description of the first array among ``args`` with other elements than the kernel reads, or ``""``.

        An integer fits a pointer to integers of the same size, with or without a sign. A complex number is two
        floating-point numbers. Integers of 16 bits may be the bits of floating-point numbers.
        """
        for place, kind, size, fitting in self._expected:
            array = args[place]
            if isinstance(array, Strided):
                dtype = array._host.dtype
                if dtype not in fitting:
                    if array._host.size and not _fits(dtype, kind, size):
                        return f"{place} is an array of {dtype}, and the parameter points to {_NAMES[f'{kind}{size}']}"
                    fitting.add(dtype)
        return ""


def _fits(dtype: np.dtype[Any], kind: str, size: int) -> bool:
    if dtype.kind == "V":  # structures, and the types of other libraries
        return True
    if dtype.kind == "c":
        return kind == "f" and size == dtype.itemsize // 2
    if dtype.itemsize != size:
        return False
    if dtype.kind in _WHOLE or kind in _WHOLE:
        return size == 2 or (dtype.kind in _WHOLE and kind in _WHOLE)
    return dtype.kind == kind


def of_kernels(module: EmulatedModule) -> dict[str, ElementTypes]:
    """Return the elements for each kernel of ``module`` by the name of the kernel in the module."""
    found: dict[str, ElementTypes] = {}
    for number in itertools.count():
        entry = module.symbol(f"{rtc.ELEMENTS}{number}")
        if entry is None:
            break
        name, kinds, sizes = (
            ctypes.string_at(address).decode() for address in struct.unpack("QQQ", ctypes.string_at(*entry))
        )
        found[name] = ElementTypes(kinds, [ord(size) - ord("0") for size in sizes])
    return found
