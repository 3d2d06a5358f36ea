"""The array namespace of emulated devices.

A program that gets its arrays from ``xp = tcuda.xp`` runs with CuPy on a GPU and with this module without one. The
module has only names that CuPy has too, so that a program that runs here runs there. Functions take arrays of the
current device and scalars; only functions that make arrays take lists and NumPy's arrays.

Kernels written in CUDA C++ (``ElementwiseKernel``, ``RawKernel``, ...) need the C++ compiler of the machine.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from tcuda.emulation import cuda, random
from tcuda.emulation.arrays import array_types, fft, host, lib, linalg, namespace, polynomial
from tcuda.emulation.arrays.array_facts import ARRAY_FACTS
from tcuda.emulation.arrays.flat import flatiter
from tcuda.emulation.arrays.functional import FUNCTIONAL, vectorize
from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.arrays.grids import Grid, Joined
from tcuda.emulation.arrays.memoization import clear_memo, memoize
from tcuda.emulation.arrays.ndarray import ndarray
from tcuda.emulation.arrays.old_names import OLD_NAMES
from tcuda.emulation.arrays.poly1d import POLYNOMIALS
from tcuda.emulation.arrays.ufunc import ufunc
from tcuda.emulation.cuda.configuration import show_config
from tcuda.emulation.cuda.memory_pool import get_default_memory_pool
from tcuda.emulation.cuda.pinned_memory import get_default_pinned_memory_pool
from tcuda.emulation.devices.strided import GROUPS, Strided
from tcuda.emulation.kernels.elementwise import ElementwiseKernel
from tcuda.emulation.kernels.fusion import fuse
from tcuda.emulation.kernels.raw_kernel import RawKernel
from tcuda.emulation.kernels.raw_module import RawModule
from tcuda.emulation.kernels.reduction import ReductionKernel
from tcuda.emulation.names import absent, catalogue, tensor_names
from tcuda.emulation.names import identity as _identity  # `identity` is a function of the namespace
from tcuda.emulation.numbers.structured import make_aligned_dtype
from tcuda.emulation.work import creation
from tcuda.emulation.work.active_trace import Placeholder
from tcuda.emulation.work.dlpack import fromDlpack


def __getattr__(name: str) -> Any:
    if name == "testing":  # programs seldom need the module
        module = globals()[name] = importlib.import_module("tcuda.emulation.as_cupy.testing")
        absent.tell_reasons(module, "cupy.testing")
        if __name__ == "cupy":
            _identity.rename(module, "cupy.testing")
        return module
    more = absent.about(f"cupy.{name}") or tensor_names.about_function(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{more}")


def _types_of_results(function: Any, types: Any) -> Any:
    # The translator of kernels in Python is imported at the first call, because few programs need the translator.
    return importlib.import_module("tcuda.emulation.cupyx.jit.vectorizing").types_of_results(function, types)


vectorize._types_of_results = staticmethod(_types_of_results)


def get_array_module(*args: Any) -> Any:
    """Return this module if an array of a device is among ``args``, and ``numpy`` otherwise."""
    for arg in args:
        if isinstance(arg, (Strided, Placeholder, *GROUPS)):
            return sys.modules[__name__]
    return np


__version__ = catalogue.VERSION
"""The version of CuPy whose names the module has."""

_TABLE: dict[str, Any] = {
    **{name: getattr(np, name) for name in catalogue.SAME_AS_NUMPY if hasattr(np, name)},
    **{name: Grid(name) for name in catalogue.GRIDS},
    **{name: Joined(name) for name in catalogue.JOINING},
    **{name: getattr(creation, name) for name in catalogue.CREATION},
    **{name: getattr(host, name) for name in catalogue.HOST},
    **FUNCTIONS,
    **ARRAY_FACTS,
    **FUNCTIONAL,
    **OLD_NAMES,
    **POLYNOMIALS,
    "ElementwiseKernel": ElementwiseKernel,
    "RawKernel": RawKernel,
    "RawModule": RawModule,
    "ReductionKernel": ReductionKernel,
    "clear_memo": clear_memo,
    "cuda": cuda,
    "disable_experimental_feature_warning": False,
    "fft": fft,
    "flatiter": flatiter,
    "fromDlpack": fromDlpack,
    "fuse": fuse,
    "get_default_memory_pool": get_default_memory_pool,
    "get_default_pinned_memory_pool": get_default_pinned_memory_pool,
    "is_available": cuda.is_available,
    "lib": lib,
    "linalg": linalg,
    "make_aligned_dtype": make_aligned_dtype,
    "memoize": memoize,
    "ndarray": ndarray,
    "polynomial": polynomial,
    "random": random,
    "show_config": show_config,
    "typing": array_types,
    "ufunc": ufunc,
}


def __dir__() -> list[str]:
    return sorted([*_TABLE, "get_array_module", "testing"])


__all__ = __dir__()  # The module has names of its own too, which an import of all names must not bind.

for _name in catalogue.CREATION:
    _TABLE[_name].__module__ = __name__  # The functions are pickled by their public names.

# This is the last statement, because some names hide builtins from the rest of the module. The names are in the module
# itself and not behind __getattr__(), so that Python finds them without a call.
globals().update(_TABLE)
namespace.use(sys.modules[__name__])
absent.tell_reasons(sys.modules[__name__], "cupy")
