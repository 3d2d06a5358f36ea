"""The choice of emulated devices, for the processes that this process starts: the environment passes the choice on."""

from __future__ import annotations

import os
import sys

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "for_children")  # noqa: PTH100, PTH118, PTH120
"""The folder with the modules ``cupy``, ``cupyx`` and ``cupy_backends``, which children import in place of CuPy."""

_VARIABLE = "PYTHONPATH"


def pass_on_as_cupy() -> None:
    """Let ``import cupy`` import emulated devices in the processes that this process starts, too.

    The folder of the stand-ins comes first in ``PYTHONPATH``. The folder is in ``sys.path`` too, because
    ``multiprocessing`` and pytest-xdist give their children this list, and because ``python -E`` ignores the variable.
    """
    entries = [entry for entry in os.environ.get(_VARIABLE, "").split(os.pathsep) if entry and entry != _FOLDER]
    os.environ[_VARIABLE] = os.pathsep.join([_FOLDER, *entries])
    if _FOLDER not in sys.path:
        sys.path.insert(1, _FOLDER)  # behind the folder of the program


__all__ = ["pass_on_as_cupy"]
