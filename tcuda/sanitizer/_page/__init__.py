"""The report of the race detector as a page of HTML that needs no network.

A report is the result of ``Report.as_dict()``, or the content of a file of ``tcuda sanitize --json``.
"""

from __future__ import annotations

from tcuda.sanitizer._page.page import render

__all__ = ["render"]
