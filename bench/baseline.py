"""The baseline: for each runtime, the cost of each call as a multiple of the cost of the layer below."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from results import UnusableError

if TYPE_CHECKING:
    from pathlib import Path


class Baseline(NamedTuple):
    """The section of one runtime.

    Attributes:
        machine: The device and the versions on which the ratios were measured.
        ratios: The ratio tcuda / below of each call.
    """

    machine: dict[str, str]
    ratios: dict[str, float]

    @classmethod
    def read(cls, path: Path, runtime: str) -> Baseline:
        """Read the section of ``runtime``.

        Raises:
            UnusableError: The file has no section for ``runtime``.
        """
        sections = _sections(path)
        if runtime not in sections:
            raise UnusableError(f"{path} has no section for the {runtime} runtime; --update writes one.")
        return cls(**sections[runtime])

    def write(self, path: Path) -> None:
        """Write the section of the measured runtime, and leave the other sections as they are."""
        rounded = {call: float(f"{ratio:.4g}") for call, ratio in self.ratios.items()}
        sections = {**_sections(path), self.machine["runtime"]: {"machine": self.machine, "ratios": rounded}}
        path.write_text(json.dumps(sections, indent=2) + "\n", encoding="utf-8")


def _sections(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
