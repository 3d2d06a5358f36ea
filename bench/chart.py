"""A chart of the time of some calls in tcuda and in torch, as SVG."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

from results import UnusableError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from results import Results

CALLS_SHOWN = (
    "current_stream()",
    "with stream(s)",
    "event.record()",
    "memory_allocated()",
    "caching_allocator_alloc(1 KiB) + delete",
    "empty(1000)",
    "replay() of 20 kernels",
    "capture of 20 kernels",
    "rand(1000)",
)
"""The calls that the home page shows, in the order of the chart."""

_LEFT, _RIGHT, _TOP, _ROW = 285, 700, 64, 30
_STYLE = """
    text { fill: #263238 } .note { fill: #5f6b6a; font-size: 12.5px } .grid { stroke: #cfd8dc } .gap { stroke: #90a4ae }
    .tcuda { fill: #00796b } .torch { fill: #e65100 }
    @media (prefers-color-scheme: dark) {
      text { fill: #eceff1 } .note { fill: #b0bec5 } .grid { stroke: #37474f }
      .tcuda { fill: #4db6ac } .torch { fill: #ffa65c }
    }
"""


class Pair(NamedTuple):
    """The nanoseconds of a call in tcuda and in torch."""

    tcuda: float
    torch: float


def of_results(results: Results) -> dict[str, Pair]:
    """Return the calls of a run that torch has, too."""
    costs = {call: results.costs(call) for call in results.medians}
    return {call: Pair(cost.tcuda, cost.torch) for call, cost in costs.items() if cost.torch is not None}


def of_page(path: Path) -> dict[str, Pair]:
    """Return the calls in the first table of a page that the report for a document made.

    Raises:
        UnusableError: The page has no such table.
    """
    _, found, table = path.read_text(encoding="utf-8").partition("| call | tcuda | below | torch |")
    pairs = {}
    for line in table.splitlines()[2:]:
        if not line.startswith("|"):
            break
        call, tcuda, _, torch = (cell.strip() for cell in line.strip("|").split("|")[:4])
        if torch != "-":
            pairs[call] = Pair(*(float(cell.replace(",", "")) for cell in (tcuda, torch)))
    if not found or not pairs:
        raise UnusableError(f"{path} has no table of calls.")
    return pairs


def headline(pairs: Mapping[str, Pair]) -> str:
    """Return the result of all calls in a sentence."""
    ratios = [pair.tcuda / pair.torch for pair in pairs.values()]
    quick = sum(ratio <= 1 for ratio in ratios)
    return (
        f"{quick} of {len(ratios)} calls of tcuda take at most the time of the same call of torch. "
        f"Half of the calls take at most {statistics.median(ratios):.2f} of torch's time."
    )


def svg(pairs: Mapping[str, Pair]) -> str:
    """Return the chart of the calls that the home page shows, on a logarithmic axis.

    Raises:
        UnusableError: A call of the chart was not measured.
    """
    missing = [call for call in CALLS_SHOWN if call not in pairs]
    if missing:
        raise UnusableError(f"The chart needs {', '.join(missing)}, in tcuda and in torch.")
    shown = {call: pairs[call] for call in CALLS_SHOWN}
    decades = [math.log10(time) for pair in shown.values() for time in pair]
    first, last = math.floor(min(decades)), math.ceil(max(decades))

    def across(time: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (math.log10(time) - first) / (last - first)

    bottom = _TOP + _ROW * len(shown)
    title = "Time of a call on one NVIDIA H200, on a logarithmic axis; less is better"
    parts = [
        f'<text x="10" y="22" font-weight="600">{title}</text>',
        '<circle class="tcuda" cx="16" cy="42" r="6"/><text class="note" x="28" y="46">tcuda</text>',
        f'{_diamond(86, 42)}<text class="note" x="98" y="46">torch.cuda</text>',
    ]
    for decade in range(first, last + 1):
        x, label = across(10.0**decade), words(10.0**decade)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 6}" y2="{bottom}"/>')
        parts.append(f'<text class="note" text-anchor="middle" x="{x:.1f}" y="{bottom + 18}">{label}</text>')
    for number, (call, pair) in enumerate(shown.items()):
        y = _TOP + _ROW * number + 12
        ours, theirs = across(pair.tcuda), across(pair.torch)
        less, more = sorted(pair)
        parts += [
            f'<text x="10" y="{y + 5}">{escape(call)}</text>',
            f'<line class="gap" stroke-width="2" x1="{ours:.1f}" x2="{theirs:.1f}" y1="{y}" y2="{y}"/>',
            f"{_diamond(theirs, y)}",
            f'<circle class="tcuda" cx="{ours:.1f}" cy="{y}" r="6"/>',
            f'<text class="note" text-anchor="end" x="{across(less) - 11:.1f}" y="{y + 4}">{words(less)}</text>',
            f'<text class="note" x="{across(more) + 11:.1f}" y="{y + 4}">{words(more)}</text>',
        ]
    listed = "; ".join(f"{call} {words(pair.tcuda)} and {words(pair.torch)}" for call, pair in shown.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {bottom + 28}" font-family="system-ui, sans-serif" '
        f'font-size="14" role="img" aria-label="Times of calls in tcuda and in torch.cuda: {escape(listed)}">\n'
        f"  <style>{_STYLE}  </style>\n" + "".join(f"  {part}\n" for part in parts) + "</svg>\n"
    )


def words(nanoseconds: float) -> str:
    """Return a time with a unit and at most three digits."""
    if nanoseconds < 999.5:
        return f"{nanoseconds:.0f} ns"
    return f"{nanoseconds / 1e3:.3g} µs" if nanoseconds < 999_500 else f"{nanoseconds / 1e6:.3g} ms"


def _diamond(x: float, y: float) -> str:
    return f'<path class="torch" d="M{x:.1f} {y - 7}l7 7l-7 7l-7 -7z"/>'
