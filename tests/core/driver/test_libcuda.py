"""The table of ``libcuda.so.1``, with a library in place of the driver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import CompiledCpp, OutputOf


class TestLibcuda:
    def test_calls_that_cupy_lacks_reach_the_driver(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
from tcuda import _core

calls = _core.CudaCalls()
assert calls.device_uuid(0) == (0, bytes([7] * 16))
assert calls.device_uuid(1) == (0, bytes([8] * 16))
assert calls.device_uuid(2)[0] == 101
assert calls.stream_priority_range() == (0, 0, -5)
assert calls.event_record_with_flags(5, 6, 1) == 0
assert calls.event_record_with_flags(5, 6, 0) == 400
assert calls.stream_create_with_priority(1, -3) == (0, 19)
assert calls.stream_create_with_priority(2, 0)[0] == 1
assert calls.stream_flags(19) == (0, 1)
assert calls.stream_flags(9)[0] == 400
assert calls.stream_priority(19) == (0, -3)
assert calls.stream_priority(9)[0] == 400
assert calls.graph_dot_print(7, "graph.dot", 1) == 0
assert calls.graph_dot_print(7, "graph.dot", 0) == 304
print("done")
"""
        assert output_of(code, LD_LIBRARY_PATH=driver_stub) == "done"

    def test_only_the_graph_calls_need_a_driver_with_graphs(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
from tcuda import _core

_core.CudaDriver(), _core.CudaCalls()
try:
    _core.CudaGraphs()
except RuntimeError as error:
    print(error)
"""
        expected = "libcuda.so.1 has no cuStreamGetCaptureInfo_v2: the driver is too old"
        assert output_of(code, LD_LIBRARY_PATH=driver_stub) == expected

    def test_without_a_driver_every_user_of_the_table_raises_an_error(
        self, fresh_output_of: OutputOf, tmp_path: Path
    ) -> None:
        (tmp_path / "libcuda.so.1").write_text("no library")
        code = """
from tcuda import _core

kinds = _core.CudaDriver, _core.CudaCalls, _core.CudaGraphs, _core.GreenContexts
for make in (*kinds, lambda: _core.FillKernel(1, 1, 1, 1)):
    try:
        make()
    except RuntimeError as error:
        print(str(error).partition(":")[0])
"""
        output = fresh_output_of(code, LD_LIBRARY_PATH=str(tmp_path))
        assert output.splitlines() == ["libcuda.so.1 cannot be loaded"] * 5

    @pytest.mark.parametrize(
        ("refusal", "handle_types"),
        [(0, "1 1"), (801, "1 0 0"), (2, "1")],
        ids=["allowed", "forbidden", "out of memory"],
    )
    def test_physical_memory_is_exportable_unless_the_driver_forbids_it(
        self, output_of: OutputOf, driver_stub: str, refusal: int, handle_types: str
    ) -> None:
        code = f"""
import ctypes
from tcuda import _core

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_handle_types.restype = ctypes.c_char_p
stub.stub_virtual_memory({refusal})
settings = _core.Settings()
settings.expandable_segments = True
def fail(*arguments, **facts):
    raise MemoryError
ledger = _core.Ledger(_core.CudaDriver(), 2, settings, fail, fail)
try:
    ledger.allocate(1, 200 << 20, 0)  # two pieces
except MemoryError:
    pass
print(stub.stub_handle_types().decode())
"""
        printed = output_of(code, LD_LIBRARY_PATH=driver_stub).splitlines()[-1].strip()
        assert printed.startswith(handle_types)
        assert ("0" in printed) == ("0" in handle_types)

    @pytest.mark.parametrize(
        ("steps", "accessible"),
        [
            ("open(0)", ["7"]),
            ("activate(8); open(0)", ["7,8"]),
            ("open(1); ledger.use(0); ledger.use(0)", ["8", "7"]),
            ("open(0); ledger.allocate_segment(1, 1 << 20)", ["7", "8"]),
            ("ledger.release_imported(0, open(0)); ledger.use(1)", ["7"]),
            ("stub.stub_links(0); activate(7); open(1); ledger.use(0)", ["8"]),
        ],
        ids=["only its own", "active", "used later", "allocates later", "released before", "without a link"],
    )
    def test_devices_in_use_can_access_imported_memory(
        self, output_of: OutputOf, driver_stub: str, steps: str, accessible: list[str]
    ) -> None:
        code = f"""
import ctypes
from tcuda import _core

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_calls.restype = ctypes.c_char_p
stub.stub_links(1)
activate = stub.stub_activate
ledger = _core.Ledger(_core.CudaDriver(), 2, _core.Settings(), print, print)
def open(device):
    return ledger.import_pieces(device, [(3, 1 << 21)])
{steps}
calls = stub.stub_calls().decode().split()
print(*[call.partition(":")[2] for call in calls if call.startswith("cuMemSetAccess")])
"""
        assert output_of(code, LD_LIBRARY_PATH=driver_stub).split() == accessible

    def test_memory_calls_are_made_in_the_context_of_the_device_and_outside_of_captures(
        self, output_of: OutputOf, driver_stub: str
    ) -> None:
        code = """
import ctypes
from tcuda import _core

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_calls.restype = ctypes.c_char_p
ledger = _core.Ledger(_core.CudaDriver(), 2, _core.Settings(), print, print)
ledger.allocate_segment(1, 1 << 20)
stub.stub_forget()
print(ledger.allocate_segment(1, 1 << 20) == 0x10000000)
print(stub.stub_mode())
print(stub.stub_calls().decode())
"""
        allocated, mode, calls = output_of(code, LD_LIBRARY_PATH=driver_stub).splitlines()
        assert (allocated, mode) == ("True", "0")
        enter = ["cuCtxPushCurrent_v2", "cuThreadExchangeStreamCaptureMode"]
        assert calls.split() == [*enter, "cuMemAlloc_v2", enter[1], "cuCtxPopCurrent_v2"]


class TestHostMemory:
    """Page-locked memory, with the calls that the allocator makes of the driver."""

    CODE = """
import ctypes
from tcuda import _core

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_log.restype = ctypes.c_char_p
stub.stub_links(1)
stub.stub_activate(7)  # the first device
ledger = _core.Ledger(_core.CudaDriver(), 2, _core.Settings(), print, print)
def calls():
    found = stub.stub_log().decode().splitlines()
    stub.stub_forget_log()
    return [call.partition(" in ")[0] for call in found]
def allocate(size=3 << 20):
    return _core.allocate_page_locked(ledger, size)
"""

    def test_freed_memory_is_handed_out_after_an_event_behind_all_work(
        self, output_of: OutputOf, driver_stub: str
    ) -> None:
        code = """
block = allocate()
first = block.ptr
print(calls())
del block
print(calls())
stub.stub_keep_busy(1)
block = allocate()
print(block.ptr == first, calls())
stub.stub_keep_busy(0)
again = allocate()
print(again.ptr == first, calls())
del block, again
third = allocate()
print(calls())
del third
ledger.empty_host_cache()
print([call.split()[0] for call in calls()], ledger.host_statistics()["allocated_bytes.current"])
"""
        lines = output_of(self.CODE + code, LD_LIBRARY_PATH=driver_stub).splitlines()
        size = 3 << 20
        assert lines[0] == f"['host_allocate {size} 1']"
        assert lines[1] == "[]"
        assert lines[2].startswith("False ['create 1', 'record_context ")
        assert lines[2].endswith(f" 1', 'query 1', 'host_allocate {size} 1']")
        assert lines[3] == "True ['query 1']"
        assert lines[4].startswith("['record_context ")
        assert lines[4].endswith(" 1', 'query 1']")  # the event is used again, and only the active device is asked
        assert lines[5].endswith("'host_free', 'host_free'] 0")

    def test_an_older_driver_is_waited_for(
        self, fresh_output_of: OutputOf, compiled_cpp: CompiledCpp, tmp_path: Path
    ) -> None:
        Path(compiled_cpp("driver_stub", "-DWITHOUT_CONTEXT_EVENTS")).rename(tmp_path / "libcuda.so.1")
        code = """
stub.stub_calls.restype = ctypes.c_char_p
block = allocate()
first = block.ptr
del block
stub.stub_forget()
print(allocate().ptr == first, "cuCtxSynchronize" in stub.stub_calls().decode())
"""
        assert fresh_output_of(self.CODE + code, LD_LIBRARY_PATH=str(tmp_path)) == "True True"

    def test_a_graph_tells_the_memory_of_the_host_that_it_copies(
        self, fresh_output_of: OutputOf, compiled_cpp: CompiledCpp, tmp_path: Path
    ) -> None:
        Path(compiled_cpp("driver_stub", "-DWITH_GRAPHS")).rename(tmp_path / "libcuda.so.1")
        code = "from tcuda import _core; print(_core.CudaGraphs().contents(1))"
        assert fresh_output_of(code, LD_LIBRARY_PATH=str(tmp_path)) == str((0, 1, [0x70000, 0x80000]))

    def test_pages_of_the_process_are_locked(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
ledger.change_host_settings(True, 2, 0, False)
block = allocate()
del block
ledger.empty_host_cache()
print([call.split()[0] for call in calls() if "register" in call])
"""
        assert output_of(self.CODE + code, LD_LIBRARY_PATH=driver_stub) == "['register', 'unregister']"


class TestGreenContexts:
    PROGRAM = """
import ctypes
from tcuda import _core

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_log.restype = ctypes.c_char_p
stub.stub_links(1)

def log():
    text = stub.stub_log().decode()
    stub.stub_forget_log()
    return [line.removesuffix(" in 7") for line in text.splitlines()]

contexts = _core.GreenContexts()
"""

    def test_a_context_is_made_of_a_group_of_multiprocessors_and_of_work_queues(
        self, output_of: OutputOf, driver_stub: str
    ) -> None:
        code = """
assert contexts.create(1, 12, -1, 0) == (0, 201, 16)
assert log() == ["resource 8 1", "split 0 12", "with 1:16,8,8 ", "describe 1", "green 201 300 8 1"], log()
assert contexts.create(0, 0, 1, 0) == (0, 202, 132)
assert log() == ["resource 7 1", "resource 7 1000", "with 1000:7,32,1 ", "describe 1", "green 202 300 7 1"]
assert contexts.create(0, 8, 0, 5) == (0, 203, 8)
assert log()[3:] == ["with 1:8,8,8 1000:7,5,0 ", "describe 2", "green 203 300 7 1"]
assert contexts.create(0, 132, -1, 0) == (0, 204, 132)
assert log() == ["resource 7 1", "with 1:132,8,8 ", "describe 1", "green 204 300 7 1"]
assert contexts.work_queue_concurrency(1) == (0, 32)
assert contexts.create(2, 8, -1, 0)[0] == contexts.work_queue_concurrency(2)[0] == 101
assert contexts.create(0, 130, -1, 0)[0] == 915
print("done")
"""
        assert output_of(self.PROGRAM + code, LD_LIBRARY_PATH=driver_stub) == "done"

    def test_each_call_of_the_driver_may_fail(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
for name in ("resource", "split", "describe", "green"):
    stub.stub_fail(name.encode())
    assert contexts.create(0, 8, 0, 1)[0] == 719, name
    assert (name == "green") == any(line.startswith("green") for line in log()), name
stub.stub_fail(b"resource")
assert contexts.work_queue_concurrency(0)[0] == 719
stub.stub_fail(b"green_stream")
assert contexts.create_stream(201, 1, 0)[0] == 719
log()
for name in ("synchronize", "stream_destroy", "green_destroy"):
    stub.stub_fail(name.encode())
    one, other = (contexts.create_stream(201, 1, 0)[1] for _ in range(2))
    log()
    assert contexts.destroy(201) == 719, name
    assert log() == [f"synchronize {one}", f"stream_destroy {one}", f"synchronize {other}", f"stream_destroy {other}",
                     "green_destroy 201"]
print("done")
"""
        assert output_of(self.PROGRAM + code, LD_LIBRARY_PATH=driver_stub) == "done"

    def test_streams_of_a_context(self, output_of: OutputOf, driver_stub: str) -> None:
        code = """
assert contexts.create_stream(201, 1, -2) == (0, 301)
assert log() == ["green_stream 201 1 18446744073709551614"]
assert contexts.destroy(201) == 0
assert log() == ["synchronize 301", "stream_destroy 301", "green_destroy 201"]
assert contexts.destroy(201) == 0
assert log() == ["green_destroy 201"]
assert stub.stub_mode() == 0  # the thread has its own capture mode again
print("done")
"""
        assert output_of(self.PROGRAM + code, LD_LIBRARY_PATH=driver_stub) == "done"


class TestCurrentDevice:
    PREPARATION = """
import ctypes, os, threading
from tcuda import _core

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_use.argtypes = [ctypes.c_size_t]
asked = []

def ask():
    asked.append(threading.get_ident())
    return 1

device = _core.current_device_call(ask)
"""

    def test_with_a_context_the_driver_knows_the_device(self, fresh_output_of: OutputOf, driver_stub: str) -> None:
        code = f"""{self.PREPARATION}
for context in (7, 8, 7):
    stub.stub_use(context)
    print(device())
stub.stub_use(99)  # of a device that the process does not see
print(device(), len(asked))
stub.stub_use(7)
"""
        assert fresh_output_of(code, LD_LIBRARY_PATH=driver_stub).splitlines() == ["0", "1", "0", "1 1"]

    def test_without_a_context_each_thread_asks_the_runtime_once(
        self, fresh_output_of: OutputOf, driver_stub: str
    ) -> None:
        code = f"""{self.PREPARATION}
def ask_often():
    stub.stub_use(0)
    assert [device() for _ in range(3)] == [1, 1, 1]
    stub.stub_use(7)

for _ in range(2):
    thread = threading.Thread(target=ask_often)
    thread.start()
    thread.join()
print(len(asked))
"""
        assert fresh_output_of(code, LD_LIBRARY_PATH=driver_stub) == "2"

    def test_a_thread_that_had_a_context_asks_the_runtime_again(
        self, fresh_output_of: OutputOf, driver_stub: str
    ) -> None:
        code = f"""{self.PREPARATION}
devices = []
for context in (8, 0, 0):
    stub.stub_use(context)
    devices.append(device())
stub.stub_use(7)
print(devices, len(asked))
"""
        assert fresh_output_of(code, LD_LIBRARY_PATH=driver_stub) == "[1, 1, 1] 2"

    def test_a_forked_child_always_asks_the_runtime(self, fresh_output_of: OutputOf, driver_stub: str) -> None:
        code = f"""{self.PREPARATION}
stub.stub_use(7)
assert device() == 0
child = os.fork()
if child == 0:
    os._exit(10 * device() + len(asked))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        assert fresh_output_of(code, LD_LIBRARY_PATH=driver_stub) == "11"

    def test_an_error_of_the_runtime_is_raised(self, fresh_output_of: OutputOf, driver_stub: str) -> None:
        code = f"""{self.PREPARATION}
def refuse():
    raise ValueError("no device")

stub.stub_use(0)
for call in (_core.current_device_call(refuse), lambda: device(1)):
    try:
        call()
    except (TypeError, ValueError) as error:
        print(error)
stub.stub_use(7)
"""
        assert fresh_output_of(code, LD_LIBRARY_PATH=driver_stub).splitlines() == [
            "no device",
            "getDevice() takes no arguments",
        ]

    def test_without_a_driver_the_runtime_is_asked(self, fresh_output_of: OutputOf, tmp_path: Path) -> None:
        (tmp_path / "libcuda.so.1").write_text("no library")
        code = """
from tcuda import _core

device = _core.current_device_call(lambda: 3)
print(device(), device())
"""
        assert fresh_output_of(code, LD_LIBRARY_PATH=str(tmp_path)) == "3 3"
