"""What ``cupy``, ``cupyx`` and ``cupy_backends`` of this folder do: let the right modules take their places."""

import importlib
import os
import sys


def take_place(name: str) -> None:
    """Import the module ``name`` in place of the module of this folder that has this name.

    If ``TCUDA_RUNTIME`` asks for emulated devices, this is the module of emulated devices. Otherwise the program has
    ended the emulation for this process, or has not begun it, and this is the module of the installed CuPy.

    Raises:
        ImportError: There is no such module.
    """
    del sys.modules[name]
    folder = os.path.dirname(__file__)  # noqa: PTH120  # pathlib takes long to import
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    if os.environ.get("TCUDA_RUNTIME") in ("emulated", "auto"):
        from tcuda.emulation import install_as_cupy

        install_as_cupy()  # puts the folder back
    elif os.environ.get("TCUDA_SANITIZER_REPORTS"):
        import tcuda.emulation  # noqa: F401  # `tcuda sanitize` watches CuPy in this process by tcuda
    importlib.import_module(name)
