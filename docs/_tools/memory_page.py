"""Makes the picture of the page of the memory: ``python docs/_tools/memory_page.py``, on a machine with Chromium.

The picture is ``docs/images/memory-viz.png``. The page is the one that ``tcuda memory-viz`` writes for the snapshot of
the program in ``docs/_tools/gpt/``.
"""

from __future__ import annotations

import html
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from screenshot import ROOT, environment, take

PICTURE = ROOT / "docs/images/memory-viz.png"
PROGRAM = ROOT / "docs/_tools/gpt"

# A frame around the page, for the keys: the page itself allows no other script.
_FRAME = """<!DOCTYPE html><style>body {{ margin: 0 }}</style>
<iframe style="display:block;border:0;width:100vw;height:100vh" srcdoc="{page}"></iframe>
<script>onload = () => {{
  const page = document.querySelector("iframe").contentDocument;
  const chart = page.getElementById("chart");
  {choose}
}};</script>"""
# The keys go from the last peak to the one before, and down to a wide band. Without the focus, no tip covers the bands.
CHOOSE = """
const keys = [...Array(6).fill("ArrowLeft"), ...Array(29).fill("ArrowDown"), "Enter"];
for (const key of keys) chart.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey: true }));
chart.dispatchEvent(new FocusEvent("blur"));
"""


def page() -> str:
    """Return the page of the snapshot that the program writes on an emulated device."""
    with tempfile.TemporaryDirectory(prefix="tcuda-page-") as folder:
        shutil.copytree(PROGRAM, Path(folder, PROGRAM.name))
        variables = environment(CUDA_VISIBLE_DEVICES="0", TCUDA_RUNTIME="emulated", TCUDA_EMULATED_MEMORY="192MiB")
        for words in ([f"{PROGRAM.name}/train.py"], ["-m", "tcuda", "memory-viz", "snapshot.pickle"]):
            command = [sys.executable, *words]
            subprocess.run(command, cwd=folder, env=variables, stdout=subprocess.DEVNULL, timeout=120, check=True)
        return Path(folder, "snapshot.html").read_text().replace(f"{folder}/", "")


def main(picture: Path = PICTURE) -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory(prefix="tcuda-page-") as folder:
        framed = Path(folder, "framed.html")
        framed.write_text(_FRAME.format(page=html.escape(page()), choose=CHOOSE))
        take(framed, picture, 1280, 800)


if __name__ == "__main__":
    main()
