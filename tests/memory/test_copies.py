"""``copy_async``: copies between the host and devices, with their waits, and the lifetimes of both arrays."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.busy_streams import keep_busy
from support.devices import last_device
from support.sizes import MIB
from tcuda.comm import _kept_memory

if TYPE_CHECKING:
    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

SIZE = 3 * MIB
copy_async = tcuda.memory.copy_async
TWO = pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")


@pytest.fixture(autouse=True)
def _idle(runtime: Runtime) -> Any:
    yield
    for device in range(tcuda.device_count()):
        tcuda.synchronize(device)


def pinned(value: int = 0) -> Any:
    made = tcuda.memory.empty_pinned(SIZE, "uint8")
    made[...] = value
    return made


class TestCopies:
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("page_locked", [True, False], ids=["page-locked", "pageable"])
    def test_the_elements_arrive(self, runtime: Runtime, xp: Any, page_locked: bool, order: str) -> None:
        make = tcuda.memory.empty_pinned if page_locked else np.empty
        there, back = (make((30, 40), "int32", order) for _ in range(2))
        there[...] = np.arange(1200).reshape(30, 40)
        x, y = (xp.empty((30, 40), "int32", order) for _ in range(2))
        copy_async(x, there)
        copy_async(y, x)
        done = copy_async(back, y)
        done.synchronize()
        np.testing.assert_array_equal(back, there)

    def test_no_elements_are_copied_without_an_error(self, runtime: Runtime, xp: Any) -> None:
        for copied in (copy_async(xp.empty(0), np.empty(0)), copy_async(np.empty((3, 0)), xp.empty((3, 0)))):
            copied.synchronize()
            assert copied.query()

    def test_a_copy_from_page_locked_memory_does_not_wait(self, runtime: Runtime, xp: Any) -> None:
        x, host, stream = xp.zeros(SIZE, "uint8"), pinned(7), tcuda.Stream()
        tcuda.synchronize()
        keep_busy(stream)
        up = copy_async(x, host, stream)
        down = copy_async(host, x, stream)
        assert not up.query()
        assert not down.query()
        down.synchronize()
        assert host.min() == host.max() == 7

    def test_a_copy_to_pageable_memory_waits(self, runtime: Runtime, xp: Any) -> None:
        x, out = xp.full(SIZE, 5, "uint8"), np.zeros(SIZE, "uint8")
        keep_busy(tcuda.current_stream())
        copy_async(out, x)
        assert out.min() == out.max() == 5

    @pytest.mark.wings
    def test_the_copy_waits_for_the_current_stream(self, output_of: OutputOf) -> None:
        program = """
import numpy as np, tcuda
from tcuda import xp
side = tcuda.Stream()
x, host = xp.zeros(1000, "uint8"), tcuda.memory.empty_pinned(1000, "uint8")
tcuda.synchronize()
x += 3
tcuda.memory.copy_async(host, x, side).synchronize()
print(host.min(), host.max())
"""
        assert output_of(program, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_SCHEDULE="late") == "3 3"

    @pytest.mark.wings
    def test_arrays_that_are_dropped_keep_their_contents_until_the_copy(self, output_of: OutputOf) -> None:
        program = """
import numpy as np, tcuda
from tcuda import xp
for page_locked in (True, False):
    side = tcuda.Stream()
    host = tcuda.memory.empty_pinned(1000, "uint8")
    if not page_locked:
        host = np.empty(1000, "uint8")
        lock = tcuda.memory.pin(host)
    host[...] = 7
    x, y = xp.zeros(1000, "uint8"), xp.zeros(1000, "uint8")
    tcuda.synchronize()
    tcuda.memory.copy_async(x, host, side)
    tcuda.memory.copy_async(y, x, side)
    del host, x
    others = [tcuda.memory.zeros_pinned(1000, "uint8") for _ in range(3)], [np.zeros(1000, "uint8") for _ in range(3)]
    more = [xp.ones(1000, "uint8") for _ in range(3)]
    side.synchronize()
    print(int(y.min()), int(y.max()))
"""
        assert output_of(program, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_SCHEDULE="late") == "7 7\n7 7"

    def test_memory_that_the_program_has_page_locked_lives_until_the_copy(self, runtime: Runtime, xp: Any) -> None:
        x, stream = xp.zeros(SIZE, "uint8"), tcuda.Stream()
        host = np.full(SIZE, 7, "uint8")
        alive = weakref.ref(host)
        address = host.ctypes.data
        runtime.hostRegister(address, SIZE, 0)
        tcuda.synchronize()
        keep_busy(stream)
        copy_async(x, host, stream)
        del host
        gc.collect()
        assert alive() is not None
        stream.synchronize()
        runtime.hostUnregister(address)
        _kept_memory.release()
        assert alive() is None
        assert x.get().min() == 7

    def test_a_graph_copies_at_each_replay(self, runtime: Runtime, xp: Any) -> None:
        x, host = xp.zeros(SIZE, "uint8"), pinned(1)
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            copy_async(x, host)
        for value in (2, 3):
            host[...] = value
            graph.replay()
            tcuda.synchronize()
            assert x.get().min() == x.get().max() == value
        del host
        graph.replay()
        tcuda.synchronize()
        assert x.get().max() == 3

    @TWO
    def test_copies_between_devices_wait_for_both(self, runtime: Runtime, xp: Any) -> None:
        with tcuda.device(0):
            source = xp.full(SIZE, 7, "uint8")
        with tcuda.device(last_device()):
            target = xp.zeros(SIZE, "uint8")
            keep_busy(tcuda.current_stream())
            busy = tcuda.current_stream().record_event()
        done = copy_async(target, source)
        assert not done.query() or busy.query()
        del source
        with tcuda.device(last_device()):
            assert target.get().min() == 7
        done.synchronize()
        with tcuda.device(last_device()):
            stream = tcuda.Stream()
        back = xp.zeros(SIZE, "uint8")
        copy_async(back, target, stream).synchronize()
        assert back.get().min() == 7


class TestRefusals:
    @pytest.mark.parametrize(
        ("make", "error", "text"),
        [
            (lambda xp: (np.zeros(3), np.zeros(3)), TypeError, "both arrays are on the host"),
            (
                lambda xp: (xp.zeros(3), np.zeros(3, "f4")),
                TypeError,
                "dst has dtype float64, and src",
            ),
            (lambda xp: (xp.zeros(3), np.zeros(4)), ValueError, r"dst has \(3,\), and src has \(4,\)"),
            (lambda xp: (xp.zeros((3, 4)), np.zeros((3, 4), order="F")), ValueError, "without gaps"),
            (lambda xp: (xp.zeros(3), np.zeros(6)[::2]), ValueError, "without gaps"),
            (lambda xp: ([1.0], xp.zeros(1)), TypeError, "dst must be an array"),
            (lambda xp: (xp.zeros(1), 1.0), TypeError, "src must be an array"),
            (lambda xp: (np.zeros(1, object), xp.zeros(1)), TypeError, "Python objects"),
        ],
    )
    def test_wrong_arrays_are_refused(
        self, runtime: Runtime, xp: Any, make: Any, error: type[Exception], text: str
    ) -> None:
        with pytest.raises(error, match=text):
            copy_async(*make(xp))

    def test_a_read_only_array_is_no_target(self, runtime: Runtime, xp: Any) -> None:
        out = np.zeros(3)
        out.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            copy_async(out, xp.zeros(3))

    def test_wrong_streams_are_refused(self, runtime: Runtime, xp: Any) -> None:
        with pytest.raises(RuntimeError, match="expected stream"):
            copy_async(xp.zeros(3), np.zeros(3), 5)  # type: ignore[arg-type]

    @TWO
    def test_a_stream_of_another_device_is_refused(self, runtime: Runtime, xp: Any) -> None:
        with tcuda.device(last_device()):
            stream = tcuda.Stream()
        with pytest.raises(ValueError, match="the stream is on cuda:.*, and the arrays are on cuda:0"):
            copy_async(xp.zeros(3), np.zeros(3), stream)

    def test_a_graph_cannot_copy_pageable_memory(self, runtime: Runtime, xp: Any) -> None:
        x, host = xp.zeros(3), np.ones(3)
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            x += 1
            for dst, src in ((x, host), (host, x)):
                with pytest.raises(tcuda.AcceleratorError, match="not page-locked") as error:
                    copy_async(dst, src)
                assert error.value.error_code == 900
                words = (
                    "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned"
                )
                assert words in str(error.value)
        graph.replay()
        assert float(x.sum()) == 3
