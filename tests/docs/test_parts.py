"""Every page under ``docs/`` reads whole as plain Markdown, and its generated parts are up to date."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = REPOSITORY / "docs" / "_tools" / "write_parts.py"


sys.path.insert(0, str(SCRIPT.parent))
TOOL: Any = importlib.import_module("write_parts")
KINDS = {path: {kind for kind, _ in TOOL.REQUEST.findall(path.read_text())} for path in TOOL.pages()}
PAGES = [path for path, kinds in KINDS.items() if kinds - {"program"}]
"""The pages with parts that no program prints: test_programs.py runs the programs."""


def _marked(page: Path) -> Any:
    return pytest.param(page, marks=[pytest.mark.long] if page.name == "dask.md" else [], id=page.name)


@pytest.mark.parametrize("page", [_marked(page) for page in PAGES])
def test_the_parts_of_a_page_are_up_to_date(page: Path) -> None:
    if "reference" in KINDS[page]:
        pytest.importorskip("griffe", reason="the entries of the reference are read by griffe, of the extra docs")
    text = page.read_text()
    assert TOOL.with_parts(text) == text, f"run python {SCRIPT.relative_to(REPOSITORY)}"


def test_a_stale_part_is_written_anew_and_the_text_around_it_stays() -> None:
    request = "<!-- source: tcuda/_base/version.py -->\n"
    fresh = TOOL.with_parts(f"Before.\n\n{request}\nAfter.\n")
    assert "__version__" in fresh
    stale = fresh.replace("__version__", "version")
    assert stale != fresh
    assert TOOL.with_parts(stale) == fresh
    assert (fresh.startswith(f"Before.\n\n{request}"), fresh.endswith("<!-- end -->\n\nAfter.\n")) == (True, True)


def test_a_part_without_its_end_does_not_swallow_the_next_part() -> None:
    requests = "<!-- coverage: counts -->\n\nText.\n\n<!-- coverage: counts -->\n"
    written = TOOL.with_parts(requests)
    assert written.count("names are there") == 2
    assert "\nText.\n" in written


def test_no_page_needs_the_site_for_text_from_another_file() -> None:
    assert PAGES
    for page in TOOL.pages():
        assert "--8<--" not in page.read_text(), page
        assert "][tcuda" not in page.read_text(), page


def test_an_entry_of_the_reference_has_the_signature_and_what_is_wrong_with_an_argument() -> None:
    page = (REPOSITORY / "docs" / "api" / "streams.md").read_text()
    entry = page.partition("<!-- reference: tcuda.Stream -->\n")[2].partition("<!-- end -->")[0]
    assert (
        "```py\nStream(device: DeviceArgument = None, priority: int = 0, **kwargs: Unpack[StreamKeywords])\n```"
        in entry
    )
    assert "**Raises**" in entry
    assert "### `tcuda.Stream.wait_stream`" in entry


def test_a_name_of_the_coverage_links_to_its_entry_in_the_reference() -> None:
    assert "[`Stream`](api/streams.md#tcuda.Stream)" in (REPOSITORY / "docs" / "coverage.md").read_text()
