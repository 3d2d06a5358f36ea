"""Makes the picture of the page of a race: ``python docs/_tools/race_page.py``, on a machine with Chromium.

The picture is ``docs/images/sanitize.png``. The page is the one that ``tcuda sanitize --html`` writes for the program
of ``docs/sanitize.md``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs/images/sanitize.png"
NAME = "train.py"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SIZE = "1280,1030"


def program() -> str:
    """Return the first program of the page."""
    (code, *_) = re.findall(r"^```py\n(.*?)^```", (ROOT / "docs/sanitize.md").read_text(), re.DOTALL | re.MULTILINE)
    return str(code)


def main() -> None:
    """Write the picture."""
    browser = os.environ.get("TCUDA_CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        sys.exit(f"The picture needs a Chromium: {', '.join(_BROWSERS)}, or the path in TCUDA_CHROMIUM.")
    chosen = {name: value for name, value in os.environ.items() if not name.startswith(("TCUDA_", "GITHUB_"))}
    chosen |= {"CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory(prefix="tcuda-page-") as folder:
        page = Path(folder, "page.html")
        Path(folder, NAME).write_text(program())
        command = [sys.executable, "-m", "tcuda", "sanitize", "--html", page.name, NAME]
        done = subprocess.run(command, cwd=folder, env=chosen, stdout=subprocess.DEVNULL, timeout=120, check=False)
        if done.returncode != 1:
            sys.exit(f"tcuda sanitize has found no race: its exit status is {done.returncode}.")
        page.write_text(page.read_text().replace(f"{folder}/", ""))
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder}/profile"]
        shot = [f"--screenshot={PICTURE}", f"--window-size={_SIZE}", page.as_uri()]
        subprocess.run([browser, *options, *shot], stderr=subprocess.DEVNULL, timeout=120, check=True)


if __name__ == "__main__":
    main()
