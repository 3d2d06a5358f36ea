"""The memory and the random numbers of ``tcuda.accelerator``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda import accelerator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._runtime.protocol import Runtime

SAME = {
    accelerator.memory_stats: tcuda.memory_stats,
    accelerator.memory_allocated: tcuda.memory_allocated,
    accelerator.max_memory_allocated: tcuda.max_memory_allocated,
    accelerator.memory_reserved: tcuda.memory_reserved,
    accelerator.max_memory_reserved: tcuda.max_memory_reserved,
}


@pytest.mark.parametrize("function", SAME, ids=lambda function: function.__name__)
def test_figures_are_those_of_the_device(function: Callable[..., Any], xp: Any) -> None:
    last = tcuda.device_count() - 1
    kept = xp.zeros(1000)
    with tcuda.device(last):
        other = xp.zeros(100_000)
        assert function() == function(last) == function(f"cuda:{last}") == SAME[function](last)
    assert function() == SAME[function]()
    for device in (-1, 99):
        with pytest.raises(RuntimeError, match="Invalid device argument"):
            function(device)
    del kept, other


def test_peaks_and_sums_are_reset(xp: Any) -> None:
    x = xp.zeros(1 << 20)
    del x
    assert accelerator.max_memory_allocated() > accelerator.memory_allocated()
    accelerator.reset_peak_memory_stats(0)
    assert accelerator.max_memory_allocated() == accelerator.memory_allocated()
    assert accelerator.memory_stats()["allocation.all.allocated"] > 0
    accelerator.reset_accumulated_memory_stats()
    assert accelerator.memory_stats()["allocation.all.allocated"] == 0


def test_free_memory_is_that_of_the_device(runtime: Runtime) -> None:
    free, total = accelerator.get_memory_info("cuda:0")
    assert 0 < free <= total == tcuda.get_device_properties(0).total_memory
    with pytest.raises(tcuda.AcceleratorError):
        accelerator.get_memory_info(99)


def test_the_modules_have_the_same_functions(runtime: Runtime) -> None:
    for module in (accelerator.memory, accelerator.graphs):
        assert all(getattr(accelerator, name) is getattr(module, name) for name in module.__all__)


def test_seeds_and_states_are_those_of_the_default_generators(xp: Any) -> None:
    last = tcuda.device_count() - 1
    tcuda.manual_seed_all(7)
    tcuda.default_generators[last].manual_seed(11)
    assert accelerator.random.initial_seed(last) == accelerator.random.initial_seed(f"cuda:{last}") == 11
    with tcuda.device(last):
        xp.random.random_sample(10)
        assert accelerator.random.initial_seed() == 11
        assert (accelerator.random.get_rng_state() == tcuda.get_rng_state(last)).all()
    states = accelerator.random.get_rng_state_all()
    assert [state.tolist() for state in states] == [state.tolist() for state in tcuda.get_rng_state_all()]
    with pytest.raises(IndexError):
        accelerator.random.initial_seed(99)
    with pytest.raises(IndexError):
        accelerator.random.get_rng_state(99)
