"""A page: data, style and script in one text of HTML."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HERE = "tcuda._viz.shared"
_SCRIPTS = ("text", "tabs")


def document(package: str, title: str, data: Mapping[str, Any], scripts: Sequence[str]) -> str:
    """Return a page of HTML that needs no other file, and that may load nothing.

    Args:
        package: The package with the assets ``views.html`` and ``page.css``, and the scripts.
        title: The title of the page, such as the name of a file.
        data: The data that the scripts read.
        scripts: The names of the scripts, in their order. The common scripts go first.
    """
    style = _asset(_HERE, "theme.css") + _asset(package, "page.css")
    script = _script(
        [*(_asset(_HERE, f"{name}.js") for name in _SCRIPTS), *(_asset(package, f"{name}.js") for name in scripts)]
    )
    text = Template(_asset(_HERE, "page.html")).substitute(
        title=html.escape(title),
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:",
        style=style,
        views=_asset(package, "views.html"),
        script=script,
        # The name of a function may contain "</script>" or "<!--", so no "<" is left in the data.
        data=json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    )
    return text.encode(errors="replace").decode()  # The names of files may have surrogates, which UTF-8 cannot encode.


def _asset(package: str, name: str) -> str:
    return (resources.files(package) / "assets" / name).read_text(encoding="utf-8")


def _script(parts: Sequence[str]) -> str:
    """Return all scripts in one function, so that their names cannot collide with names of the browser."""
    return "(() => {\n" + "\n".join(parts) + "})();"


def _hash(text: str) -> str:
    """Return the source by which a content security policy allows an element with the content ``text``."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


__all__ = ["document"]
