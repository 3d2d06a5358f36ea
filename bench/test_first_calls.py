"""The calls before the first kernel of a process, which cost as much as the calls after it."""

from __future__ import annotations

import pytest
from chosen_runtime import ON_CUDA
from first_calls import NAMES, measure
from targets import BEFORE_A_KERNEL

FEW = ["current_device()", "event.record()", "empty(1000)"]


@pytest.mark.parametrize("call", NAMES if ON_CUDA else FEW)
def test_a_call_costs_as_much_before_the_first_kernel(call: str) -> None:
    costs = measure(call)
    assert costs.before > 0
    if ON_CUDA:  # emulated devices share their processor with other programs
        assert costs.ratio <= BEFORE_A_KERNEL
