"""The page of a report as the cell of a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def framed(report: Mapping[str, Any], title: str) -> str:
    """Return the page of a report in a frame, which keeps its style and its scripts apart from the notebook.

    Args:
        report: The result of ``Report.as_dict()``.
        title: The title of the page.
    """
    # These imports are here, because a check needs no page.
    from tcuda._viz.shared import notebook
    from tcuda.sanitizer._page import render

    return notebook.framed(render(report, title), title)
