"""Tables of the results of replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_programs import PROGRAMS
from targets import COLD_TIME_OF_TORCH, HELD_BY_TORCH, HELD_BY_TORCH_BUSY, HELD_OVER_TORCH, RIVALS
from workloads import COLD, STEPS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plans import Plan
    from replayed import Replayed

    Rows = list[tuple[str, ...]]
    BySource = Mapping[str, Replayed]

_MIB = 1 << 20


def by_workload(replays: Sequence[Replayed]) -> dict[str, dict[str, Replayed]]:
    """Return the replays by workload and source, with the workloads in the order of their table."""
    found: dict[str, dict[str, Replayed]] = {
        name: {} for name in (*WORKLOADS, *PROGRAMS) if any(each.workload == name for each in replays)
    }
    for replay in replays:
        found.setdefault(replay.workload, {})[replay.source] = replay
    return found


def figures(replays: Sequence[Replayed]) -> Rows:
    """Return all results, in one row for each workload and allocator."""
    header = ("workload", "allocator", "µs", "µs as arrays", "reserved / live", "reserved, MiB", "driver allocations")
    header += ("steady: reserved / live", "µs an event", "driver calls")
    rows = [
        (workload, source, *_times(replay), f"{replay.reserved_per_live:.3f}", *_memory(replay), *_steady(replay))
        for workload, sources in by_workload(replays).items()
        for source, replay in sources.items()
    ]
    return [header, *rows]


def cold(replays: Sequence[Replayed]) -> Rows:
    """Return the costs of memory from the device; if torch was measured, tcuda's row says whether its target is met."""
    header = ("workload", "allocator", "µs", "µs as arrays", "reserved, MiB", "driver allocations", "target", "met")
    target = f"arrays ≤ {COLD_TIME_OF_TORCH} torch, reserved ≤ torch"
    rows = []
    for workload, sources in by_workload(replays).items():
        for source, replay in sources.items() if workload in COLD else ():
            judged = source == "tcuda" and "torch" in sources
            verdict = (target, _said(cold_met(sources))) if judged else ("-", "-")
            rows.append((workload, source, *_times(replay), *_memory(replay), *verdict))
    return [header, *rows] if rows else []


def cold_met(sources: BySource) -> bool:
    """Return whether the time and the memory of tcuda meet the targets, which depend on torch."""
    return array_time_of_torch(sources) <= COLD_TIME_OF_TORCH and sources["tcuda"].reserved <= sources["torch"].reserved


def array_time_of_torch(sources: BySource) -> float:
    """Return the time of tcuda's arrays in a cold workload, as a multiple of the time of torch's arrays."""
    tcuda, torch = sources["tcuda"].array_seconds, sources["torch"].array_seconds
    # Both are measured in cold workloads.
    assert tcuda is not None
    assert torch is not None
    return tcuda / torch


def reserved_per_live(replays: Sequence[Replayed], *, emulated: bool) -> Rows:
    """Return peak reserved / peak live of all allocators, and whether tcuda meets the bound."""
    found = {workload: sources for workload, sources in by_workload(replays).items() if workload not in COLD}
    columns = list(dict.fromkeys(source for sources in found.values() for source in sources))
    header = ("workload", "peak live, MiB", *columns, "target", "met")
    rows = []
    for workload, sources in found.items():
        cells = [f"{sources[column].reserved_per_live:.3f}" if column in sources else "-" for column in columns]
        bound = reserved_bound(workload, sources, emulated=emulated)
        verdict = ("-", "-")
        if bound is not None and "tcuda" in sources:
            verdict = f"≤ {bound:.3f}", _said(sources["tcuda"].reserved_per_live <= bound)
        rows.append((workload, f"{next(iter(sources.values())).live / _MIB:,.0f}", *cells, *verdict))
    return [header, *rows] if rows else []


def beside_plan(idle: Sequence[Replayed], busy: Sequence[Replayed], plans: Mapping[str, Plan]) -> Rows:
    """Return the memory of tcuda, with idle and with busy streams, and of torch beside the bound and the plan.

    The figures of torch are those of ``targets.py``.
    """
    header = ("workload", "bound, MiB", "plan, MiB", "tcuda / bound", "tcuda / plan", "busy: / bound", "busy: / plan")
    header += ("torch / plan", "expandable / plan", "excess gone", "busy: excess gone")
    rows = []
    shares = []
    with_busy = {each.workload: each for each in busy}
    for replay in idle:
        name = replay.workload
        bound, height = plans[name]
        held = [each.steady_reserved for each in (replay, with_busy[name])]
        torch = [each * _MIB for each in HELD_BY_TORCH[name]]
        gone = [excess_gone(name, held[0], plans[name]), excess_gone(name, held[1], plans[name], busy=True)]
        shares.append(gone)
        ratios = [f"{each / of:.3f}" for each in held for of in (bound, height)]
        ratios += [f"{each / height:.3f}" for each in torch]
        rows.append((name, f"{bound / _MIB:,.0f}", f"{height / _MIB:,.0f}", *ratios, *(f"{each:.0%}" for each in gone)))
    means = (f"{sum(of) / len(of):.0%}" for of in zip(*shares, strict=True))
    return [header, *rows, ("mean", *["-"] * 8, *means)]


def excess_gone(workload: str, held: int, plan: Plan, *, busy: bool = False) -> float:
    """Return the share that is gone of the memory that torch's default mode holds above the plan; 1 at most."""
    torch = (HELD_BY_TORCH_BUSY if busy else HELD_BY_TORCH)[workload].fixed * _MIB
    return min((torch - held) / (torch - plan.height), 1.0)


def reserved_bound(workload: str, sources: BySource, *, emulated: bool) -> float | None:
    """Return the bound of tcuda's peak reserved / peak live: the least that rivals hold, and a step of small requests.

    On emulated devices, which have no rivals, and for programs that repeat a step, the rival is what torch's expandable
    segments held on an H200. The bound is None if a rival is missing.
    """
    if emulated or workload in STEPS:
        least = HELD_BY_TORCH[workload].expandable * _MIB if workload in HELD_BY_TORCH else None
    else:
        least = min(sources[rival].reserved for rival in RIVALS) if set(RIVALS) <= sources.keys() else None
    return None if least is None else (least + HELD_OVER_TORCH) / next(iter(sources.values())).live


def _times(replay: Replayed) -> tuple[str, str]:
    """Return the microseconds per allocation, with the frees between allocations."""
    arrays = "-" if replay.array_seconds is None else f"{replay.array_seconds / replay.allocations * 1e6:.2f}"
    return f"{replay.seconds / replay.allocations * 1e6:.2f}", arrays


def _steady(replay: Replayed) -> tuple[str, str, str]:
    calls = "-" if replay.steady_driver_calls is None else f"{replay.steady_driver_calls:,}"
    return f"{replay.steady_per_live:.3f}", f"{replay.steady_seconds / replay.events * 1e6:.2f}", calls


def _memory(replay: Replayed) -> tuple[str, str]:
    driver = "-" if replay.driver_allocations is None else f"{replay.driver_allocations:,}"
    return f"{replay.reserved / _MIB:,.0f}", driver


def _said(met: bool) -> str:
    return "yes" if met else "NO"
