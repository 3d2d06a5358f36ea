"""Whether this version of Numba compiles kernels beside this version of NumPy."""

from __future__ import annotations

import functools
import subprocess
import sys


@functools.cache
def why_numba_compiles_nothing() -> str | None:
    """Return why Numba cannot compile a kernel here; None if Numba can.

    The modules that a compile needs are imported in a process of their own, because some warn or fail half-way.
    """
    command = [sys.executable, "-W", "ignore", "-c", "import numba.cuda.np.arrayobj"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return f"needs a version of numba-cuda that works beside this NumPy: {done.stderr.strip().splitlines()[-1]}"
