"""Draws a terminal in which the first program of the README runs: ``python docs/_tools/terminal.py``.

The picture is ``docs/images/terminal.svg``. The text of the picture is what the commands print.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from screenshot import ROOT, environment

PICTURE = ROOT / "docs/images/terminal.svg"
NAME = "first.py"
COMMANDS = (("python", NAME), ("tcuda", "sanitize", NAME))

_LETTER, _LINE, _EDGE, _TOP = 8.4, 21, 18, 46  # pixels
_STYLE = """
    .window { fill: #1b2129 }
    text { font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #dfe5ec; white-space: pre }
    .prompt { fill: #4fc3b5; font-weight: 600 }
    .found { fill: #ff8f87; font-weight: 600 }
    .mend { fill: #ffc44d }
"""


def program() -> str:
    """Return the first program of the README."""
    (code, *_) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    return str(code)


def transcript() -> list[str]:
    """Return the lines of the terminal: each command, and what the command prints."""
    chosen = environment(NO_COLOR="1", COLUMNS="80")
    lines = []
    with tempfile.TemporaryDirectory(prefix="tcuda-terminal-") as folder:
        Path(folder, NAME).write_text(program())
        for command in COMMANDS:
            module = ["-m", "tcuda", *command[1:]] if command[0] == "tcuda" else command[1:]
            done = subprocess.run(
                [sys.executable, "-u", *module],
                cwd=folder,
                env=chosen,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120,
            )
            lines += [f"$ {' '.join(command)}", *done.stdout.rstrip("\n").split("\n"), ""]
    return lines[:-1]


def picture(lines: list[str]) -> str:
    """Return a picture of a terminal with these lines."""
    width = round(2 * _EDGE + _LETTER * max(map(len, lines)))
    height = _TOP + _LINE * len(lines) + _EDGE - 8
    rows = "\n".join(_row(line, _TOP + 8 + _LINE * number) for number, line in enumerate(lines) if line)
    label = html.escape("A terminal: " + " ".join(" ".join(lines).split()), quote=True)
    dots = "".join(
        f'<circle cx="{_EDGE + 4 + 18 * number}" cy="20" r="6" fill="{colour}"/>'
        for number, colour in enumerate(("#ff7b72", "#ffc44d", "#4fc3b5"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{label}">\n  <style>{_STYLE}  </style>\n'
        f'  <rect class="window" width="{width}" height="{height}" rx="9"/>\n  {dots}\n{rows}\n</svg>\n'
    )


def _row(line: str, y: int) -> str:
    kinds = {"prompt": line.startswith("$ "), "found": bool(re.match(r"\d+\. ", line)), "mend": "missing:" in line}
    kind = next((name for name, holds in kinds.items() if holds), "")
    chosen = f' class="{kind}"' if kind else ""
    return f'  <text{chosen} x="{_EDGE}" y="{y}" xml:space="preserve">{html.escape(line, quote=False)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(transcript()))
