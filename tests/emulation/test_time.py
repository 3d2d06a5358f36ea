"""The time of work on emulated arrays by the clock of the emulation, and threads that compute."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tcuda
import tcuda.emulation
from support.devices import allocated
from support.emulated_arrays import on_device
from support.emulated_streams import temporary_stream
from tcuda.emulation import xp
from tcuda.emulation.runtime import costs

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]
MILLISECOND = 1_000_000


# The model of time


def elapsed(runtime, work):
    """Return the time, in nanoseconds, for which ``work`` keeps the current stream busy."""
    runtime.deviceSynchronize()
    runtime.sleep(MILLISECOND, 0)  # keeps the stream busy until the host has launched all the work
    start = runtime.devices[0].default.ready
    result = work()
    del result
    return runtime.devices[0].default.ready - start


def test_the_time_of_a_kernel_follows_from_its_bytes_and_operations(runtime):
    a, b = xp.ones((1000, 500)), xp.ones((500, 2000))
    moved = a.nbytes + b.nbytes + 8 * 1000 * 2000
    assert elapsed(runtime, lambda: a + a) == costs.kernel(3 * a.nbytes)
    assert elapsed(runtime, lambda: a.sum(axis=0)) == costs.kernel(a.nbytes + 500 * 8)
    assert elapsed(runtime, lambda: a.fill(1)) == costs.kernel(a.nbytes)
    assert elapsed(runtime, lambda: a.T) == 0
    flops = 2 * 1000 * 500 * 2000
    assert costs.kernel(moved, flops) > costs.kernel(moved)
    for product in (
        lambda: a @ b,
        lambda: a.dot(b),
        lambda: xp.matmul(a, b),
        lambda: xp.tensordot(a, b, 1),
        lambda: xp.einsum("ij,jk->ik", a, b),
        lambda: xp.inner(a, b.T),
    ):
        assert elapsed(runtime, product) == costs.kernel(moved, flops)


def test_work_goes_to_the_current_stream(runtime, backend):
    runtime.deviceSynchronize()
    with temporary_stream(runtime) as stream:
        busy = runtime.devices[0].default.ready
        backend.enter_stream(stream)
        array = xp.ones(1000) + 1
        backend.exit_stream()
        assert runtime.devices[0].default.ready == busy
        assert runtime._machine.streams.created[stream.ptr].ready > busy
        runtime.streamSynchronize(stream.ptr)
    assert array.sum().item() == 2000


def test_the_clock_can_be_read_and_advanced(runtime):
    clock = tcuda.emulation.clock()
    assert clock is runtime.clock
    before = clock.now()
    assert clock.advance(5) == clock.now() == before + 5


# Threads


def test_threads_can_compute_concurrently(runtime):
    before = allocated()
    failures = []

    def work(seed):
        try:
            runtime.setDevice(seed % 2)
            host = np.random.default_rng(seed).random((20, 20))
            array = xp.asarray(host)
            for _ in range(30):
                array = (array @ array) % 1 + array.T[::-1]
                host = (host @ host) % 1 + host.T[::-1]
            np.testing.assert_array_equal(array.get(), host)
            assert array.device.id == seed % 2
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert allocated() == before


def test_an_array_may_die_in_another_thread(runtime):
    before = allocated()
    arrays = [xp.ones(100)]
    with on_device(runtime, 1):
        arrays.append(xp.ones(100))
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert allocated() == before


def test_the_clock_shows_its_time():
    clock = tcuda.emulation.clock()
    shown = repr(clock)
    assert shown.startswith("<tcuda.emulation.Clock: ")
    assert int(shown.split()[1]) <= clock.now()
