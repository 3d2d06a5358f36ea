"""Memory and events in two processes: the runtimes give the same answers, which were measured on an H200."""

from __future__ import annotations

import contextlib
import gc
import struct
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.peer import Peer, read, write
from support.statuses import status_of
from tcuda import AcceleratorError, _backend
from tcuda._runtime.protocol import EVENT_DISABLE_TIMING, EVENT_INTERPROCESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

LONG = 2_000_000_000  # cycles: more than the second process takes to answer
SHARED = EVENT_INTERPROCESS | EVENT_DISABLE_TIMING


@pytest.fixture
def peer(runtime: Runtime) -> Iterator[Peer]:
    with Peer() as process:
        yield process


@pytest.fixture
def block(runtime: Runtime) -> Iterator[int]:
    ptr = runtime.malloc(4096)
    yield ptr
    runtime.free(ptr)


class TestHandlesOfMemory:
    def test_the_handle_of_every_address_in_a_block_is_that_of_the_block(self, runtime: Runtime, block: int) -> None:
        handle = runtime.ipcGetMemHandle(block)
        assert len(handle) == 64
        assert runtime.ipcGetMemHandle(block + 1000) == handle

    def test_two_small_blocks_have_two_handles(self, runtime: Runtime, block: int) -> None:
        other = runtime.malloc(512)
        assert runtime.ipcGetMemHandle(other) != runtime.ipcGetMemHandle(block)
        runtime.free(other)

    @pytest.mark.parametrize("kind", ["null", "host", "page-locked", "stream-ordered", "virtual"])
    def test_other_memory_has_no_handle(self, runtime: Runtime, kind: str) -> None:
        host = np.zeros(1 << 13)
        if kind == "page-locked":
            runtime.hostRegister(host.ctypes.data, host.nbytes, 0)
        asynchronous = runtime.mallocAsync(4096, 0) if kind == "stream-ordered" else 0
        virtual = None
        if kind == "virtual":
            virtual = _virtual_memory(runtime)
            ptr = virtual[1]
        else:
            ptr = {"host": host.ctypes.data, "page-locked": host.ctypes.data}.get(kind, asynchronous)
        assert status_of(lambda: runtime.ipcGetMemHandle(ptr)) == 1
        if kind == "page-locked":
            runtime.hostUnregister(host.ctypes.data)
        if asynchronous:
            runtime.freeAsync(asynchronous, 0)

    def test_the_own_process_cannot_open_a_handle(self, runtime: Runtime, block: int) -> None:
        assert status_of(lambda: runtime.ipcOpenMemHandle(runtime.ipcGetMemHandle(block))) == 201

    def test_other_bytes_are_no_handle(self, runtime: Runtime) -> None:
        assert status_of(lambda: runtime.ipcOpenMemHandle(bytes(64))) == 1

    def test_unknown_flags_are_refused(self, runtime: Runtime, block: int, peer: Peer) -> None:
        assert peer.status(f"r.ipcOpenMemHandle({runtime.ipcGetMemHandle(block)!r}, 0)") == 1

    def test_memory_that_was_not_opened_cannot_be_closed(self, runtime: Runtime, block: int) -> None:
        assert status_of(lambda: runtime.ipcCloseMemHandle(block)) == 1


def _virtual_memory(runtime: Runtime) -> tuple[object, int]:
    from tcuda import _core

    options = _core.Settings()
    options.expandable_segments = True
    ledger = _core.Ledger(runtime.memoryDriver(), runtime.getDeviceCount(), options, print, print)
    return ledger, ledger.allocate(0, 4096, 0)


class TestOpenedMemory:
    @pytest.fixture
    def opened(self, runtime: Runtime, block: int, peer: Peer) -> str:
        """The address in the second process, as a part of an expression."""
        write(runtime, block, bytes(range(100)))
        return str(peer.value(f"r.ipcOpenMemHandle({runtime.ipcGetMemHandle(block + 512)!r})"))

    def test_both_processes_see_what_the_other_writes(
        self, runtime: Runtime, block: int, peer: Peer, opened: str
    ) -> None:
        assert peer.value(f"read(r, {opened}, 100)") == bytes(range(100))
        peer.value(f"write(r, {opened} + 4000, b'answer')")
        assert read(runtime, block + 4000, 6) == b"answer"
        write(runtime, block, b"again")
        assert peer.value(f"read(r, {opened}, 5)") == b"again"

    def test_lies_on_the_device_under_which_it_was_opened(self, peer: Peer, opened: str) -> None:
        assert peer.value(f"r.pointerGetDevice({opened} + 100)") == 0

    @pytest.mark.emulated
    def test_may_be_opened_under_another_device(self, runtime: Runtime, block: int, peer: Peer, opened: str) -> None:
        peer.value("r.setDevice(1)")
        other = peer.value(f"r.ipcOpenMemHandle({runtime.ipcGetMemHandle(block)!r})")
        assert str(other) != opened
        assert peer.value(f"r.pointerGetDevice({other})") == 1
        assert peer.value(f"read(r, {other}, 3)") == bytes(range(3))
        assert peer.status(f"r.ipcCloseMemHandle({other})") == 0
        assert peer.value(f"read(r, {opened}, 3)") == bytes(range(3))

    def test_opens_again_at_the_same_address_and_is_closed_as_often(
        self, runtime: Runtime, block: int, peer: Peer, opened: str
    ) -> None:
        again = peer.value(f"r.ipcOpenMemHandle({runtime.ipcGetMemHandle(block)!r})")
        assert str(again) == opened
        assert peer.status(f"r.ipcCloseMemHandle({opened})") == 0
        assert peer.value(f"read(r, {opened}, 3)") == bytes(range(3))
        assert peer.status(f"r.ipcCloseMemHandle({opened})") == 0
        assert peer.status(f"r.ipcCloseMemHandle({opened})") == 1
        reopened = peer.value(f"r.ipcOpenMemHandle({runtime.ipcGetMemHandle(block)!r})")
        assert peer.value(f"read(r, {reopened}, 3)") == bytes(range(3))

    def test_cannot_be_freed_nor_exported(self, peer: Peer, opened: str) -> None:
        assert peer.status(f"r.free({opened})") == 1
        assert peer.status(f"r.ipcGetMemHandle({opened})") == 1

    def test_takes_operations_that_stay_within_the_block(self, peer: Peer, opened: str) -> None:
        assert peer.status(f"r.memsetAsync({opened}, 7, 4096, 0)") == 0
        assert peer.value(f"read(r, {opened} + 4090, 6)") == b"\7" * 6

    @pytest.mark.emulated  # on CUDA, the whole of what was opened is larger than the block
    def test_takes_no_operation_beyond_the_block(self, peer: Peer, opened: str) -> None:
        assert peer.status(f"r.memsetAsync({opened}, 7, 4097, 0)") == 1

    @pytest.mark.emulated  # CUDA takes some memory for the mapping
    def test_is_not_in_use_by_the_process(self, runtime: Runtime, block: int, peer: Peer) -> None:
        before = peer.value("r.memGetInfo()")
        opened = peer.value(f"r.ipcOpenMemHandle({runtime.ipcGetMemHandle(block)!r})")
        assert peer.value("r.memGetInfo()") == before
        peer.value(f"r.ipcCloseMemHandle({opened})")
        assert peer.value("r.memGetInfo()") == before

    @pytest.mark.emulated
    def test_a_kernel_may_use_it(self, peer: Peer, opened: str) -> None:
        assert peer.value(f"r.memoryAt({opened} + 5)") == (0, int(opened), int(opened) + 4096)

    def test_stays_when_the_owner_is_killed(self, runtime: Runtime) -> None:
        with Peer() as owner:
            address = owner.value("r.malloc(4096)")
            owner.value(f"write(r, {address}, b'last words')")
            handle = owner.value(f"r.ipcGetMemHandle({address})")
            opened = runtime.ipcOpenMemHandle(handle)
            owner.kill()
        assert read(runtime, opened, 10) == b"last words"
        runtime.ipcCloseMemHandle(opened)
        assert status_of(lambda: runtime.ipcOpenMemHandle(handle)) == 400

    @pytest.mark.emulated
    def test_a_process_with_the_number_of_the_owner_is_not_the_owner(self, runtime: Runtime, peer: Peer) -> None:
        handle = bytearray(peer.value("r.ipcGetMemHandle(r.malloc(4096))"))
        began = struct.unpack_from("<Q", handle, 16)[0]
        struct.pack_into("<Q", handle, 16, began - 1)
        assert status_of(lambda: runtime.ipcOpenMemHandle(bytes(handle))) == 400

    @pytest.mark.emulated
    def test_many_small_blocks_need_few_mappings_and_few_descriptors(self, runtime: Runtime, peer: Peer) -> None:
        def figures() -> tuple[int, int]:
            return int(peer.value("sum(1 for _ in open('/proc/self/maps'))")), int(
                peer.value("len(__import__('os').listdir('/proc/self/fd'))")
            )

        peer.value("r.malloc(512)")
        before = figures()
        peer.value("len([r.malloc(512) for _ in range(20000)])")
        after = figures()
        assert after[0] - before[0] < 20
        assert after[1] == before[1]

    @pytest.mark.long
    @pytest.mark.emulated
    def test_freed_memory_goes_back_to_the_system(self, peer: Peer) -> None:
        peer.value("r.malloc(512)")
        pages = "__import__('os').fstat(r.devices[0].memory.descriptor()).st_blocks * 512"
        block = peer.value("r.malloc(512 << 20)")
        peer.value(f"r.memsetAsync({block}, 1, 512 << 20, 0)")
        peer.value("r.deviceSynchronize()")
        assert peer.value(pages) >= 512 << 20
        peer.value(f"r.free({block})")
        assert peer.value(pages) < 128 << 20


class TestEvents:
    @pytest.fixture
    def event(self, runtime: Runtime) -> Iterator[int]:
        event = runtime.eventCreateWithFlags(SHARED)
        yield event
        runtime.eventDestroy(event)

    @pytest.fixture
    def busy(self, runtime: Runtime, event: int, peer: Peer) -> Iterator[None]:
        """Records the event behind work of seconds, when the second process can use the device."""
        assert peer.status("r.deviceSynchronize()") == 0
        stream = runtime.streamCreateWithPriority(1, 0)
        _backend.backend_of(runtime).sleep(LONG, stream)
        runtime.eventRecord(event, stream)
        yield
        runtime.streamSynchronize(stream)
        runtime.streamDestroy(stream)

    def opened(self, runtime: Runtime, peer: Peer, event: int) -> str:
        return str(peer.value(f"r.ipcOpenEventHandle({runtime.ipcGetEventHandle(event)!r})"))

    def test_the_handle_of_an_event_is_always_the_same(self, runtime: Runtime, event: int) -> None:
        assert runtime.ipcGetEventHandle(event) == runtime.ipcGetEventHandle(event)

    def test_an_event_that_was_never_recorded_is_complete(self, runtime: Runtime, peer: Peer, event: int) -> None:
        assert peer.value(f"r.eventQuery({self.opened(runtime, peer, event)})") == 0

    @pytest.mark.usefixtures("busy")
    def test_the_other_process_waits_for_the_record(self, runtime: Runtime, peer: Peer, event: int) -> None:
        opened = self.opened(runtime, peer, event)
        assert peer.value(f"r.eventQuery({opened})") == 600
        assert peer.status(f"r.eventSynchronize({opened})") == 0
        assert peer.value(f"r.eventQuery({opened})") == 0

    @pytest.mark.usefixtures("busy")
    def test_a_stream_of_the_other_process_waits(self, runtime: Runtime, peer: Peer, event: int) -> None:
        opened = self.opened(runtime, peer, event)
        stream = peer.value("r.streamCreateWithPriority(1, 0)")
        assert peer.status(f"r.streamWaitEvent({stream}, {opened})") == 0
        assert peer.value(f"r.streamQuery({stream})") == 600
        peer.value(f"r.streamSynchronize({stream})")
        assert peer.value(f"r.eventQuery({opened})") == 0

    def test_a_record_after_the_opening_is_seen(self, runtime: Runtime, peer: Peer, event: int) -> None:
        opened = self.opened(runtime, peer, event)
        stream = runtime.streamCreateWithPriority(1, 0)
        _backend.backend_of(runtime).sleep(LONG, stream)
        runtime.eventRecord(event, stream)
        assert peer.value(f"r.eventQuery({opened})") == 600
        runtime.streamSynchronize(stream)
        runtime.streamDestroy(stream)

    def test_the_process_that_opens_may_record(self, runtime: Runtime, peer: Peer, event: int) -> None:
        opened = self.opened(runtime, peer, event)
        peer.value(f"backend.sleep({LONG}, 0)")
        assert peer.status(f"r.eventRecord({opened}, 0)") == 0
        assert runtime.eventQuery(event) == 600
        runtime.eventSynchronize(event)
        assert runtime.eventQuery(event) == 0

    def test_an_opened_event_has_no_times_and_no_handle(self, runtime: Runtime, peer: Peer, event: int) -> None:
        opened = self.opened(runtime, peer, event)
        other = self.opened(runtime, peer, event)
        assert peer.status(f"r.eventElapsedTime({opened}, {other})") == 400
        assert peer.status(f"r.ipcGetEventHandle({opened})") == 400

    def test_the_end_of_the_event_does_not_matter_to_the_other_process(self, runtime: Runtime, peer: Peer) -> None:
        event = runtime.eventCreateWithFlags(SHARED)
        handle = runtime.ipcGetEventHandle(event)
        opened = self.opened(runtime, peer, event)
        runtime.eventDestroy(event)
        assert peer.value(f"r.eventQuery({opened})") == 0
        assert peer.status(f"r.streamWaitEvent(0, {opened})") == 0
        assert peer.status(f"r.eventDestroy({opened})") == 0
        assert peer.status(f"r.ipcOpenEventHandle({handle!r})") == 0

    def test_an_event_stays_when_its_owner_is_killed(self, runtime: Runtime) -> None:
        with Peer() as owner:
            event = runtime.ipcOpenEventHandle(
                owner.value(f"r.ipcGetEventHandle(r.eventCreateWithFlags({SHARED}))"),
            )
            owner.kill()
        assert runtime.eventQuery(event) == 0
        runtime.eventSynchronize(event)
        runtime.streamWaitEvent(0, event)
        runtime.eventDestroy(event)

    @pytest.mark.emulated
    def test_the_rest_of_the_work_is_mapped_to_the_clock_of_the_other_process(
        self, runtime: Runtime, peer: Peer, event: int
    ) -> None:
        opened = self.opened(runtime, peer, event)
        stream = runtime.streamCreateWithPriority(1, 0)
        _backend.backend_of(runtime).sleep(5_000_000, stream)
        runtime.eventRecord(event, stream)
        peer.value(f"r.eventQuery({opened})")
        before = peer.value("r.clock.now()")
        peer.value(f"r.eventSynchronize({opened})")
        assert peer.value("r.clock.now()") - before == pytest.approx(5_000_000, abs=5_000)
        runtime.streamDestroy(stream)

    @pytest.mark.emulated
    def test_the_place_of_a_destroyed_event_serves_later_events(self, runtime: Runtime, peer: Peer) -> None:
        event = runtime.eventCreateWithFlags(SHARED)
        first = runtime.ipcGetEventHandle(event)
        opened = self.opened(runtime, peer, event)
        runtime.eventDestroy(event)
        stream = runtime.streamCreateWithPriority(1, 0)
        _backend.backend_of(runtime).sleep(LONG, stream)
        places = set()
        for _ in range(2000):
            event = runtime.eventCreateWithFlags(SHARED)
            runtime.eventRecord(event, stream)
            places.add(runtime.ipcGetEventHandle(event)[40:48])
            runtime.eventDestroy(event)
        assert len(places) < 600
        assert first[40:48] in places
        assert peer.value(f"r.eventQuery({opened})") == 0  # later events do not matter to it
        assert peer.status(f"r.ipcOpenEventHandle({first!r})") == 205
        runtime.streamSynchronize(stream)
        runtime.streamDestroy(stream)


class Witness:
    """An object whose life a test watches."""


@pytest.mark.parametrize("open_handle", ["ipcOpenEventHandle", "ipcOpenMemHandle"])
def test_a_refused_handle_keeps_no_object_of_the_caller(runtime: Runtime, open_handle: str) -> None:
    def refused() -> weakref.ref[Witness]:
        witness = Witness()
        with contextlib.suppress(AcceleratorError):
            getattr(runtime, open_handle)(bytes(64))
        return weakref.ref(witness)

    gc.collect()
    gc.disable()
    try:
        assert refused()() is None
    finally:
        gc.enable()


WITHOUT_SHARED_MEMORY = """
import resource
import numpy
from support.peer import read, write
from support.statuses import status_of
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 10, 1 << 10))
from tcuda._process.lazy import cuda as r, init
import tcuda
init()
ptr = r.malloc(4096)
write(r, ptr, b"private")
event = r.eventCreateWithFlags(6)
print(read(r, ptr, 7), status_of(lambda: r.ipcGetMemHandle(ptr)), status_of(lambda: r.ipcGetEventHandle(event)))
x = tcuda.xp.arange(1 << 20)
print(int(x.sum()))
del x
tcuda.empty_cache()
r.free(ptr)
print(r.memGetInfo()[0] == r.memGetInfo()[1])
"""


@pytest.mark.emulated
def test_without_memory_that_processes_share_only_handles_are_refused(output_of: OutputOf) -> None:
    printed = output_of(WITHOUT_SHARED_MEMORY, PYTHONPATH=str(Path(__file__).parents[1]))
    assert printed.splitlines() == ["b'private' 801 801", str(sum(range(1 << 20))), "True"]


FORKED = """
import os
from tcuda._process.lazy import cuda as r, init
from support.peer import read, write
import tcuda
init()
ptr = r.malloc(1 << 20)
x = tcuda.xp.ones(1 << 20)
write(r, ptr, b"parent")
memory = r.devices[0].memory
if os.fork() == 0:
    del x
    print(memory.allocate(512), memory.release(ptr), flush=True)
    del memory
    os._exit(0)
os.wait()
print(read(r, ptr, 6), float(x.sum()) == 1 << 20)
"""


@pytest.mark.emulated
def test_a_forked_child_leaves_the_memory_of_its_parent(output_of: OutputOf) -> None:
    printed = output_of(FORKED, PYTHONPATH=str(Path(__file__).parents[1]))
    assert printed.splitlines() == ["0 False", "b'parent' True"]
