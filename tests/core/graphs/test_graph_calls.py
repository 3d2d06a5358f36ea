"""The calls of the driver for the nodes of graphs, with a library in place of the driver."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import CompiledCpp, OutputOf

PREPARATION = """
import ctypes
from tcuda import _core

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_log.restype = ctypes.c_char_p
nodes = _core.ConditionalNodes()

def log():
    for line in stub.stub_log().decode().splitlines():
        print(line)
    stub.stub_forget_log()
"""


class TestNodeReader:
    CODE = """
from tcuda import _core

reader = _core.NodeReader()
print(reader.read(1999), reader.number_of(1))
status, nodes = reader.read(2000)
for node in (status, *nodes):
    print(node)
"""

    def test_reads_types_numbers_names_events_and_edges(self, output_of: OutputOf, graph_driver_stub: str) -> None:
        number = 5 << 32
        assert output_of(self.CODE, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == [
            "(1, []) (0, 6)",
            "0",
            f"(0, {number + 10}, b'of_function', 0, [])",
            f"(0, {number + 11}, b'of_kernel', 0, [])",
            f"(2, {number + 12}, b'', 0, [0, 1])",
            f"(7, {number + 13}, b'', 9, [])",
            f"(6, {number + 14}, b'', 9, [2])",
        ]

    def test_gives_zeros_if_the_driver_has_no_numbers(
        self, fresh_output_of: OutputOf, compiled_cpp: CompiledCpp, tmp_path: Path
    ) -> None:
        shutil.move(compiled_cpp("graph_driver_stub", "-DWITHOUT_NUMBERS"), tmp_path / "libcuda.so.1")
        lines = fresh_output_of(self.CODE, LD_LIBRARY_PATH=str(tmp_path)).splitlines()
        assert lines[0] == "(1, []) (0, 0)"
        assert [line.split(", ")[1] for line in lines[2:]] == ["0"] * 5


class TestConditionalNodes:
    @pytest.mark.parametrize("size", [1, 4])
    def test_a_node_comes_after_a_kernel_that_reads_the_flag(
        self, output_of: OutputOf, graph_driver_stub: str, size: int
    ) -> None:
        code = f"""{PREPARATION}
print(nodes.add(11, 1, 4096, {size}))
log()
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == [
            "(0, 88, 1001)",
            "handle 1000 7 0 0 in 7",
            "load 1 2 in 7",
            f"tcuda_set_conditional_{size} 607 in 7",
            "kernel 88 4096 in 7",
            "node 1000 502 1 13 88 1 1 7 in 7",
            "dependencies 11 503 1 1 in 7",
        ]

    def test_the_kernels_are_loaded_once_in_each_context_and_captures_forbid_no_loading(
        self, output_of: OutputOf, graph_driver_stub: str
    ) -> None:
        code = f"""{PREPARATION}
for context in (7, 8, 7):
    stub.stub_use(context)
    assert nodes.set(11, 88, 4096, 1) == 0
assert stub.stub_mode() == 0
log()
"""
        lines = [
            line for line in output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() if line.startswith("load")
        ]
        assert lines == ["load 1 2 in 7", "load 1 2 in 8"]

    def test_a_body_is_captured_without_dependencies(self, output_of: OutputOf, graph_driver_stub: str) -> None:
        code = f"""{PREPARATION}
print(nodes.begin_capture_to_graph(12, 1001, 2))
log()
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == ["0", "capture 12 1001 1 0 2 in 7"]

    def test_a_stream_that_does_not_capture_gets_no_node(self, output_of: OutputOf, graph_driver_stub: str) -> None:
        code = f"""{PREPARATION}
print(nodes.add(12, 0, 4096, 1)[0])
stub.stub_capture_status(2)
print(nodes.add(11, 0, 4096, 1)[0])
log()
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == ["401", "901"]

    @pytest.mark.parametrize("call", ["handle", "load", "kernel", "node", "dependencies"])
    def test_a_failure_is_returned_and_ends_the_calls(
        self, output_of: OutputOf, graph_driver_stub: str, call: str
    ) -> None:
        code = f"""{PREPARATION}
stub.stub_fail({call.encode()!r})
print(nodes.add(11, 0, 4096, 1)[0])
print(stub.stub_log().decode().splitlines()[-1].split()[0])
assert stub.stub_mode() == 0
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == ["719", call]

    def test_kernels_that_could_not_be_loaded_are_loaded_at_the_next_call(
        self, output_of: OutputOf, graph_driver_stub: str
    ) -> None:
        code = f"""{PREPARATION}
stub.stub_fail(b"load")
print(nodes.set(11, 88, 4096, 1))
stub.stub_fail(b"")
print(nodes.set(11, 88, 4096, 1))
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == ["719", "0"]


class TestCapturesOfGraphs:
    PREPARATION = """
import ctypes
from tcuda import _core

class Streams:
    def capture_of(self, device, stream):
        if stream == 26:
            raise MemoryError
        return 77 if stream == 22 else 0
    def record_device(self, device): return 1
    def query(self, device, event): return 0
    def destroy_event(self, device, event): return 0

class Capture:
    number, ended = 0, None

def refuse(*failure): raise RuntimeError(failure)

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_log.restype = ctypes.c_char_p
ledger = _core.Ledger(
    _core.EmulatedDriver([_core.EmulatedMemory(1 << 26)], Streams()), 1, _core.Settings(), refuse, refuse
)
graphs, capture, pool = _core.CudaGraphs(), Capture(), (5, 0)
older = ledger.allocate(0, 1000, 22)
stub.stub_argument(ctypes.c_size_t(older + 8))

def begin(): return graphs.begin_graph(ledger, pool, capture, 22, 0, 2)
def end(flags=1, keep=False, bodies=()):
    return graphs.end_graph(ledger, capture, 77, 22, 0, bodies, flags, keep)
def show(*values):
    print(*values, capture.number, capture.ended, ledger.has_capture(77))
    print(stub.stub_log().decode(), end="")
    stub.stub_forget_log()
"""

    @pytest.mark.wings
    def test_the_driver_and_the_ledger_begin_and_end_a_capture(
        self, output_of: OutputOf, graph_driver_stub: str
    ) -> None:
        code = f"""{self.PREPARATION}
show(begin())
inner = ledger.allocate(0, 1000, 22)
ledger.free(older)
status, call = end()
assert capture.ended[3] == [older]
capture.ended = capture.ended[:3]
show(status)
print(ledger.allocate(0, 1000, 22) != older)
ledger.free(inner)
ledger.release_graph(pool, [older], False)
print(ledger.allocate(0, 1000, 22) == older)
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == [
            "0 77 None True",
            "begin 22 2 in 7",
            "0 77 (0, 3000, 5) False",
            "end 22 in 7",
            "instantiate 2000 1 2 in 7",
            "destroy 2000 in 7",
            "True",
            "True",
        ]

    @pytest.mark.wings
    def test_the_nodes_are_kept_and_no_executable_graph_is_made_if_the_caller_wants_so(
        self, output_of: OutputOf, graph_driver_stub: str
    ) -> None:
        code = f"""{self.PREPARATION}
stub.stub_argument(ctypes.c_size_t(0))
begin()
show(end(None, True)[0])
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == [
            "0 77 (2000, 0, 5, []) False",
            "begin 22 2 in 7",
            "end 22 in 7",
        ]

    @pytest.mark.wings
    def test_a_begin_that_the_driver_refuses_changes_nothing(self, output_of: OutputOf, graph_driver_stub: str) -> None:
        code = f"""{self.PREPARATION}
stub.stub_fail(b"begin")
show(begin())
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == [
            "719 0 None False",
            "begin 22 2 in 7",
        ]

    @pytest.mark.wings
    @pytest.mark.parametrize("failure", ["ledger", "number"])
    def test_a_begin_that_fails_later_ends_the_capture(
        self, output_of: OutputOf, graph_driver_stub: str, failure: str
    ) -> None:
        stream = 26 if failure == "ledger" else 22
        code = f"""{self.PREPARATION}
capture = object() if {failure!r} == "number" else capture  # which takes no number
try:
    graphs.begin_graph(ledger, pool, capture, {stream}, 0, 2)
except (AttributeError, MemoryError) as error:
    print(type(error).__name__, ledger.has_capture(77))
print(stub.stub_log().decode(), end="")
stub.stub_fail(b"")
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == [
            "MemoryError False" if failure == "ledger" else "AttributeError False",
            f"begin {stream} 2 in 7",
            f"end {stream} in 7",
            "destroy 2000 in 7",
        ]

    @pytest.mark.wings
    @pytest.mark.parametrize(
        ("failing", "call", "calls"),
        [
            ("end", "cuStreamEndCapture", []),
            ("instantiate", "cuGraphInstantiateWithFlags", ["instantiate 2000 1 2 in 7", "destroy 2000 in 7"]),
        ],
    )
    def test_an_end_that_fails_leaves_the_capture_of_the_ledger(
        self, output_of: OutputOf, graph_driver_stub: str, failing: str, call: str, calls: list[str]
    ) -> None:
        code = f"""{self.PREPARATION}
begin()
stub.stub_forget_log()
stub.stub_fail({failing.encode()!r})
show(*end())
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == [
            f"719 {call} 77 None True",
            "end 22 in 7",
            *calls,
        ]

    @pytest.mark.wings
    def test_a_body_that_cannot_be_read_fails_the_end(self, output_of: OutputOf, graph_driver_stub: str) -> None:
        code = f"""{self.PREPARATION}
begin()
stub.stub_forget_log()
show(*end(bodies=[1]))
"""
        assert output_of(code, LD_LIBRARY_PATH=graph_driver_stub).splitlines() == [
            "1 cuGraphGetNodes 77 None True",
            "end 22 in 7",
            "destroy 2000 in 7",
        ]
