"""Physical memory in several processes: what the ledger tells of an allocation, and pieces that other processes map."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from support.core import for_tests
from support.peer import Peer, read, write
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._runtime.protocol import Runtime

MIB = 1 << 20


class Refused(Exception):
    pass


def fail_driver(status: int, call: str) -> NoReturn:
    raise Refused(status)


def new_ledger(runtime: Runtime, *, expandable: bool = True, driver: _core.Driver | None = None) -> _core.Ledger:
    options = _core.Settings()
    options.expandable_segments = expandable
    table = driver or runtime.memoryDriver()
    return _core.Ledger(table, runtime.getDeviceCount(), options, lambda **_: fail_driver(2, ""), fail_driver)


@pytest.fixture
def ledger(runtime: Runtime) -> Iterator[_core.Ledger]:
    made = new_ledger(runtime)
    yield made
    made.empty_cache(0)


@pytest.fixture
def peer(runtime: Runtime) -> Iterator[Peer]:
    with Peer() as process:
        process.value("globals().update(ledger=new_ledger())")
        yield process


def refused(call: Callable[[], Any]) -> int:
    with pytest.raises(Refused) as caught:
        call()
    return int(caught.value.args[0])


def pieces_of(ledger: _core.Ledger, address: int) -> list[tuple[int, int]]:
    found = ledger.sharing_of(0, address)
    assert found is not None
    return found[3]


class TestWhatTheLedgerTells:
    def test_a_segment_of_the_driver_is_opened_as_a_whole(self, runtime: Runtime) -> None:
        ledger = new_ledger(runtime, expandable=False)
        first, second = ledger.allocate(0, 1000, 0), ledger.allocate(0, 2000, 0)
        segment = (min(first, second), 2 * MIB)
        assert ledger.sharing_of(0, first) == (first, 1024, [0], [], segment, 0)
        assert ledger.sharing_of(0, second) == (second, 2048, [0], [], segment, 0)

    def test_memory_of_an_expandable_segment_is_opened_by_its_pieces(self, ledger: _core.Ledger) -> None:
        address = ledger.allocate(0, 300 * MIB, 0)
        found = ledger.sharing_of(0, address)
        assert found is not None
        begin, size, streams, pieces, segment, _ = found
        assert (begin, size, streams, segment) == (address, 300 * MIB, [0], None)
        assert len(pieces) > 1
        assert pieces[0][0] <= begin
        assert sum(pieces[-1]) >= begin + size
        assert all(sum(piece) == following[0] for piece, following in itertools.pairwise(pieces))
        ledger.free(address)

    def test_only_the_pieces_around_the_block_are_named(self, ledger: _core.Ledger) -> None:
        blocks = [ledger.allocate(0, 200 * MIB, 0) for _ in range(3)]
        for address in blocks:
            pieces = pieces_of(ledger, address)
            assert pieces[0][0] <= address < sum(pieces[0])
            assert pieces[-1][0] < address + 200 * MIB <= sum(pieces[-1])
        for address in blocks:
            ledger.free(address)

    def test_new_physical_memory_at_the_same_addresses_has_a_higher_number(self, ledger: _core.Ledger) -> None:
        def found(address: int) -> tuple[list[tuple[int, int]], int]:
            sharing = ledger.sharing_of(0, address)
            assert sharing is not None
            return sharing[3], sharing[5]

        address = ledger.allocate(0, 300 * MIB, 0)
        pieces, number = found(address)
        assert found(address) == (pieces, number)
        ledger.free(address)
        again = ledger.allocate(0, 300 * MIB, 0)
        assert found(again) == (pieces, number)  # the cache gave the same memory
        other = ledger.allocate(0, 1000, 0)  # keeps the segment and its addresses
        ledger.free(again)
        ledger.empty_cache(0)
        new = ledger.allocate(0, 300 * MIB, 0)
        assert found(new)[1] > number
        for block in (new, other):
            ledger.free(block)

    def test_the_streams_that_use_the_block_are_named(self, runtime: Runtime, ledger: _core.Ledger) -> None:
        own, other = (runtime.streamCreateWithPriority(1, 0) for _ in range(2))
        address = ledger.allocate(0, 1000, own)
        for stream in (other, other, 0, own):
            ledger.record_stream(0, address, stream)
        found = ledger.sharing_of(0, address)
        assert found is not None
        assert found[2] == [own, other, 0]
        ledger.free(address)
        for stream in (own, other):
            ledger.stream_about_to_be_destroyed(0, stream)
            runtime.streamDestroy(stream)

    def test_addresses_where_no_allocation_begins_are_unknown(self, ledger: _core.Ledger) -> None:
        address = ledger.allocate(0, 1000, 0)
        assert ledger.sharing_of(0, address + 512) is None
        ledger.free(address)
        assert ledger.sharing_of(0, address) is None
        assert ledger.sharing_of(0, 0) is None

    def test_memory_without_the_cache_is_a_segment_of_the_driver(self, ledger: _core.Ledger) -> None:
        ledger.caching = False
        address = ledger.allocate(0, 5 * MIB, 0)
        found = ledger.sharing_of(0, address)
        assert found is not None
        assert found[3:] == ([], (address, 5 * MIB), 0)
        ledger.free(address)

    def test_what_is_no_piece_is_not_exported(self, ledger: _core.Ledger) -> None:
        address = ledger.allocate(0, 1000, 0)
        assert refused(lambda: ledger.export_piece(0, address + 512)) == 1
        ledger.free(address)


class TestPiecesInAnotherProcess:
    def export(self, ledger: _core.Ledger, address: int, peer: Peer) -> str:
        """Give the pieces of a block to the process, and return the list of pieces as an expression."""
        taken = []
        for piece, size in pieces_of(ledger, address):
            descriptor = ledger.export_piece(0, piece)
            peer.give(descriptor)
            os.close(descriptor)
            taken.append((peer.value("take()"), size))
        return repr(taken)

    def test_both_processes_see_what_the_other_writes(self, runtime: Runtime, ledger: _core.Ledger, peer: Peer) -> None:
        ledger.allocate(0, MIB, 0)
        address = ledger.allocate(0, 300 * MIB, 0)
        places = [0, 150 * MIB, 300 * MIB - 8]
        for place in places:
            write(runtime, address + place, place.to_bytes(8, "little"))
        pieces = self.export(ledger, address, peer)
        mapped = peer.value(f"ledger.import_pieces(0, {pieces})") + address - pieces_of(ledger, address)[0][0]
        for place in places:
            assert peer.value(f"read(r, {mapped + place}, 8)") == place.to_bytes(8, "little")
        peer.value(f"write(r, {mapped + places[1]}, b'answer')")
        assert read(runtime, address + places[1], 6) == b"answer"
        assert peer.value(f"r.pointerGetDevice({mapped})") == 0
        ledger.free(address)

    def test_the_descriptors_may_be_closed_and_the_memory_is_released_once(
        self, runtime: Runtime, ledger: _core.Ledger, peer: Peer
    ) -> None:
        address = ledger.allocate(0, MIB, 0)
        write(runtime, address, b"content")
        pieces = self.export(ledger, address, peer)
        mapped = peer.value(f"ledger.import_pieces(0, {pieces})")
        peer.value(f"[os.close(descriptor) for descriptor, _ in {pieces}]")
        offset = address - pieces_of(ledger, address)[0][0]
        assert peer.value(f"read(r, {mapped + offset}, 7)") == b"content"
        assert peer.value(f"ledger.release_imported(0, {mapped})") is True
        assert peer.value(f"ledger.release_imported(0, {mapped})") is False
        ledger.free(address)

    def test_the_memory_stays_when_the_owner_gives_it_back(
        self, runtime: Runtime, ledger: _core.Ledger, peer: Peer
    ) -> None:
        address = ledger.allocate(0, 4 * MIB, 0)
        write(runtime, address, b"content")
        offset = address - pieces_of(ledger, address)[0][0]
        mapped = peer.value(f"ledger.import_pieces(0, {self.export(ledger, address, peer)})")
        ledger.free(address)
        ledger.empty_cache(0)
        assert peer.value(f"read(r, {mapped + offset}, 7)") == b"content"

    def test_the_memory_stays_when_the_owner_is_killed(self, runtime: Runtime, ledger: _core.Ledger) -> None:
        with Peer() as owner:
            owner.value("globals().update(ledger=new_ledger())")
            address = owner.value("ledger.allocate(0, 4000, 0)")
            owner.value(f"write(r, {address}, b'last words')")
            piece, size = owner.value(f"ledger.sharing_of(0, {address})")[3][0]
            owner.value(f"give(ledger.export_piece(0, {piece}))")
            descriptor = owner.take()
            owner.kill()
        mapped = ledger.import_pieces(0, [(descriptor, size)])
        os.close(descriptor)
        assert read(runtime, mapped + address - piece, 10) == b"last words"
        assert ledger.release_imported(0, mapped)

    def test_other_descriptors_are_refused(self, ledger: _core.Ledger, peer: Peer) -> None:
        reader, writer = os.pipe()
        for descriptor in (reader, writer):
            assert refused(lambda descriptor=descriptor: ledger.import_pieces(0, [(descriptor, 2 * MIB)])) == 999  # type: ignore[misc]
            os.close(descriptor)

    @pytest.mark.emulated  # CUDA takes some memory for the mapping
    def test_imported_memory_counts_in_no_statistics(self, runtime: Runtime, ledger: _core.Ledger, peer: Peer) -> None:
        address = ledger.allocate(0, 4 * MIB, 0)
        before = peer.value("r.memGetInfo(), ledger.statistics(0)")
        mapped = peer.value(f"ledger.import_pieces(0, {self.export(ledger, address, peer)})")
        assert peer.value("r.memGetInfo(), ledger.statistics(0)") == before
        peer.value(f"ledger.release_imported(0, {mapped})")
        ledger.free(address)


@pytest.mark.emulated
class TestPagesOfSharedMemory:
    """The system gets the pages of physical memory back when the last process lets the memory go."""

    PAGES = "os.fstat(r.devices[0].memory.descriptor()).st_blocks * 512"

    @pytest.fixture
    def owner(self, runtime: Runtime) -> Iterator[Peer]:
        with Peer() as process:
            process.value("globals().update(ledger=new_ledger())")
            yield process

    def shared(self, owner: Peer) -> tuple[int, int, int]:
        """Return the address of a written block of the owner, a descriptor, and the size of the piece."""
        address = owner.value(f"ledger.allocate(0, {2 * MIB}, 0)")
        owner.value(f"r.memsetAsync({address}, 1, {2 * MIB}, 0)")
        owner.value("r.deviceSynchronize()")
        ((piece, size),) = owner.value(f"ledger.sharing_of(0, {address})")[3]
        owner.value(f"give(ledger.export_piece(0, {piece}))")
        return address, owner.take(), size

    def free(self, owner: Peer, address: int) -> None:
        owner.value(f"ledger.free({address})")
        owner.value("ledger.empty_cache(0)")

    def test_if_no_process_has_the_memory(self, owner: Peer) -> None:
        address = owner.value(f"ledger.allocate(0, {2 * MIB}, 0)")
        owner.value(f"r.memsetAsync({address}, 1, {2 * MIB}, 0)")
        owner.value("r.deviceSynchronize()")
        assert owner.value(self.PAGES) >= 2 * MIB
        self.free(owner, address)
        assert owner.value(self.PAGES) < MIB

    def test_if_the_importer_is_last(self, owner: Peer, ledger: _core.Ledger) -> None:
        address, descriptor, size = self.shared(owner)
        mapped = ledger.import_pieces(0, [(descriptor, size)])
        os.close(descriptor)
        self.free(owner, address)
        assert owner.value(self.PAGES) >= 2 * MIB
        ledger.release_imported(0, mapped)
        assert owner.value(self.PAGES) < MIB

    def test_if_the_owner_is_last(self, owner: Peer, ledger: _core.Ledger) -> None:
        address, descriptor, size = self.shared(owner)
        mapped = ledger.import_pieces(0, [(descriptor, size)])
        os.close(descriptor)
        ledger.release_imported(0, mapped)
        assert owner.value(self.PAGES) >= 2 * MIB
        self.free(owner, address)
        assert owner.value(self.PAGES) < MIB

    def test_if_a_descriptor_is_never_opened(self, owner: Peer) -> None:
        address, descriptor, _ = self.shared(owner)
        self.free(owner, address)
        assert owner.value(self.PAGES) >= 2 * MIB
        os.close(descriptor)
        self.free(owner, owner.value("ledger.allocate(0, 1000, 0)"))
        assert owner.value(self.PAGES) < MIB

    def test_if_the_importer_is_killed(self, owner: Peer) -> None:
        address, descriptor, size = self.shared(owner)
        with Peer() as importer:
            importer.value("globals().update(ledger=new_ledger())")
            importer.give(descriptor)
            os.close(descriptor)
            importer.value(f"ledger.import_pieces(0, [(take(), {size})])")
            self.free(owner, address)
            importer.kill()
        self.free(owner, owner.value("ledger.allocate(0, 1000, 0)"))
        assert owner.value(self.PAGES) < MIB

    def test_two_imports_in_one_process_count(self, owner: Peer, ledger: _core.Ledger) -> None:
        address, descriptor, size = self.shared(owner)
        first, second = (ledger.import_pieces(0, [(descriptor, size)]) for _ in range(2))
        os.close(descriptor)
        self.free(owner, address)
        ledger.release_imported(0, first)
        assert owner.value(self.PAGES) >= 2 * MIB
        ledger.release_imported(0, second)
        assert owner.value(self.PAGES) < MIB


class TestLiveBlocks:
    def test_nothing_takes_the_pieces_of_a_live_block_away(self, runtime: Runtime, ledger: _core.Ledger) -> None:
        small, large = ledger.allocate(0, 1000, 0), ledger.allocate(0, 30 * MIB, 0)
        before = [pieces_of(ledger, address) for address in (small, large)]
        others = [ledger.allocate(0, 50 * MIB, 0) for _ in range(4)]
        for address in others[::2]:
            ledger.free(address)
        ledger.empty_cache(0)
        ledger.allocate(0, 200 * MIB, 0)
        assert [pieces_of(ledger, address) for address in (small, large)] == before
        for address in (small, large):
            descriptor = ledger.export_piece(0, pieces_of(ledger, address)[0][0])
            os.close(descriptor)


ENTRIES = ("create", "reserve", "map", "unmap", "destroy", "release", "export_physical", "import_physical")


@pytest.mark.parametrize("status", [2, 719], ids=["memory", "launch"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_failure_leaves_nothing_behind(runtime: Runtime, entry: str, status: int) -> None:
    """Each call of the driver fails once while memory is allocated, exported, imported and released."""
    runtime.deviceSynchronize()
    free, live = runtime.memGetInfo()[0], _live(runtime)
    for calls in itertools.count():
        driver = for_tests.FaultyDriver(runtime.memoryDriver())
        driver.fail(entry, calls, status)
        failed = _share(runtime, driver, status)
        if failed != driver.failed:  # the end of the ledger, which has no second attempt
            break
        assert _live(runtime) == live
        if runtime.name == "emulated":
            assert runtime.memGetInfo()[0] == free
        if not failed:
            assert calls >= 2, "the program makes no such call"
            break


def _share(runtime: Runtime, driver: for_tests.FaultyDriver, status: int) -> bool:
    """Share a block of three pieces within this process, and return whether a call has failed.

    Each call that is refused is made again.
    """
    ledger = new_ledger(runtime, driver=driver)

    def attempt(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Refused as error:
            refusal = error.args[0]
        assert refusal == status
        return call()  # the second attempt must succeed

    address = attempt(lambda: ledger.allocate(0, 300 * MIB, 0))
    if not pieces_of(ledger, address):  # without addresses, the allocator takes a segment of the driver
        ledger.free(address)
        attempt(lambda: ledger.empty_cache(0))
        return driver.failed
    given: list[tuple[int, int]] = []
    for piece, size in pieces_of(ledger, address):
        given.append((attempt(lambda piece=piece: ledger.export_piece(0, piece)), size))
    mapped = attempt(lambda: ledger.import_pieces(0, given))
    for descriptor, _ in given:
        os.close(descriptor)
    write(runtime, address, b"content")
    assert read(runtime, mapped, 7) == b"content"
    assert ledger.release_imported(0, mapped)
    ledger.free(address)
    for _ in range(2):  # the driver may have failed to take memory back
        attempt(lambda: ledger.empty_cache(0))
    return driver.failed


def test_a_driver_that_does_not_know_the_allocation_is_no_error(runtime: Runtime) -> None:
    driver = for_tests.FaultyDriver(runtime.memoryDriver())
    ledger = new_ledger(runtime, driver=driver)
    ledger.caching = False
    address = ledger.allocate(0, 4096, 0)
    driver.fail("allocation_of", 0, 1)
    assert ledger.sharing_of(0, address) == (address, 4096, [0], [], None, 0)
    assert driver.failed
    ledger.free(address)


def _live(runtime: Runtime) -> int:
    """Return the number of blocks and mappings of emulated devices, 0 on CUDA."""
    devices = getattr(runtime, "devices", ())
    return sum(device.memory.live for device in devices)
