"""A browser that shows a page of tcuda, and the document that the browser made of the page."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = os.environ.get("TCUDA_CHROMIUM") or next(filter(None, map(shutil.which, COMMANDS)), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs a Chromium, which is not on this machine")


def embedded(text: str) -> Any:
    """Return the data in the text of a page."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


class Document:
    """The document that a browser made of a page."""

    def __init__(self, text: str) -> None:
        self.text = text
        body = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
        self.words = html.unescape(re.sub(r"<[^>]+>", "|", body))
        self.body = body

    def attribute(self, id: str, name: str) -> str | None:
        (tag,) = re.findall(rf'<[^>]*\bid="{id}"[^>]*>', self.body)
        found = re.search(rf'\s{name}="([^"]*)"', tag)
        return found and html.unescape(found[1])

    def text_of(self, id: str) -> str:
        (text,) = re.findall(rf'\bid="{id}"[^>]*>([^<]*)<', self.body)
        return html.unescape(text)

    def rows(self) -> list[list[str]]:
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", self.body.partition("<tbody>")[2].partition("</tbody>")[0], re.DOTALL)
        return [[text for text in re.split(r"<[^>]+>", row) if text] for row in map(html.unescape, rows)]


_FRAME = """<!DOCTYPE html><iframe style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>
<pre id="result"></pre><script>
const frame = document.querySelector("iframe");
const result = document.getElementById("result");
const waitFor = async (isTrue) => {{ while (!isTrue()) await new Promise((done) => setTimeout(done, 20)); }};
onload = async () => {{
  const page = frame.contentDocument;
  const byId = (id) => page.getElementById(id);
  await waitFor(() => page.documentElement.dataset.ready);
  const found = await (async () => {{ {script} }})();
  result.textContent = JSON.stringify({{ found, error: byId("error").textContent }});
}};
</script>"""


def use_page(text: str, folder: Path, script: str, width: int = 1280) -> Any:
    """Run a script on a page in a browser, and return what the script returns.

    Args:
        text: The page.
        folder: The folder for temporary files.
        script: JavaScript that may use ``page`` (the document), ``byId(id)`` and ``await waitFor(isTrue)``.
        width: The width of the page in pixels.
    """
    outer = _FRAME.format(width=width, page=html.escape(text), script=script)
    found = json.loads(html.unescape(re.findall(r'<pre id="result">(.*?)</pre>', _dump(outer, folder), re.DOTALL)[0]))
    assert found["error"] == ""
    return found.get("found")


def show_page(text: str, folder: Path, view: str = "") -> Document:
    """Show a page in a browser; ``folder`` is for temporary files, and ``view`` is the end of the page's address."""
    document = Document(_dump(text, folder, view))
    assert 'data-ready="true"' in document.text
    assert document.text_of("error") == ""
    return document


def _dump(text: str, folder: Path, view: str = "") -> str:
    """Return the text of the document that the browser made of a page."""
    assert BROWSER is not None
    (folder / "page.html").write_text(text, encoding="utf-8")
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={folder / 'browser'}",
        "--window-size=1280,800",
        "--virtual-time-budget=5000",
        "--dump-dom",
    ]
    address = (folder / "page.html").as_uri() + view
    done = subprocess.run([BROWSER, *flags, address], capture_output=True, check=True, timeout=120)
    return done.stdout.decode(errors="replace")
