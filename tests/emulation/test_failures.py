"""Emulated arrays where memory runs out, a kernel fails or a capture is invalidated."""

from __future__ import annotations

import contextlib
import operator
import types

import numpy as np
import pytest

import tcuda
import tcuda.emulation
from support.devices import allocated
from support.emulated_streams import temporary_stream
from tcuda._base.errors import AcceleratorError, OutOfMemoryError
from tcuda._runtime.protocol import CAPTURE_GLOBAL, CAPTURE_RELAXED, CAPTURE_THREAD_LOCAL
from tcuda.emulation import xp
from tcuda.memory._out_of_memory import size_text

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]
MILLISECOND = 1_000_000


def test_out_of_memory_says_what_was_asked_and_leaves_nothing():
    before = allocated()
    with pytest.raises(OutOfMemoryError) as raised:
        xp.empty(1 << 34, "B")
    assert str(raised.value).startswith(
        "CUDA out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 2.00 GiB of which 2.00 GiB is "
        "free."
    )
    assert f"Arrays and buffers use {size_text(before[0])} of the reserved memory" in str(raised.value)
    assert "allocate less at a time" in str(raised.value)
    assert allocated() == before
    assert float(xp.ones(3).sum()) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda array: array + 1,
        lambda array: divmod(array, 3),  # the memory suffices for one of the two results
        lambda array: array.repeat(9),
        lambda array: xp.frexp(array),
        lambda array: xp.stack([array, array, array]),
        lambda array: array[xp.asarray([[0] * 4000])],
        lambda array: xp.asarray(np.zeros(9000)),
        lambda array: array.copy(),
        lambda array: xp.linalg.eigh(xp.outer(array[:20], array[:20])),
    ],
)
def test_operations_that_run_out_of_memory_leave_nothing(function):
    array = xp.ones(1000, "f")
    room = xp.empty(4608, "B")
    fillers = []  # never written, so the host needs no memory for them
    for size in (1 << power for power in range(30, 8, -1)):
        with contextlib.suppress(OutOfMemoryError):
            while True:
                fillers.append(xp.empty(size, "B"))
    del room
    before = allocated()
    try:
        kept = function(array)
    except OutOfMemoryError as error:
        assert allocated() == before, "while the traceback is alive"
        del error
    else:
        del kept
    del fillers
    assert array.tolist() == [1] * 1000


@pytest.mark.eager
def test_a_kernel_that_fails_leaves_no_memory_and_no_time(runtime):
    array, other = xp.arange(1000), xp.full(1000, -1)
    runtime.sleep(MILLISECOND, 0)
    before, ready = allocated(), runtime.devices[0].default.ready
    failures = []
    for function in (
        lambda: array + other[:7],
        lambda: array.reshape(7),
        lambda: array.sum(axis=3),
        lambda: operator.setitem(array, slice(3), other),
    ):
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            function()
        failures.append(raised)
    assert allocated() == before, "while the tracebacks are alive"
    assert runtime.devices[0].default.ready == ready


def test_a_stream_whose_capture_is_invalidated_takes_no_kernel(runtime, backend):
    array = xp.ones(100)
    before = allocated()
    with temporary_stream(runtime) as stream:
        backend.enter_stream(stream)
        runtime.streamBeginCapture(stream.ptr, CAPTURE_RELAXED)
        try:
            with pytest.raises(AcceleratorError):
                runtime.streamSynchronize(stream.ptr)
            for use in (lambda: array + 1, array.sum, array.get, lambda: array.fill(2), lambda: xp.asarray([1])):
                with pytest.raises(AcceleratorError) as raised:
                    use()
                assert raised.value.error_code == 901
                assert allocated() == before, "while the traceback is alive"
        finally:
            backend.exit_stream()
        with pytest.raises(AcceleratorError):
            runtime.streamEndCapture(stream.ptr)
    del raised
    assert array.tolist() == [1] * 100


@pytest.mark.parametrize("mode", [CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED])
def test_an_array_that_lives_or_dies_during_a_capture_does_not_invalidate_it(runtime, mode):
    array = xp.ones(100)  # on the default stream, which refuses operations during the capture
    other = xp.empty(100)
    blocking = runtime.streamCreateWithPriority(0, 0)
    tcuda.memory.record_stream(other, types.SimpleNamespace(ptr=blocking))
    runtime.streamBeginCapture(blocking, mode)
    del array, other
    xp.empty(100 << 20, "B")  # the allocator gets this memory from the runtime
    runtime.graphDestroy(runtime.streamEndCapture(blocking))
    runtime.streamDestroy(blocking)


def test_an_array_outlives_its_stream(runtime, backend):
    with temporary_stream(runtime) as stream:
        backend.enter_stream(stream)
        array = xp.ones(100)
        backend.exit_stream()
        runtime.streamSynchronize(stream.ptr)
    assert array.sum().item() == 100


def test_a_launch_without_room_for_its_stacks_says_what_is_short(fresh_output_of):
    program = """
import pathlib, resource
import tcuda
from tcuda.emulation import xp

kernel = xp.RawKernel('extern "C" __global__ void one(float* x) { x[threadIdx.x] = 1; }', "one")
kernel.compile()
x = xp.zeros(8, "f")
used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), before[1]))
try:
    kernel((1,), (8,), (x,))
    tcuda.synchronize()  # the late schedule runs the kernel here
except MemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, before)
kernel((1,), (8,), (x,))
print(float(x.sum()))
"""
    said, total = fresh_output_of(program, TCUDA_RUNTIME="emulated").splitlines()
    assert "580 MiB of addresses" in said
    assert "ulimit -v" in said
    assert total == "8.0"
