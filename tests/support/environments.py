"""Environments of the processes that tests start."""

from __future__ import annotations

import os

NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of this process with ``variables`` in place of those of tcuda, devices and GitHub."""
    ours = ("TCUDA_", "CUDA_VISIBLE_DEVICES", "GITHUB_")  # in a workflow of GitHub, commands print annotations
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | variables
