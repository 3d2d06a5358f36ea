"""The errors of arrays that cannot be shared."""

from __future__ import annotations

import os
import pickle
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
import tcuda.multiprocessing
from support import receivers
from support.folders import TESTS
from tcuda._base.statuses import Status
from tcuda.multiprocessing import _connections, _mappings, _messages, _segments, _wire

if TYPE_CHECKING:
    from support.fixture_types import OutputOf
    from support.receivers import Worker
    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime


def test_memory_of_another_library_is_refused(xp: Any, runtime: Runtime, backend: Backend) -> None:
    address = runtime.malloc(512)
    try:
        memory = backend.foreign_memory(None, address, 512, 0)
        array = backend.array_in(memory, 0, (4,), "f4", (4,))
        with pytest.raises(RuntimeError, match=r"was not allocated by tcuda.*array\.copy\(\)"):
            ForkingPickler.dumps(array)
        del array, memory
    finally:
        runtime.free(address)
    assert tcuda.multiprocessing.unreceived() == 0


REFUSED = """
import tcuda, tcuda.multiprocessing
from multiprocessing.reduction import ForkingPickler
array = tcuda.xp.arange(4)
try:
    ForkingPickler.dumps(array)
except RuntimeError as error:
    print(error)
print(tcuda.multiprocessing.unreceived())
"""


def test_memory_of_the_asynchronous_allocator_is_refused(output_of: OutputOf) -> None:
    lines = output_of(REFUSED, TCUDA_ALLOC_CONF="backend:cudaMallocAsync").splitlines()
    assert "comes from 'cudaMallocAsync', and CUDA opens it in no other process" in lines[0]
    assert lines[1] == "0"


def test_another_refusal_of_the_driver_is_not_told_as_the_backends(
    xp: Any, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(ptr: int) -> bytes:
        raise tcuda.AcceleratorError(Status.NOT_SUPPORTED, f"cudaIpcGetMemHandle({ptr:#x})")

    monkeypatch.setattr(_segments, "cuda", SimpleNamespace(ipcGetMemHandle=refuse))
    with pytest.raises(RuntimeError, match="cannot be shared: CUDA error: operation not supported") as raised:
        _segments._handle(0, 4096)
    assert "comes from" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (Status.MEMORY_ALLOCATION, "This process has no room for the memory."),
        (Status.OPERATING_SYSTEM, "Containers need the same PID and IPC namespaces"),
    ],
)
def test_the_advice_for_memory_that_cannot_be_opened_is_that_of_its_cause(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, status: Status, advice: str
) -> None:
    def refuse(*args: object) -> int:
        raise tcuda.AcceleratorError(status, "cudaIpcOpenMemHandle(1)")

    monkeypatch.setattr(_mappings, "_open", refuse)
    segment = _segments.Segment(_segments.HANDLE, b"", ((0, 512),))
    with pytest.raises(RuntimeError, match="The memory of the process 1 cannot be opened") as raised:
        _mappings.open_segment(_wire.Address("tcuda-1-none", 1), 0, segment, lambda count: [])
    assert str(raised.value).splitlines()[-1].startswith(advice)


SHARED = """
import tcuda
from support import receivers
with receivers.worker() as worker:
    array = tcuda.xp.arange(4)
    print(worker.call(receivers.copied, array).tolist(), worker.call(receivers.echo, array).data.ptr == array.data.ptr)
"""


@pytest.mark.long
@pytest.mark.parametrize("conf", ["backend:cupy", "expandable_segments:False", "expandable_segments:True"])
def test_memory_of_the_other_backends_is_shared(output_of: OutputOf, conf: str) -> None:
    code = f"import tcuda.multiprocessing{SHARED}"
    assert output_of(code, TCUDA_ALLOC_CONF=conf, PYTHONPATH=str(TESTS)) == "[0, 1, 2, 3] True"


def test_a_device_that_the_receiver_does_not_see(xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if tcuda.device_count() < 2:
        pytest.skip("needs two devices")
    monkeypatch.setenv("TCUDA_EMULATED_DEVICES", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0])
    with receivers.worker() as receiver:
        with tcuda.device(1):
            array = xp.arange(4)
        uuid = tcuda.get_device_properties(1).uuid
        with pytest.raises(RuntimeError, match=f"device GPU-{uuid}, which this process does not see"):
            receiver.call(receivers.copied, array)
        with pytest.raises(RuntimeError, match="does not see"):
            receiver.call(receivers.copied, array[:0])
        assert tcuda.multiprocessing.unreceived() == 0  # the message has ended with the error
        with tcuda.device(0):
            assert receiver.call(receivers.copied, xp.arange(2)).tolist() == [0, 1]


def test_a_message_of_another_runtime() -> None:
    with pytest.raises(RuntimeError, match=r"runtime 'other', and this process uses .* Set TCUDA_RUNTIME"):
        _messages.device_of("other", b"")


def test_processes_of_other_users(xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    array = xp.arange(4)
    ForkingPickler.dumps(array)
    address = _messages.server().address
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 12345)
        with pytest.raises(RuntimeError, match=f"sent by the process {os.getpid()} of another user"):
            _connections.connection_to(address)
    assert tcuda.multiprocessing.withdraw(array) == 1


def test_a_server_refuses_other_users(xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    running = _messages.server()
    with monkeypatch.context() as patch:
        patch.setattr(_wire, "user_of", lambda connected: os.geteuid() + 1)
        with pytest.raises(PermissionError):
            _wire.connect(running.address)
        running.settle()
    connected = _wire.connect(running.address)
    _wire.send(connected, [1, "unknown"])
    answer, _ = _wire.receive(connected)
    connected.close()
    assert answer[:2] == [1, "failed"]
    assert "different versions of tcuda" in answer[2]


def test_a_capturing_stream_neither_sends_nor_receives(xp: Any, worker: Worker) -> None:
    array, side = xp.arange(4), tcuda.Stream()
    message = bytes(ForkingPickler.dumps(array))
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph, stream=side):
        array += 1
        with pytest.raises(tcuda.AcceleratorError, match="sending an array") as refused:
            ForkingPickler.dumps(array)
        assert "send the array after the capture" in str(refused.value)
        with pytest.raises(tcuda.AcceleratorError, match="receiving an array"):
            pickle.loads(message)
    graph.replay()
    tcuda.synchronize()
    worker.call(receivers.load, "array", message)
    assert worker.call(receivers.elements, "array") == [1, 2, 3, 4]


FORKED = """
import os, pickle, sys
import tcuda, tcuda.multiprocessing
from multiprocessing.reduction import ForkingPickler
array = tcuda.xp.arange(4)
message = bytes(ForkingPickler.dumps(array))
received = pickle.loads(bytes(ForkingPickler.dumps(array)))
sys.stdout.flush()
child = os.fork()
if not child:
    try:
        pickle.loads(message)
    except RuntimeError as error:
        print(str(error)[:47], flush=True)
    try:
        ForkingPickler.dumps(array)
    except RuntimeError as error:
        print(str(error)[:47], flush=True)
    print(tcuda.multiprocessing.unreceived(), flush=True)
    del array, received
    os._exit(0)
os.waitpid(child, 0)
print(tcuda.multiprocessing.unreceived(), array.get().tolist())
"""


def test_a_forked_child_shares_nothing(output_of: OutputOf) -> None:
    refused = "Cannot re-initialize CUDA in forked subprocess."
    assert output_of(FORKED).splitlines() == [refused, refused, "0", "0 [0, 1, 2, 3]"]


def test_collecting_without_shared_arrays_changes_nothing(fresh_output_of: OutputOf) -> None:
    code = "import sys, tcuda; tcuda.ipc_collect(); print('multiprocessing' in vars(tcuda), tcuda.is_initialized())"
    assert fresh_output_of(code) == "False True"


def test_memory_that_other_processes_may_use_does_not_sleep(xp: Any, worker: Worker) -> None:
    array, address = xp.arange(10), "array"
    message = bytes(ForkingPickler.dumps(array))
    with pytest.raises(RuntimeError, match="other processes may use arrays of the pool"):
        tcuda.memory.sleep()
    worker.call(receivers.load, address, message)
    with pytest.raises(RuntimeError, match="other processes may use arrays of the pool"):
        tcuda.memory.sleep()
    assert not tcuda.memory.is_asleep()
    assert worker.call(receivers.elements, address) == list(range(10))
    worker.call(receivers.drop)
    worker.call(receivers.collect)
    tcuda.ipc_collect()
    tcuda.memory.sleep()
    with pytest.raises(RuntimeError, match="asleep"):
        ForkingPickler.dumps(array)
    tcuda.memory.wake()
    worker.call(receivers.load, address, bytes(ForkingPickler.dumps(array)))
    assert worker.call(receivers.elements, address) == list(range(10)) == array.get().tolist()
