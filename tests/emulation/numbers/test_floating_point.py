"""Floating-point errors give no warnings, and array work in a finalizer leaves the context variables of the thread."""

from __future__ import annotations

import contextvars
import signal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda.emulation import xp
from tcuda.emulation.numbers.floating_point import quietly

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("runtime")]

# Up to Python 3.11, a change of a context variable may collect garbage in its middle. The finalizers then ran while the
# thread read the context that they changed. Without a second variable, the context has nothing to free.
IN_A_CHANGE = """
import contextvars, gc, random
import tcuda
from tcuda import xp

own = contextvars.ContextVar("own")
own.set(0)
made = 0

class Node:
    def __init__(self):
        self.array, self.me = xp.ones(1000, "f4"), self
    def __del__(self):
        global made
        array = self.array
        {work}
        made += 1

random.seed(1)
for turn in range({turns}):
    gc.set_threshold(700, 10, 10)
    Node()
    extra = [[] for _ in range(random.randrange(8))]
    gc.set_threshold(random.randrange(1, 12), 1, 1)
    own.reset(own.set(turn))
gc.set_threshold(700, 10, 10)
gc.collect()
print(made, own.get())
"""

# Finalizers of another library change a variable while tcuda sets its own.
IN_A_CHANGE_OF_OURS = """
import contextvars, gc, random
import tcuda
from tcuda import xp

own = contextvars.ContextVar("own")
own.set(0)

class Node:
    def __init__(self):
        self.me = self
    def __del__(self):
        own.reset(own.set(1))

random.seed(1)
array = xp.ones(1000, "f4")
for turn in range({turns}):
    gc.set_threshold(700, 10, 10)
    gc.collect(0)
    Node()
    gc.set_threshold(gc.get_count()[0] + random.randrange({allocations}), 1, 1)
    {work}
print(own.get())
"""

WORK = {
    "an operation of the core": "array + 1",
    "a launch": "array[...] = 2",
    "a call of NumPy": "xp.cumsum(array)",
    "the dtype of a result": "xp.add(array, 1j)",
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_finalizer_in_a_change_of_the_context_may_compute(output_of: OutputOf, work: str) -> None:
    assert output_of(IN_A_CHANGE.format(work=work, turns=2000)) == "2000 0"


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_finalizer_may_change_the_context_while_tcuda_computes(output_of: OutputOf, work: str) -> None:
    assert output_of(IN_A_CHANGE_OF_OURS.format(work=work, turns=2000, allocations=12)) == "0"


def test_a_call_without_warnings_restores_the_treatment_of_errors() -> None:
    before = np.geterr()
    assert quietly(np.divide, 1.0, 0.0) == float("inf")  # pytest makes errors of warnings
    with pytest.raises(ValueError, match="broadcast"):
        quietly(np.add, np.ones(2), np.ones(3))
    assert quietly(np.ones, 2, dtype="B").dtype == "uint8"
    assert np.geterr() == before


def test_code_in_a_call_sees_the_variables_of_the_program() -> None:
    own = contextvars.ContextVar[str]("own")
    token = own.set("of the program")
    seen: list[str] = []

    def seen_by_fusion(x: Any) -> Any:
        seen.append(own.get())
        return x + 1

    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(own.get()))
    try:
        quietly(signal.raise_signal, signal.SIGUSR1)
        xp.vectorize(lambda x: (seen.append(own.get()), x)[1])(xp.ones(1))
        xp.fuse(seen_by_fusion)(xp.ones(1))
        tcuda.synchronize()  # the late schedule calls the functions now
    finally:
        signal.signal(signal.SIGUSR1, before)
        own.reset(token)
    assert set(seen) == {"of the program"}
    assert len(seen) >= 3


def test_a_call_may_be_made_in_another_call() -> None:
    def nested() -> float:
        quietly(np.add, 1, 2)
        return float(quietly(quietly, np.divide, 1.0, 0.0) + np.float64(1.0) / np.float64(0.0))

    assert quietly(nested) == float("inf")


def test_sums_and_products_of_half_precision_are_rounded_once() -> None:
    host = np.arange(1, 241, dtype="f4").reshape(2, 30, 4)
    for name in ("sum", "nansum"):
        found = getattr(xp, name)(xp.asarray(host, dtype="f2"), axis=1)
        assert found.dtype == np.float16
        np.testing.assert_array_equal(found.get(), host.sum(axis=1).astype("f2"))
    factors = np.linspace(0.9, 1.1, 40, dtype="f2").reshape(20, 2)
    expected = factors.astype("f4").prod(axis=0)
    for name in ("prod", "nanprod"):
        np.testing.assert_array_equal(getattr(xp, name)(xp.asarray(factors), axis=0).get(), expected.astype("f2"))
    assert xp.sum(xp.ones((2, 2), "f2"), axis=0, dtype="f4").dtype == np.float32
