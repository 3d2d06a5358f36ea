"""The baseline: for each runtime, what the calls cost as a multiple of what the layer below them costs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from results import UnusableError

if TYPE_CHECKING:
    from pathlib import Path


class Baseline(NamedTuple):
    """The section of one runtime.

    Attributes:
        machine: What it was measured on.
        ratios: For each call, tcuda / below.
    """

    machine: dict[str, str]
    ratios: dict[str, float]

    @classmethod
    def read(cls, path: Path, runtime: str) -> Baseline:
        """Read the section of ``runtime``.

        Raises:
            UnusableError: There is none.
        """
        sections = _sections(path)
        if runtime not in sections:
            raise UnusableError(f"{path} has no section for the {runtime} runtime; --update writes one.")
        return cls(**sections[runtime])

    def write(self, path: Path) -> None:
        """Replace the section of the runtime that was measured, and leave the others as they are."""
        rounded = {call: float(f"{ratio:.4g}") for call, ratio in self.ratios.items()}
        sections = {**_sections(path), self.machine["runtime"]: {"machine": self.machine, "ratios": rounded}}
        path.write_text(json.dumps(sections, indent=2) + "\n", encoding="utf-8")


def _sections(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
