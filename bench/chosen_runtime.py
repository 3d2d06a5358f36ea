"""Which runtime is measured: CUDA where there is a GPU, else emulated devices."""

from __future__ import annotations

import os

import tcuda

# For pytest, the conftest.py of the repository has settled it. In the environment, for the processes started from here.
if "TCUDA_RUNTIME" not in os.environ:
    os.environ["TCUDA_RUNTIME"] = "cuda" if tcuda.is_available() else "emulated"

ON_CUDA = os.environ["TCUDA_RUNTIME"] == "cuda"
"""Whether there is a GPU to measure."""
