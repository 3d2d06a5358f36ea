"""The runtime protocol: both runtimes implement the protocol, and return the same statuses for the same mistakes.

The statuses were measured on an H200. The same table runs on both runtimes, so that a difference fails a test.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.statuses import status_of
from support.threads import in_thread
from tcuda import AcceleratorError, _backend
from tcuda._runtime import protocol
from tcuda._runtime.protocol import (
    CAPTURE_GLOBAL,
    CAPTURE_RELAXED,
    CAPTURE_THREAD_LOCAL,
    EVENT_DISABLE_TIMING,
    EVENT_INTERPROCESS,
    MEMCPY_DEFAULT,
    MEMCPY_DEVICE_TO_DEVICE,
    MEMCPY_DEVICE_TO_HOST,
    MEMCPY_HOST_TO_DEVICE,
    STREAM_DEFAULT,
    STREAM_LEGACY,
    STREAM_NON_BLOCKING,
    STREAM_PER_THREAD,
    Runtime,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import OutputOf
    from tcuda._backend import Backend

LONG = 200_000_000  # cycles: more than any of these tests takes on the host


class Fixtures:
    """The objects that the rows of the tables below use; ``close`` frees the objects."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.backend = _backend.backend_of(runtime)
        self.stream = runtime.streamCreateWithPriority(STREAM_NON_BLOCKING, 0)
        self.other = runtime.streamCreateWithPriority(STREAM_NON_BLOCKING, 0)
        self.event = runtime.eventCreateWithFlags(EVENT_DISABLE_TIMING)
        self.timed = [runtime.eventCreateWithFlags(0) for _ in range(2)]
        self.ptr = runtime.malloc(4096)
        self.host = np.zeros(1 << 13)
        self.backend.sleep(1, self.stream)  # CUDA cannot load the kernel during a capture
        runtime.deviceSynchronize()
        runtime.streamBeginCapture(self.stream, CAPTURE_RELAXED)
        runtime.memsetAsync(self.ptr, 0, 10, self.stream)
        self.graph = runtime.streamEndCapture(self.stream)
        self.executable = runtime.graphInstantiate(self.graph, 0)

    def close(self) -> None:
        self.runtime.deviceSynchronize()
        self.runtime.graphExecDestroy(self.executable)
        self.runtime.graphDestroy(self.graph)
        for event in (self.event, *self.timed):
            self.runtime.eventDestroy(event)
        for stream in (self.stream, self.other):
            self.runtime.streamDestroy(stream)
        self.runtime.free(self.ptr)


@pytest.fixture
def x(runtime: Runtime) -> Iterator[Fixtures]:
    fixtures = Fixtures(runtime)
    yield fixtures
    fixtures.close()


def members(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if inspect.isfunction(value) and name[0] != "_"}


def test_the_runtime_in_use_implements_the_whole_protocol(runtime: Runtime) -> None:
    missing = [name for name in members(Runtime) if not callable(getattr(runtime, name, None))]
    assert not missing
    assert isinstance(runtime.name, str)


def test_the_array_library_in_use_implements_the_whole_protocol(backend: Backend) -> None:
    missing = [name for name in members(_backend.Backend) if not callable(getattr(backend, name, None))]
    assert not missing
    assert isinstance(backend.array_module, str)


@pytest.mark.wings
def test_emulated_devices_have_the_signatures_of_the_protocols() -> None:
    from tcuda.emulation.backend.backend import Backend
    from tcuda.emulation.runtime import EmulatedRuntime

    emulated = EmulatedRuntime(1, 1 << 20)
    for wanted, implementation in ((Runtime, emulated), (_backend.Backend, Backend(emulated))):
        for name, declared in members(wanted).items():
            function = getattr(implementation, name)
            if hasattr(function, "__nb_signature__"):
                continue  # Python does not know the parameters of the core's functions; mypy compares the stub
            implemented = inspect.signature(function)
            assert ["self", *implemented.parameters] == list(inspect.signature(declared).parameters), name


def test_an_error_names_the_call_its_arguments_and_the_status(runtime: Runtime) -> None:
    with pytest.raises(AcceleratorError) as caught:
        runtime.setDevice(99)
    assert caught.value.error_code == 101
    text = str(caught.value)
    assert text.startswith("CUDA error: invalid device ordinal")
    assert "cudaSetDevice(99" in text
    assert "cudaErrorInvalidDevice (101)" in text


BAD_CALLS: dict[str, tuple[int, Callable[[Fixtures], object]]] = {
    "set a device out of range": (101, lambda x: x.runtime.setDevice(99)),
    "set a negative device": (101, lambda x: x.runtime.setDevice(-1)),
    "properties of a device out of range": (101, lambda x: x.runtime.getDeviceProperties(99)),
    "peer access to a device out of range": (101, lambda x: x.runtime.deviceCanAccessPeer(0, 99)),
    "enable peer access to itself": (217, lambda x: x.runtime.deviceEnablePeerAccess(x.runtime.getDevice())),
    "disable peer access of a device out of range": (101, lambda x: x.runtime.deviceDisablePeerAccess(99)),
    "stream with unknown flags": (1, lambda x: x.runtime.streamCreateWithPriority(7, 0)),
    "green context of a device out of range": (101, lambda x: x.runtime.greenCtxCreate(99, 1, -1, 0)),
    "destroy the null stream": (400, lambda x: x.runtime.streamDestroy(0)),
    "destroy the legacy stream": (400, lambda x: x.runtime.streamDestroy(STREAM_LEGACY)),
    "destroy the per-thread stream": (400, lambda x: x.runtime.streamDestroy(STREAM_PER_THREAD)),
    "event with unknown flags": (1, lambda x: x.runtime.eventCreateWithFlags(64)),
    "timed interprocess event": (1, lambda x: x.runtime.eventCreateWithFlags(EVENT_INTERPROCESS)),
    "destroy the null event": (400, lambda x: x.runtime.eventDestroy(0)),
    "record the null event": (400, lambda x: x.runtime.eventRecord(0, 0)),
    "record externally outside a capture": (401, lambda x: x.runtime.eventRecordWithFlags(x.event, x.stream, 1)),
    "wait with unknown flags": (1, lambda x: x.runtime.streamWaitEvent(x.stream, x.event, 9)),
    "elapsed time of unrecorded events": (400, lambda x: x.runtime.eventElapsedTime(*x.timed)),
    "elapsed time without timing": (400, lambda x: elapsed_without_timing(x)),
    "elapsed time before completion": (600, lambda x: elapsed_before_completion(x)),
    "malloc more than there is": (2, lambda x: x.runtime.malloc(1 << 50)),
    "free what was not allocated": (1, lambda x: x.runtime.free(0x1234500)),
    "free host memory": (1, lambda x: x.runtime.free(x.host.ctypes.data)),
    "free inside a block": (1, lambda x: x.runtime.free(x.ptr + 512)),
    "free twice": (1, lambda x: free_twice(x.runtime)),
    "copy with an unknown kind": (21, lambda x: x.runtime.memcpy(x.ptr, x.ptr + 256, 10, 77)),
    "copy from and to null": (1, lambda x: x.runtime.memcpy(0, 0, 10, MEMCPY_DEVICE_TO_DEVICE)),
    "copy in the wrong direction": (
        1,
        lambda x: x.runtime.memcpy(x.host.ctypes.data, x.ptr, 512, MEMCPY_HOST_TO_DEVICE),
    ),
    "copy past the end": (1, lambda x: x.runtime.memcpy(x.ptr, x.ptr + 8, 1 << 40, MEMCPY_DEVICE_TO_DEVICE)),
    "copy rows longer than the pitch of the destination": (12, lambda x: copy_rows(x, 16, 64, width=32)),
    "copy rows longer than the pitch of the source": (12, lambda x: copy_rows(x, 64, 16, width=32)),
    "copy rows with an unknown kind": (21, lambda x: copy_rows(x, 64, 64, kind=77)),
    "copy rows past the end": (1, lambda x: copy_rows(x, 64, 1 << 30)),
    "copy rows from null": (1, lambda x: x.runtime.memcpy2DAsync(x.ptr, 64, 0, 64, 8, 4, 3, x.stream)),
    "copy rows in the wrong direction": (
        1,
        lambda x: x.runtime.memcpy2DAsync(x.host.ctypes.data, 64, x.ptr, 64, 8, 4, MEMCPY_HOST_TO_DEVICE, x.stream),
    ),
    "set past the end": (1, lambda x: x.runtime.memsetAsync(x.ptr, 0, 1 << 40, x.stream)),
    "set at null": (1, lambda x: x.runtime.memsetAsync(0, 0, 8, x.stream)),
    "register null": (1, lambda x: x.runtime.hostRegister(0, 4096, 0)),
    "register nothing": (1, lambda x: x.runtime.hostRegister(x.host.ctypes.data, 0, 0)),
    "register twice": (712, lambda x: register_twice(x)),
    "unregister what was not registered": (713, lambda x: x.runtime.hostUnregister(x.host.ctypes.data)),
    "IPC handle of a plain event": (400, lambda x: x.runtime.ipcGetEventHandle(x.event)),
    "open an IPC handle in its own process": (201, lambda x: open_own_handle(x.runtime)),
    "open what is no IPC handle": (205, lambda x: x.runtime.ipcOpenEventHandle(bytes(64))),
    "memory handle of null": (1, lambda x: x.runtime.ipcGetMemHandle(0)),
    "memory handle of host memory": (1, lambda x: x.runtime.ipcGetMemHandle(x.host.ctypes.data)),
    "open a memory handle in its own process": (
        201,
        lambda x: x.runtime.ipcOpenMemHandle(x.runtime.ipcGetMemHandle(x.ptr)),
    ),
    "open what is no memory handle": (1, lambda x: x.runtime.ipcOpenMemHandle(bytes(64))),
    "close memory that was not opened": (1, lambda x: x.runtime.ipcCloseMemHandle(x.ptr)),
    "capture the null stream": (900, lambda x: x.runtime.streamBeginCapture(0, CAPTURE_RELAXED)),
    "capture in an unknown mode": (1, lambda x: x.runtime.streamBeginCapture(x.stream, 9)),
    "end a capture that was not begun": (401, lambda x: x.runtime.streamEndCapture(x.stream)),
    "instantiate no graph": (1, lambda x: x.runtime.graphInstantiate(0, 0)),
    "launch no graph": (1, lambda x: x.runtime.graphLaunch(0, x.stream)),
    "destroy no graph": (1, lambda x: x.runtime.graphDestroy(0)),
    "destroy no executable": (1, lambda x: x.runtime.graphExecDestroy(0)),
    "look into no graph": (1, lambda x: x.runtime.graphContents(0)),
    "print no graph": (1, lambda x: x.runtime.graphDebugDotPrint(0, "/dev/null", 0)),
    "print a graph where no file can be": (
        304,
        lambda x: x.runtime.graphDebugDotPrint(x.graph, "/nonexistent/graph.dot", 0),
    ),
}


def elapsed_without_timing(x: Fixtures) -> None:
    x.runtime.eventRecord(x.event, x.stream)
    x.runtime.eventRecord(x.timed[0], x.stream)
    x.runtime.streamSynchronize(x.stream)
    x.runtime.eventElapsedTime(x.event, x.timed[0])


def elapsed_before_completion(x: Fixtures) -> None:
    x.runtime.eventRecord(x.timed[0], x.stream)
    x.backend.sleep(LONG, x.stream)
    x.runtime.eventRecord(x.timed[1], x.stream)
    x.runtime.eventElapsedTime(*x.timed)


def free_twice(runtime: Runtime) -> None:
    ptr = runtime.malloc(512)
    runtime.free(ptr)
    runtime.free(ptr)


def copy_rows(
    x: Fixtures,
    dpitch: int,
    spitch: int,
    width: int = 32,
    height: int = 4,
    kind: int = MEMCPY_DEVICE_TO_DEVICE,
) -> None:
    x.runtime.memcpy2DAsync(x.ptr, dpitch, x.ptr + 2048, spitch, width, height, kind, x.stream)


def register_twice(x: Fixtures) -> None:
    address, size = x.host.ctypes.data, x.host.nbytes
    x.runtime.hostRegister(address, size, 0)
    try:
        x.runtime.hostRegister(address, size, 0)
    finally:
        x.runtime.hostUnregister(address)


def open_own_handle(runtime: Runtime) -> None:
    event = runtime.eventCreateWithFlags(EVENT_INTERPROCESS | EVENT_DISABLE_TIMING)
    try:
        runtime.ipcOpenEventHandle(runtime.ipcGetEventHandle(event))
    finally:
        runtime.eventDestroy(event)


@pytest.mark.parametrize("what", BAD_CALLS)
def test_a_mistake_has_the_status_of_cuda(x: Fixtures, what: str) -> None:
    status, call = BAD_CALLS[what]
    device = x.runtime.getDevice()
    assert status_of(lambda: call(x)) == status
    assert x.runtime.getDevice() == device


@pytest.mark.emulated  # CUDA may allocate memory for itself at any time
@pytest.mark.parametrize("what", BAD_CALLS)
def test_a_mistake_keeps_no_memory(x: Fixtures, what: str) -> None:
    free = x.runtime.memGetInfo()
    status_of(lambda: BAD_CALLS[what][1](x))
    assert x.runtime.memGetInfo() == free


GOOD_CALLS: dict[str, tuple[object, Callable[[Fixtures], object]]] = {
    "a priority too high is the highest": (-5, lambda x: priority_of(x.runtime, -9)),
    "a priority too low is the lowest": (0, lambda x: priority_of(x.runtime, 9)),
    "no device accesses itself as a peer": (0, lambda x: x.runtime.deviceCanAccessPeer(0, 0)),
    "an unrecorded event is complete": (0, lambda x: x.runtime.eventQuery(x.event)),
    "a wait for an unrecorded event": (None, lambda x: x.runtime.streamWaitEvent(x.stream, x.event)),
    "synchronising an unrecorded event": (None, lambda x: x.runtime.eventSynchronize(x.event)),
    "the null event's query is a status": (400, lambda x: x.runtime.eventQuery(0)),
    "a destroyed event's query is a status": (709, lambda x: query_destroyed(x.runtime)),
    "malloc of nothing is null": (0, lambda x: x.runtime.malloc(0)),
    "free of null does nothing": (None, lambda x: x.runtime.free(0)),
    "a copy of nothing": (None, lambda x: x.runtime.memcpy(0, 0, 0, MEMCPY_DEVICE_TO_DEVICE)),
    "a copy of no rows": (None, lambda x: copy_rows(x, 64, 64, height=0)),
    "a copy of empty rows": (None, lambda x: copy_rows(x, 64, 64, width=0)),
    "a copy of rows without a gap": (None, lambda x: copy_rows(x, 32, 32)),
    "a copy of rows that ends with the block": (None, lambda x: copy_rows(x, 32, 672)),
    "a copy whose direction the pointers tell": (
        None,
        lambda x: x.runtime.memcpy(x.host.ctypes.data, x.ptr, 512, MEMCPY_DEFAULT),
    ),
    "flags of the null stream": (0, lambda x: x.runtime.streamGetFlags(0)),
    "flags of a stream": (STREAM_NON_BLOCKING, lambda x: x.runtime.streamGetFlags(x.stream)),
    "the null stream is not capturing": (False, lambda x: x.runtime.streamIsCapturing(0)),
    "the priorities": ((0, -5), lambda x: x.runtime.deviceGetStreamPriorityRange()),
    "the memory handle is that of the whole allocation": (
        True,
        lambda x: x.runtime.ipcGetMemHandle(x.ptr + 1000) == x.runtime.ipcGetMemHandle(x.ptr),
    ),
    "where device memory lies": (0, lambda x: x.runtime.pointerGetDevice(x.ptr + 100)),
    "where host memory lies": (-1, lambda x: x.runtime.pointerGetDevice(x.host.ctypes.data)),
    "pageable memory": (False, lambda x: x.runtime.pointerIsPageLocked(x.host.ctypes.data)),
    "memory of a device is not page-locked": (False, lambda x: x.runtime.pointerIsPageLocked(x.ptr)),
}


def priority_of(runtime: Runtime, priority: int) -> int:
    stream = runtime.streamCreateWithPriority(STREAM_NON_BLOCKING, priority)
    try:
        return runtime.streamGetPriority(stream)
    finally:
        runtime.streamDestroy(stream)


def query_destroyed(runtime: Runtime) -> int:
    event = runtime.eventCreateWithFlags(0)
    runtime.eventDestroy(event)
    return runtime.eventQuery(event)


@pytest.mark.parametrize("what", GOOD_CALLS)
def test_calls_that_cuda_allows_have_cudas_result(x: Fixtures, what: str) -> None:
    answer, call = GOOD_CALLS[what]
    assert call(x) == answer


def test_copies_to_the_device_and_back_keep_the_bytes(x: Fixtures) -> None:
    source = np.arange(512, dtype=np.float64)
    result = np.zeros_like(source)
    x.runtime.memcpyAsync(x.ptr, source.ctypes.data, 4096, MEMCPY_HOST_TO_DEVICE, x.stream)
    x.runtime.memsetAsync(x.ptr, 0, 8 * 100, x.stream)
    x.runtime.memcpyAsync(result.ctypes.data, x.ptr, 4096, MEMCPY_DEVICE_TO_HOST, x.stream)
    x.runtime.streamSynchronize(x.stream)
    np.testing.assert_array_equal(result, np.where(np.arange(512) < 100, 0, source))


@pytest.mark.parametrize("captured", [False, True], ids=["at once", "in a graph"])
def test_copies_of_rows_leave_the_bytes_between_the_rows(x: Fixtures, captured: bool) -> None:
    source = np.arange(512, dtype=np.float64).reshape(32, 16)
    result = np.zeros((32, 16))
    x.runtime.memcpy(x.ptr, source.ctypes.data, 4096, MEMCPY_HOST_TO_DEVICE)
    if captured:
        x.runtime.streamBeginCapture(x.stream, CAPTURE_RELAXED)
    # Rows of 24 bytes: columns 1 to 3 of the rows 16, 18, 20 and 22 become columns 8 to 10 of the rows 0 to 3.
    x.runtime.memcpy2DAsync(x.ptr + 64, 128, x.ptr + 2048 + 8, 256, 24, 4, MEMCPY_DEVICE_TO_DEVICE, x.stream)
    if captured:
        graph = x.runtime.streamEndCapture(x.stream)
        executable = x.runtime.graphInstantiate(graph, 0)
        x.runtime.graphLaunch(executable, x.stream)
        x.runtime.streamSynchronize(x.stream)
        x.runtime.graphExecDestroy(executable)
        x.runtime.graphDestroy(graph)
    x.runtime.streamSynchronize(x.stream)
    x.runtime.memcpy(result.ctypes.data, x.ptr, 4096, MEMCPY_DEVICE_TO_HOST)
    source[0:4, 8:11] = source[16:24:2, 1:4]
    np.testing.assert_array_equal(result, source)


@pytest.mark.alone
def test_memory_is_given_back(runtime: Runtime) -> None:
    free, total = runtime.memGetInfo()
    ptr = runtime.malloc(64 << 20)
    assert runtime.memGetInfo() == (free - (64 << 20), total)
    runtime.free(ptr)
    assert runtime.memGetInfo() == (free, total)


def test_a_busy_stream_and_its_event_are_not_ready_before_the_work_is_complete(x: Fixtures) -> None:
    x.backend.sleep(LONG, x.stream)
    x.runtime.eventRecord(x.event, x.stream)
    assert x.runtime.streamQuery(x.stream) == 600
    assert x.runtime.eventQuery(x.event) == 600
    assert x.runtime.streamQuery(x.other) == 0
    x.runtime.eventSynchronize(x.event)
    assert x.runtime.eventQuery(x.event) == 0
    assert x.runtime.streamQuery(x.stream) == 0


@pytest.mark.parametrize("flags", [STREAM_DEFAULT, STREAM_NON_BLOCKING], ids=["blocking", "non-blocking"])
def test_the_device_waits_for_the_work_of_a_destroyed_stream(x: Fixtures, flags: int) -> None:
    stream = x.runtime.streamCreateWithPriority(flags, 0)
    x.backend.sleep(LONG, stream)
    x.runtime.eventRecord(x.event, stream)
    x.runtime.streamDestroy(stream)
    assert x.runtime.eventQuery(x.event) == 600
    x.runtime.deviceSynchronize()
    assert x.runtime.eventQuery(x.event) == 0


def test_a_polling_loop_ends(x: Fixtures) -> None:
    x.backend.sleep(1_000_000, x.stream)
    polls = 0
    while x.runtime.streamQuery(x.stream) == 600:
        polls += 1
    assert polls > 0


def test_each_thread_has_its_own_current_device_and_stream(runtime: Runtime, backend: Backend) -> None:
    last = runtime.getDeviceCount() - 1
    seen: list[object] = []

    def other_thread() -> None:
        runtime.setDevice(last)
        seen.append(runtime.getDevice())
        seen.append(backend.current_stream().ptr)

    in_thread(other_thread)
    assert seen == [last, 0]
    assert runtime.getDevice() == 0


MODES = {"global": CAPTURE_GLOBAL, "thread local": CAPTURE_THREAD_LOCAL, "relaxed": CAPTURE_RELAXED}

# The status of each call during a capture on x.stream, in (global, thread local, relaxed) mode.
IN_A_CAPTURE: dict[str, tuple[tuple[int, int, int], Callable[[Fixtures], object]]] = {
    "synchronize the stream": ((900, 900, 900), lambda x: x.runtime.streamSynchronize(x.stream)),
    "synchronize the device": ((900, 900, 900), lambda x: x.runtime.deviceSynchronize()),
    "synchronize another stream": ((900, 900, 0), lambda x: x.runtime.streamSynchronize(x.other)),
    "synchronize the null stream": ((900, 900, 0), lambda x: x.runtime.streamSynchronize(0)),
    "synchronize a captured event": ((907, 907, 907), lambda x: synchronize_captured(x)),
    "synchronize another event": ((900, 900, 0), lambda x: x.runtime.eventSynchronize(x.event)),
    "malloc": ((900, 900, 0), lambda x: x.runtime.free(x.runtime.malloc(512))),
    "register": ((900, 900, 0), lambda x: register_and_unregister(x)),
    "wait for an event from outside": ((905, 905, 905), lambda x: wait_for_outside(x)),
    "wait for an unrecorded event": ((0, 0, 0), lambda x: x.runtime.streamWaitEvent(x.stream, x.event)),
    "elapsed time of captured events": ((907, 907, 907), lambda x: elapsed_captured(x)),
    "let the null stream wait for a captured event": ((906, 906, 906), lambda x: null_waits_for_captured(x)),
    "begin again": ((401, 401, 401), lambda x: x.runtime.streamBeginCapture(x.stream, 0)),
    "record on another stream": ((0, 0, 0), lambda x: x.runtime.eventRecord(x.event, x.other)),
    "record on the null stream": ((0, 0, 0), lambda x: x.runtime.eventRecord(x.event, 0)),
    "copy on the stream": ((0, 0, 0), lambda x: x.runtime.memcpyAsync(x.ptr, x.ptr + 256, 10, 3, x.stream)),
    "copy on another stream": ((0, 0, 0), lambda x: x.runtime.memcpyAsync(x.ptr, x.ptr + 256, 10, 3, x.other)),
    "set on the stream": ((0, 0, 0), lambda x: x.runtime.memsetAsync(x.ptr, 0, 10, x.stream)),
    "create and destroy an event": (
        (0, 0, 0),
        lambda x: x.runtime.eventDestroy(x.runtime.eventCreateWithFlags(EVENT_DISABLE_TIMING)),
    ),
    "ask for the memory": ((0, 0, 0), lambda x: x.runtime.memGetInfo()),
    "set the device": ((0, 0, 0), lambda x: x.runtime.setDevice(0)),
    "instantiate and destroy a graph": (
        (0, 0, 0),  # CUDA forbids both calls. The protocol allows both, because a graph may be destroyed at any time.
        lambda x: x.runtime.graphExecDestroy(x.runtime.graphInstantiate(x.graph, 0)),
    ),
    "launch a graph": ((900, 900, 900), lambda x: x.runtime.graphLaunch(x.executable, x.stream)),
    "launch a graph on another stream": ((0, 0, 0), lambda x: x.runtime.graphLaunch(x.executable, x.other)),
    "launch a graph on the null stream": ((0, 0, 0), lambda x: x.runtime.graphLaunch(x.executable, 0)),
    "keep another stream busy": ((0, 0, 0), lambda x: x.backend.sleep(1, x.other)),
}
# These calls fail without an effect on the capture. Every other failure invalidates the capture.
HARMLESS = {"elapsed time of captured events", "begin again"}


def synchronize_captured(x: Fixtures) -> None:
    x.runtime.eventRecord(x.event, x.stream)
    x.runtime.eventSynchronize(x.event)


def register_and_unregister(x: Fixtures) -> None:
    x.runtime.hostRegister(x.host.ctypes.data, x.host.nbytes, 0)
    x.runtime.hostUnregister(x.host.ctypes.data)


def wait_for_outside(x: Fixtures) -> None:
    x.runtime.eventRecord(x.event, x.other)
    x.runtime.streamWaitEvent(x.stream, x.event)


def elapsed_captured(x: Fixtures) -> None:
    for event in x.timed:
        x.runtime.eventRecord(event, x.stream)
    x.runtime.eventElapsedTime(*x.timed)


def null_waits_for_captured(x: Fixtures) -> None:
    x.runtime.eventRecord(x.event, x.stream)
    x.runtime.streamWaitEvent(0, x.event)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", IN_A_CAPTURE)
def test_a_capture_forbids_what_cuda_forbids(x: Fixtures, what: str, mode: str) -> None:
    statuses, call = IN_A_CAPTURE[what]
    expected = statuses[MODES[mode]]
    x.runtime.streamBeginCapture(x.stream, MODES[mode])
    assert status_of(lambda: call(x)) == expected
    after = 901 if expected != 0 and what not in HARMLESS else 0  # 901: the call has invalidated the capture
    assert status_of(lambda: x.runtime.streamIsCapturing(x.stream)) == after
    assert status_of(lambda: x.runtime.graphDestroy(x.runtime.streamEndCapture(x.stream))) == after
    assert x.runtime.streamIsCapturing(x.stream) is False


@pytest.mark.parametrize(
    ("mode", "which", "status"),
    [
        ("global", "stream", 900),
        ("relaxed", "stream", 900),
        ("global", "other", 900),
        ("relaxed", "other", 0),
    ],
)
def test_a_query_in_a_capture_answers_with_a_status(x: Fixtures, mode: str, which: str, status: int) -> None:
    x.runtime.streamBeginCapture(x.stream, MODES[mode])
    assert x.runtime.streamQuery(getattr(x, which)) == status
    assert status_of(lambda: x.runtime.streamEndCapture(x.stream)) == (901 if status else 0)


def fork_and_join(x: Fixtures, *, join: bool) -> None:
    """Let x.other join the capture on x.stream, and capture work on x.other."""
    x.runtime.eventRecord(x.event, x.stream)
    x.runtime.streamWaitEvent(x.other, x.event)
    x.backend.sleep(1, x.other)
    if join:
        x.runtime.eventRecord(x.event, x.other)
        x.runtime.streamWaitEvent(x.stream, x.event)


def test_a_capture_spreads_by_events_and_ends_on_all_joined_streams(x: Fixtures) -> None:
    x.runtime.streamBeginCapture(x.stream, CAPTURE_RELAXED)
    fork_and_join(x, join=True)
    assert x.runtime.streamIsCapturing(x.other)
    x.runtime.graphDestroy(x.runtime.streamEndCapture(x.stream))
    assert not x.runtime.streamIsCapturing(x.other)
    assert x.runtime.streamQuery(x.other) == 0
    assert x.runtime.eventQuery(x.event) == 1  # the event is no longer part of a capture


def test_captured_work_does_not_run(x: Fixtures) -> None:
    ones, result = np.ones(8), np.zeros(8)
    x.runtime.memcpy(x.ptr, ones.ctypes.data, 64, MEMCPY_HOST_TO_DEVICE)
    x.runtime.streamBeginCapture(x.stream, CAPTURE_RELAXED)
    x.runtime.memsetAsync(x.ptr, 0, 64, x.stream)
    x.runtime.memcpyAsync(x.ptr, x.ptr + 1024, 64, MEMCPY_DEVICE_TO_DEVICE, x.stream)
    x.runtime.graphDestroy(x.runtime.streamEndCapture(x.stream))
    x.runtime.deviceSynchronize()
    x.runtime.memcpy(result.ctypes.data, x.ptr, 64, MEMCPY_DEVICE_TO_HOST)
    np.testing.assert_array_equal(result, ones)


def test_work_that_was_not_joined_is_refused(x: Fixtures) -> None:
    x.runtime.streamBeginCapture(x.stream, CAPTURE_RELAXED)
    fork_and_join(x, join=False)
    assert status_of(lambda: x.runtime.streamEndCapture(x.stream)) == 904
    assert not x.runtime.streamIsCapturing(x.other)


def test_a_capture_must_end_on_the_stream_where_it_began(x: Fixtures) -> None:
    x.runtime.streamBeginCapture(x.stream, CAPTURE_RELAXED)
    fork_and_join(x, join=True)
    assert status_of(lambda: x.runtime.streamEndCapture(x.other)) == 903
    assert status_of(lambda: x.runtime.streamEndCapture(x.stream)) == 901


def test_two_captures_do_not_merge(x: Fixtures) -> None:
    x.runtime.streamBeginCapture(x.stream, CAPTURE_RELAXED)
    x.runtime.streamBeginCapture(x.other, CAPTURE_RELAXED)
    x.runtime.eventRecord(x.event, x.stream)
    assert status_of(lambda: x.runtime.streamWaitEvent(x.other, x.event)) == 902
    for stream in (x.stream, x.other):
        assert status_of(lambda stream=stream: x.runtime.streamEndCapture(stream)) == 901  # type: ignore[misc]


@pytest.mark.parametrize(("mode", "status"), [("global", 908), ("thread local", 908), ("relaxed", 0)])
def test_only_a_relaxed_capture_ends_in_another_thread(x: Fixtures, mode: str, status: int) -> None:
    x.runtime.streamBeginCapture(x.stream, MODES[mode])
    assert in_thread(status_of, lambda: x.runtime.streamEndCapture(x.stream)) == status
    assert not x.runtime.streamIsCapturing(x.stream)  # the capture is over in both cases


@pytest.mark.parametrize(("mode", "status"), [("global", 900), ("thread local", 0), ("relaxed", 0)])
def test_a_global_capture_forbids_other_threads_to_allocate(x: Fixtures, mode: str, status: int) -> None:
    x.runtime.streamBeginCapture(x.stream, MODES[mode])
    assert in_thread(status_of, lambda: x.runtime.free(x.runtime.malloc(512))) == status
    assert status_of(lambda: x.runtime.streamEndCapture(x.stream)) == (901 if status else 0)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, value in vars(protocol).items()
        if isinstance(value, int) and name.isupper() and name != "TYPE_CHECKING"
    ],
)
@pytest.mark.gpu
def test_the_constants_equal_cudas(name: str) -> None:
    from cupy.cuda import runtime

    words = name.lower().split("_")
    spelled = words[0] + "".join(word.capitalize() for word in words[1:])
    spelled = {"captureGlobal": "streamCaptureModeGlobal", "captureThreadLocal": "streamCaptureModeThreadLocal",
               "captureRelaxed": "streamCaptureModeRelaxed", "eventRecordExternal": None, "eventWaitExternal": None,
               "captureStatusNone": "streamCaptureStatusNone", "captureStatusActive": "streamCaptureStatusActive",
               "captureStatusInvalidated": "streamCaptureStatusInvalidated",
               "graphAutoFreeOnLaunch": None, "graphDotVerbose": None, "conditionalIf": None, "conditionalWhile": None,
               "ipcLazyEnablePeerAccess": "cudaIpcMemLazyEnablePeerAccess",
               }.get(spelled, spelled)  # fmt: skip
    assert spelled is None or getattr(runtime, spelled) == getattr(protocol, name)


PEER_ACCESS = """
from tcuda import AcceleratorError
from tcuda._process.lazy import cuda

def status_of(call):
    try:
        call(1)
    except AcceleratorError as error:
        return error.error_code
    return 0

print(cuda.deviceCanAccessPeer(0, 1), *map(status_of, [
    cuda.deviceDisablePeerAccess, cuda.deviceEnablePeerAccess, cuda.deviceEnablePeerAccess,
    cuda.deviceDisablePeerAccess, cuda.deviceDisablePeerAccess,
]))
"""


@pytest.mark.multigpu
def test_peer_access_on_two_gpus(output_of: OutputOf) -> None:
    assert output_of(PEER_ACCESS) == "1 705 0 704 0 705"  # in its own process: CuPy enables peer access itself


@pytest.mark.emulated
def test_peer_access_on_two_emulated_devices(output_of: OutputOf) -> None:
    assert output_of(PEER_ACCESS) == "1 705 0 704 0 705"


@pytest.mark.emulated
def test_handles_that_would_crash_cuda_are_refused(runtime: Runtime) -> None:
    stream = runtime.streamCreateWithPriority(STREAM_NON_BLOCKING, 0)
    runtime.streamDestroy(stream)
    assert runtime.streamQuery(stream) == 400
    assert status_of(lambda: runtime.streamSynchronize(stream)) == 400
    assert runtime.streamQuery(0x1234560) == 400
    event = runtime.eventCreateWithFlags(0)
    assert status_of(lambda: runtime.eventRecord(event, 0x1234560)) == 400
    runtime.eventDestroy(event)
