"""The results of a run of the benchmarks, as pytest-benchmark writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from calls import CALLS
from comm_table import Timed
from replayed import Replayed

if TYPE_CHECKING:
    from pathlib import Path


class UnusableError(Exception):
    """The results or the baseline cannot be used for a comparison."""


class Costs(NamedTuple):
    """The costs of a call, in nanoseconds.

    Attributes:
        tcuda: The cost of tcuda's call.
        below: The cost of the layer below; None if the cost of the call is only an addition to another call.
        torch: The cost of torch's call; None if torch was not measured.
        ratio: The median ratio of the rounds of tcuda to the neighbouring rounds of the layer below.
    """

    tcuda: float
    below: float | None
    torch: float | None
    ratio: float

    @property
    def over_below(self) -> float:
        """The cost of tcuda above the layer below.

        The figure comes from the ratio of neighbouring rounds, because seconds lie between the rounds of the medians.
        """
        return (self.ratio - 1) * (self.below or 0)


class Results(NamedTuple):
    """The results of one run.

    Attributes:
        machine: The device and the versions.
        medians: The nanoseconds per call, by call and side.
        ratios: For each call, the median ratio of the rounds of tcuda to the neighbouring rounds of the layer below.
        replays: The results of the replays of workloads.
        comm: The times of the calls over several devices.
    """

    machine: dict[str, str]
    medians: dict[str, dict[str, float]]
    ratios: dict[str, float]
    replays: list[Replayed]
    comm: list[Timed]

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read the file that ``pytest --benchmark-json=path`` wrote.

        Raises:
            UnusableError: The file has no results of these benchmarks, or a side of a call is missing.
        """
        medians: dict[str, dict[str, float]] = {}
        ratios: dict[str, float] = {}
        replays: list[Replayed] = []
        comm: list[Timed] = []
        machine: dict[str, Any] = {}
        try:
            for benchmark in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]:
                machine = benchmark["extra_info"]
                if "replays" in machine:
                    replays += [Replayed(**replay) for replay in machine.pop("replays")]
                    continue
                if "comm" in machine:
                    comm.append(Timed(**machine.pop("comm"), microseconds=benchmark["stats"]["median"] * 1e6))
                    continue
                call, on = benchmark["group"], benchmark["params"]["on"]
                medians.setdefault(call, {})[on] = benchmark["stats"]["median"] * 1e9
                ratio = machine.pop("ratio")
                if on == "tcuda":
                    ratios[call] = ratio
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise UnusableError(f"{path} holds no results of these benchmarks: {error!r}") from error
        if not medians and not replays and not comm:
            raise UnusableError(f"{path} holds no results: no call was measured.")
        for call, sides in medians.items():
            if not {"tcuda", "below"} <= sides.keys():
                raise UnusableError(f"{path} has {call} for {', '.join(sides)} only, but needs tcuda and below.")
        return cls(machine, medians, ratios, replays, comm)

    def costs(self, call: str) -> Costs:
        """Return the costs of ``call`` that the report shows.

        Raises:
            UnusableError: The cost of ``call`` is an addition to another call, which was not measured.
        """
        sides, ratio = self.medians[call], self.ratios[call]
        beyond = CALLS[call].beyond if call in CALLS else None
        if beyond is None:
            return Costs(sides["tcuda"], sides["below"], sides.get("torch"), ratio)
        if beyond not in self.medians:
            raise UnusableError(f"The cost of {call!r} is counted from {beyond!r}: measure that call, too.")
        less = self.medians[beyond]
        torch = sides["torch"] - less["torch"] if "torch" in sides and "torch" in less else None
        return Costs(sides["tcuda"] - less["tcuda"], None, torch, ratio)
