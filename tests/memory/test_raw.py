"""Memory without arrays, memory without a cache, and the second use of freed memory."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import LONG
from support.foreign_streams import ForeignStream
from support.sizes import KIB, MIB
from tcuda._process.ledger import ledger
from tcuda.memory import caching_allocator_disabled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import Changes, OutputOf
    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")

NO_POINTER = "^invalid device pointer: {:#x}. It is not what caching_allocator_alloc"


@contextlib.contextmanager
def raw(size: int, **where: Any) -> Iterator[int]:
    """Memory without an array."""
    address = tcuda.caching_allocator_alloc(size, **where)
    try:
        yield address
    finally:
        tcuda.caching_allocator_delete(address)


def segment_of(address: int) -> dict[str, Any]:
    """Return the segment that ``address`` is in."""
    [segment] = [
        segment
        for segment in tcuda.memory_snapshot()
        if segment["address"] <= address < segment["address"] + segment["total_size"]
    ]
    return segment


def address_of_freed(xp: Any, size: int) -> int:
    """Return where memory of ``size`` bytes was, which is free now."""
    return int(xp.empty(size, "B").data.ptr)


class TestAllocating:
    def test_memory_is_usable_counted_and_freed(self, xp: Any, runtime: Runtime, changes: Changes) -> None:
        with changes() as changed:
            address = tcuda.caching_allocator_alloc(1000)
        assert address % 512 == 0
        assert changed["allocated_bytes.all.current"] == 1 * KIB
        assert changed["requested_bytes.all.current"] == 1000
        source = xp.full(1000, 7, "B")
        runtime.memcpyAsync(address, source.data.ptr, 1000, 3, 0)
        back = xp.zeros(1000, "B")
        runtime.memcpyAsync(back.data.ptr, address, 1000, 3, 0)
        assert int(back.sum()) == 7000
        with changes() as changed:
            assert tcuda.caching_allocator_delete(address) is None
        assert changed["allocated_bytes.all.current"] == -1 * KIB
        del source, back

    def test_nothing_is_allocated_for_no_bytes(self, runtime: Runtime, changes: Changes) -> None:
        with changes() as changed:
            assert tcuda.caching_allocator_alloc(0) == 0
            tcuda.caching_allocator_delete(0)
        assert changed == {}

    def test_a_negative_size_is_refused(self, runtime: Runtime, changes: Changes) -> None:
        with (
            changes() as changed,
            pytest.raises(ValueError, match=r"size must be from 0 to 2\*\*63 - 1; got -1"),
        ):
            tcuda.caching_allocator_alloc(-1)
        assert changed == {}

    @pytest.mark.parametrize("size", [1.5, "1000", None])
    def test_a_size_that_is_no_number_of_bytes_is_refused(self, runtime: Runtime, size: Any) -> None:
        with pytest.raises(TypeError):
            tcuda.caching_allocator_alloc(size)

    def test_it_comes_from_the_device_that_is_asked_for(self, runtime: Runtime, changes: Changes) -> None:
        last = tcuda.device_count() - 1
        for device in (last, f"cuda:{last}"):
            with changes(last) as changed, raw(1000, device=device) as address:
                assert segment_of(address)["device"] == last
                assert tcuda.current_device() == 0
            assert changed["allocation.all.allocated"] == changed["allocation.all.freed"] == 1
        with tcuda.device(last), raw(1000) as address:
            assert segment_of(address)["device"] == last

    def test_what_is_no_device_is_refused(self, runtime: Runtime) -> None:
        count = tcuda.device_count()
        with pytest.raises(RuntimeError, match=f"Invalid device argument {count}: did you call init"):
            tcuda.caching_allocator_alloc(1000, count)
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
            tcuda.caching_allocator_alloc(1000, "cpu")

    def test_the_stream_may_be_given_in_every_way(self, runtime: Runtime) -> None:
        side = tcuda.Stream()
        for stream in (side, side.cuda_stream, ForeignStream(side.cuda_stream), tcuda.ExternalStream(side.cuda_stream)):
            with raw(1000, stream=stream) as address:
                assert segment_of(address)["stream"] == side.cuda_stream
        for stream in (0, 1, tcuda.default_stream(), None):  # 1 is another name of the default stream
            with raw(1000, stream=stream) as address:
                assert segment_of(address)["stream"] == 0
        with tcuda.stream(side), raw(1000) as address:
            assert segment_of(address)["stream"] == side.cuda_stream
        with tcuda.stream(side), raw(1000, stream=0) as address:
            assert segment_of(address)["stream"] == 0

    def test_without_a_stream_it_is_the_current_one_of_the_device(self, runtime: Runtime) -> None:
        last = tcuda.device_count() - 1
        side = tcuda.Stream(last)
        with tcuda.stream(side), tcuda.device(0), raw(1000, device=last) as address:
            assert segment_of(address)["stream"] == side.cuda_stream

    @pytest.mark.parametrize("stream", ["default", 1.5, object()])
    def test_what_is_no_stream_is_refused(self, runtime: Runtime, changes: Changes, stream: Any) -> None:
        with changes() as changed, pytest.raises(TypeError, match="Invalid type for stream argument, must be"):
            tcuda.caching_allocator_alloc(1000, stream=stream)
        assert changed == {}


class TestDeleting:
    def test_what_was_deleted_cannot_be_deleted_again(self, runtime: Runtime, changes: Changes) -> None:
        address = tcuda.caching_allocator_alloc(1000)
        tcuda.caching_allocator_delete(address)
        with changes() as changed, pytest.raises(RuntimeError, match=NO_POINTER.format(address)):
            tcuda.caching_allocator_delete(address)
        assert changed == {}

    @pytest.mark.parametrize("address", [0x3039, -1, -512, 1 << 64, 1 << 70])
    def test_what_is_no_address_cannot_be_deleted(self, runtime: Runtime, address: int) -> None:
        with pytest.raises(RuntimeError, match=NO_POINTER.format(address)):
            tcuda.caching_allocator_delete(address)

    def test_memory_can_be_deleted_only_by_where_it_begins(self, runtime: Runtime, changes: Changes) -> None:
        with raw(2000) as address, changes() as changed:
            for inside in (address + 1, address + 512, address + 2048):
                with pytest.raises(RuntimeError, match=NO_POINTER.format(inside)):
                    tcuda.caching_allocator_delete(inside)
        assert changed == {}

    def test_it_makes_no_difference_which_device_is_current(self, runtime: Runtime, changes: Changes) -> None:
        last = tcuda.device_count() - 1
        address = tcuda.caching_allocator_alloc(1000, last)
        with changes(last) as changed:
            tcuda.caching_allocator_delete(address)
        assert changed["allocation.all.freed"] == 1


class TestWithoutCache:
    def test_every_allocation_is_a_segment_that_goes_back_at_once(self, xp: Any, changes: Changes) -> None:
        with caching_allocator_disabled():
            with changes() as changed:
                arrays = [xp.empty(1000, "B") for _ in range(3)]
            assert changed["segment.small_pool.current"] == changed["num_device_alloc"] == 3
            assert changed["reserved_bytes.all.current"] == changed["allocated_bytes.all.current"] == 3 * KIB
            for array in arrays:
                segment = segment_of(array.data.ptr)
                assert (segment["address"], segment["total_size"]) == (array.data.ptr, 1 * KIB)
                assert [block["state"] for block in segment["blocks"]] == ["active_allocated"]
            with changes() as changed:
                del arrays, array
            assert changed["segment.small_pool.current"] == -3
            assert changed["num_device_free"] == 3
            assert changed["reserved_bytes.all.current"] == -3 * KIB

    def test_large_ones_are_counted_as_large(self, xp: Any, changes: Changes) -> None:
        with caching_allocator_disabled(), changes() as changed:
            xp.empty(5 * MIB + 1, "B")
        assert changed["segment.large_pool.allocated"] == changed["segment.large_pool.freed"] == 1
        assert changed["reserved_bytes.large_pool.allocated"] == 5 * MIB + 512

    def test_it_goes_on_and_off(self, xp: Any, changes: Changes) -> None:
        try:
            tcuda.caching_allocator_enable(False)
            with changes() as changed:
                xp.empty(1000, "B")
            assert changed["num_device_alloc"] == changed["num_device_free"] == 1
        finally:
            tcuda.caching_allocator_enable()
        xp.empty(1000, "B")
        with changes() as changed:
            xp.empty(1000, "B")
        assert "num_device_alloc" not in changed

    def test_afterwards_it_is_as_it_was_before(self, xp: Any) -> None:
        assert ledger().caching
        with contextlib.suppress(KeyError), caching_allocator_disabled():
            with caching_allocator_disabled():
                assert not ledger().caching
            assert not ledger().caching
            raise KeyError
        assert ledger().caching

    def test_what_was_allocated_before_goes_back_where_it_came_from(self, xp: Any, changes: Changes) -> None:
        cached = xp.empty(1000, "B")
        with caching_allocator_disabled():
            apart = xp.empty(1000, "B")
            with changes() as changed:
                del cached
            assert "num_device_free" not in changed
        with changes() as changed:
            del apart
        assert changed["num_device_free"] == 1

    def test_it_works_for_every_device_and_runs_out_of_memory_as_usual(self, xp: Any, changes: Changes) -> None:
        last = tcuda.device_count() - 1
        with caching_allocator_disabled(), tcuda.device(last):
            with changes(last) as changed:
                kept = xp.ones(1000, "B")
            assert changed["num_device_alloc"] == 1
            with changes(last) as changed, pytest.raises(tcuda.OutOfMemoryError):
                xp.empty(1 << 50, "B")
            assert changed == {"num_alloc_retries": 1, "num_ooms": 1}
            assert int(kept.sum()) == 1000
            del kept

    @pytest.mark.parametrize("name", ["TCUDA_NO_MEMORY_CACHING", "PYTORCH_NO_CUDA_MEMORY_CACHING"])
    def test_an_environment_variable_switches_it_off(self, output_of: OutputOf, name: str) -> None:
        program = """
import tcuda
kept = tcuda.xp.empty(1000, "B")
tcuda.xp.empty(5000, "B")
print(tcuda.memory_reserved())
"""
        assert output_of(program, **{name: "1"}) == "1024"


class TestUsingAgain:
    def test_freed_memory_is_used_again_on_its_stream_without_waiting(self, xp: Any, changes: Changes) -> None:
        side = tcuda.Stream()
        with tcuda.stream(side):
            tcuda._sleep(LONG)
            address = address_of_freed(xp, 3000)
            with changes() as changed:
                assert address_of_freed(xp, 3000) == address
                assert address_of_freed(xp, 2600) == address
        assert not side.query()
        assert not [key for key in changed if key.startswith("num")]
        side.synchronize()

    def test_freed_memory_of_one_stream_is_not_used_on_another(self, xp: Any) -> None:
        kept = xp.empty(3000, "B")  # so that the segment stays
        address = address_of_freed(xp, 3000)
        with tcuda.stream(tcuda.Stream()):
            other = xp.empty(3000, "B")
            assert other.data.ptr != address
            assert segment_of(other.data.ptr)["address"] != segment_of(kept.data.ptr)["address"]
        assert address_of_freed(xp, 3000) == address
        del kept, other

    def test_memory_belongs_to_the_stream_on_which_it_was_allocated_wherever_it_is_freed(self, xp: Any) -> None:
        side = tcuda.Stream()
        array = xp.empty(3000, "B")
        address = array.data.ptr
        with tcuda.stream(side):
            del array
            assert address_of_freed(xp, 3000) != address
        assert address_of_freed(xp, 3000) == address

    def test_neighbours_that_are_free_become_one(self, xp: Any) -> None:
        with tcuda.use_mem_pool(tcuda.MemPool()):
            first, second, third = (xp.empty(1 * KIB, "B") for _ in range(3))
            address = first.data.ptr
            assert (second.data.ptr, third.data.ptr) == (address + 1 * KIB, address + 2 * KIB)
            del first, third
            assert address_of_freed(xp, 2 * KIB) == address + 2 * KIB
            del second
            assert address_of_freed(xp, MIB) == address

    def test_a_recorded_stream_is_waited_for(self, xp: Any) -> None:
        side = tcuda.Stream()
        with tcuda.stream(side):
            tcuda._sleep(LONG)
        array = xp.empty(3000, "B")
        address = array.data.ptr
        tcuda.memory.record_stream(array[5:10], side)
        tcuda.memory.record_stream(array, side)
        tcuda.memory.record_stream(array, tcuda.current_stream())
        del array
        assert address_of_freed(xp, 3000) != address
        side.synchronize()
        assert address_of_freed(xp, 3000) == address

    def test_a_recorded_stream_counts_for_the_memory_and_not_for_what_comes_after_it(
        self, xp: Any, changes: Changes
    ) -> None:
        side = tcuda.Stream()
        array = xp.empty(3000, "B")
        address = array.data.ptr
        tcuda.memory.record_stream(array, side)
        del array
        assert address_of_freed(xp, 3000) == address
        with tcuda.stream(side):
            tcuda._sleep(LONG)
        assert address_of_freed(xp, 3000) == address
        assert not side.query()
        side.synchronize()

    def test_the_stream_of_the_memory_itself_need_not_be_recorded(self, xp: Any) -> None:
        side = tcuda.Stream()
        with tcuda.stream(side):
            tcuda._sleep(LONG)
            array = xp.empty(3000, "B")
            address = array.data.ptr
            tcuda.memory.record_stream(array, side)
            del array
            assert address_of_freed(xp, 3000) == address
        assert not side.query()
        side.synchronize()

    def test_what_cannot_be_recorded_is_refused(self, xp: Any) -> None:
        side = tcuda.Stream()
        with pytest.raises(TypeError, match=r"record_stream\(\) takes an array of tcuda.xp; got list."):
            tcuda.memory.record_stream([1, 2], side)
        kept = xp.empty(1000)
        with pytest.raises(RuntimeError, match="expected stream to be a torch.Stream"):
            tcuda.memory.record_stream(kept, "side")
        tcuda.memory.record_stream(xp.empty((0, 3)), side)
        del kept

    @pytest.mark.gpu
    def test_memory_that_is_not_tcudas_cannot_be_recorded(self, xp: Any) -> None:
        memory = xp.cuda.memory.Memory(1000)
        foreign = xp.ndarray(1000, "B", memptr=xp.cuda.MemoryPointer(memory, 0))
        with pytest.raises(ValueError, match=f"at {memory.ptr:#x}, was not allocated by tcuda"):
            tcuda.memory.record_stream(foreign, tcuda.Stream())


class TestDeadStreams:
    @pytest.fixture
    def handle(self, runtime: Runtime) -> int:
        """A stream that is destroyed by the test."""
        return runtime.streamCreateWithPriority(1, 0)

    @staticmethod
    def destroy(runtime: Runtime, handle: int) -> None:
        """Destroy a stream as a library does that tells tcuda of it."""
        if runtime.name == "cuda":  # of emulated streams the ledger learns by itself
            ledger().stream_about_to_be_destroyed(0, handle)
        runtime.streamDestroy(handle)

    @staticmethod
    def announce(runtime: Runtime, handle: int) -> None:
        """Let tcuda know of a stream."""
        if runtime.name == "cuda":
            ledger().stream_created(0, handle)

    def test_its_arrays_live_on(self, xp: Any, runtime: Runtime, handle: int) -> None:
        self.announce(runtime, handle)
        with tcuda.stream(tcuda.ExternalStream(handle)):
            array = xp.arange(1000)
        self.destroy(runtime, handle)
        assert int(array.sum()) == 499_500
        del array

    def test_its_memory_goes_back_when_it_is_needed(
        self, xp: Any, runtime: Runtime, handle: int, changes: Changes
    ) -> None:
        self.announce(runtime, handle)
        with tcuda.stream(tcuda.ExternalStream(handle)):
            kept, doomed = xp.empty(30 * MIB, "B"), xp.empty(30 * MIB, "B")
        del doomed
        self.destroy(runtime, handle)
        del kept
        with changes() as changed:
            tcuda.empty_cache()
        assert changed["reserved_bytes.all.freed"] >= 60 * MIB

    def test_a_stream_with_the_same_handle_does_not_inherit_it(self, runtime: Runtime, handle: int) -> None:
        self.announce(runtime, handle)
        with raw(1000, stream=handle) as kept:
            with raw(1000, stream=handle) as address:
                pass
            # The driver may give a handle out again, but cannot be made to: the ledger is told that it did.
            ledger().stream_about_to_be_destroyed(0, handle)
            ledger().stream_created(0, handle)
            with raw(1000, stream=handle) as again:
                assert again != address
                assert segment_of(again)["address"] != segment_of(kept)["address"] == segment_of(address)["address"]
        self.destroy(runtime, handle)

    def test_memory_that_a_dead_stream_was_recorded_for_is_free_when_its_work_is_done(
        self, xp: Any, runtime: Runtime, handle: int
    ) -> None:
        self.announce(runtime, handle)
        side, done = tcuda.ExternalStream(handle), tcuda.Event()
        array = xp.empty(3000, "B")
        address = array.data.ptr
        with tcuda.stream(side):
            tcuda._sleep(LONG)
            done.record()
        tcuda.memory.record_stream(array, side)
        self.destroy(runtime, handle)
        del array
        assert address_of_freed(xp, 3000) != address
        assert not done.query()
        done.synchronize()
        assert address_of_freed(xp, 3000) == address
