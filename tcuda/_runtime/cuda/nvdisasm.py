"""NVIDIA's disassembler on this machine."""

from __future__ import annotations

import os

from tcuda._runtime.cuda import wheels


def find_in_wheels() -> str:
    """Return the path of the disassembler of NVIDIA's newest wheel, or an empty string if no wheel has it.

    The core finds the disassembler of a toolkit.
    """
    found = (path for folder in wheels.folders() for path in folder.glob("cu[0-9]*/bin/nvdisasm"))
    programs = [path for path in found if path.is_file() and os.access(path, os.X_OK)]
    return str(max(programs, key=lambda path: int(path.parents[1].name[2:]))) if programs else ""
