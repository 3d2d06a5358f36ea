"""The modules of CuPy, and for each module what its import gives where ``import cupy`` gives emulated devices.

``tests/data/cupy_modules.json`` is the table, which is written by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TABLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "cupy_modules.json").read_text(encoding="utf-8")
)


def named(state: str) -> list[str]:
    """Return the modules of a state, ``"there"`` or ``"lacking"``."""
    return " ".join(TABLE[state]).split()


def refused() -> dict[str, str]:
    """Return the reasons for the modules that have a reason of their own."""
    return {name: row["reason"] for row in TABLE["refused"] for name in " ".join(row["modules"]).split()}
