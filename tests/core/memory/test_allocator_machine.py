"""The allocator against a model heap: blocks never overlap, no byte is lost, and every statistic is right.

The state machine uses its own ledger on the driver of the runtime, so that the model knows every allocation.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import tcuda
from support.examples import examples
from tcuda import _core
from tcuda._backend import backend_of
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIT = 512
SMALL = 1 << 20
ROOM = 256 << 20
PIECE = 16 << 20  # the largest piece of a device as small as this one
MARKED = 1 << 20  # every piece of physical memory has a mark, so that two addresses of one piece are not used at once
LONG = 50_000_000  # cycles of a kernel that outlasts a step of the state machine
FIGURES = ("current", "peak", "allocated", "freed")


class OutOfMemory(Exception):
    pass


def fail_memory(**facts: Any) -> NoReturn:
    raise OutOfMemory(facts)


def fail_driver(status: int, call: str) -> NoReturn:
    raise AssertionError((status, call))


@dataclass
class Figure:
    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def add(self, amount: int) -> None:
        self.current += amount
        self.peak = max(self.peak, self.current)
        if amount >= 0:
            self.allocated += amount
        else:
            self.freed -= amount


@dataclass
class Live:
    requested: int
    size: int
    stream: int
    pool: tuple[int, int]
    mark: int
    used_by: set[int] = field(default_factory=set)

    @property
    def kind(self) -> str:
        return "large_pool" if self.requested > SMALL else "small_pool"  # even if no_split gives a larger block


class Library:
    """A pluggable allocator on the driver of the runtime, which notes frees that do not match an allocation."""

    def __init__(self, runtime: Any) -> None:
        self.given: dict[int, int] = {}
        self._runtime = runtime
        self._allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(
            self.allocate
        )
        self._free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(self.free)
        addresses = (ctypes.cast(each, ctypes.c_void_p).value or 0 for each in (self._allocate, self._free))
        self.source = _core.LibrarySource(*addresses, self)
        self.complaints: list[str] = []

    def allocate(self, size: int, device: int, stream: int | None) -> int | None:
        if sum(self.given.values()) + size > ROOM:
            return None
        address: int = self._runtime.malloc(size)
        self.given[address] = size
        return address

    def free(self, address: int, size: int, device: int, stream: int | None) -> None:
        if self.given.pop(address, None) != size:
            self.complaints.append(f"{address:#x} of {size} bytes was not allocated")
            return
        self._runtime.free(address)


class AllocatorMachine(RuleBasedStateMachine):
    source: ClassVar[str] = "native"
    expandable: ClassVar[bool] = True
    trim_always: ClassVar[bool] = False
    windows: ClassVar[int] = 0  # how often memory that was free got other addresses
    adopted: ClassVar[int] = 0  # how often a stream got its first memory from a destroyed stream

    def __init__(self) -> None:
        super().__init__()
        tcuda.init()
        self.runtime = runtime()
        self.device = self.runtime.getDevice()
        options = _core.Settings()
        options.expandable_segments = self.expandable
        options.trim_always = self.trim_always
        self.ledger = _core.Ledger(
            self.runtime.memoryDriver(), self.runtime.getDeviceCount(), options, fail_memory, fail_driver
        )
        self.library = Library(self.runtime)
        self.native = self.source in ("native", "trimmed", "segments")
        if self.source == "pluggable":
            assert self.ledger.change_source(self.library.source)
        elif not self.native:
            assert self.ledger.change_source(backend_of(self.runtime).memory_source(self.source, self.ledger))
        self.unit = 1 if self.source == "pluggable" else UNIT
        self.set_limit(ROOM)
        self.streams = [0]
        self.ended: list[tuple[int, list[tuple[int, int]]]] = []  # an event behind the last work, and the memory
        # CUDA gives a new stream the handle of a destroyed stream, whose memory is not that of the new stream.
        self.inherited: dict[int, set[tuple[int, int]]] = {}
        for _ in range(2):
            self.add_stream()
        self.pools: list[tuple[int, int]] = []
        self.splitting: set[tuple[int, int]] = set()
        self.live: dict[int, Live] = {}
        self.waiting: dict[int, Live] = {}
        self.figures = {
            name: {pool: Figure() for pool in ("all", "small_pool", "large_pool")}
            for name in ("allocation", "allocated_bytes")
        }
        self.marks = itertools.count(1)
        self.ooms = 0

    def set_limit(self, limit: int) -> None:
        _, total = self.runtime.memGetInfo()
        self.ledger.set_memory_fraction(self.device, limit / total)

    # Rules

    def add_stream(self) -> None:
        stream = self.runtime.streamCreateWithPriority(1, 0)
        self.ledger.stream_created(self.device, stream)
        self.streams.append(stream)
        self.inherited[stream] = self.ranges_of(stream)

    @rule(
        size=st.one_of(st.integers(1, 4096), st.integers(1, 3 << 20), st.integers(1, 48 << 20), st.just(1 << 40)),
        which=st.integers(0, 7),
        pool=st.integers(0, 7),
    )
    def allocate(self, size: int, which: int, pool: int) -> None:
        stream = self.streams[which % len(self.streams)]
        chosen = (0, 0) if pool >= len(self.pools) else self.pools[pool]
        before = self.mappings()
        owned = self.ranges_of(stream) - self.inherited.get(stream, set())
        try:
            if chosen != (0, 0):
                self.ledger.begin_pool(self.device, chosen)
            address = self.ledger.allocate(self.device, size, stream)
        except OutOfMemory:
            self.ooms += 1
            assert size > 1 << 20, "a small allocation must find room"
            return
        finally:
            if chosen != (0, 0):
                self.ledger.end_pool(self.device, chosen)
        assert address not in self.live
        self.waiting.pop(address, None)  # the block was freed in the meantime and is now reused
        unit = UNIT if chosen != (0, 0) else self.unit
        got = self.ledger.size_of(self.device, address)
        assert got >= size
        assert got % unit == 0
        assert got < size + unit or (not self.expandable or chosen != (0, 0)), "more than the rounded request"
        mark = next(self.marks)
        self.live[address] = Live(size, got, stream, chosen, mark)
        self.write(address, got, mark)
        self.count(self.live[address], 1)
        after = self.mappings()
        type(self).windows += after[0] > before[0] and after[1:] == before[1:]
        type(self).adopted += not owned and after == before
        self.no_work_is_left_on(address, got)

    @rule(
        sizes=st.lists(st.integers(1, 6).map(lambda pages: pages << 21), min_size=4, max_size=8),
        which=st.integers(0, 7),
        pool=st.integers(0, 7),
        share=st.integers(4, 8),
    )
    def allocate_where_free_memory_lies_apart(self, sizes: list[int], which: int, pool: int, share: int) -> None:
        if pool < len(self.pools) and self.pools[pool] not in self.splitting:
            return  # every block would be a segment of 20 MiB
        if sum(each.size for each in (*self.live.values(), *self.waiting.values())) > ROOM // 4:
            return  # leaves room for small blocks
        known = set(self.live)
        for size in sizes:
            self.allocate(size, which, pool)
        made = sorted(set(self.live) - known)
        for address in made[::2]:
            self.free(sorted(self.live).index(address))
        if self.native:
            self.set_limit(self.ledger.statistics(self.device)["reserved_bytes.all.current"] + SMALL)
        self.allocate(max(1, sum(sizes[::2]) * share // 8), which, pool)
        self.set_limit(ROOM)

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, 1 << 30))
    def free(self, which: int) -> None:
        address = sorted(self.live)[which % len(self.live)]
        block = self.live.pop(address)
        assert self.read(address, block.size) == {block.mark}, "the block was overwritten"
        assert self.ledger.free(address)
        assert not self.ledger.free(address)
        if block.used_by:
            self.waiting[address] = block
        self.count(block, -1)

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, 1 << 30), stream=st.integers(0, 7), busy=st.booleans())
    def record_stream(self, which: int, stream: int, busy: bool) -> None:
        address = sorted(self.live)[which % len(self.live)]
        chosen = self.streams[stream % len(self.streams)]
        if busy and chosen != 0:
            backend_of(self.runtime).sleep(LONG, chosen)
        assert self.ledger.record_stream(self.device, address, chosen)
        if chosen != self.live[address].stream:
            self.live[address].used_by.add(chosen)

    @rule()
    def synchronize(self) -> None:
        self.runtime.deviceSynchronize()

    @rule()
    def empty_cache(self) -> None:
        self.ledger.empty_cache(self.device)
        assert not self.states("active_pending_free")
        self.waiting.clear()
        if self.native:
            free = [
                segment
                for segment in self.segments()
                if [block["state"] for block in segment["blocks"]] == ["inactive"]
                and segment["segment_pool_id"] == (0, 0)
            ]
            assert all(self.may_be_a_part(segment) for segment in free)

    @staticmethod
    def may_be_a_part(segment: dict[str, Any]) -> bool:
        """Return whether a window may show the rest of the piece that the segment lies in."""
        return segment["segment_type"] == "large" and segment["total_size"] < PIECE

    @precondition(lambda self: len(self.streams) < 6)
    @rule()
    def create_stream(self) -> None:
        self.add_stream()

    @precondition(lambda self: len(self.streams) > 1)
    @rule(which=st.integers(0, 7), busy=st.booleans())
    def destroy_stream(self, which: int, busy: bool) -> None:
        place = 1 + which % (len(self.streams) - 1)
        held = (*self.live.values(), *self.waiting.values())
        if self.source == "cudaMallocAsync" and any(each.stream == self.streams[place] for each in held):
            return  # CuPy frees such memory on the stream of the allocation
        stream = self.streams.pop(place)
        if busy:
            backend_of(self.runtime).sleep(LONG, stream)
        if self.native:
            event = self.runtime.eventCreateWithFlags(2)
            self.runtime.eventRecord(event, stream)
            ranges = self.ranges_of(stream) - self.inherited.pop(stream)
            self.ended.append((event, sorted(ranges)))
        self.ledger.stream_about_to_be_destroyed(self.device, stream)
        self.runtime.streamDestroy(stream)

    @precondition(lambda self: len(self.pools) < 3)
    @rule(library=st.booleans(), split=st.booleans())
    def create_pool(self, library: bool, split: bool) -> None:
        pool = (0, self.ledger.next_pool())
        self.ledger.create_pool(self.device, pool, self.library.source if library else None, split, False)
        self.pools.append(pool)
        if split:
            self.splitting.add(pool)

    @precondition(lambda self: self.pools)
    @rule(which=st.integers(0, 7))
    def release_pool(self, which: int) -> None:
        self.ledger.release_pool(self.device, self.pools.pop(which % len(self.pools)))

    @rule()
    def reset_peaks(self) -> None:
        self.ledger.reset_peaks(self.device)
        for figure in self.each_figure():
            figure.peak = figure.current

    @rule()
    def reset_accumulated(self) -> None:
        self.ledger.reset_accumulated(self.device)
        self.ooms = 0
        for figure in self.each_figure():
            figure.allocated = figure.freed = 0

    @rule(sizes=st.lists(st.integers(1, 8 << 20), min_size=1, max_size=4), busy=st.booleans())
    def use_memory_on_a_stream_that_comes_and_goes(self, sizes: list[int], busy: bool) -> None:
        self.add_stream()
        place = len(self.streams) - 1
        known = set(self.live)
        for size in sizes:
            self.allocate(size, place, 7)
        for address in sorted(set(self.live) - known):
            self.free(sorted(self.live).index(address))
        self.destroy_stream(place - 1, busy)

    # Invariants

    @invariant()
    def the_memory_of_a_stream_is_in_segments_of_the_stream(self) -> None:
        if not self.native:
            return
        for segment in self.segments():
            for block in segment["blocks"]:
                live = self.live.get(block["address"]) if block["state"] == "active_allocated" else None
                assert live is None or segment["stream"] == live.stream

    @invariant()
    def the_statistics_are_those_of_the_shadow(self) -> None:
        statistics = self.ledger.statistics(self.device)
        for name, pools in self.figures.items():
            for pool, figure in pools.items():
                found = Figure(*(statistics[f"{name}.{pool}.{each}"] for each in FIGURES))
                assert found == figure, (name, pool)
        assert statistics["num_ooms"] == self.ooms
        awaiting = self.states("active_pending_free")
        assert {block["address"] for block in awaiting} <= set(self.waiting)
        held_back = sum(block["size"] for block in awaiting)
        allocated = statistics["allocated_bytes.all.current"]
        assert statistics["active_bytes.all.current"] == allocated + held_back
        assert statistics["active.all.current"] == len(self.live) + len(awaiting)
        requested = sum(block.requested for block in self.live.values())
        assert statistics["requested_bytes.all.current"] == requested + sum(each["requested_size"] for each in awaiting)

    @invariant()
    def the_snapshot_has_every_byte_once(self) -> None:
        statistics = self.ledger.statistics(self.device)
        end = 0
        seen = {}
        for segment in self.segments():
            assert segment["address"] >= end, "segments overlap"
            end = segment["address"]
            for block in segment["blocks"]:
                assert block["address"] == end
                end += block["size"]
                if block["state"] == "active_allocated":
                    seen[block["address"]] = (block["size"], block["requested_size"], segment["segment_pool_id"])
            assert end == segment["address"] + segment["total_size"]
        assert seen == {address: (live.size, live.requested, live.pool) for address, live in self.live.items()}
        if self.source == "cudaMallocAsync":
            return
        for pool in ("all", "small_pool", "large_pool"):
            of_pool = [each for each in self.segments() if pool == "all" or f"{each['segment_type']}_pool" == pool]
            assert statistics[f"reserved_bytes.{pool}.current"] == sum(each["total_size"] for each in of_pool)
            assert statistics[f"segment.{pool}.current"] == len(of_pool)
            if self.native:
                split = [
                    block["size"]
                    for segment in of_pool
                    for block in segment["blocks"]
                    if block["state"] == "inactive" and len(segment["blocks"]) > 1
                ]
                assert statistics[f"inactive_split.{pool}.current"] == len(split)
                assert statistics[f"inactive_split_bytes.{pool}.current"] == sum(split)
        assert statistics["reserved_bytes.all.current"] <= ROOM

    def teardown(self) -> None:
        for stream in self.streams[1:]:
            self.runtime.streamSynchronize(stream)
        while self.live:
            self.free(0)
        while self.pools:
            self.release_pool(0)
        self.ledger.empty_cache(self.device)
        statistics = self.ledger.statistics(self.device)
        assert statistics["active.all.current"] == 0
        assert statistics["reserved_bytes.all.current"] == 0
        assert not self.library.given
        assert not self.library.complaints
        for stream in self.streams[1:]:
            self.ledger.stream_about_to_be_destroyed(self.device, stream)
            self.runtime.streamDestroy(stream)

        for event, _ in self.ended:
            self.runtime.eventDestroy(event)

    # Helpers

    def no_work_is_left_on(self, address: int, size: int) -> None:
        ended, self.ended = self.ended, []
        for event, ranges in ended:
            if self.runtime.eventQuery(event) == 0:
                self.runtime.eventDestroy(event)
            else:
                self.ended.append((event, ranges))
        for _, ranges in self.ended:
            for begin, length in ranges:
                assert address + size <= begin or begin + length <= address, "a destroyed stream uses the memory"

    def count(self, block: Live, sign: int) -> None:
        for pool in ("all", block.kind):
            self.figures["allocation"][pool].add(sign)
            self.figures["allocated_bytes"][pool].add(sign * block.size)

    def each_figure(self) -> Iterator[Figure]:
        for pools in self.figures.values():
            yield from pools.values()

    def segments(self) -> list[dict[str, Any]]:
        segments, _ = self.ledger.snapshot(None, False)
        return [segment for segment in segments if segment["device"] == self.device]

    def ranges_of(self, stream: int) -> set[tuple[int, int]]:
        """Return the address and the size of each segment of the streams with this handle."""
        return {(each["address"], each["total_size"]) for each in self.segments() if each["stream"] == stream}

    def states(self, state: str) -> list[dict[str, Any]]:
        return [block for segment in self.segments() for block in segment["blocks"] if block["state"] == state]

    def mappings(self) -> tuple[int, int, int]:
        statistics = self.ledger.statistics(self.device)
        allocated, freed = statistics["num_device_alloc"], statistics["num_device_free"]
        return allocated, freed, statistics["reserved_bytes.all.current"]

    def write(self, address: int, size: int, mark: int) -> None:
        data = ctypes.create_string_buffer(struct.pack("<I", mark), 4)
        for at in self.marked(address, size):
            self.runtime.memcpy(at, ctypes.addressof(data), min(size, 4), 4)

    def read(self, address: int, size: int) -> set[int]:
        found = set()
        for at in self.marked(address, size):
            data = ctypes.create_string_buffer(4)
            self.runtime.memcpy(ctypes.addressof(data), at, min(size, 4), 4)
            found.add(struct.unpack("<I", data.raw)[0])
        return found

    @staticmethod
    def marked(address: int, size: int) -> list[int]:
        last = max(size - 4, 0) // 4 * 4  # marks of four bytes that do not overlap
        return [*range(address, address + last, MARKED), address + last]


SOURCES = ("native", "trimmed", "segments", "cupy", "cudaMallocAsync", "pluggable")


@pytest.mark.parametrize("source", SOURCES)
def test_random_calls_keep_blocks_apart_and_statistics_right(source: str) -> None:
    chosen = {"source": source, "expandable": source != "segments", "trim_always": source == "trimmed"}
    chosen |= {"windows": 0, "adopted": 0}
    machine: Any = type("Machine", (AllocatorMachine,), chosen)
    case = machine.TestCase
    case.settings = settings(
        max_examples=examples(40),
        stateful_step_count=60,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    case("runTest").runTest()
    tcuda.synchronize()
    assert (machine.windows > 10) == (source == "native"), "free memory has got other addresses"
    if source in ("native", "trimmed", "segments"):
        assert machine.adopted > 10, "streams have got memory of destroyed streams"
