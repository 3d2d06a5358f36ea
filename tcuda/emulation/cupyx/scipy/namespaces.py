"""The functions of SciPy, run on memory of emulated devices."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation import casts, numpy_work
from tcuda.emulation.cupyx.scipy import catalogue
from tcuda.emulation.functions import IMPLEMENTATIONS, named
from tcuda.emulation.strided import Strided
from tcuda.emulation.ufunc import ufunc

if TYPE_CHECKING:
    from collections.abc import Callable

_HERE = "tcuda.emulation.cupyx.scipy"


def functions_of(module: str) -> dict[str, Any]:
    """Return, by name, the functions of ``cupyx.scipy.<module>`` for arrays of emulated devices.

    Raises:
        ImportError: SciPy is not installed.
    """
    try:
        importlib.import_module("scipy")
        source = importlib.import_module(f"scipy.{module}")
    except ModuleNotFoundError as error:
        if error.name != "scipy":
            raise
        raise ImportError(
            f"cupyx.scipy.{module} of emulated devices needs SciPy, which is not installed: pip install scipy.",
            name="scipy",
        ) from None
    made: dict[str, Any] = {}
    universal: dict[np.ufunc, ufunc] = {}  # a function with two names is made once
    for name in catalogue.NAMES[module]:
        original = getattr(source, name, None)
        if isinstance(original, np.ufunc):
            made[name] = universal.get(original) or universal.setdefault(original, _universal(original, module, name))
        elif original is not None:
            made[name] = named(_computed(original), f"{_HERE}.{module}", name, original.__doc__)
    return made


def _universal(original: np.ufunc, module: str, name: str) -> ufunc:
    made = ufunc(original)
    made.__module__ = f"{_HERE}.{module}"
    made.__name__ = made.name = name
    IMPLEMENTATIONS.setdefault(original, made)  # SciPy's function on an array of the device calls this one
    return made


def _computed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` of SciPy for arrays of the device."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        output = kwargs.get("output")
        if isinstance(output, Strided):
            return _into(output, call(*args, **{**kwargs, "output": output.dtype}))
        if numpy_work.defers() and not numpy_work.capturing():
            with numpy_work.with_contents():  # SciPy examines the contents of arrays, and refuses some zeros
                return numpy_work.call(function, args, kwargs)
        return numpy_work.call(function, args, kwargs)

    del call.__wrapped__  # the signature of SciPy's function has types of the host
    return call


def _into(output: Strided, result: Any) -> Any:
    """Copy ``result`` to ``output``, and return ``output``."""
    numpy_work.modify(casts.copyto, (output, result), {"casting": "unsafe"})
    return output
