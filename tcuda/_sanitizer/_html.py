"""The page of a report as the cell of a notebook shows it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEIGHT = 640  # pixels


def framed(report: Mapping[str, Any], title: str) -> str:
    """Return the page of a report in a frame, which keeps its style and its scripts apart from the notebook.

    Args:
        report: The result of ``Report.as_dict()``.
        title: The title of the page.
    """
    from tcuda._viz.races import render  # here, because a check needs no page

    return (
        f'<iframe srcdoc="{html.escape(render(report, title))}" title="{html.escape(title)}" '
        f'sandbox="allow-scripts" style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
    )
