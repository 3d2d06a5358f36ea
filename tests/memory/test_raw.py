"""Memory without arrays, memory without the cache, and the reuse of freed memory."""

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
    """Allocate memory without an array for a scope, and yield its address."""
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
    """Allocate ``size`` bytes, free them, and return their address."""
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

    def test_a_size_of_0_allocates_nothing(self, runtime: Runtime, changes: Changes) -> None:
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
    def test_a_size_that_is_no_integer_is_refused(self, runtime: Runtime, size: Any) -> None:
        with pytest.raises(TypeError):
            tcuda.caching_allocator_alloc(size)

    def test_memory_comes_from_the_given_or_current_device(self, runtime: Runtime, changes: Changes) -> None:
        last = tcuda.device_count() - 1
        for device in (last, f"cuda:{last}"):
            with changes(last) as changed, raw(1000, device=device) as address:
                assert segment_of(address)["device"] == last
                assert tcuda.current_device() == 0
            assert changed["allocation.all.allocated"] == changed["allocation.all.freed"] == 1
        with tcuda.device(last), raw(1000) as address:
            assert segment_of(address)["device"] == last

    def test_an_invalid_device_is_refused(self, runtime: Runtime) -> None:
        count = tcuda.device_count()
        with pytest.raises(RuntimeError, match=f"Invalid device argument {count}: did you call init"):
            tcuda.caching_allocator_alloc(1000, count)
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
            tcuda.caching_allocator_alloc(1000, "cpu")

    def test_a_stream_may_be_an_object_a_handle_or_none(self, runtime: Runtime) -> None:
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

    def test_without_a_stream_the_current_stream_of_the_device_is_used(self, runtime: Runtime) -> None:
        last = tcuda.device_count() - 1
        side = tcuda.Stream(last)
        with tcuda.stream(side), tcuda.device(0), raw(1000, device=last) as address:
            assert segment_of(address)["stream"] == side.cuda_stream

    @pytest.mark.parametrize("stream", ["default", 1.5, object()])
    def test_an_invalid_stream_is_refused(self, runtime: Runtime, changes: Changes, stream: Any) -> None:
        with changes() as changed, pytest.raises(TypeError, match="Invalid type for stream argument, must be"):
            tcuda.caching_allocator_alloc(1000, stream=stream)
        assert changed == {}


class TestDeleting:
    def test_memory_cannot_be_deleted_twice(self, runtime: Runtime, changes: Changes) -> None:
        address = tcuda.caching_allocator_alloc(1000)
        tcuda.caching_allocator_delete(address)
        with changes() as changed, pytest.raises(RuntimeError, match=NO_POINTER.format(address)):
            tcuda.caching_allocator_delete(address)
        assert changed == {}

    @pytest.mark.parametrize("address", [0x3039, -1, -512, 1 << 64, 1 << 70])
    def test_an_unknown_address_cannot_be_deleted(self, runtime: Runtime, address: int) -> None:
        with pytest.raises(RuntimeError, match=NO_POINTER.format(address)):
            tcuda.caching_allocator_delete(address)

    def test_an_address_inside_a_block_cannot_be_deleted(self, runtime: Runtime, changes: Changes) -> None:
        with raw(2000) as address, changes() as changed:
            for inside in (address + 1, address + 512, address + 2048):
                with pytest.raises(RuntimeError, match=NO_POINTER.format(inside)):
                    tcuda.caching_allocator_delete(inside)
        assert changed == {}

    def test_memory_can_be_deleted_while_another_device_is_current(self, runtime: Runtime, changes: Changes) -> None:
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

    def test_a_large_allocation_counts_in_the_large_pool(self, xp: Any, changes: Changes) -> None:
        with caching_allocator_disabled(), changes() as changed:
            xp.empty(5 * MIB + 1, "B")
        assert changed["segment.large_pool.allocated"] == changed["segment.large_pool.freed"] == 1
        assert changed["reserved_bytes.large_pool.allocated"] == 5 * MIB + 512

    def test_caching_allocator_enable_switches_the_cache(self, xp: Any, changes: Changes) -> None:
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

    def test_the_scope_restores_the_cache_also_after_an_exception(self, xp: Any) -> None:
        assert ledger().caching
        with contextlib.suppress(KeyError), caching_allocator_disabled():
            with caching_allocator_disabled():
                assert not ledger().caching
            assert not ledger().caching
            raise KeyError
        assert ledger().caching

    def test_memory_goes_back_to_the_cache_only_if_it_came_from_it(self, xp: Any, changes: Changes) -> None:
        cached = xp.empty(1000, "B")
        with caching_allocator_disabled():
            apart = xp.empty(1000, "B")
            with changes() as changed:
                del cached
            assert "num_device_free" not in changed
        with changes() as changed:
            del apart
        assert changed["num_device_free"] == 1

    def test_allocations_without_the_cache_on_every_device_may_run_out_of_memory(
        self, xp: Any, changes: Changes
    ) -> None:
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
    def test_an_environment_variable_switches_the_cache_off(self, output_of: OutputOf, name: str) -> None:
        program = """
import tcuda
kept = tcuda.xp.empty(1000, "B")
tcuda.xp.empty(5000, "B")
print(tcuda.memory_reserved())
"""
        assert output_of(program, **{name: "1"}) == "1024"


@pytest.mark.alone
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
        kept = xp.empty(3000, "B")  # keeps the segment
        address = address_of_freed(xp, 3000)
        with tcuda.stream(tcuda.Stream()):
            other = xp.empty(3000, "B")
            assert other.data.ptr != address
            assert segment_of(other.data.ptr)["address"] != segment_of(kept.data.ptr)["address"]
        assert address_of_freed(xp, 3000) == address
        del kept, other

    def test_freed_memory_belongs_to_its_stream_whichever_stream_is_current(self, xp: Any) -> None:
        side = tcuda.Stream()
        array = xp.empty(3000, "B")
        address = array.data.ptr
        with tcuda.stream(side):
            del array
            assert address_of_freed(xp, 3000) != address
        assert address_of_freed(xp, 3000) == address

    def test_free_neighbours_are_merged(self, xp: Any) -> None:
        with tcuda.use_mem_pool(tcuda.MemPool()):
            first, second, third = (xp.empty(1 * KIB, "B") for _ in range(3))
            address = first.data.ptr
            assert (second.data.ptr, third.data.ptr) == (address + 1 * KIB, address + 2 * KIB)
            del first, third
            assert address_of_freed(xp, 2 * KIB) == address + 2 * KIB
            del second
            assert address_of_freed(xp, MIB) == address

    def test_memory_is_not_reused_before_the_recorded_stream_is_done(self, xp: Any) -> None:
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

    def test_a_recorded_stream_does_not_concern_the_next_array_in_the_memory(self, xp: Any, changes: Changes) -> None:
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

    def test_recording_the_stream_of_the_memory_itself_has_no_effect(self, xp: Any) -> None:
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

    def test_record_stream_refuses_other_types(self, xp: Any) -> None:
        side = tcuda.Stream()
        with pytest.raises(TypeError, match=r"record_stream\(\) takes an array of tcuda.xp; got a list\."):
            tcuda.memory.record_stream([1, 2], side)
        kept = xp.empty(1000)
        with pytest.raises(RuntimeError, match="expected stream to be a torch.Stream"):
            tcuda.memory.record_stream(kept, "side")
        tcuda.memory.record_stream(xp.empty((0, 3)), side)
        del kept

    @pytest.mark.gpu
    def test_record_stream_refuses_memory_of_another_allocator(self, xp: Any) -> None:
        memory = xp.cuda.memory.Memory(1000)
        foreign = xp.ndarray(1000, "B", memptr=xp.cuda.MemoryPointer(memory, 0))
        with pytest.raises(ValueError, match=f"at {memory.ptr:#x}, was not allocated by tcuda"):
            tcuda.memory.record_stream(foreign, tcuda.Stream())


class TestDeadStreams:
    @pytest.fixture
    def handle(self, runtime: Runtime) -> int:
        """The handle of a stream that the test destroys."""
        return runtime.streamCreateWithPriority(1, 0)

    @staticmethod
    def destroy(runtime: Runtime, handle: int) -> None:
        """Destroy a stream, and announce the end of the stream to tcuda before."""
        if runtime.name == "cuda":  # emulated streams announce their end themselves
            ledger().stream_about_to_be_destroyed(0, handle)
        runtime.streamDestroy(handle)

    @staticmethod
    def announce(runtime: Runtime, handle: int) -> None:
        """Announce a new stream to tcuda."""
        if runtime.name == "cuda":
            ledger().stream_created(0, handle)

    def test_arrays_of_a_destroyed_stream_keep_their_contents(self, xp: Any, runtime: Runtime, handle: int) -> None:
        self.announce(runtime, handle)
        with tcuda.stream(tcuda.ExternalStream(handle)):
            array = xp.arange(1000)
        runtime.streamSynchronize(handle)
        self.destroy(runtime, handle)
        tcuda.synchronize()  # the default stream does not wait for the work of a destroyed stream
        assert int(array.sum()) == 499_500
        del array

    def test_empty_cache_gives_memory_of_a_destroyed_stream_back(
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

    def test_a_new_stream_with_the_same_handle_does_not_inherit_the_memory(self, runtime: Runtime, handle: int) -> None:
        self.announce(runtime, handle)
        with raw(1000, stream=handle) as kept:
            with raw(1000, stream=handle) as address:
                pass
            # The driver may reuse the handle of a destroyed stream, but a test cannot force it: the ledger is told so.
            ledger().stream_about_to_be_destroyed(0, handle)
            ledger().stream_created(0, handle)
            with raw(1000, stream=handle) as again:
                assert again != address
                assert segment_of(again)["address"] != segment_of(kept)["address"] == segment_of(address)["address"]
        self.destroy(runtime, handle)

    def test_memory_recorded_for_a_destroyed_stream_is_free_when_the_work_is_done(
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
