"""The results of a run of the benchmarks, as pytest-benchmark writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from calls import CALLS
from replayed import Replayed

if TYPE_CHECKING:
    from pathlib import Path


class UnusableError(Exception):
    """Results, or a baseline, that nothing can be concluded from."""


class Costs(NamedTuple):
    """What a call costs, in nanoseconds.

    Attributes:
        tcuda: What tcuda's costs.
        below: What the layer below it costs, None if that has no such call.
        torch: What torch's costs, None if it was not measured.
        ratio: What tcuda's costs as a multiple of what the layer below costs in the neighbouring round.
    """

    tcuda: float
    below: float | None
    torch: float | None
    ratio: float

    @property
    def over_below(self) -> float:
        """What tcuda costs over the layer below, from the ratio: the two medians are of rounds seconds apart."""
        return (self.ratio - 1) * (self.below or 0)


class Results(NamedTuple):
    """The results of one run.

    Attributes:
        machine: The device and the versions.
        medians: For each call, and each side of it, nanoseconds a call.
        ratios: For each call what tcuda costs, as a multiple of what the layer below costs in the neighbouring round.
        replays: What the replays of workloads found.
    """

    machine: dict[str, str]
    medians: dict[str, dict[str, float]]
    ratios: dict[str, float]
    replays: list[Replayed]

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read what ``pytest --benchmark-json=path`` wrote.

        Raises:
            UnusableError: It is no such file, or one side of a call is missing.
        """
        medians: dict[str, dict[str, float]] = {}
        ratios: dict[str, float] = {}
        replays: list[Replayed] = []
        machine: dict[str, Any] = {}
        try:
            for benchmark in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]:
                machine = benchmark["extra_info"]
                if "replays" in machine:
                    replays += [Replayed(**replay) for replay in machine.pop("replays")]
                    continue
                call, on = benchmark["group"], benchmark["params"]["on"]
                medians.setdefault(call, {})[on] = benchmark["stats"]["median"] * 1e9
                ratio = machine.pop("ratio")
                if on == "tcuda":
                    ratios[call] = ratio
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise UnusableError(f"{path} holds no results of these benchmarks: {error!r}") from error
        if not medians and not replays:
            raise UnusableError(f"{path} holds no results: nothing was measured.")
        for call, sides in medians.items():
            if not {"tcuda", "below"} <= sides.keys():
                raise UnusableError(f"{path} has {call} for {', '.join(sides)} only; it takes tcuda and below.")
        return cls(machine, medians, ratios, replays)

    def costs(self, call: str) -> Costs:
        """Return what is to be told of ``call``.

        Raises:
            UnusableError: It is what the call costs beyond another, which was not measured.
        """
        sides, ratio = self.medians[call], self.ratios[call]
        beyond = CALLS[call].beyond if call in CALLS else None
        if beyond is None:
            return Costs(sides["tcuda"], sides["below"], sides.get("torch"), ratio)
        if beyond not in self.medians:
            raise UnusableError(f"What {call!r} costs is counted from {beyond!r}: measure that too.")
        less = self.medians[beyond]
        torch = sides["torch"] - less["torch"] if "torch" in sides and "torch" in less else None
        return Costs(sides["tcuda"] - less["tcuda"], None, torch, ratio)
