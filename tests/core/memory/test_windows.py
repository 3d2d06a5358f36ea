"""Near the limit, free memory that lies apart gets second addresses, by a window, and serves one large request."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

import tcuda
from support.peer import Peer, read, write
from tcuda import _core
from tcuda._backend import backend_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime

KIB, MIB = 1 << 10, 1 << 20
PIECE = 2 * MIB  # memory comes in such pieces where the limit is low
BLOCK = 8 * PIECE
LONG = 400_000_000


class Refused(Exception):
    pass


def fail(*_: object, **__: object) -> NoReturn:
    raise Refused


class Program:
    """Allocations on a stream of a ledger."""

    def __init__(self, runtime: Runtime, *, trim_always: bool = False) -> None:
        options = _core.Settings()
        options.trim_always = trim_always
        self.runtime = runtime
        self.ledger = _core.Ledger(runtime.memoryDriver(), runtime.getDeviceCount(), options, fail, fail)
        self.stream, self.other = (runtime.streamCreateWithPriority(1, 0) for _ in range(2))
        for stream in (self.stream, self.other):
            self.ledger.stream_created(0, stream)

    def close(self) -> None:
        for stream in (self.stream, self.other):
            self.runtime.streamSynchronize(stream)
            self.ledger.stream_about_to_be_destroyed(0, stream)
            self.runtime.streamDestroy(stream)

    def renew(self) -> None:
        """Destroy the stream and make a new one."""
        self.runtime.streamSynchronize(self.stream)
        self.ledger.stream_about_to_be_destroyed(0, self.stream)
        self.runtime.streamDestroy(self.stream)
        self.stream = self.runtime.streamCreateWithPriority(1, 0)
        self.ledger.stream_created(0, self.stream)

    def take(self, size: int) -> int:
        address: int = self.ledger.allocate(0, size, self.stream)
        return address

    def free(self, *addresses: int) -> None:
        for address in addresses:
            assert self.ledger.free(address)

    def keep_busy(self, stream: int) -> None:
        backend_of(self.runtime).sleep(LONG, stream)

    def is_busy(self, stream: int) -> bool:
        return self.runtime.streamQuery(stream) != 0

    def limit(self, size: int | None) -> None:
        """Set the most memory that the ledger may hold; None for no limit."""
        _, total = self.runtime.memGetInfo()
        self.ledger.set_memory_fraction(0, 1.0 if size is None else (size + 512) / total)

    def figures(self) -> dict[str, int]:
        return self.ledger.statistics(0)

    def reserved(self) -> int:
        return self.figures()["reserved_bytes.all.current"]

    def calls(self) -> int:
        """Return how often the driver mapped and unmapped memory."""
        figures = self.figures()
        return figures["num_device_alloc"] + figures["num_device_free"]


@pytest.fixture
def program(runtime: Runtime) -> Iterator[Program]:
    made = Program(runtime)
    backend_of(runtime).sleep(1, made.stream)  # loads the kernel
    runtime.deviceSynchronize()
    yield made
    made.close()


@pytest.fixture
def blocks(program: Program) -> list[int]:
    """Four blocks side by side, each of eight pieces. The limit leaves room for one more."""
    program.limit(4 * BLOCK)
    made = [program.take(BLOCK) for _ in range(4)]
    assert [after - before for before, after in itertools.pairwise(made)] == [BLOCK] * 3
    assert program.reserved() == 4 * BLOCK
    program.limit(5 * BLOCK)
    return made


class TestAWindow:
    def test_serves_a_request_without_new_memory(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        reserved = program.reserved()
        window = program.take(2 * BLOCK)
        assert program.reserved() == reserved
        assert window not in range(blocks[0], blocks[3] + BLOCK)

    def test_shows_the_memory_of_its_pieces(self, program: Program, blocks: list[int]) -> None:
        for number, address in enumerate(blocks):
            write(program.runtime, address, bytes([number + 1] * 8))
        program.free(blocks[0], blocks[2])
        window = program.take(2 * BLOCK)
        assert read(program.runtime, window, 8) == bytes([1] * 8)
        assert read(program.runtime, window + BLOCK, 8) == bytes([3] * 8)
        write(program.runtime, window, bytes([9] * 8))
        assert [read(program.runtime, address, 1)[0] for address in (blocks[1], blocks[3])] == [2, 4]

    @pytest.mark.alone
    def test_waits_for_nothing(self, program: Program, blocks: list[int]) -> None:
        program.keep_busy(program.stream)
        program.free(blocks[0], blocks[2])
        reserved = program.reserved()
        program.free(program.take(2 * BLOCK))
        assert program.reserved() == reserved
        assert program.is_busy(program.stream)

    def test_opens_again_without_a_call_of_the_driver(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        window = program.take(2 * BLOCK)
        program.free(window)
        calls = program.calls()
        assert program.take(2 * BLOCK - 1000) == window
        assert program.calls() == calls

    def test_takes_its_pieces_away_from_home_and_brings_them_back(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        window = program.take(2 * BLOCK)
        new = program.take(BLOCK)
        assert new not in (blocks[0], blocks[2])
        program.free(window)
        assert {program.take(BLOCK), program.take(BLOCK)} == {blocks[0], blocks[2]}

    def test_stays_open_until_its_last_block_is_free(self, program: Program, blocks: list[int]) -> None:
        program.limit(8 * BLOCK)
        blocks += [program.take(BLOCK) for _ in range(4)]
        program.limit(9 * BLOCK)
        program.free(*blocks[::2])
        program.free(program.take(4 * BLOCK))
        first = program.take(BLOCK + 8 * MIB)  # all pieces but the outer ones are shown as a whole
        second = program.take(6 * MIB)
        assert second == first + BLOCK + 8 * MIB
        program.free(first)
        again = program.take(BLOCK)
        assert again == first
        program.free(second, again)
        assert {program.take(BLOCK) for _ in range(4)} == set(blocks[::2])

    def test_begins_with_the_end_of_a_piece_and_ends_with_the_begin_of_another(
        self, program: Program, blocks: list[int]
    ) -> None:
        program.free(blocks[2])
        begin, behind = program.take(5 * MIB), program.take(11 * MIB)
        assert (begin, behind) == (blocks[2], blocks[2] + 5 * MIB)
        program.free(blocks[0])
        assert program.take(11 * MIB) == blocks[0]
        write(program.runtime, blocks[0] + 11 * MIB, b"end")
        write(program.runtime, begin, b"begin")
        program.free(begin)
        program.limit(4 * BLOCK)
        window = program.take(10 * MIB)
        assert program.reserved() == 4 * BLOCK
        assert read(program.runtime, window, 3) == b"end"
        assert read(program.runtime, window + 5 * MIB, 5) == b"begin"

    def test_joins_two_free_blocks_that_are_smaller_than_a_piece(self, program: Program) -> None:
        program.limit(4 * PIECE)
        sizes = [1280 * KIB, 1536 * KIB, 1280 * KIB, 1536 * KIB, 1152 * KIB]
        blocks = [program.take(size) for size in sizes]
        program.free(blocks.pop(3))  # the start of the third piece; the end of the fourth piece is free too
        assert program.reserved() == 4 * PIECE
        window = program.take(2560 * KIB)
        assert window not in range(blocks[0], blocks[0] + 4 * PIECE)
        assert program.reserved() == 4 * PIECE
        program.free(window, *blocks)

    def test_begins_with_no_memory_from_the_middle_of_the_last_piece(self, program: Program) -> None:
        program.limit(4 * PIECE)
        first, _, third, last = (program.take(size) for size in (1280 * KIB, 4352 * KIB, 1280 * KIB, 1280 * KIB))
        assert last + 1280 * KIB == first + 4 * PIECE
        program.free(third)
        assert program.take(1152 * KIB) == third  # 128 KiB are free before the last block
        program.free(first)
        program.limit(5 * PIECE)
        calls = program.calls()
        program.take(1408 * KIB)
        assert program.calls() == calls + 1

    def test_opens_with_as_much_of_its_outer_pieces_as_a_request_needs(
        self, program: Program, blocks: list[int]
    ) -> None:
        program.free(blocks[0], blocks[2])
        program.free(program.take(2 * BLOCK))
        calls = program.calls()
        window = program.take(2 * BLOCK - 1536 * KIB)
        rest = program.take(1536 * KIB)
        assert program.calls() == calls
        assert rest == blocks[2] + BLOCK - 1536 * KIB
        write(program.runtime, rest, b"rest")
        write(program.runtime, window, bytes(2 * BLOCK - 1536 * KIB))
        assert read(program.runtime, rest, 4) == b"rest"
        program.free(window, rest)
        assert {program.take(BLOCK), program.take(BLOCK)} == {blocks[0], blocks[2]}

    def test_never_shows_both_ends_of_one_piece(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[1])
        sizes = 6 * MIB + 400 * KIB, 1200 * KIB, BLOCK - 6 * MIB - 1600 * KIB
        parts = [program.take(size) for size in sizes]
        assert parts == [blocks[1], blocks[1] + sizes[0], blocks[1] + sizes[0] + sizes[1]]
        program.free(parts[0], parts[2])
        program.limit(5 * BLOCK - PIECE)
        program.take(14 * MIB + 600 * KIB)  # all free memory of the block would be enough
        assert program.reserved() > 4 * BLOCK

    def test_whose_memory_is_in_use_in_part_is_not_unmapped(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        window = program.take(2 * BLOCK - 1536 * KIB)  # the end of the last piece is free at home
        program.runtime.deviceSynchronize()
        reserved = program.reserved()
        program.ledger.empty_cache(0)
        assert program.reserved() == reserved
        write(program.runtime, window, bytes(2 * BLOCK - 1536 * KIB))

    def test_is_made_of_free_and_new_memory_if_free_memory_is_not_enough(
        self, program: Program, blocks: list[int]
    ) -> None:
        program.free(blocks[0], blocks[2])
        reserved = program.reserved()
        program.take(3 * BLOCK)
        assert program.reserved() == reserved + BLOCK

    def test_gets_new_memory_only_where_all_of_it_has_room(self, program: Program) -> None:
        program.limit(40 * MIB)
        before, between, behind = (program.take(size) for size in (15 * MIB, 10 * MIB, 15 * MIB))
        assert (between, behind) == (before + 15 * MIB, before + 25 * MIB)
        write(program.runtime, behind, b"behind")
        program.free(between)
        program.runtime.deviceSynchronize()
        program.ledger.empty_cache(0)
        assert program.reserved() == 32 * MIB  # 1 MiB is free on each side of the 8 MiB that went back
        program.limit(42 * MIB)
        window = program.take(10 * MIB + 512 * KIB)
        assert program.reserved() == 42 * MIB
        write(program.runtime, window, bytes(10 * MIB + 512 * KIB))
        assert read(program.runtime, behind, 6) == b"behind"

    def test_is_a_segment_of_the_snapshot_while_it_is_open(self, program: Program, blocks: list[int]) -> None:
        def segments() -> list[tuple[int, int]]:
            found, _ = program.ledger.snapshot(None, False)
            return sorted((each["address"], each["total_size"]) for each in found)

        program.free(blocks[0], blocks[2])
        closed = segments()
        window = program.take(2 * BLOCK)
        assert segments() == sorted([(window, 2 * BLOCK), (blocks[1], BLOCK), (blocks[3], BLOCK)])
        program.free(window)
        assert segments() == closed == [(blocks[0], 4 * BLOCK)]

    def test_is_unmapped_when_its_memory_goes_back(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        program.free(program.take(2 * BLOCK))
        program.ledger.empty_cache(0)
        assert program.reserved() == 2 * BLOCK
        program.free(blocks[1], blocks[3])
        program.ledger.empty_cache(0)
        figures = program.figures()
        assert program.reserved() == 0
        assert figures["num_device_free"] == figures["num_device_alloc"]

    @pytest.mark.alone
    def test_in_use_stays_when_only_other_parts_of_its_pieces_go_back(self, program: Program) -> None:
        program.limit(30 * PIECE)
        program.free(program.take(30 * PIECE))
        program.renew()  # the new stream gets the memory, and the last 8 MiB and 256 KiB stay unused
        sizes = 1280 * KIB, 16 * MIB + 768 * KIB, 16 * MIB, 16 * MIB + 512 * KIB, 1280 * KIB
        _, first, _, second, _ = (program.take(size) for size in sizes)
        program.free(first, second)
        window = program.take(33 * MIB + 256 * KIB)  # ends with 512 KiB of the piece that the last block is in
        assert program.reserved() == 30 * PIECE
        program.keep_busy(program.stream)
        program.free(window)
        program.limit(100 * PIECE)
        unmapped = program.figures()["num_device_free"]
        program.ledger.allocate(0, 10 * PIECE, program.other)
        assert program.figures()["num_device_free"] == unmapped + 4
        assert program.is_busy(program.stream)

    def test_that_is_open_keeps_its_memory(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        window = program.take(2 * BLOCK)
        write(program.runtime, window, b"contents")
        program.ledger.empty_cache(0)
        assert program.reserved() == 4 * BLOCK
        assert read(program.runtime, window, 8) == b"contents"


@pytest.mark.emulated  # the test takes all memory of the device, which other tests need
def test_a_device_without_memory_has_windows_without_a_limit(program: Program, blocks: list[int]) -> None:
    program.limit(None)
    program.free(blocks[0], blocks[2])
    free, _ = program.runtime.memGetInfo()
    beside = program.runtime.malloc(free - BLOCK)
    window = program.take(2 * BLOCK)
    program.runtime.free(beside)
    assert program.reserved() == 4 * BLOCK
    assert window not in range(blocks[0], blocks[3] + BLOCK)


class TestWhatHasNoWindow:
    def test_a_program_with_plenty_of_memory(self, program: Program, blocks: list[int]) -> None:
        program.limit(8 * BLOCK)
        program.free(blocks[0], blocks[2])
        assert program.take(2 * BLOCK) == blocks[3] + BLOCK

    @pytest.mark.alone
    def test_memory_that_another_stream_uses(self, program: Program, blocks: list[int]) -> None:
        program.keep_busy(program.other)
        assert program.ledger.record_stream(0, blocks[0], program.other)
        program.free(blocks[0], blocks[2])
        reserved = program.reserved()
        program.take(2 * BLOCK)
        assert program.is_busy(program.other)
        assert program.reserved() > reserved

    def test_memory_of_another_stream(self, program: Program, blocks: list[int]) -> None:
        program.limit(6 * BLOCK)
        program.free(blocks[0], blocks[2])
        reserved = program.reserved()
        program.ledger.allocate(0, 2 * BLOCK, program.other)
        assert program.reserved() == reserved + 2 * BLOCK

    def test_a_program_that_always_trims(self, runtime: Runtime) -> None:
        program = Program(runtime, trim_always=True)
        program.limit(4 * BLOCK)
        blocks = [program.take(BLOCK) for _ in range(4)]
        runtime.deviceSynchronize()
        program.free(blocks[0], blocks[2])
        freed = program.figures()["num_device_free"]
        program.take(2 * BLOCK)
        assert program.figures()["num_device_free"] == freed + 2 * BLOCK // PIECE
        program.close()

    @pytest.mark.wings
    def test_memory_that_a_race_detector_watches(self, program: Program, blocks: list[int]) -> None:
        detector = _core.RaceDetector(fail)
        program.free(blocks[0], blocks[2])
        window = program.take(2 * BLOCK)
        detector.attach(program.ledger)
        program.free(window)
        program.limit(6 * BLOCK)
        reserved = program.reserved()
        program.free(program.take(2 * BLOCK))
        assert program.reserved() == reserved + 2 * BLOCK
        detector.detach()

    def test_the_pool_of_a_graph(self, runtime: Runtime) -> None:
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            blocks = [tcuda.xp.empty(BLOCK, "B") for _ in range(4)]
            del blocks[2], blocks[0]
            reserved = tcuda.memory_reserved()
            kept = tcuda.xp.zeros(2 * BLOCK, "B")
            assert tcuda.memory_reserved() > reserved
        del kept
        graph.reset()


def test_another_process_opens_the_memory_of_a_window(program: Program, blocks: list[int]) -> None:
    with Peer() as peer:
        peer.value("globals().update(ledger=new_ledger())")
        numbers = []
        for freed in ((0, 2), (1, 3)):
            program.free(*(blocks[number] for number in freed))
            window = program.take(2 * BLOCK)
            content = bytes([freed[0] + 1] * 4), bytes([freed[1] + 1] * 4)
            for at, bytes_ in zip((0, BLOCK), content, strict=True):
                write(program.runtime, window + at, bytes_)
            found: Any = program.ledger.sharing_of(0, window)
            assert [piece for piece, _ in found[3]] == list(range(window, window + 2 * BLOCK, PIECE))
            numbers.append(found[5])
            for piece, _ in found[3]:
                peer.give(program.ledger.export_piece(0, piece))
            address = peer.value(f"ledger.import_pieces(0, [(take(), {PIECE}) for _ in range({2 * BLOCK // PIECE})])")
            assert peer.value(f"read(r, {address}, 4), read(r, {address + BLOCK}, 4)") == content
            program.free(window)
            for number in freed:
                assert program.take(BLOCK) in (blocks[freed[0]], blocks[freed[1]]), number
        assert numbers[1] > numbers[0]


class TestTheBound:
    """A stream has at most 512 windows."""

    @pytest.fixture
    def full(self, program: Program) -> list[int]:
        """Blocks of one piece each, at the limit. All windows are made that show three of them, until there are 512."""
        program.limit(16 * PIECE)
        blocks = [program.take(PIECE) for _ in range(16)]
        for place, chosen in enumerate(self.triples()):
            if place == 512:
                break
            self.show(program, [blocks[number] for number in chosen])
        assert program.reserved() == 16 * PIECE
        program.limit(25 * PIECE)  # less than what the program would take at leisure
        return blocks

    @staticmethod
    def triples() -> Iterator[tuple[int, ...]]:
        """Return three numbers that are not all neighbours."""
        return (each for each in itertools.combinations(range(16), 3) if each[2] - each[0] > 2)

    @staticmethod
    def show(program: Program, blocks: list[int]) -> None:
        """Make a window that shows three blocks."""
        program.free(*blocks)
        program.free(program.take(3 * PIECE))
        assert {program.take(PIECE) for _ in blocks} == set(blocks)

    def next(self, blocks: list[int]) -> list[int]:
        return [blocks[number] for number in next(itertools.islice(self.triples(), 512, None))]

    def test_an_idle_stream_loses_the_windows_that_were_not_used_for_longest(
        self, program: Program, full: list[int]
    ) -> None:
        program.runtime.streamSynchronize(program.stream)
        freed = program.figures()["num_device_free"]
        self.show(program, self.next(full))
        assert program.figures()["num_device_free"] == freed + 3 * 256
        calls = program.calls()
        self.show(program, [full[number] for number in next(itertools.islice(self.triples(), 511, None))])
        assert program.calls() == calls
        assert program.reserved() == 16 * PIECE

    @pytest.mark.eager  # with the late schedule, another function asks
    @pytest.mark.emulated  # the question to the driver is a function of Python
    def test_memory_that_comes_free_during_the_question_needs_no_window(
        self, program: Program, full: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from tcuda.emulation.runtime.driver_streams import DriverStreams

        chosen = self.next(full)
        left = [block for block in full if block not in chosen]
        query = DriverStreams.query_stream

        def free_meanwhile(streams: DriverStreams, device: int, stream: int) -> int:
            program.free(*left)
            left.clear()
            return query(streams, device, stream)

        program.runtime.streamSynchronize(program.stream)
        program.free(*chosen)
        monkeypatch.setattr(DriverStreams, "query_stream", free_meanwhile)
        mapped = program.figures()["num_device_alloc"]
        assert program.take(3 * PIECE) == full[0]
        assert not left
        assert program.figures()["num_device_alloc"] == mapped

    def test_a_busy_stream_gets_new_memory(self, program: Program, full: list[int]) -> None:
        program.keep_busy(program.stream)
        freed = program.figures()["num_device_free"]
        program.free(*self.next(full))
        program.take(3 * PIECE)
        assert program.figures()["num_device_free"] == freed
        assert program.reserved() > 16 * PIECE
        assert program.is_busy(program.stream)
