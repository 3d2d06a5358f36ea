"""Memory that several streams use: when the allocator reuses the memory, and on which stream."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import types
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.busy_streams import keep_busy
from support.threads import in_thread
from tcuda._base.arguments import a_kind
from tcuda._process import ledger
from tcuda._runtime.protocol import (
    CAPTURE_RELAXED,
    STREAM_DEFAULT,
    STREAM_LEGACY,
    STREAM_NON_BLOCKING,
    STREAM_PER_THREAD,
)
from tcuda.memory import record_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import HoldAtMost, OutputOf
    from tcuda._runtime.protocol import Runtime

SIZE = 60 << 20  # a multiple of the step by which the memory of a stream grows
BUSY = 400_000_000


@pytest.fixture(autouse=True)
def _every_stream_is_idle_and_the_kernel_of_sleep_is_loaded(allocator_as_found: None) -> None:
    tcuda._sleep(1)
    tcuda.synchronize()


def new_array() -> Any:
    return tcuda.xp.empty(SIZE, dtype="uint8")


def is_next(address: int) -> bool:
    """Return whether the next array gets ``address``, as it does if the memory there is free."""
    return bool(new_array().data.ptr == address)


def active() -> int:
    """Return the bytes of live arrays, and of freed arrays that a stream still uses."""
    return int(tcuda.memory_stats()["active_bytes.all.current"])


def temporary_stream(runtime: Runtime) -> Any:
    """Return a stream that is destroyed together with its object, as a stream of CuPy is."""
    if runtime.name == "cuda":
        return tcuda.xp.cuda.Stream(non_blocking=True)
    stream = tcuda.ExternalStream(runtime.streamCreateWithPriority(STREAM_NON_BLOCKING, 0))
    weakref.finalize(stream, runtime.streamDestroy, stream.cuda_stream)
    return stream


@contextlib.contextmanager
def capture(runtime: Runtime, stream: int) -> Iterator[None]:
    """Let ``stream`` capture in a scope whose code must not invalidate the capture."""
    runtime.streamBeginCapture(stream, CAPTURE_RELAXED)
    try:
        yield
    finally:
        runtime.graphDestroy(runtime.streamEndCapture(stream))


class TestTheStreamOfAnAllocation:
    def test_is_the_stream_that_was_current(self) -> None:
        own, other = tcuda.Stream(), tcuda.Stream()
        with tcuda.stream(own):
            array = new_array()
        with tcuda.stream(other):
            assert ledger.ledger().stream_of(0, array.data.ptr) == own.cuda_stream
        assert ledger.ledger().stream_of(0, new_array().data.ptr) == 0

    def test_is_unknown_where_no_allocation_begins(self) -> None:
        array = new_array()
        address = array.data.ptr
        assert ledger.ledger().stream_of(0, address + 512) is None
        del array
        assert ledger.ledger().stream_of(0, address) is None

    def test_is_unknown_after_the_end_of_the_stream(self, runtime: Runtime) -> None:
        own = temporary_stream(runtime)
        with tcuda.stream(own):
            array = new_array()
        assert ledger.ledger().stream_of(0, array.data.ptr) == own.ptr
        del own
        assert ledger.ledger().stream_of(0, array.data.ptr) is None


@pytest.mark.alone
class TestAnArrayThatAnotherStreamUses:
    def test_keeps_its_memory_until_the_stream_is_done(self) -> None:
        before = tcuda.memory_allocated(), active()
        array, other = new_array(), tcuda.Stream()
        address = array.data.ptr
        keep_busy(other, BUSY)
        record_stream(array, other)
        assert (tcuda.memory_allocated(), active()) == (before[0] + SIZE, before[1] + SIZE)
        del array
        assert (tcuda.memory_allocated(), active()) == (before[0], before[1] + SIZE)
        blocks = [block for segment in tcuda.memory_snapshot() for block in segment["blocks"]]
        assert [block["state"] for block in blocks if block["address"] == address] == ["active_pending_free"]
        assert not is_next(address)
        assert active() == before[1] + SIZE
        assert not other.query()
        tcuda.synchronize()
        assert is_next(address)
        assert active() == before[1]

    def test_loses_its_memory_at_once_without_record_stream(self) -> None:
        array, other = new_array(), tcuda.Stream()
        address = array.data.ptr
        keep_busy(other, BUSY)
        del array
        assert is_next(address)
        assert not other.query()

    def test_does_not_keep_its_memory_for_its_own_stream(self) -> None:
        own = tcuda.Stream()
        with tcuda.stream(own):
            array = new_array()
            address = array.data.ptr
            tcuda._sleep(BUSY)
            record_stream(array, own)
            del array
            assert is_next(address)
            assert not own.query()

    def test_waits_for_work_submitted_after_record_stream_and_before_the_free(self) -> None:
        array, other = new_array(), tcuda.Stream()
        address = array.data.ptr
        record_stream(array, other)
        keep_busy(other, BUSY)
        del array
        assert not is_next(address)
        assert not other.query()

    def test_does_not_wait_for_work_submitted_after_the_free(self) -> None:
        array, other = new_array(), tcuda.Stream()
        address = array.data.ptr
        record_stream(array, other)
        del array
        other.synchronize()
        keep_busy(other, BUSY)
        assert is_next(address)
        assert not other.query()

    @pytest.mark.parametrize("recorded", [(0, 1), (1, 0), (0, 1, 0, 0)], ids=str)
    def test_waits_for_every_stream_that_was_recorded(self, recorded: tuple[int, ...]) -> None:
        before = active()
        array, streams = new_array(), [tcuda.Stream(), tcuda.Stream()]
        address = array.data.ptr
        keep_busy(streams[0], BUSY // 4)
        keep_busy(streams[1], BUSY)
        for index in recorded:
            record_stream(array, streams[index])
        del array
        assert not is_next(address)
        assert not streams[0].query()
        streams[0].synchronize()
        assert not is_next(address)
        assert not streams[1].query()
        streams[1].synchronize()
        assert is_next(address)
        assert active() == before

    @pytest.mark.parametrize("outlives", ["the array", "the view"])
    def test_may_be_recorded_by_a_view(self, outlives: str) -> None:
        array, other = new_array(), tcuda.Stream()
        address, view = array.data.ptr, array[SIZE // 2 :]
        keep_busy(other, BUSY)
        if outlives == "the view":
            del array
            record_stream(view, other)
            del view
        else:
            record_stream(view, other)
            del view
            del array
        assert not is_next(address)
        assert not other.query()
        other.synchronize()
        assert is_next(address)

    def test_may_be_freed_in_another_thread(self) -> None:
        arrays, other = [new_array()], tcuda.Stream()
        address = arrays[0].data.ptr
        keep_busy(other, BUSY)
        record_stream(arrays[0], other)
        in_thread(arrays.clear)
        assert not is_next(address)
        assert not other.query()

    @pytest.mark.parametrize("handle", [0, STREAM_LEGACY, STREAM_PER_THREAD], ids=["null", "legacy", "per thread"])
    def test_waits_for_a_default_stream_of_its_own_device(self, handle: int) -> None:
        last = tcuda.device_count() - 1
        own = tcuda.Stream(last)
        with tcuda.stream(own):
            array, other = new_array(), tcuda.ExternalStream(handle)
            keep_busy(other, BUSY)
            record_stream(array, other)
        address = array.data.ptr
        del array  # another device, with its own default streams, may be current here
        with tcuda.stream(own):
            assert not is_next(address)
            assert not other.query()
            tcuda.synchronize()
            assert is_next(address)


class TestMemoryThatIsHeldBack:
    def test_is_waited_for_when_the_cache_is_emptied(self) -> None:
        before = active()
        array, other = new_array(), tcuda.Stream()
        keep_busy(other, BUSY)
        record_stream(array, other)
        del array
        reserved = tcuda.memory_reserved()
        assert not other.query()
        tcuda.empty_cache()
        assert other.query()
        assert active() == before
        assert tcuda.memory_reserved() <= reserved - SIZE

    def test_is_waited_for_before_memory_runs_out(self, hold_at_most: HoldAtMost) -> None:
        other = tcuda.Stream()
        with hold_at_most(SIZE):
            array = new_array()
            address = array.data.ptr
            keep_busy(other, BUSY)
            record_stream(array, other)
            del array
            assert not other.query()
            assert is_next(address)
            assert other.query()

    def test_stays_until_a_capture_ends(self, runtime: Runtime) -> None:
        before = active()
        array, other = new_array(), tcuda.Stream()
        record_stream(array, other)
        with capture(runtime, other.cuda_stream):
            del array
            tcuda.empty_cache()
            assert active() == before + SIZE
        tcuda.empty_cache()
        assert active() == before


class TestFreeMemory:
    """Free memory whose stream may still work on the former contents."""

    @pytest.mark.parametrize("handle", [None, 0, STREAM_PER_THREAD], ids=["own", "null", "per thread"])
    def test_is_waited_for_when_the_cache_is_emptied(self, handle: int | None) -> None:
        reserved = tcuda.memory_reserved()
        own = tcuda.Stream() if handle is None else tcuda.ExternalStream(handle)
        with tcuda.stream(own):
            new_array()
            tcuda._sleep(BUSY)
        assert tcuda.memory_reserved() >= reserved + SIZE
        assert not own.query()
        tcuda.empty_cache()
        assert own.query()
        assert tcuda.memory_reserved() == reserved

    @pytest.mark.parametrize("handle", [0, STREAM_PER_THREAD], ids=["null", "per thread"])
    def test_stays_while_a_capture_forbids_the_wait_for_its_stream(self, runtime: Runtime, handle: int) -> None:
        reserved = tcuda.memory_reserved()
        blocking = runtime.streamCreateWithPriority(STREAM_DEFAULT, 0)
        with tcuda.stream(tcuda.ExternalStream(handle)):
            new_array()
        with capture(runtime, blocking):
            tcuda.empty_cache()
            assert tcuda.memory_reserved() >= reserved + SIZE
        runtime.streamDestroy(blocking)
        tcuda.empty_cache()
        assert tcuda.memory_reserved() == reserved

    @pytest.mark.alone
    @pytest.mark.parametrize(
        ("trim", "busy", "more"),
        [("always", False, 0), ("always", True, SIZE), ("needed", False, SIZE)],
        ids=["always, idle", "always, busy", "needed"],
    )
    def test_goes_to_another_stream_if_its_own_is_idle_and_memory_is_always_trimmed(
        self, output_of: OutputOf, trim: str, busy: bool, more: int
    ) -> None:
        # A new process, because the memory that may move between streams depends on the memory that moved before.
        assert (
            output_of(
                f"""
import tcuda
from tcuda._base.arguments import a_kind
from tcuda._process import ledger
tcuda._sleep(1)
tcuda.synchronize()
own = tcuda.Stream()
with tcuda.stream(own):
    array = tcuda.xp.empty({SIZE}, dtype="uint8")
    if {busy}: tcuda._sleep({BUSY})
reserved = tcuda.memory_reserved()
del array
with tcuda.stream(tcuda.Stream()):
    array = tcuda.xp.empty({SIZE}, dtype="uint8")
print(own.query(), tcuda.memory_reserved() - reserved)
""",
                TCUDA_ALLOC_CONF=f"trim:{trim}",
            )
            == f"{not busy} {more}"
        )


@pytest.mark.alone
class TestAStreamThatIsDestroyed:
    @pytest.mark.parametrize("first", ["array", "stream"])
    def test_keeps_memory_that_was_recorded_for_it_until_its_work_is_done(self, runtime: Runtime, first: str) -> None:
        array, other, done = new_array(), temporary_stream(runtime), tcuda.Event()
        address = array.data.ptr
        keep_busy(other, BUSY)
        done.record(other)
        record_stream(array, other)
        if first == "array":
            del array
            del other
        else:
            del other
            del array
        assert not is_next(address)
        assert not done.query()
        tcuda.synchronize()
        assert is_next(address)

    def test_is_waited_for_before_its_own_memory_is_given_back(self, runtime: Runtime) -> None:
        reserved = tcuda.memory_reserved()
        own, done = temporary_stream(runtime), tcuda.Event()
        with tcuda.stream(own):
            array = new_array()
            tcuda._sleep(BUSY)
            done.record()
        address = array.data.ptr
        del array
        del own
        assert not is_next(address)
        assert not done.query()
        tcuda.empty_cache()
        assert done.query()
        assert tcuda.memory_reserved() == reserved

    def test_leaves_the_contents_of_its_arrays_unchanged(self, runtime: Runtime) -> None:
        own = temporary_stream(runtime)
        with tcuda.stream(own):
            array = tcuda.xp.arange(1000)
        own.synchronize()
        del own
        tcuda.empty_cache()
        assert int(array.sum()) == 499500

    @pytest.mark.parametrize(("first", "second"), [("array", "own"), ("own", "array")], ids=["array", "stream"])
    def test_leaves_its_memory_to_other_streams(self, output_of: OutputOf, first: str, second: str) -> None:
        # A new process, because the memory that may move between streams depends on the memory that moved before.
        assert (
            output_of(f"""
import weakref
from typing import Any
import tcuda
from tcuda._base.arguments import a_kind
from tcuda._process import ledger
from tcuda._runtime import runtime
from tcuda._runtime.protocol import STREAM_NON_BLOCKING, Runtime
{inspect.getsource(temporary_stream)}
tcuda.init()
own = temporary_stream(runtime())
with tcuda.stream(own):
    array = tcuda.xp.empty({SIZE}, dtype="uint8")
reserved = tcuda.memory_reserved()
del {first}
tcuda.synchronize()
del {second}
with tcuda.stream(tcuda.Stream()):
    array = tcuda.xp.empty({SIZE}, dtype="uint8")
print(reserved, tcuda.memory_reserved())
""")
            == f"{SIZE} {SIZE}"
        )


def foreign_array(runtime: Runtime) -> Any:
    """Return an object with the attributes of an array, over memory of the host."""
    host = np.zeros(8)
    memory = types.SimpleNamespace(ptr=host.ctypes.data)
    return types.SimpleNamespace(data=types.SimpleNamespace(mem=memory, device_id=0), host=host)


@pytest.mark.alone
class TestWhatItTakes:
    @pytest.mark.parametrize("array", [None, 7, [1, 2], np.zeros(3)], ids=lambda array: type(array).__name__)
    def test_only_an_array_of_a_device_is_accepted(self, array: object) -> None:
        with pytest.raises(TypeError, match=rf"takes an array of tcuda.xp; got {a_kind(array)}\."):
            record_stream(array, tcuda.Stream())

    @pytest.mark.parametrize("stream", [None, 7, "cuda", object()], ids=lambda stream: type(stream).__name__)
    @pytest.mark.parametrize("size", [0, 3])
    def test_only_a_stream_is_accepted(self, stream: Any, size: int) -> None:
        before = active()
        array = tcuda.xp.empty(size)
        with pytest.raises(RuntimeError, match="expected stream to be a"):
            record_stream(array, stream)
        del array
        assert active() == before

    def test_memory_of_another_allocator_is_refused(self, runtime: Runtime) -> None:
        with pytest.raises(ValueError, match="was not allocated by tcuda"):
            record_stream(foreign_array(runtime), tcuda.Stream())

    def test_an_array_without_elements_is_accepted(self) -> None:
        record_stream(tcuda.xp.empty((3, 0)), tcuda.Stream())

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda stream: types.SimpleNamespace(__cuda_stream__=lambda: (0, stream.cuda_stream)),
            lambda stream: types.SimpleNamespace(ptr=stream.cuda_stream, device_id=stream.device_id),
            lambda stream: types.SimpleNamespace(cuda_stream=stream.cuda_stream, device_index=0),
        ],
        ids=["__cuda_stream__", "CuPy", "torch"],
    )
    def test_streams_of_other_libraries_are_accepted(self, wrap: Callable[[tcuda.Stream], Any]) -> None:
        array, other = new_array(), tcuda.Stream()
        address = array.data.ptr
        keep_busy(other, BUSY)
        record_stream(array, wrap(other))
        del array
        assert not is_next(address)
        assert not other.query()


@pytest.mark.emulated
def test_a_copy_from_memory_that_was_given_back_is_refused(runtime: Runtime) -> None:
    x = tcuda.xp.empty(64 << 20, dtype="uint8")
    address = x.data.ptr
    del x
    tcuda.synchronize()
    tcuda.empty_cache()
    into = ctypes.create_string_buffer(8)
    with pytest.raises(tcuda.AcceleratorError, match="invalid argument"):
        runtime.memcpy(ctypes.addressof(into), address, 8, 4)


def test_short_lived_streams_leave_no_memory_behind(runtime: Runtime) -> None:
    device = tcuda.current_device()
    in_use = ledger.ledger()
    before = tcuda.memory_reserved()
    for _ in range(300):
        stream = runtime.streamCreateWithPriority(1, 0)
        in_use.stream_created(device, stream)
        address = in_use.allocate(device, 100, stream)
        assert in_use.free(address)
        in_use.stream_about_to_be_destroyed(device, stream)
        runtime.streamDestroy(stream)
    assert tcuda.memory_reserved() <= before + (20 << 20)
