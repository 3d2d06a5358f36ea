"""Elementwise and reduction kernels on emulated devices: their names, their failures, and the memory that is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.devices import synchronized
from tcuda.emulation import xp

if TYPE_CHECKING:
    from support.fixture_types import Captured

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


def test_a_raw_index_outside_of_the_array_is_an_error_that_names_the_thread() -> None:
    kernel = xp.ElementwiseKernel("raw T x", "T y", "y = x[i + (i == 3) * 100000000]", "far")
    with (
        pytest.raises(tcuda.AcceleratorError, match=r"far\) failed with cudaErrorIllegalAddress") as caught,
        synchronized(),
    ):
        kernel(xp.ones(5), size=5)
    assert "by thread (3, 0, 0) of block (0, 0, 0)" in str(caught.value)


@pytest.mark.parametrize("has_neighbour", [False, True])
def test_an_index_before_the_array_is_told_with_the_argument_and_the_line(*, has_neighbour: bool) -> None:
    kernel = xp.ElementwiseKernel("raw T x", "T y", "y = x[i] - x[i - 1]", "diff")
    arrays = [xp.ones(10) for _ in range(8 if has_neighbour else 1)]  # most of them lie behind one of the others
    x = max(arrays, key=lambda array: array.data.ptr)
    with pytest.raises(tcuda.AcceleratorError) as caught, synchronized():
        kernel(x, size=10)
    lines = str(caught.value).splitlines()
    assert lines[3] == "    in diff at line 1 of the operation of diff, by thread (0, 0, 0) of block (0, 0, 0)."
    told = f"The access is 8 bytes before the block of 80 bytes of the argument x at {x.data.ptr:#x}"
    assert lines[4].startswith((f"{told}.", f"{told} ("))  # with the line of the allocation if the history is recorded


@pytest.mark.eager
def test_memory_that_was_freed_is_not_read() -> None:
    kernel = xp.ElementwiseKernel("uint64 address", "float64 y", "y = *(double*)address", "stale", no_return=True)
    x = xp.ones(10_000)
    address = x.data.ptr + 40_000  # far from the block before
    out = xp.zeros(1)
    kernel(np.uint64(address), out)
    assert out.tolist() == [1]
    del x
    with pytest.raises(tcuda.AcceleratorError, match="freed"):
        kernel(np.uint64(address), out)


def test_an_error_of_the_compiler_names_the_part_and_its_line() -> None:
    kernel = xp.ElementwiseKernel("T x", "T y", "T q = x;\ny = q + missing", "wrong")
    with pytest.raises(Exception, match=r"wrong: operation:2:\d+: error: .*missing"):
        kernel(xp.ones(5))
    reduction = xp.ReductionKernel("T x", "T y", "x +\nabsent", "a + b", "y = a", "0", "wrong")
    with pytest.raises(Exception, match=r"wrong: map_expr:2:\d+: error: .*absent"):
        reduction(xp.ones(5))


def test_arrays_on_another_device_are_refused() -> None:
    with tcuda.device(1):
        other = xp.ones(3)
    add = xp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    total = xp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    for call in (lambda: add(xp.ones(3), other), lambda: add(xp.ones(3), 1, other), lambda: total(other)):
        with pytest.raises(ValueError, match="Array device must be same as the current device"):
            call()


def test_a_kernel_runs_on_each_device() -> None:
    add = xp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    for place in range(2):
        with tcuda.device(place):
            result = add(xp.ones(3), 1)
            assert result.device.id == place
            assert result.tolist() == [2, 2, 2]


def test_a_captured_kernel_runs_at_the_launch_only(captured: Captured) -> None:
    total = xp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    x, out = xp.ones(4), xp.zeros(())
    _, launch = captured(lambda: total(x, out=out))
    assert out.item() == 0
    x[...] = 3
    launch()
    assert out.item() == 12


def test_a_sum_is_the_same_in_every_run() -> None:
    numbers: Any = xp.asarray(np.random.default_rng(3).standard_normal(100_001).astype(np.float32))
    total = xp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    assert len({total(numbers).item() for _ in range(3)}) == 1


@pytest.mark.long
@pytest.mark.parametrize("name", ["norm", "max", "sqrt"])
def test_a_kernel_may_have_the_name_of_a_function(name: str) -> None:
    assert xp.ElementwiseKernel("T x", "T y", "y = x + 1", name)(xp.ones(2)).tolist() == [2, 2]
    assert xp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", name)(xp.ones(2)).item() == 2
