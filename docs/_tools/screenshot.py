"""What the pictures of programs share: the environment of the program, and the browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def environment(**variables: str) -> dict[str, str]:
    """Return the environment for a program without a GPU, where only ``variables`` change what tcuda does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TCUDA_", "GITHUB_"))}
    return kept | {"CUDA_VISIBLE_DEVICES": ""} | variables


def take(page: Path, picture: Path, width: int, height: int) -> None:
    """Write the picture that a browser draws of a page."""
    browser = os.environ.get("TCUDA_CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        sys.exit(f"The picture needs a Chromium: {', '.join(_BROWSERS)}, or the path in TCUDA_CHROMIUM.")
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={page.parent / 'profile'}"]
    shot = [f"--screenshot={picture}", f"--window-size={width},{height}", page.as_uri()]
    # The budget is time for the scripts of the page, which passes as fast as the scripts run.
    command = [browser, *options, "--virtual-time-budget=5000", *shot]
    subprocess.run(command, stderr=subprocess.DEVNULL, timeout=120, check=True)
