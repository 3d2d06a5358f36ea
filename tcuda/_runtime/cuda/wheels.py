"""The files of NVIDIA's wheels on this machine."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def folders() -> list[Path]:
    """Return the folders of the package ``nvidia``, in which all of NVIDIA's wheels put their files."""
    package = importlib.util.find_spec("nvidia")
    return [Path(place) for place in (package.submodule_search_locations or ())] if package is not None else []
