"""The allocator of page-locked memory against a model: blocks never overlap, and no memory in use is handed out."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import tcuda
from support.busy_streams import keep_busy
from support.core import for_tests
from support.examples import examples
from tcuda import _core
from tcuda._runtime import runtime
from tcuda._runtime.protocol import MEMCPY_DEVICE_TO_HOST, MEMCPY_HOST_TO_DEVICE

SMALL = 1 << 20
MOST = 5 << 20
BUSY = 1_000_000  # cycles of a kernel that outlasts a step of the state machine on emulated devices


def fail(*arguments: Any, **facts: Any) -> NoReturn:
    raise AssertionError((arguments, facts))


def sizes() -> st.SearchStrategy[int]:
    """Return sizes, most of which occur often, so that freed blocks fit."""
    often = st.sampled_from([1000, 100_000, SMALL, 3 << 20, (3 << 20) + 1])
    return st.one_of(often, often, st.integers(1, SMALL), st.integers(SMALL, MOST))


class HostMachine(RuleBasedStateMachine):
    """Allocations, frees, copies, waits and graphs in any order.

    Hypothesis keeps the values that it draws, so the machine draws numbers and no blocks.
    """

    forgets: ClassVar[bool] = False
    """Whether the driver knows as little of the uses of memory as CUDA does."""

    def __init__(self) -> None:
        super().__init__()
        tcuda.init()
        self.cuda = runtime()
        self.driver = for_tests.FaultyDriver(self.cuda.memoryDriver())
        if self.forgets:
            self.driver.forget_host_uses()
        self.own = _core.Ledger(self.driver, self.cuda.getDeviceCount(), _core.Settings(), fail, fail)
        self.streams = [tcuda.Stream() for _ in range(2)]
        for stream in self.streams:
            self.own.stream_created(stream.device_index, stream.cuda_stream)
        self.device = tcuda.xp.empty(MOST, "uint8")
        tcuda.synchronize()
        self.live: list[_core.PageLockedMemory] = []
        self.uses: list[tuple[int, int, tcuda.Event]] = []
        self.held: list[tuple[tuple[tuple[int, int], list[int]], int, int]] = []
        self.peak = 0
        self.expected: Any = None

    @rule(size=sizes())
    def allocate(self, size: int) -> None:
        block = _core.allocate_page_locked(self.own, size)
        assert block.block_size - size <= max(63, size // 4)  # an eighth by the size, and an eighth by the block
        begin, end = block.ptr, block.ptr + block.block_size
        for other in self.live:
            assert end <= other.ptr or other.ptr + other.block_size <= begin
        for start, stop, done in self.uses:
            assert end <= start or stop <= begin or done.query()
        for _, start, stop in self.held:
            assert end <= start or stop <= begin
        self.live.append(block)
        self.peak = max(self.peak, sum(each.block_size for each in self.live))

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))

    @precondition(lambda self: self.live)
    @rule(data=st.data(), upload=st.booleans(), busy=st.booleans(), dropped=st.booleans())
    def copy(self, data: st.DataObject, upload: bool, busy: bool, dropped: bool) -> None:
        place = data.draw(st.integers(0, len(self.live) - 1))
        block = self.live[place]
        stream = self.streams[data.draw(st.integers(0, 1))]
        if busy:
            keep_busy(stream, BUSY)
        device, host = self.device.data.ptr, block.ptr
        target, source = (device, host) if upload else (host, device)
        kind = MEMCPY_HOST_TO_DEVICE if upload else MEMCPY_DEVICE_TO_HOST
        self.cuda.memcpyAsync(target, source, min(block.size, MOST), kind, stream.cuda_stream)
        self.uses.append((block.ptr, block.ptr + block.block_size, stream.record_event()))
        if dropped:
            del self.live[place]

    @rule(data=st.data())
    def wait(self, data: st.DataObject) -> None:
        self.streams[data.draw(st.integers(0, 1))].synchronize()
        self.uses = [use for use in self.uses if not use[2].query()]

    @precondition(lambda self: self.live and len(self.held) < 3)
    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        block = self.live[data.draw(st.integers(0, len(self.live) - 1))]
        inside = block.ptr + data.draw(st.integers(0, block.size - 1))
        held = self.own.hold([inside, 8], 0)
        assert held == [inside]
        pool = (0, self.own.next_pool())  # every graph has one
        for device in range(self.cuda.getDeviceCount()):
            self.own.create_pool(device, pool, None, True, False)
        self.held.append(((pool, held), block.ptr, block.ptr + block.block_size))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), busy=st.booleans())
    def replay(self, data: st.DataObject, busy: bool) -> None:
        _, begin, end = self.held[data.draw(st.integers(0, len(self.held) - 1))]
        stream = self.streams[data.draw(st.integers(0, 1))]
        if busy:
            keep_busy(stream, BUSY)
        size = min(end - begin, MOST)
        self.cuda.memcpyAsync(self.device.data.ptr, begin, size, MEMCPY_HOST_TO_DEVICE, stream.cuda_stream)
        self.uses.append((begin, end, stream.record_event()))

    @rule()
    def expect_or_end_capture(self) -> None:
        """From one call to the next one, the allocator records no event. Nothing is captured."""
        if self.expected is None:
            self.expected = self.own.expect_capture()
        else:
            self.expected.end()
            self.expected = None

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        held, _, _ = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.own.release_graph(*held, False)

    @rule()
    def empty(self) -> None:
        self.own.empty_host_cache()
        self.peak = sum(each.block_size for each in self.live)

    @invariant()
    def the_statistics_are_right(self) -> None:
        stats = self.own.host_statistics()
        assert stats["active_requests.current"] == len(self.live)
        assert stats["active_bytes.current"] == sum(block.block_size for block in self.live)
        assert stats["allocations.current"] == stats["num_host_alloc"] - stats["num_host_free"]
        assert stats["allocated_bytes.current"] >= stats["active_bytes.current"]

    def teardown(self) -> None:
        if self.expected is not None:
            self.expected.end()
        self.live.clear()
        for held, _, _ in self.held:
            self.own.release_graph(*held, False)
        for stream in self.streams:
            stream.synchronize()
            self.own.stream_about_to_be_destroyed(stream.device_index, stream.cuda_stream)
        self.own.empty_host_cache()
        stats = self.own.host_statistics()
        assert stats["active_bytes.current"] == stats["allocated_bytes.current"] == 0
        del self.device


@pytest.mark.parametrize("forgets", [False, True], ids=["uses", "events"])
def test_random_calls_hand_out_no_memory_in_use_and_lose_none(runtime: Any, forgets: bool) -> None:
    case = type("Machine", (HostMachine,), {"forgets": forgets}).TestCase
    case.settings = settings(
        max_examples=examples(60),
        stateful_step_count=50,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    case("runTest").runTest()
    tcuda.synchronize()
