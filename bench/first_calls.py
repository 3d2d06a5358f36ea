"""The cost of each call before the first kernel of a process, beside the cost after it.

``python bench/first_calls.py`` prints a table: each call is measured in a process of its own, which has initialised
tcuda, and in which nothing but the call and what the call needs has used the device.
"""

from __future__ import annotations

import ast
import json
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from calls import CALLS
from loop import inlined, seconds_per_call
from table import markdown

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

    from loop import Loop

ROUNDS = 100


class Costs(NamedTuple):
    """The medians of the cost of a call, in nanoseconds.

    Attributes:
        before: The cost before the first kernel of the process.
        after: The cost after the kernel.
    """

    before: float
    after: float

    @property
    def ratio(self) -> float:
        """The cost before the first kernel, as a multiple of the cost after the kernel."""
        return self.before / self.after


def _recorded(**options: Any) -> tcuda.Event:
    event = tcuda.Event(**options)
    event.record()
    return event


_NAMES: dict[str, Callable[[], Any]] = {
    "cuda": lambda: tcuda,
    "xp": lambda: tcuda.xp,
    "x": lambda: tcuda.xp.empty(1),
    "s": tcuda.Stream,
    "stream": tcuda.Stream,
    "s2": tcuda.Stream,
    "event": _recorded,
    "start": lambda: _recorded(enable_timing=True),
    "end": lambda: _recorded(enable_timing=True),
    "state": lambda: tcuda.get_rng_state(),
}
"""How a process makes the values of the names in the statements of ``calls.py``; no value needs a kernel."""

_WITH_KERNELS = ("rand", "capture", "jiterator", "replay", "launch")
"""The first words of the calls that launch kernels."""

NAMES = [name for name, call in CALLS.items() if not name.startswith(_WITH_KERNELS) and not call.cuda_only]
"""The calls of the table that launch no kernel."""


def measure(call: str) -> Costs:
    """Return the costs of ``call`` in a new process."""
    done = subprocess.run([sys.executable, __file__, call], check=True, capture_output=True, text=True)
    return Costs(*json.loads(done.stdout))


def _measure_here(call: str) -> Costs:
    surface, state = CALLS[call].surface, CALLS[call].state
    statements = "\n".join((state.begin, surface, state.end))
    used = {node.id for node in ast.walk(ast.parse(statements)) if isinstance(node, ast.Name)}
    tcuda.init()
    scope = {name: make() for name, make in _NAMES.items() if name in used}
    exec(state.begin, scope)
    loop = inlined(surface, scope)
    before = _cost(loop)
    kernel = tcuda.xp.zeros(10) + 1
    tcuda.synchronize()
    after = _cost(loop)
    exec(state.end, scope)
    del kernel
    return Costs(before, after)


def _cost(loop: Loop) -> float:
    def one() -> float:
        start = seconds_per_call()
        loop()
        return seconds_per_call() - start

    rounds = max(3, min(ROUNDS, int(0.002 / one())))
    return statistics.median(one() for _ in range(rounds)) * 1e9


def main() -> None:
    """Print a table of all calls, or measure one call in this process."""
    if len(sys.argv) > 1:
        print(json.dumps(_measure_here(sys.argv[1])))
        return
    costs = {call: measure(call) for call in NAMES}
    rows = [(call, f"{of.before:,.0f}", f"{of.after:,.0f}", f"{of.ratio:.2f}") for call, of in costs.items()]
    print(markdown([("call", "before a kernel", "after a kernel", "ratio"), *rows]))


if __name__ == "__main__":
    main()
