"""Changes of graphs through the driver, with a library in place of the driver."""

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
stub.stub_word.restype = ctypes.c_size_t
stub.stub_prepare()
changes = _core.GraphChanges()

def words():
    return [hex(stub.stub_word(which)) for which in range(11)]

def log():
    lines = [line.removesuffix(" in 7") for line in stub.stub_log().decode().splitlines()]
    stub.stub_forget_log()
    return lines

def move(begin, end, offset, block_begin, block_end, exec=900):
    status, nodes, doubtful, addresses, result, place = changes.move(
        [3000], exec, begin, end, offset, block_begin, block_end)
    print(status, nodes, doubtful, [hex(address) for address in addresses], result, place)

before = words()
"""

ARRAY = "0x100000, 0x100210, 0x50000, 0x100000, 0x100210"
"""The arguments of a move of the whole allocation that all nodes use."""


@pytest.fixture
def lines_of(fresh_output_of: OutputOf, compiled_cpp: CompiledCpp, tmp_path: Path) -> Lines:
    """A function that returns the lines that a program prints, with the stub in place of the driver."""
    shutil.move(compiled_cpp("graph_changes_stub"), tmp_path / "libcuda.so.1")
    return lambda code: fresh_output_of(PREPARATION + code, LD_LIBRARY_PATH=str(tmp_path)).splitlines()


class TestMove:
    def test_changes_pointers_in_kernels_structures_copies_fills_and_child_graphs(self, lines_of: Lines) -> None:
        addresses, words, log, mode = lines_of(f"""
move({ARRAY})
print(words())
print(log())
print(stub.stub_mode())
""")
        # A structure ends with 4 bytes, which are no pointer. An end of a copy in memory of the host is not moved. An
        # int and the value of a fill are no addresses.
        assert words == str(
            [
                *("0x150000", "0x200000", "0x150100", "0x100108", "0x100000"),
                *("0x150010", "0x1500ff", "0x100000", "0x150200", "0x100000", "0x150020"),
            ]
        )
        moved = ["0x150000", "0x150010", "0x150020", "0x1500ff", "0x150100", "0x150200", "0x200000", "0x300000"]
        assert addresses == f"0 5 -1 {moved} 0 -1"
        assert log == str(["kernel 30", "kernel 31", "kernel 35", "copy 32", "fill 33", "update 900 3000"])
        assert mode == "0"

    def test_without_an_executable_graph_updates_none(self, lines_of: Lines) -> None:
        assert "update" not in lines_of(f"move({ARRAY}, exec=0)\nprint(log())")[1]

    def test_goes_to_lower_addresses(self, lines_of: Lines) -> None:
        assert (
            lines_of("""
move(0x100010, 0x100018, -0x8000 % 2**64, 0x100010, 0x100018)
print(words()[5])
""")[1]
            == "0xf8010"
        )

    def test_of_addresses_that_no_node_has_changes_nothing(self, lines_of: Lines) -> None:
        first, *rest = lines_of("""
move(0x700000, 0x700010, 0x10, 0x700000, 0x700010)
print(words() == before, log())
""")
        assert first.startswith("0 0 -1 ")
        assert rest == ["True []"]

    @pytest.mark.parametrize(
        ("begin", "doubtful"), [("0x100010", 0), ("0x100100", 0)], ids=["a pointer", "a structure"]
    )
    def test_of_a_part_of_an_allocation_names_a_node_that_uses_another_part(
        self, lines_of: Lines, begin: str, doubtful: int
    ) -> None:
        first, *rest = lines_of(f"""
move({begin}, {begin} + 8, 0x5000, 0x100000, 0x100210)
print(words() == before, log())
""")
        assert first.split()[2] == str(doubtful)
        assert rest == ["True []"]

    def test_of_a_part_that_only_a_child_graph_doubts_names_the_node_of_the_child(self, lines_of: Lines) -> None:
        assert lines_of("move(0x100018, 0x10001c, 8, 0x100018, 0x100028)")[0].split()[2] == "4"

    def test_changes_pointers_in_the_buffer_of_all_arguments(self, lines_of: Lines) -> None:
        first, log = lines_of(f"""
stub.stub_use_buffer()
move({ARRAY})
print(log())
""")
        assert first.startswith("0 5 -1 ['0x150000', '0x150010',")
        assert f"buffer 7 {0x150010}" in log

    @pytest.mark.parametrize("node", [30, 31, 32, 33, 35])
    def test_that_a_node_refuses_leaves_all_nodes_as_they_were(self, lines_of: Lines, node: int) -> None:
        first, *rest = lines_of(f"""
stub.stub_refuse({node})
move({ARRAY})
print(words() == before, any("update" in line for line in log()))
""")
        assert first.split()[0] == "1"
        assert rest == ["True False"]

    def test_that_the_executable_graph_refuses_leaves_all_nodes_as_they_were(self, lines_of: Lines) -> None:
        first, *rest = lines_of(f"""
stub.stub_fail_update(910)
move({ARRAY})
print(words() == before, stub.stub_mode())
""")
        assert first.split()[0] == "910"
        assert first.endswith(" 5 2")  # the parameters of the copy
        assert rest == ["True 0"]


class TestUpdate:
    def test_names_the_reason_and_the_node(self, lines_of: Lines) -> None:
        assert lines_of("""
print(changes.update(900, 3000))
stub.stub_fail_update(910)
print(changes.update(900, 3000))
print(log(), stub.stub_mode())
""") == ["(0, 0, -1)", "(910, 5, 2)", "['update 900 3000', 'update 900 3000'] 0"]


class TestEnabled:
    def test_nodes_are_switched_by_their_places(self, lines_of: Lines) -> None:
        assert lines_of("""
print(changes.is_enabled(900, 3000, 1), changes.set_enabled(900, 3000, 1, False), changes.is_enabled(900, 3000, 1))
print(changes.is_enabled(900, 3000, 0), changes.is_enabled(900, 3000, 4)[0], changes.set_enabled(900, 3000, 5, True))
""") == ["(0, True) 0 (0, False)", "(0, True) 1 1"]
