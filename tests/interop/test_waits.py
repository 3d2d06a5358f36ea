"""CuPy's waits: the functions that tell of them while there is a watcher, and CuPy's own functions otherwise."""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda._cupy import waits as cupy_waits
from tcuda._process import waits

if TYPE_CHECKING:
    from collections.abc import Iterator


class Forbidden(RuntimeError):
    """The error of CuPy's function in a scope that allows no wait."""


def in_cupy(function: FunctionType) -> FunctionType:
    """Return ``function`` as a function of CuPy, whose frames are none of the program."""
    made = FunctionType(function.__code__, {"__name__": "cupy.stand_in"}, argdefs=function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class StandIn:
    """The parts of CuPy that begin waits.

    Attributes:
        done: What CuPy has done.
        forbidden: Whether a program has forbidden waits by CuPy's means.
    """

    def __init__(self) -> None:
        self.done: list[str] = []
        self.forbidden = False
        done = self.done

        class BaseStream:
            def synchronize(self) -> None:
                done.append("stream")

        class Event:
            def synchronize(self) -> None:
                done.append("event")

        detect = SimpleNamespace(_declare_synchronize=self._declare)
        self._core = SimpleNamespace(syncdetect=detect, core=SimpleNamespace(syncdetect=detect))
        device = SimpleNamespace(syncdetect=detect)
        streams = SimpleNamespace(_BaseStream=BaseStream, Event=Event)
        runtime = SimpleNamespace(streamSynchronize=lambda stream: done.append("runtime"), getDevice=lambda: 0)
        self.cuda = SimpleNamespace(device=device, stream=streams, runtime=runtime)
        self.stream, self.event = BaseStream(), Event()

    def _declare(self) -> None:
        if self.forbidden:
            raise Forbidden

    @in_cupy
    def get(self, stream: Any = None, *, blocking: bool = True) -> None:
        """Do what ``cupy.ndarray.get`` does."""
        self._core.core.syncdetect._declare_synchronize()
        self.done.append("copy")
        if blocking:
            (stream or self.stream).synchronize()

    @in_cupy
    def synchronize(self) -> None:
        """Do what ``cupy.cuda.Device.synchronize`` does."""
        self.cuda.device.syncdetect._declare_synchronize()
        self.done.append("device")


@pytest.fixture
def told(runtime: object) -> Iterator[list[tuple[str, bool]]]:
    """The waits that the watcher is told of."""
    seen: list[tuple[str, bool]] = []
    waits.watch(lambda wait: seen.append((wait.call, wait.explicit)))
    yield seen
    waits.watch(None)


@pytest.fixture
def cupy(told: object) -> Iterator[StandIn]:
    """A stand-in for CuPy that tells of its waits."""
    cupy_waits.end()  # on a GPU, CuPy itself tells of its waits now
    stand_in = StandIn()
    cupy_waits.begin(stand_in)
    yield stand_in
    cupy_waits.end()


class TestAStandIn:
    def test_a_copy_to_the_host_is_one_wait_each_time(self, cupy: StandIn, told: list[tuple[str, bool]]) -> None:
        for _ in range(3):
            cupy.get()
        assert told == [("ndarray.get", False)] * 3
        assert cupy.done == ["copy", "stream"] * 3

    def test_a_copy_on_a_stream_of_tcuda_is_one_wait(self, cupy: StandIn, told: list[tuple[str, bool]]) -> None:
        cupy.get(tcuda.Stream())
        assert told == [("ndarray.get", False)]

    def test_a_wait_after_a_copy_that_does_not_wait_is_another_wait(
        self, cupy: StandIn, told: list[tuple[str, bool]]
    ) -> None:
        cupy.get(blocking=False)
        cupy.stream.synchronize()
        assert told == [("ndarray.get", False), ("Stream.synchronize", False)]

    def test_each_wait_for_a_stream_is_told(self, cupy: StandIn, told: list[tuple[str, bool]]) -> None:
        for _ in range(2):
            cupy.stream.synchronize()
        assert told == [("Stream.synchronize", False)] * 2
        assert cupy.done == ["stream"] * 2

    def test_waits_for_events_and_devices_are_explicit(self, cupy: StandIn, told: list[tuple[str, bool]]) -> None:
        cupy.event.synchronize()
        cupy.synchronize()
        assert told == [("Event.synchronize", True), ("Device.synchronize", True)]
        assert cupy.done == ["event", "device"]

    def test_calls_of_the_runtime_by_the_program_are_told(self, cupy: StandIn, told: list[tuple[str, bool]]) -> None:
        cupy.cuda.runtime.getDevice()
        cupy.cuda.runtime.streamSynchronize(0)
        cupy.cuda.runtime.streamSynchronize(stream=0)
        assert told == [("Stream.synchronize", False)] * 2
        assert cupy.done == ["runtime"] * 2

    def test_a_cupy_that_announces_no_waits_tells_of_the_others(self, told: list[tuple[str, bool]]) -> None:
        cupy_waits.end()
        stand_in = StandIn()
        del stand_in._core.core.syncdetect, stand_in.cuda.device.syncdetect
        cupy_waits.begin(stand_in)
        stand_in.stream.synchronize()
        cupy_waits.end()
        assert told == [("Stream.synchronize", False)]

    def test_an_error_of_the_watcher_comes_before_the_wait(self, cupy: StandIn) -> None:
        def refuse(wait: object) -> None:
            raise RuntimeError("refused")

        waits.watch(refuse)
        for call in (cupy.get, cupy.synchronize, cupy.stream.synchronize, cupy.event.synchronize):
            with pytest.raises(RuntimeError, match="refused"):
                call()
        assert cupy.done == []

    def test_cupy_s_own_scope_still_forbids_waits(self, cupy: StandIn, told: list[tuple[str, bool]]) -> None:
        cupy.forbidden = True
        for call in (cupy.get, cupy.synchronize):
            with pytest.raises(Forbidden):
                call()
        assert told == []

    def test_cupy_s_own_functions_come_back(self, told: list[tuple[str, bool]]) -> None:
        cupy_waits.end()
        stand_in = StandIn()
        streams = stand_in.cuda.stream
        runtime = stand_in.cuda.runtime
        owners = (stand_in._core.core, stand_in.cuda.device, streams._BaseStream, streams.Event, runtime)
        before = [dict(vars(owner)) for owner in owners]
        cupy_waits.begin(stand_in)
        changed = [dict(vars(owner)) for owner in owners]
        assert all(now != then for now, then in zip(changed, before, strict=True))
        cupy_waits.end()
        assert [dict(vars(owner)) for owner in owners] == before

    def test_a_function_that_another_library_has_replaced_meanwhile_stays(self, cupy: StandIn) -> None:
        def other(self: object) -> None:
            pass

        cupy.cuda.stream.Event.synchronize = other
        cupy_waits.end()
        assert cupy.cuda.stream.Event.synchronize is other


@pytest.mark.gpu
class TestCuPy:
    def test_the_waits_of_cupy_are_told(self, told: list[tuple[str, bool]]) -> None:
        import cupy

        x = cupy.arange(4.0)
        float(x[0])
        x.get(stream=cupy.cuda.Stream())
        cupy.cuda.Stream().synchronize()
        cupy.cuda.Device().synchronize()
        event = cupy.cuda.Event()
        event.record()
        event.synchronize()
        assert told == [
            ("ndarray.get", False),
            ("ndarray.get", False),
            ("Stream.synchronize", False),
            ("Device.synchronize", True),
            ("Event.synchronize", True),
        ]

    def test_no_function_of_cupy_stays_replaced(self) -> None:
        import cupy

        streams = cupy.cuda.stream
        assert cupy._core.core.syncdetect is cupy.cuda.device.syncdetect is cupy._core.syncdetect
        own = streams._BaseStream.synchronize, streams.Event.synchronize
        with tcuda.SyncCounter():
            assert cupy._core.core.syncdetect is not cupy._core.syncdetect
        assert cupy._core.core.syncdetect is cupy.cuda.device.syncdetect is cupy._core.syncdetect
        assert (streams._BaseStream.synchronize, streams.Event.synchronize) == own

    def test_waits_in_c_functions_are_not_told(self, told: list[tuple[str, bool]]) -> None:
        import cupy
        import numpy as np

        x, host = cupy.arange(4.0), np.empty(4)
        x.data.copy_to_host(host.ctypes.data, host.nbytes)
        assert host.tolist() == [0, 1, 2, 3]
        assert told == []

    def test_calls_of_the_runtime_by_the_program_are_told(self, told: list[tuple[str, bool]]) -> None:
        import cupy
        import numpy as np

        x, host = cupy.arange(4.0), np.empty(4)
        runtime = cupy.cuda.runtime
        runtime.streamSynchronize(0)
        runtime.memcpy(host.ctypes.data, x.data.ptr, host.nbytes, runtime.memcpyDeviceToHost)
        runtime.deviceSynchronize()
        assert told == [("Stream.synchronize", False), ("cudaMemcpy", False), ("synchronize", True)]
