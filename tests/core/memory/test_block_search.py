"""Blocks that are found by addresses inside of them."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime
    from tcuda.emulation.runtime import EmulatedRuntime

KIB, MIB = 1 << 10, 1 << 20
SIZES = (300, 2 * KIB, 40 * KIB, 700 * KIB, 3 * MIB)


def fail(*_: object, **__: object) -> NoReturn:
    raise AssertionError


class Program:
    """Random allocations on three streams of a ledger."""

    def __init__(self, runtime: Runtime, *, expandable: bool) -> None:
        options = _core.Settings()
        options.expandable_segments = expandable
        self.ledger = _core.Ledger(runtime.memoryDriver(), runtime.getDeviceCount(), options, fail, fail)
        self.runtime = runtime
        self.expandable = expandable
        self.chosen = random.Random(7)
        self.streams = [runtime.streamCreateWithPriority(1, 0) for _ in range(3)]
        for stream in self.streams:
            self.ledger.stream_created(0, stream)
        self.live: dict[int, int] = {}

    def take(self, count: int) -> None:
        for _ in range(count):
            size = self.chosen.choice(SIZES)
            self.live[self.ledger.allocate(0, size, self.chosen.choice(self.streams))] = size

    def free(self, count: int) -> None:
        for address in self.chosen.sample(sorted(self.live), count):
            del self.live[address]
            assert self.ledger.free(address)

    def close(self) -> None:
        self.free(len(self.live))
        for stream in self.streams:
            self.ledger.stream_about_to_be_destroyed(0, stream)
            self.runtime.streamDestroy(stream)
        self.runtime.deviceSynchronize()
        self.ledger.empty_cache(0)

    def segments(self) -> list[dict[str, Any]]:
        found, _ = self.ledger.snapshot(None, False)
        return sorted(found, key=lambda segment: segment["address"])

    def blocks(self) -> Iterator[tuple[int, int, bool]]:
        for segment in self.segments():
            for block in segment["blocks"]:
                yield block["address"], block["size"], block["state"] == "active_allocated"


@pytest.fixture(params=[True, False], ids=["expandable", "segments"])
def program(runtime: Runtime, request: pytest.FixtureRequest) -> Iterator[Program]:
    made = Program(runtime, expandable=request.param)
    yield made
    made.close()


def turns(program: Program) -> Iterator[None]:
    """Change the blocks of a program again and again."""
    for turn in range(12):
        program.take(60)
        program.free(45 if turn % 3 else 60)
        if turn % 4 == 3:
            program.runtime.deviceSynchronize()
            program.ledger.empty_cache(0)
        yield


def test_each_block_is_found_by_the_addresses_in_it(program: Program) -> None:
    for _ in turns(program):
        blocks = list(program.blocks())
        assert {begin for begin, _, allocated in blocks if allocated} == program.live.keys()
        program.chosen.shuffle(blocks)
        for begin, size, allocated in blocks:
            for address in (begin + size // 2, begin, begin + size - 1):
                found = program.ledger.block_at(0, address)
                assert found is not None
                assert (found[0], found[2], found[3]) == (begin, size, allocated)
                assert found[1] == program.live.get(begin, 0)


def test_addresses_without_memory_have_no_block(program: Program) -> None:
    program.take(100)
    ends = {segment["address"] + segment["total_size"] for segment in program.segments()}
    begins = {segment["address"] for segment in program.segments()}
    for address in (*(ends - begins), 0, 1, 2**64 - 1):
        assert program.ledger.block_at(0, address) is None
    program.free(100)
    addresses = [segment["address"] + 1 for segment in program.segments()]
    program.runtime.deviceSynchronize()
    program.ledger.empty_cache(0)
    assert [program.ledger.block_at(0, address) for address in addresses] == len(addresses) * [None]


@pytest.mark.emulated
def test_a_device_knows_the_ends_of_its_mapped_memory(program: Program, runtime: EmulatedRuntime) -> None:
    for _ in turns(program):
        segments = [(each["address"], each["address"] + each["total_size"]) for each in program.segments()]
        mapped: list[tuple[int, int]] = []
        for begin, end in segments:
            if mapped and mapped[-1][1] == begin:
                mapped[-1] = mapped[-1][0], end
            else:
                mapped.append((begin, end))
        if not program.expandable:
            mapped = segments
        for begin, end in mapped:
            for address in (begin, (begin + end) // 2, end - 1):
                assert runtime.memoryAt(address) == (0, begin, end)
        for (_, end), (begin, _) in itertools.pairwise(mapped):
            assert runtime.memoryAt(end) is None or end == begin
