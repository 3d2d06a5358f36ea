"""The steps of initialisation, in their order.

Each step is called with the runtime and the array library. A step does nothing if its work is done already.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NoReturn

from tcuda._process.fork import call_in_child
from tcuda._process.lazy import set_steps
from tcuda._process.lazy_names import bind_xp
from tcuda._process.ledger import ledger_if_any, make_ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._backend import Backend
    from tcuda._process.lazy import Step
    from tcuda._runtime.protocol import Runtime

_wing_steps: list[Step] = []
_reached: tuple[Runtime, Backend] | None = None
"""What the steps of wings were called with; a step that is added later is taken at once."""


def prepare(
    raise_out_of_memory: Callable[..., NoReturn], relieve: Callable[[int, int], bool], install_generators: Step
) -> None:
    """Let initialisation take its steps.

    Args:
        raise_out_of_memory: See :func:`make_ledger`.
        relieve: See :func:`make_ledger`.
        install_generators: The step that lets the array library draw from tcuda's generators.
    """
    set_steps(
        functools.partial(make_ledger, raise_out_of_memory=raise_out_of_memory, relieve=relieve),
        _take_wing_steps,
        install_generators,
        _use_ledger,
        bind_xp,
    )


def add_step(step: Step) -> None:
    """Let initialisation take a step of a wing too: when the ledger is made, and before arrays take memory from it.

    If initialisation has come so far already, the step is taken now.
    """
    _wing_steps.append(step)
    if _reached is not None:
        step(*_reached)


def _take_wing_steps(cuda: Runtime, backend: Backend) -> None:
    global _reached
    _reached = cuda, backend
    for step in _wing_steps:
        step(cuda, backend)


def _use_ledger(cuda: Runtime, backend: Backend) -> None:
    # No later step may fail: after this step CuPy's arrays take their memory from tcuda, and do not initialise tcuda.
    ledger = ledger_if_any()
    assert ledger is not None
    backend.use_ledger(ledger)


def _forget_in_child() -> None:
    global _reached
    _reached = None


call_in_child(_forget_in_child)
