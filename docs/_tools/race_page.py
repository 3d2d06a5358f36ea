"""Makes the picture of the page of a race: ``python docs/_tools/race_page.py``, on a machine with Chromium.

The picture is ``docs/images/sanitize.png``. The page is the one that ``tcuda sanitize --html`` writes for the program
of ``docs/sanitize.md``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from screenshot import ROOT, environment, take

PICTURE = ROOT / "docs/images/sanitize.png"
NAME = "train.py"


def program() -> str:
    """Return the first program of the page."""
    (code, *_) = re.findall(r"^```py\n(.*?)^```", (ROOT / "docs/sanitize.md").read_text(), re.DOTALL | re.MULTILINE)
    return str(code)


def main(picture: Path = PICTURE) -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory(prefix="tcuda-page-") as folder:
        page = Path(folder, "page.html")
        Path(folder, NAME).write_text(program())
        command = [sys.executable, "-m", "tcuda", "sanitize", "--html", page.name, NAME]
        done = subprocess.run(
            command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, timeout=120, check=False
        )
        if done.returncode != 1:
            sys.exit(f"tcuda sanitize has found no race: its exit status is {done.returncode}.")
        page.write_text(page.read_text().replace(f"{folder}/", ""))
        take(page, picture, 1280, 1030)


if __name__ == "__main__":
    main()
