"""The reference on the site: MkDocs renders an entry with links, in place of the plain Markdown for code hosts."""

from __future__ import annotations

import re
from typing import Any

_ENTRY = re.compile(r"^<!-- reference: (\S+) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)

_HEADING = re.compile(r'(<span class="doc doc-object-name [^"]*">)([\w.]+)(?=</span>)')

# CuPy's kernels are called, and some of them inherit their surface.
_CALLED = '\n    options:\n      filters: ["!^_(?!_call__)"]'
_OPTIONS = {
    "tcuda.emulation.xp.RawKernel": _CALLED,
    "tcuda.emulation.xp.RawModule": _CALLED,
    "tcuda.emulation.xp.ElementwiseKernel": f"{_CALLED}\n      inherited_members: true",
    "tcuda.emulation.xp.ReductionKernel": f"{_CALLED}\n      inherited_members: true",
    "tcuda.CUDAGraph": "\n    options:\n      inherited_members: true",
    "tcuda.sanitizer.Report": (
        "\n    options:\n      members: [races, possible, operations, suppressed, summary, count, as_dict]"
    ),
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let mkdocstrings make each entry (an event of MkDocs)."""
    return _ENTRY.sub(lambda entry: f"::: {entry[1]}{_OPTIONS.get(entry[1], '')}", markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Let the name in a heading break behind a dot or an underscore on a narrow page (an event of MkDocs)."""
    return _HEADING.sub(lambda found: found[1] + re.sub(r"(?<=[._])(?=\w)", "<wbr>", found[2]), content)
