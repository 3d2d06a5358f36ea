"""The names ``cupy`` and ``cupyx`` for the modules of emulated devices, in a process that has asked for these names."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_MODULES = {
    "cupy": "tcuda.emulation.xp",
    "cupy.cuda": "tcuda.emulation.cuda",
    "cupy.cuda.compiler": "tcuda.emulation.cuda.compiler",
    "cupy.cuda.cub": "tcuda.emulation.cuda.cub",
    "cupy.cuda.cufft": "tcuda.emulation.fourier.cufft",
    "cupy.cuda.curand": "tcuda.emulation.cuda.curand",
    "cupy.cuda.device": "tcuda.emulation.cuda.device",
    "cupy.cuda.driver": "tcuda.emulation.cuda.driver",
    "cupy.cuda.graph": "tcuda.emulation.cuda.graph",
    "cupy.cuda.memory": "tcuda.emulation.cuda.memory",
    "cupy.cuda.nvtx": "tcuda.emulation.cuda.nvtx",
    "cupy.cuda.pinned_memory": "tcuda.emulation.cuda.pinned_memory",
    "cupy.cuda.profiler": "tcuda.emulation.cuda.profiler",
    "cupy.cuda.runtime": "tcuda.emulation.cuda.runtime",
    "cupy.cuda.stream": "tcuda.emulation.cuda.stream",
    "cupy.cuda.thrust": "tcuda.emulation.cuda.thrust",
    "cupy.fft": "tcuda.emulation.fft",
    "cupy.lib": "tcuda.emulation.lib",
    "cupy.lib.stride_tricks": "tcuda.emulation.stride_tricks",
    "cupy.linalg": "tcuda.emulation.linalg",
    "cupy.random": "tcuda.emulation.random",
    "cupy.testing": "tcuda.emulation.testing",
    "cupyx": "tcuda.emulation.cupyx",
    "cupyx.profiler": "tcuda.emulation.cupyx.profiler",
    "cupyx.scipy": "tcuda.emulation.cupyx.scipy",
    "cupyx.scipy.fft": "tcuda.emulation.cupyx.scipy.fft",
    "cupyx.scipy.fftpack": "tcuda.emulation.cupyx.scipy.fftpack",
    "cupyx.scipy.linalg": "tcuda.emulation.cupyx.scipy.linalg",
    "cupyx.scipy.ndimage": "tcuda.emulation.cupyx.scipy.ndimage",
    "cupyx.scipy.signal": "tcuda.emulation.cupyx.scipy.signal",
    "cupyx.scipy.signal.windows": "tcuda.emulation.cupyx.scipy.signal.windows",
    "cupyx.scipy.special": "tcuda.emulation.cupyx.scipy.special",
    "cupyx.scipy.stats": "tcuda.emulation.cupyx.scipy.stats",
}
"""The modules of CuPy that emulated devices have, and the modules that stand for them."""

_PACKAGES = ("cupy", "cupyx", "cupy_backends")
"""The packages of CuPy, which an installed CuPy has all."""


class _Alias:
    """A loader that puts another module in the place of the module to load.

    Args:
        target: The name of the other module.
    """

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create a module, which :meth:`exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Import the other module, and put it in the place of ``module``."""
        target: Any = importlib.import_module(self._target)
        if not hasattr(target, "__path__"):
            target.__path__ = []  # so that Python asks the finder for the modules below, and finds no others
        sys.modules[module.__name__] = target


class _Finder:
    """A finder that finds the modules of emulated devices under the names of CuPy's modules."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module that stands for ``name``; None if no module does."""
        known = _MODULES.get(name)
        return None if known is None else ModuleSpec(name, _Alias(known), is_package=True)  # type: ignore[arg-type]


def install() -> None:
    """Let ``import cupy`` import the array namespace of emulated devices from now on, also if CuPy is installed.

    Raises:
        RuntimeError: CuPy has been imported already.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if any(name in sys.modules for name in _PACKAGES):
        raise RuntimeError("CuPy has been imported already. Start the program with python -m tcuda.emulation.")
    sys.meta_path.insert(0, _Finder())
    for name in _PACKAGES:
        if name not in _MODULES:
            sys.modules[name] = None  # type: ignore[assignment]  # Python's mark of a module that cannot be imported
