"""The thread of ``pinned_use_background_threads``: freed page-locked memory becomes free without an allocation."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import keep_busy
from support.core import for_tests
from support.sizes import KIB, MIB
from support.threads import in_threads
from tcuda import _core
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import MEMCPY_HOST_TO_DEVICE
from tcuda.memory import _set_allocator_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

PAGES = 3 * MIB
PATIENCE = 30.0
"""The seconds after which a wait for the thread fails."""
WATCH = 0.06
"""The seconds for which a test looks at a block: many pauses of the thread, and many switches between threads."""
QUESTIONS = ("query_host", "record_device", "query")


def no_error(*arguments: Any, **facts: Any) -> None:
    raise MemoryError(arguments)


class Host:
    """An allocator of page-locked memory of its own, with the thread, and with a driver that counts its calls.

    Args:
        runtime: The runtime.
        knows: Whether the driver may know the uses of host memory.
    """

    def __init__(self, runtime: Runtime, *, knows: bool) -> None:
        self.driver = for_tests.FaultyDriver(runtime.memoryDriver())
        if not knows:
            self.driver.forget_host_uses()
        self.ledger = _core.Ledger(self.driver, runtime.getDeviceCount(), _core.Settings(), no_error, no_error)
        self.use_thread(True)

    def use_thread(self, use: bool) -> None:
        self.ledger.change_host_settings(False, 1, 0, use)

    def block(self, size: int = PAGES) -> _core.PageLockedMemory:
        return _core.allocate_page_locked(self.ledger, size)

    def stat(self, key: str) -> int:
        return self.ledger.host_statistics()[key]

    def pending(self) -> set[int]:
        """Return the addresses of the blocks that are freed and that work may still use."""
        segments, _ = self.ledger.host_snapshot()
        blocks = [block for segment in segments for block in segment["blocks"]]
        return {block["address"] for block in blocks if block["state"] == "active_pending_free"}

    def wait_until_settled(self) -> None:
        end = time.monotonic() + PATIENCE
        while self.pending():
            assert time.monotonic() < end, "the thread has settled nothing"

    def stays_pending(self, begin: int) -> bool:
        """Return whether a block is pending all the time while the test looks at the block."""
        end = time.monotonic() + WATCH
        while time.monotonic() < end:
            if begin not in self.pending():
                return False
        return True

    def questions(self) -> int:
        return sum(self.driver.successes(entry) for entry in QUESTIONS)


@pytest.fixture(params=[True, False], ids=["uses", "events"])
def host(runtime: Runtime, request: pytest.FixtureRequest) -> Iterator[Host]:
    tcuda.synchronize()
    made = Host(runtime, knows=request.param)
    yield made
    made.use_thread(False)
    made.ledger.empty_host_cache()
    assert made.stat("allocated_bytes.current") == made.stat("active_bytes.current") == 0


class TestSettling:
    def test_an_allocation_finds_freed_memory_and_asks_nothing(self, host: Host) -> None:
        sizes = [1000, 100 * KIB, PAGES, 2 * PAGES]
        blocks = [host.block(size) for size in sizes]
        begins = {block.ptr for block in blocks}
        calls = host.stat("num_host_alloc")
        blocks.clear()
        host.wait_until_settled()
        asked = host.questions()
        assert asked > 0
        blocks = [host.block(size) for size in sizes]
        assert {block.ptr for block in blocks} == begins
        assert host.questions() == asked
        assert host.stat("num_host_alloc") == calls

    def test_memory_that_a_copy_uses_comes_back_after_the_copy(self, host: Host, runtime: Runtime, xp: Any) -> None:
        x, stream, block = xp.zeros(PAGES, "uint8"), tcuda.Stream(), host.block()
        tcuda.synchronize()
        keep_busy(stream)
        runtime.memcpyAsync(x.data.ptr, block.ptr, PAGES, MEMCPY_HOST_TO_DEVICE, stream.cuda_stream)
        begin = block.ptr
        del block
        while not stream.query():
            pending = host.pending()
            assert begin in pending or stream.query()
        host.wait_until_settled()
        assert host.block().ptr == begin

    def test_memory_of_a_graph_comes_back_after_the_graph(self, host: Host) -> None:
        pool, block = (host.ledger.next_pool(), 0), host.block()
        for device in range(tcuda.device_count()):
            host.ledger.create_pool(device, pool, None, True, False)
        held = host.ledger.hold([block.ptr], 0)
        begin = block.ptr
        del block
        assert host.stays_pending(begin)
        host.ledger.release_graph(pool, held, False)
        host.wait_until_settled()

    def test_the_thread_can_be_switched_on_and_off(self, host: Host) -> None:
        for _ in range(20):
            host.use_thread(False)
            begin = host.block().ptr
            assert begin in host.pending()
            host.use_thread(True)
            host.wait_until_settled()

    @pytest.mark.emulated
    def test_a_loop_holds_no_more_memory_because_of_the_thread(self, host: Host) -> None:
        for _ in range(300):
            host.block()
        assert host.stat("num_host_alloc") == 1

    def test_the_cache_can_be_emptied_at_any_time(self, host: Host) -> None:
        for _ in range(200):
            host.block()
            host.ledger.empty_host_cache()
            assert host.stat("allocated_bytes.current") == 0

    def test_threads_share_the_memory(self, host: Host) -> None:
        def work(number: int) -> None:
            for turn in range(200):
                kept = [host.block(1 + (number * 7919 + turn * 104729) % (200 * KIB)) for _ in range(3)]
                kept.clear()
                if turn % 50 == number:
                    host.ledger.empty_host_cache()
                    host.use_thread(turn % 100 == number)

        in_threads(work, zip(range(4)))
        assert host.stat("active_bytes.current") == 0
        host.use_thread(True)
        host.wait_until_settled()


class TestRest:
    """Times in which the thread must ask nothing."""

    def test_nothing_is_asked_during_a_rest(self, host: Host) -> None:
        host.ledger.begin_host_rest()
        asked = host.questions()
        begin = host.block().ptr
        assert host.stays_pending(begin)
        assert host.questions() == asked
        host.ledger.end_host_rest()
        host.wait_until_settled()

    def test_no_event_is_recorded_while_a_capture_is_expected(self, runtime: Runtime) -> None:
        host = Host(runtime, knows=False)
        expected = host.ledger.expect_capture()
        begin = host.block().ptr
        assert host.stays_pending(begin)
        assert host.driver.successes("record_device") == 0
        expected.end()
        expected.end()
        host.wait_until_settled()
        with_object = host.ledger.expect_capture()
        begin = host.block().ptr
        assert host.stays_pending(begin)
        del with_object  # as an exception does between the call and the assignment
        host.wait_until_settled()

    @pytest.mark.long
    def test_captures_are_valid_while_memory_is_freed(self, runtime: Runtime, xp: Any) -> None:
        x, done = xp.zeros(3), threading.Event()

        def free_memory() -> None:
            while not done.is_set():
                tcuda.memory.empty_pinned(1000, "uint8")

        thread = threading.Thread(target=free_memory)
        _set_allocator_settings("pinned_use_background_threads:True")
        thread.start()
        try:
            for _ in range(30):
                graph = tcuda.CUDAGraph()
                with tcuda.graph(graph):
                    x += 1
                graph.replay()
        finally:
            done.set()
            thread.join()
            _set_allocator_settings("")
        assert x.tolist() == [30, 30, 30]


class TestFailures:
    @pytest.mark.parametrize("entry", QUESTIONS)
    def test_a_question_that_fails_is_asked_again(self, host: Host, entry: str) -> None:
        host.driver.fail(entry, 0, 719)
        begin = host.block().ptr
        host.wait_until_settled()
        assert host.block().ptr == begin


OPTION = {"TCUDA_ALLOC_CONF": "pinned_use_background_threads:True"}


class TestProcesses:
    def test_the_option_starts_the_thread(self, output_of: OutputOf) -> None:
        program = """
import time, tcuda
from tcuda._process.ledger import ledger
def pending():
    blocks = [block for segment in tcuda.memory._snapshot()["host_segments"] for block in segment["blocks"]]
    return [block for block in blocks if block["state"] == "active_pending_free"]
tcuda.memory.empty_pinned(1000)
end = time.monotonic() + 30
while pending() and time.monotonic() < end:
    pass
print(len(pending()))
"""
        assert output_of(program, **OPTION) == "0"

    def test_a_child_that_is_forked_in_the_middle_ends(self, output_of: OutputOf) -> None:
        program = """
import os, warnings
import tcuda
warnings.simplefilter("ignore", DeprecationWarning)
kept = [tcuda.memory.zeros_pinned(1000) for _ in range(100)]
for _ in range(20):
    kept.pop()
    child = os.fork()
    if not child:
        kept.clear()
        print(tcuda.host_memory_stats(), end=" ", flush=True)
        del tcuda
        os._exit(0)
    os.waitpid(child, 0)
print(tcuda.host_memory_stats()["active_requests.current"])
"""
        assert output_of(program, **OPTION) == "{} " * 20 + "80"

    def test_the_process_ends_while_memory_is_in_doubt(self, output_of: OutputOf) -> None:
        program = """
import atexit, builtins
import tcuda
from tcuda import xp
builtins.kept = tcuda.memory.empty_pinned(1 << 22)
x, stream = xp.zeros(1 << 22, "uint8"), tcuda.Stream()
with tcuda.stream(stream):
    tcuda._sleep(100_000_000)
x.set(tcuda.memory.empty_pinned(1 << 22, "uint8"), stream=xp.cuda.Stream.from_external(stream))
late = atexit.register(lambda: print(tcuda.memory.empty_pinned(3).shape))
print("done")
"""
        assert output_of(program, **OPTION) == "done\n(3,)"


def test_the_allocator_of_the_process_has_no_thread_left(runtime: Runtime) -> None:
    _set_allocator_settings("pinned_use_background_threads:True")
    _set_allocator_settings("")
    ledger().empty_host_cache()
    array = tcuda.memory.empty_pinned(1000, "uint8")
    begin = array.ctypes.data
    del array
    segments = [tcuda.memory._snapshot()["host_segments"] for _ in range(20)]
    states = {b["state"] for s in segments for segment in s for b in segment["blocks"] if b["address"] == begin}
    assert states == {"active_pending_free"}
