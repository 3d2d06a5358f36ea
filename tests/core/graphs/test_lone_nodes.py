"""Copies of single nodes and notes of captured nodes, with a library in place of the driver."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.fixture_types import CompiledCpp, OutputOf

    Lines = Callable[[str], list[str]]

PREPARATION = """
import ctypes
from tcuda import _core

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_log.restype = ctypes.c_char_p

def log():
    lines = [line.removesuffix(" in 7") for line in stub.stub_log().decode().splitlines()]
    stub.stub_forget_log()
    return lines
"""


@pytest.fixture
def lines_of(fresh_output_of: OutputOf, compiled_cpp: CompiledCpp, tmp_path: Path) -> Lines:
    """A function that returns the lines that a program prints, with the stub in place of the driver."""
    shutil.move(compiled_cpp("lone_nodes_stub"), tmp_path / "libcuda.so.1")
    return lambda code: fresh_output_of(PREPARATION + code, LD_LIBRARY_PATH=str(tmp_path)).splitlines()


class TestLoneNodes:
    def test_copies_each_type_of_node_with_its_parameters(self, lines_of: Lines) -> None:
        code = """
nodes = _core.LoneNodes()
for place in range(10):
    print(place, nodes.copy(4000, place), log())
print(nodes.copy(4000, 10), nodes.copy(3999, 0), log())
"""
        refused = ["create 0", "destroy 4100"]
        assert lines_of(code) == [
            f"0 (0, 4100) {['create 0', f'kernel 4100 1 0 17 {0x200000}', 'attributes 50 40']}",
            f"1 (0, 4100) {['create 0', f'copy 4100 0 {0x500000} {0x400000} 24 7']}",
            f"2 (0, 4100) {['create 0', f'fill 4100 0 {0x600000} 8 7']}",
            f"3 (0, 4100) {['create 0', 'host 4100 0 9']}",
            f"4 (801, 0) {refused}",
            f"5 (0, 4100) {['create 0', 'empty 4100 0']}",
            f"6 (0, 4100) {['create 0', 'wait 4100 0 8']}",
            f"7 (0, 4100) {['create 0', 'record 4100 0 9']}",
            f"8 (801, 0) {refused}",
            f"9 (801, 0) {refused}",
            "(1, 0) (1, 0) []",
        ]

    @pytest.mark.parametrize(("place", "call"), [(0, "kernel"), (0, "attributes"), (1, "copy"), (0, "create")])
    def test_a_failure_leaves_no_graph(self, lines_of: Lines, place: int, call: str) -> None:
        code = f"""
stub.stub_fail({call.encode()!r})
print(_core.LoneNodes().copy(4000, {place})[0], log()[-1])
"""
        assert lines_of(code) == [f"719 {'create 0' if call == 'create' else 'destroy 4100'}"]

    def test_finds_child_graphs(self, lines_of: Lines) -> None:
        code = "nodes = _core.LoneNodes()\nprint(nodes.child(4000, 4), nodes.child(4000, 0)[0])"
        assert lines_of(code) == ["(0, 4001) 1"]

    def test_gives_the_addresses_in_the_order_of_the_parameters(self, lines_of: Lines) -> None:
        code = "print(_core.LoneNodes().addresses(4100))"
        assert lines_of(code) == [str((0, [0x300000, 0x200000, 0x500000, 0x400000, 0x600000]))]


class TestNotedNodes:
    def test_give_new_nodes_a_note_in_any_order_of_the_driver(self, lines_of: Lines) -> None:
        code = """
nodes = _core.NotedNodes()
print(nodes.note(11, 1), nodes.note(13, 1))
for which, node in ((0, 71), (0, 72), (1, 81)):
    stub.stub_capture(which, node)
print(nodes.note(11, 1), nodes.note(12, 2), nodes.note(11, 3))
stub.stub_capture_first(0, 73)
print(nodes.note(11, 4))
stub.stub_capture(0, 74)
stub.stub_capture_status(2)
print(nodes.note(11, 5))
print(nodes.notes_of(5000), nodes.notes_of(6000), nodes.notes_of(7000))
"""
        assert lines_of(code) == ["0 0", "2 1 0", "1", "0", "(0, [4, 1, 1, 0]) (0, [2]) (1, [])"]

    def test_a_look_without_new_nodes_reads_no_nodes(self, lines_of: Lines) -> None:
        code = """
stub.stub_calls.restype = ctypes.c_char_p
nodes = _core.NotedNodes()
stub.stub_capture(0, 71)
nodes.note(11, 1)
stub.stub_forget()
nodes.note(11, 2)
print(stub.stub_calls().decode().split())
"""
        assert lines_of(code) == ["['cuStreamGetCaptureInfo_v2', 'cuGraphGetNodes']"]
