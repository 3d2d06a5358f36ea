"""A browser that shows a page of tcuda, and the document that the browser made of the page."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = os.environ.get("TCUDA_CHROMIUM") or next(filter(None, map(shutil.which, COMMANDS)), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs a Chromium, which is not on this machine")


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
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", self.body.partition("<tbody>")[2], re.DOTALL)
        return [[text for text in re.split(r"<[^>]+>", row) if text] for row in map(html.unescape, rows)]


def show_page(text: str, folder: Path, view: str = "") -> Document:
    """Show a page in a browser; ``folder`` is for temporary files, and ``view`` is the end of the page's address."""
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
    document = Document(done.stdout.decode(errors="replace"))
    assert 'data-ready="true"' in document.text
    assert document.text_of("error") == ""
    return document
