"""Free memory that lies apart gets second addresses, by a window, and serves one large request."""

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

MIB = 1 << 20
PIECE = 16 * MIB
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
    """Four blocks side by side, each of one piece."""
    made = [program.take(PIECE) for _ in range(4)]
    assert [after - before for before, after in itertools.pairwise(made)] == [PIECE] * 3
    return made


class TestAWindow:
    def test_serves_a_request_without_new_memory(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        reserved = program.reserved()
        window = program.take(2 * PIECE)
        assert program.reserved() == reserved
        assert window not in range(blocks[0], blocks[3] + PIECE)

    def test_shows_the_memory_of_its_pieces(self, program: Program, blocks: list[int]) -> None:
        for number, address in enumerate(blocks):
            write(program.runtime, address, bytes([number + 1] * 8))
        program.free(blocks[0], blocks[2])
        window = program.take(2 * PIECE)
        assert read(program.runtime, window, 8) == bytes([1] * 8)
        assert read(program.runtime, window + PIECE, 8) == bytes([3] * 8)
        write(program.runtime, window, bytes([9] * 8))
        assert [read(program.runtime, address, 1)[0] for address in (blocks[1], blocks[3])] == [2, 4]

    @pytest.mark.alone
    def test_waits_for_nothing(self, program: Program, blocks: list[int]) -> None:
        program.keep_busy(program.stream)
        program.free(blocks[0], blocks[2])
        reserved = program.reserved()
        program.free(program.take(2 * PIECE))
        assert program.reserved() == reserved
        assert program.is_busy(program.stream)

    def test_opens_again_without_a_call_of_the_driver(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        window = program.take(2 * PIECE)
        program.free(window)
        calls = program.calls()
        assert program.take(2 * PIECE - 1000) == window
        assert program.calls() == calls

    def test_takes_its_pieces_away_from_home_and_brings_them_back(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        window = program.take(2 * PIECE)
        new = program.take(PIECE)
        assert new not in (blocks[0], blocks[2])
        program.free(window)
        assert {program.take(PIECE), program.take(PIECE)} == {blocks[0], blocks[2]}

    def test_stays_open_until_its_last_block_is_free(self, program: Program, blocks: list[int]) -> None:
        blocks += [program.take(PIECE) for _ in range(4)]
        program.free(*blocks[::2])
        program.free(program.take(4 * PIECE))
        first = program.take(PIECE + 8 * MIB)  # the two inner pieces are shown as a whole
        second = program.take(6 * MIB)
        assert second == first + PIECE + 8 * MIB
        program.free(first)
        again = program.take(PIECE)
        assert again == first
        program.free(second, again)
        assert {program.take(PIECE) for _ in range(4)} == set(blocks[::2])

    def test_begins_with_the_end_of_a_piece_and_ends_with_the_begin_of_another(
        self, program: Program, blocks: list[int]
    ) -> None:
        program.free(blocks[0], blocks[2])
        ends = program.take(PIECE - 6 * MIB), program.take(PIECE - 4 * MIB)  # leave the ends of two pieces free
        assert set(ends) == {blocks[0], blocks[2]}
        program.free(blocks[3])
        reserved = program.reserved()
        write(program.runtime, ends[0] + PIECE - 6 * MIB, b"end")
        write(program.runtime, blocks[3], b"begin")
        window = program.take(6 * MIB + PIECE)
        assert program.reserved() == reserved
        assert read(program.runtime, window, 3) == b"end"
        assert read(program.runtime, window + 6 * MIB, 5) == b"begin"
        rest = program.take(4 * MIB)
        assert program.reserved() == reserved
        assert rest not in range(window, window + 6 * MIB + PIECE)

    def test_opens_with_as_much_of_its_outer_pieces_as_a_request_needs(
        self, program: Program, blocks: list[int]
    ) -> None:
        program.free(blocks[0], blocks[2])
        program.free(program.take(2 * PIECE))
        calls = program.calls()
        window = program.take(2 * PIECE - 6 * MIB)
        rest = program.take(6 * MIB)
        assert program.calls() == calls
        assert rest == blocks[2] + PIECE - 6 * MIB
        write(program.runtime, rest, b"rest")
        write(program.runtime, window, bytes(2 * PIECE - 6 * MIB))
        assert read(program.runtime, rest, 4) == b"rest"
        program.free(window, rest)
        assert {program.take(PIECE), program.take(PIECE)} == {blocks[0], blocks[2]}

    def test_never_shows_both_ends_of_one_piece(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[1])
        parts = [program.take(size) for size in (6 * MIB, 4 * MIB, 6 * MIB)]
        assert parts == [blocks[1], blocks[1] + 6 * MIB, blocks[1] + 10 * MIB]
        program.free(parts[0], parts[2])
        reserved = program.reserved()
        program.take(12 * MIB)
        assert program.reserved() > reserved

    def test_whose_memory_is_in_use_in_part_is_not_unmapped(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        window = program.take(2 * PIECE - 6 * MIB)  # the end of the second piece is free at home
        program.runtime.deviceSynchronize()
        reserved = program.reserved()
        program.ledger.empty_cache(0)
        assert program.reserved() == reserved
        write(program.runtime, window, bytes(2 * PIECE - 6 * MIB))

    def test_is_made_of_free_and_new_memory_if_free_memory_is_not_enough(
        self, program: Program, blocks: list[int]
    ) -> None:
        program.free(blocks[0], blocks[2])
        reserved = program.reserved()
        program.take(3 * PIECE)
        assert program.reserved() == reserved + PIECE

    def test_is_a_segment_of_the_snapshot_while_it_is_open(self, program: Program, blocks: list[int]) -> None:
        def segments() -> list[tuple[int, int]]:
            found, _ = program.ledger.snapshot(None, False)
            return sorted((each["address"], each["total_size"]) for each in found)

        program.free(blocks[0], blocks[2])
        closed = segments()
        window = program.take(2 * PIECE)
        assert segments() == sorted([(window, 2 * PIECE), (blocks[1], PIECE), (blocks[3], PIECE)])
        program.free(window)
        assert segments() == closed == [(blocks[0], 4 * PIECE)]

    def test_is_unmapped_when_its_memory_goes_back(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        program.free(program.take(2 * PIECE))
        program.ledger.empty_cache(0)
        assert program.reserved() == 2 * PIECE
        program.free(blocks[1], blocks[3])
        program.ledger.empty_cache(0)
        figures = program.figures()
        assert program.reserved() == 0
        assert figures["num_device_free"] == figures["num_device_alloc"]

    def test_that_is_open_keeps_its_memory(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        window = program.take(2 * PIECE)
        write(program.runtime, window, b"contents")
        program.ledger.empty_cache(0)
        assert program.reserved() == 4 * PIECE
        assert read(program.runtime, window, 8) == b"contents"


class TestWhatHasNoWindow:
    @pytest.mark.alone
    def test_memory_that_another_stream_uses(self, program: Program, blocks: list[int]) -> None:
        program.keep_busy(program.other)
        assert program.ledger.record_stream(0, blocks[0], program.other)
        program.free(blocks[0], blocks[2])
        reserved = program.reserved()
        program.take(2 * PIECE)
        assert program.is_busy(program.other)
        assert program.reserved() > reserved

    def test_memory_of_another_stream(self, program: Program, blocks: list[int]) -> None:
        program.free(blocks[0], blocks[2])
        reserved = program.reserved()
        program.ledger.allocate(0, 2 * PIECE, program.other)
        assert program.reserved() == reserved + 2 * PIECE

    def test_a_program_that_always_trims(self, runtime: Runtime) -> None:
        program = Program(runtime, trim_always=True)
        blocks = [program.take(PIECE) for _ in range(4)]
        runtime.deviceSynchronize()
        program.free(blocks[0], blocks[2])
        freed = program.figures()["num_device_free"]
        program.take(2 * PIECE)
        assert program.figures()["num_device_free"] == freed + 2
        program.close()

    @pytest.mark.wings
    def test_memory_that_a_race_detector_watches(self, program: Program, blocks: list[int]) -> None:
        detector = _core.RaceDetector(fail)
        program.free(blocks[0], blocks[2])
        window = program.take(2 * PIECE)
        detector.attach(program.ledger)
        program.free(window)
        reserved = program.reserved()
        program.free(program.take(2 * PIECE))
        assert program.reserved() == reserved + 2 * PIECE
        detector.detach()

    def test_the_pool_of_a_graph(self, runtime: Runtime) -> None:
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            blocks = [tcuda.xp.empty(PIECE, "B") for _ in range(4)]
            del blocks[2], blocks[0]
            reserved = tcuda.memory_reserved()
            kept = tcuda.xp.zeros(2 * PIECE, "B")
            assert tcuda.memory_reserved() == reserved + 2 * PIECE
        del kept
        graph.reset()


def test_another_process_opens_the_memory_of_a_window(program: Program, blocks: list[int]) -> None:
    with Peer() as peer:
        peer.value("globals().update(ledger=new_ledger())")
        numbers = []
        for freed in ((0, 2), (1, 3)):
            program.free(*(blocks[number] for number in freed))
            window = program.take(2 * PIECE)
            content = bytes([freed[0] + 1] * 4), bytes([freed[1] + 1] * 4)
            for at, bytes_ in zip((0, PIECE), content, strict=True):
                write(program.runtime, window + at, bytes_)
            found: Any = program.ledger.sharing_of(0, window)
            assert [piece for piece, _ in found[3]] == [window, window + PIECE]
            numbers.append(found[5])
            for piece, _ in found[3]:
                peer.give(program.ledger.export_piece(0, piece))
            address = peer.value(f"ledger.import_pieces(0, [(take(), {PIECE}), (take(), {PIECE})])")
            assert peer.value(f"read(r, {address}, 4), read(r, {address + PIECE}, 4)") == content
            program.free(window)
            for number in freed:
                assert program.take(PIECE) in (blocks[freed[0]], blocks[freed[1]]), number
        assert numbers[1] > numbers[0]


class TestTheBound:
    """A stream has at most 512 windows."""

    @pytest.fixture
    def full(self, program: Program) -> list[int]:
        """Blocks of one piece each. All windows are made that show three of them, until there are 512."""
        blocks = [program.take(2 * MIB) for _ in range(16)]
        for place, chosen in enumerate(self.triples()):
            if place == 512:
                break
            self.show(program, [blocks[number] for number in chosen])
        assert program.reserved() == 32 * MIB
        return blocks

    @staticmethod
    def triples() -> Iterator[tuple[int, ...]]:
        """Return three numbers that are not all neighbours."""
        return (each for each in itertools.combinations(range(16), 3) if each[2] - each[0] > 2)

    @staticmethod
    def show(program: Program, blocks: list[int]) -> None:
        """Make a window that shows three blocks."""
        program.free(*blocks)
        program.free(program.take(6 * MIB))
        assert {program.take(2 * MIB) for _ in blocks} == set(blocks)

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
        assert program.reserved() == 32 * MIB

    def test_a_busy_stream_gets_new_memory(self, program: Program, full: list[int]) -> None:
        program.keep_busy(program.stream)
        freed = program.figures()["num_device_free"]
        program.free(*self.next(full))
        program.take(6 * MIB)
        assert program.figures()["num_device_free"] == freed
        assert program.reserved() > 32 * MIB
        assert program.is_busy(program.stream)
