"""The search of the site finds the public names, and its tables can be read on a narrow screen."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING

import pytest

import tcuda
from support.browser import needs_browser, use_page
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

SEPARATOR = re.compile(re.findall(r"^ *separator: '(.*)'", (REPOSITORY / "mkdocs.yml").read_text(), re.MULTILINE)[0])


def words(text: str) -> list[str]:
    """Return the words of a text as the search of the site splits the text."""
    return [word for word in SEPARATOR.split(text) if word]


@pytest.mark.parametrize("name", [*tcuda.__all__, "pin_memory"])
def test_a_public_name_is_one_word_wherever_a_page_has_it(name: str) -> None:
    word = name.strip("_") if name.startswith("__") else name
    for text in (name, f"`{name}`", f"tcuda.{name}", f"`x.{name}()`", f"{name}(device=0)", f"[{name}]", f"a {name}, b"):
        assert word in {found.strip("_") for found in words(text)}, text


def test_a_private_name_is_found_with_and_without_its_underscore() -> None:
    assert words("tcuda._compile_kernel(source)") == ["tcuda", "compile_kernel", "source"]
    assert words("_compile_kernel") == words("compile_kernel")


TABLE = """<table>
<thead><tr><th>variable</th><th>values</th><th>the <em>effect</em></th></tr></thead>
<tbody><tr><td><code>TCUDA_A_VARIABLE_WITH_A_VERY_LONG_NAME_INDEED</code></td><td></td>
<td>an effect &amp; more, told in so many words that no narrow screen has room for all of them in one line</td></tr>
<tr><td><code>TCUDA_OTHER</code></td><td>a number</td><td>none</td></tr></tbody>
</table>"""


def labelled(table: str) -> str:
    """Return a table as the site shows it."""
    spec = importlib.util.spec_from_file_location("tables", REPOSITORY / "docs/_hooks/tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    found: str = tables.on_page_content(table)
    return found


def test_each_cell_has_the_heading_of_its_column_as_its_label() -> None:
    labels = re.findall(r'<td data-label="(.*?)">', labelled(TABLE))
    assert labels == ["variable", "values", "the effect"] * 2


@needs_browser
def test_a_table_at_400_pixels_shows_labels_and_cuts_nothing_off(tmp_path: Path) -> None:
    style = (REPOSITORY / "docs/stylesheets/site.css").read_text()
    body = f'<div class="md-typeset">{labelled(TABLE)}</div><pre id="error"></pre>'
    text = f'<!DOCTYPE html><html data-ready="true"><style>{style}</style><body>{body}</body></html>'
    script = """
      const cells = [...page.querySelectorAll("td")].filter((cell) => cell.offsetParent);
      const label = (cell) => getComputedStyle(cell, "::before").content;
      const left = cells.map((cell) => Math.round(cell.getBoundingClientRect().left));
      return { wide: page.documentElement.scrollWidth, labels: cells.map(label), columns: new Set(left).size };
    """
    found = use_page(text, tmp_path, script, width=400)
    assert found["wide"] <= 400
    assert found["columns"] == 1
    assert found["labels"] == ["none", '"the effect: "', "none", '"values: "', '"the effect: "']
