"""The pictures of the pages, as a browser draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.browser import embedded, needs_browser, use_page
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PICTURES = sorted((REPOSITORY / "docs/images").glob("*.svg"))

PAGE = '<html data-ready="true"><body><pre id="error"></pre>{}</body></html>'

# A text belongs to the smallest box that its centre is in; a text outside all boxes belongs to the picture.
OVERHANGING = """
const boxOf = (element) => element.getBoundingClientRect();
const picture = page.querySelector("svg");
const area = ({ width, height }) => width * height;
const frames = [...picture.querySelectorAll("rect")].map(boxOf).sort((one, other) => area(one) - area(other));
return [...picture.querySelectorAll("text")].filter((text) => {
  const { left, right, top, bottom } = boxOf(text);
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  const isAround = (frame) => frame.left < x && x < frame.right && frame.top < y && y < frame.bottom;
  const around = frames.find(isAround) ?? boxOf(picture);
  return left < around.left + 4 || right > around.right - 4 || top < around.top || bottom > around.bottom;
}).map((text) => text.textContent);
"""


@needs_browser
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)
def test_the_texts_of_a_picture_stay_in_their_boxes(picture: Path, tmp_path: Path) -> None:
    assert use_page(PAGE.format(picture.read_text()), tmp_path, OVERHANGING, width=800) == []


@needs_browser
@pytest.mark.long
@pytest.mark.parametrize("name", ["memory_page", "race_page"])
def test_the_picture_of_a_page_can_be_made_again(name: str, tool: Callable[[str], Any], tmp_path: Path) -> None:
    made = tool(name)
    made.main(tmp_path / "picture.png")
    again, kept = (path.read_bytes()[:24] for path in (tmp_path / "picture.png", made.PICTURE))
    assert again == kept  # the head has the width and the height


@needs_browser
@pytest.mark.long
def test_the_picture_of_the_memory_shows_a_program_that_anybody_can_run(
    tool: Callable[[str], Any], tmp_path: Path
) -> None:
    made = tool("memory_page")
    page = made.page()
    data = embedded(page)
    files = {data["texts"][file] for _, file, _, is_user in data["frames"] if is_user}
    assert files == {"gpt/train.py", "gpt/model.py"}
    assert all((made.PROGRAM.parent / file).exists() for file in files)
    texts = 'return ["details", "timeline-note"].map((id) => byId(id).textContent);'
    details, note = use_page(page, tmp_path, f'const chart = byId("chart"); {made.CHOOSE} {texts}')
    assert "gelugpt/model.py:" in details
    assert "Memory ran out" in note
