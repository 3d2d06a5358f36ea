"""The results of a run of the benchmarks, as pytest-benchmark writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class UnusableError(Exception):
    """Results, or a baseline, that nothing can be concluded from."""


class Results(NamedTuple):
    """The results of one run.

    Attributes:
        machine: The device and the versions.
        medians: For each call, and each side of it, nanoseconds a call.
        ratios: For each call what tcuda costs, as a multiple of what the layer below costs in the neighbouring round.
    """

    machine: dict[str, str]
    medians: dict[str, dict[str, float]]
    ratios: dict[str, float]

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read what ``pytest --benchmark-json=path`` wrote.

        Raises:
            UnusableError: It is no such file, or one side of a call is missing.
        """
        medians: dict[str, dict[str, float]] = {}
        ratios: dict[str, float] = {}
        machine: dict[str, Any] = {}
        try:
            for benchmark in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]:
                call, on = benchmark["group"], benchmark["params"]["on"]
                medians.setdefault(call, {})[on] = benchmark["stats"]["median"] * 1e9
                machine = benchmark["extra_info"]
                ratio = machine.pop("ratio")
                if on == "tcuda":
                    ratios[call] = ratio
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise UnusableError(f"{path} holds no results of these benchmarks: {error!r}") from error
        if not medians:
            raise UnusableError(f"{path} holds no results: nothing was measured.")
        for call, sides in medians.items():
            if not {"tcuda", "below"} <= sides.keys():
                raise UnusableError(f"{path} has {call} for {', '.join(sides)} only; it takes tcuda and below.")
        return cls(machine, medians, ratios)
