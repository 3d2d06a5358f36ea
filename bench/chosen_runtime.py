"""The choice of the measured runtime: CUDA if there is a GPU, and emulated devices otherwise."""

from __future__ import annotations

import os

import tcuda

# Under pytest, the conftest.py of the repository has set the variable already. The choice is stored in the environment
# so that processes started from here use the same runtime.
if "TCUDA_RUNTIME" not in os.environ:
    os.environ["TCUDA_RUNTIME"] = "cuda" if tcuda.is_available() else "emulated"

ON_CUDA = os.environ["TCUDA_RUNTIME"] == "cuda"
"""Whether there is a GPU to measure."""
