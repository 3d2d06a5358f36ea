"""What a launch does with memory: the sources of knowledge, their order, and the extents."""

from __future__ import annotations

import gc
import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.core import for_tests
from support.launches import (
    BOTH,
    NONE,
    READ,
    WRITE,
    Launches,
    array_pointer,
    carray,
    layout,
    number,
    pointer,
    rest,
)
from support.stand_in_driver import Arguments, Extra, Function
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from support.launches import Uses

    Views = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]

A, B, C, SIZE = 0x7F0000100000, 0x7F0000200000, 0x7F0000300000, 0x1000


@pytest.fixture
def memory(launches: Launches) -> Launches:
    """A reader, and three live allocations."""
    for address in (A, B, C):
        launches.own(address, SIZE)
    return launches


def region(address: int, size: int, kind: int, label: str = "") -> _core.RaceUse:
    """Return the region of a note."""
    return (address, 1, (size,), (1,), kind, label)


def noted(use: _core.RaceUse, confidence: str = "exact") -> _core.RaceUse:
    """Return the use of the region of a note."""
    return (*use[:6], confidence)


class TestUnknownKernels:
    def test_each_word_that_points_into_live_memory_may_be_read_and_written(self, memory: Launches) -> None:
        assert memory.uses(number(A), number(7), number(B + 0x10)) == [
            rest(A, A + SIZE),
            rest(B + 0x10, B + SIZE),
        ]

    @pytest.mark.parametrize("value", [0, 1, 0xFFFF, A - 1, A + SIZE, B + SIZE, 2**63, -1, 2**64 - 1])
    def test_a_number_that_points_into_no_live_memory_is_no_pointer(self, memory: Launches, value: int) -> None:
        assert memory.uses(number(value)) == []

    def test_freed_memory_is_not_live(self, memory: Launches) -> None:
        memory.watch.detector.memory_freed(A)
        assert memory.uses(number(A), number(B)) == [rest(B, B + SIZE)]
        memory.own(A, SIZE // 2)
        assert memory.uses(number(A)) == [rest(A, A + SIZE // 2)]

    def test_words_in_structures_are_pointers_where_they_are_aligned_in_the_block(self, memory: Launches) -> None:
        function = memory.kernel()
        values = [b"\1\0\0\0", b"\0\0\0\0" + number(A) + b"\0\0\0\0" + number(B), number(C)]
        memory.driver.functions[function] = Function(1, b"kernel", [(0, 4), (4, 24), (32, 8)])
        assert memory.uses(*values, function=function) == [rest(A, A + SIZE), rest(C, C + SIZE)]

    def test_several_pointers_into_an_allocation_are_one_use_from_the_first(self, memory: Launches) -> None:
        for places in itertools.permutations((8, 256, 512)):
            assert memory.uses(*(number(A + place) for place in places)) == [rest(A + 8, A + SIZE)]

    def test_a_parameter_block_is_read_as_the_list_is(self, memory: Launches) -> None:
        values = (b"\1", number(A), b"\2\0", number(B + 8))
        assert memory.uses_of_block(*values) == memory.uses(*values) == [rest(A, A + SIZE), rest(B + 8, B + SIZE)]

    def test_a_block_that_is_too_short_is_read_as_far_as_it_goes(self, memory: Launches) -> None:
        function = memory.kernel(number(A), number(B))
        assert memory.uses_of_block(number(A), b"\0\0\0\0", function=function) == [rest(A, A + SIZE)]

    def test_a_kernel_without_parameters_uses_nothing(self, memory: Launches) -> None:
        assert memory.reader.uses(memory.kernel(), "kernel", 0) == ("kernel", [])

    def test_without_the_sizes_of_parameters_a_list_is_not_read(self) -> None:
        launches = Launches(without=["cuFuncGetParamInfo"])
        launches.own(A, SIZE)
        function = launches.kernel(number(A))
        assert launches.uses(number(A), function=function) == []
        assert launches.uses_of_block(number(1), number(A), function=function) == [rest(A, A + SIZE)]

    def test_a_function_without_a_name_is_a_kernel(self) -> None:
        launches = Launches(without=["cuFuncGetName"])
        assert launches.reader.uses(launches.kernel(), None, 0) == ("kernel", [])

    def test_the_driver_tells_the_name_of_a_function(self, memory: Launches) -> None:
        assert memory.reader.uses(memory.kernel(name="scale"), None, 0) == ("scale", [])


class TestDescriptions:
    def test_a_description_tells_kinds_and_labels(self, memory: Launches) -> None:
        values = [number(A), number(B), number(C)]
        pointers = [pointer(0, READ, "x"), pointer(8, WRITE, "y", possible=True), pointer(16, NONE, "z")]
        memory.table.describe_kernel(1, "kernel", layout(values), pointers, True)
        assert memory.uses(*values) == [rest(A, A + SIZE, READ, "x"), rest(B, B + SIZE, WRITE, "y")]
        assert memory.uses_of_block(*values) == memory.uses(*values)

    def test_other_words_of_a_complete_kernel_are_no_pointers(self, memory: Launches) -> None:
        values = [number(A), number(B)]
        memory.table.describe_kernel(1, "kernel", layout(values), [pointer(0, READ, "x")], True)
        assert memory.uses(*values) == [rest(A, A + SIZE, READ, "x")]

    def test_other_words_of_an_incomplete_kernel_may_be_pointers(self, memory: Launches) -> None:
        values = [number(A), number(B), number(C)]
        pointers = [pointer(0, READ, "x"), pointer(8, NONE)]
        memory.table.describe_kernel(1, "kernel", layout(values), pointers, False)
        assert memory.uses(*values) == [rest(A, A + SIZE, READ, "x"), rest(C, C + SIZE)]

    def test_a_described_pointer_counts_only_if_it_points_into_live_memory(self, memory: Launches) -> None:
        array = np.zeros((2, 3))
        values = [number(A - 1), carray(array, 0x7F0000900000)]
        pointers = [pointer(0, READ, "x"), array_pointer(8, WRITE, array, "y")]
        memory.table.describe_kernel(1, "kernel", layout(values), pointers, True)
        assert memory.uses(*values) == []

    def test_a_description_belongs_to_a_module_and_a_name(self, memory: Launches) -> None:
        values = [number(A)]
        memory.table.describe_kernel(1, "other", layout(values), [pointer(0, READ, "x")], True)
        memory.table.describe_kernel(2, "kernel", layout(values), [pointer(0, READ, "x")], True)
        assert memory.uses(*values) == [rest(A, A + SIZE)]
        second = memory.kernel(*values, module=2)
        assert memory.uses(*values, function=second) == [rest(A, A + SIZE, READ, "x")]

    def test_a_description_after_the_first_launch_counts(self, memory: Launches) -> None:
        function = memory.kernel(number(A))
        assert memory.uses(number(A), function=function) == [rest(A, A + SIZE)]
        memory.table.describe_kernel(1, "kernel", [(0, 8)], [pointer(0, READ, "x")], True)
        assert memory.uses(number(A), function=function) == [rest(A, A + SIZE, READ, "x")]

    def test_a_module_that_is_unloaded_is_forgotten(self, memory: Launches) -> None:
        function = memory.kernel(number(A))
        memory.table.describe_kernel(1, "kernel", [(0, 8)], [pointer(0, READ, "x")], True)
        assert memory.uses(number(A), function=function) == [rest(A, A + SIZE, READ, "x")]
        memory.reader.module_unloaded(1)
        assert memory.table.sizes()["functions"] == memory.table.sizes()["modules"] == 0
        assert memory.uses(number(A), function=function) == [rest(A, A + SIZE)]

    def test_a_handle_that_is_another_function_by_now_is_read_anew(self, memory: Launches) -> None:
        function = memory.kernel(number(A))
        memory.table.describe_kernel(1, "kernel", [(0, 8)], [pointer(0, READ, "x")], True)
        memory.uses(number(A), function=function)
        memory.driver.functions[function] = Function(1, b"other", [(0, 8)])
        assert memory.uses(number(A), function=function, name="other") == [rest(A, A + SIZE)]

    def test_a_kernel_of_a_library_is_described_by_the_library(self, memory: Launches) -> None:
        memory.driver.functions[0x9000] = Function(3, b"kernel", [(0, 8)], is_kernel=True)
        memory.driver.functions[0x9001] = Function(4, b"kernel", [(0, 8)])
        memory.table.describe_kernel(3, "kernel", [(0, 8)], [pointer(0, READ, "x")], True)
        assert memory.uses(number(A), function=0x9000) == [rest(A, A + SIZE, READ, "x")]

    def test_a_pointer_outside_of_the_kernels_parameters_makes_the_description_incomplete(
        self, memory: Launches
    ) -> None:
        pointers = [pointer(0, READ, "x"), pointer(8, WRITE, "y"), pointer(400, WRITE, "z")]
        memory.table.describe_kernel(1, "kernel", [(0, 8), (8, 8), (400, 8)], pointers, True)
        values = [number(A), b"\0\0\0\0", b"\0\0\0\0", number(B)]
        assert memory.uses(*values) == [rest(A, A + SIZE, READ, "x"), rest(B, B + SIZE)]

    def test_the_surface_fills_the_table_of_the_process(self) -> None:
        launches = Launches()
        table = for_tests.kernel_table()
        reader = for_tests.LaunchReader(launches.watch.detector, table, launches.driver.addresses())
        launches.own(A, SIZE)
        module = 0xABCD
        function = launches.kernel(number(A), module=module)
        arguments = Arguments(number(A))
        _core.describe_kernel(module, "kernel", [(0, 8)], [pointer(0, READ, "x")], True)
        try:
            assert reader.uses(function, "kernel", arguments.address)[1] == [rest(A, A + SIZE, READ, "x")]
        finally:
            _core.forget_module(module)
        assert reader.uses(function, "kernel", arguments.address)[1] == [rest(A, A + SIZE)]
        _core.add_ptx(module, b".version 8.0")
        _core.add_ptx(module, ".version 8.0")
        _core.forget_module(module)

    def test_an_unknown_kind_is_refused(self, memory: Launches) -> None:
        with pytest.raises(ValueError, match=r"the kind of a pointer is 0 \(none\)"):
            memory.table.describe_kernel(1, "kernel", [(0, 8)], [pointer(0, 4)], True)


VIEWS: dict[str, Views] = {
    "whole": lambda array: array,
    "transposed": lambda array: array.T,
    "sliced": lambda array: array[1:4, ::2],
    "reversed": lambda array: array[::-1],
    "reversed in both": lambda array: array[::-2, ::-3],
    "broadcast": lambda array: np.broadcast_to(array[0], (5, 7)),
    "one item": lambda array: array[2:3, 3:4],
    "without dimensions": lambda array: array[2, 3],
    "diagonal": lambda array: np.einsum("ii->i", array[:, :6]),
    "column": lambda array: array[:, 4],
}


class TestArrays:
    @pytest.mark.parametrize("view_of", VIEWS.values(), ids=VIEWS.keys())
    def test_the_extent_of_a_view_is_exact(self, launches: Launches, view_of: Views) -> None:
        array = np.zeros((6, 7))
        view = np.asarray(view_of(array)) if np.ndim(view_of(array)) else array[2:3, 3:4].reshape(())
        launches.hold(array)
        values = [b"\5\0\0\0", carray(view)]
        pointers = [array_pointer(8, WRITE, view, "out")]
        launches.table.describe_kernel(1, "kernel", layout(values), pointers, True)
        address = view.__array_interface__["data"][0]
        expected = [(address, 8, view.shape, view.strides, WRITE, "out", "exact")]
        assert launches.uses(*values) == expected
        assert launches.uses_of_block(*values) == expected

    def test_views_that_share_no_bytes_do_not_race(self, launches: Launches) -> None:
        array = np.zeros((6, 8))
        launches.hold(array)
        first, second = launches.watch.streams(2)
        even, odd, both = carray(array[:, ::2]), carray(array[:, 1::2]), carray(array[:, :4])
        launches.table.describe_kernel(1, "kernel", layout([even]), [array_pointer(0, WRITE, array, "out")], True)
        function = launches.kernel(even)
        launches.launch(first, function, even)
        launches.launch(second, function, odd)
        assert launches.watch.races == []
        launches.launch(second, function, both)
        (race,) = launches.watch.races
        assert (race.kind, race.previous.label, race.current.label) == ("write after write", "out", "out")

    @pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0, 2)])
    def test_an_array_without_items_is_not_used(self, memory: Launches, shape: tuple[int, ...]) -> None:
        array = np.zeros(shape)
        values = [carray(array, A)]
        memory.table.describe_kernel(1, "kernel", layout(values), [array_pointer(0, WRITE, array)], True)
        assert memory.uses(*values) == []

    @pytest.mark.parametrize(
        ("shape", "strides"),
        [
            ((513,), (8,)),
            ((2,), (SIZE,)),
            ((2,), (-8,)),
            ((-1,), (8,)),
            ((2**62, 2**62), (2**62, 2**62)),
            ((3,), (-(2**63),)),
            ((2**63 - 1,), (2**63 - 1,)),
        ],
    )
    def test_an_array_that_leaves_the_allocation_has_no_known_extent(
        self, memory: Launches, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        values = [b"".join(map(number, (A, 1, *shape, *strides)))]
        pointers = [(0, WRITE, False, len(shape), 8, "out")]
        memory.table.describe_kernel(1, "kernel", layout(values), pointers, True)
        assert memory.uses(*values) == [rest(A, A + SIZE, WRITE, "out")]

    def test_a_stride_of_one_item_may_have_any_value(self, memory: Launches) -> None:
        values = [b"".join(map(number, (A, 4, 4, 1, 8, -(2**63))))]
        memory.table.describe_kernel(1, "kernel", layout(values), [(0, READ, False, 2, 8, "x")], True)
        assert memory.uses(*values) == [(A, 8, (4, 1), (8, -(2**63)), READ, "x", "exact")]

    @pytest.mark.parametrize("dimensions", [3, 60, 1000, 10**9])
    def test_a_description_with_more_dimensions_than_the_parameter_has_no_extent(
        self, memory: Launches, dimensions: int
    ) -> None:
        values = [carray(np.zeros((4, 4)), A)]
        memory.table.describe_kernel(1, "kernel", layout(values), [(0, READ, False, dimensions, 8, "x")], True)
        assert memory.uses(*values) == [rest(A, A + SIZE, READ, "x")]
        assert memory.uses_of_block(*values) == [rest(A, A + SIZE, READ, "x")]


class TestNotes:
    def test_a_note_gives_the_extent_of_a_pointer(self, memory: Launches) -> None:
        values = [number(A), number(B + 16)]
        pointers = [pointer(0, READ, "x"), pointer(8, WRITE)]
        memory.table.describe_kernel(1, "kernel", layout(values), pointers, True)
        notes = [("", False, [(region(A, 64, BOTH, "a"), True, False), (region(B, 128, BOTH, "b"), True, False)])]
        assert memory.uses(*values, notes=notes) == [
            noted(region(A, 64, READ, "x")),
            noted(region(B, 128, WRITE, "b")),
        ]

    def test_a_note_gives_an_unknown_kernel_extents_only(self, memory: Launches) -> None:
        notes = [("", False, [(region(A, 64, READ, "a"), True, False)])]
        assert memory.uses(number(A), number(B), notes=notes) == [
            noted(region(A, 64, BOTH, "a"), "possible"),
            rest(B, B + SIZE),
        ]

    def test_the_notes_of_an_inner_scope_come_first(self, memory: Launches) -> None:
        memory.table.describe_kernel(1, "kernel", [(0, 8)], [pointer(0, READ, "x")], True)
        inner = ("", False, [(region(A, 64, BOTH), True, False)])
        outer = ("", False, [(region(A, 256, BOTH), True, False)])
        assert memory.uses(number(A), notes=[outer, inner]) == [noted(region(A, 64, READ, "x"))]

    def test_a_view_with_gaps_does_not_hold_what_lies_in_the_gaps(self, memory: Launches) -> None:
        memory.table.describe_kernel(1, "kernel", [(0, 8)], [pointer(0, READ, "x")], True)
        view = (A, 8, (4,), (32,), BOTH, "a")
        notes = [("", False, [(view, True, False)])]
        assert memory.uses(number(A + 16), notes=notes) == [rest(A + 16, A + SIZE, READ, "x")]
        assert memory.uses(number(A + 32), notes=notes) == [(A, 8, (4,), (32,), READ, "x", "exact")]

    def test_an_array_that_the_kernel_describes_needs_no_note(self, memory: Launches) -> None:
        array = np.zeros((2, 3))
        values = [carray(array, A)]
        memory.table.describe_kernel(1, "kernel", layout(values), [array_pointer(0, READ, array, "x")], True)
        notes = [("", False, [(region(A, 8, BOTH), True, False)])]
        assert memory.uses(*values, notes=notes) == [(A, 8, (2, 3), (24, 8), READ, "x", "exact")]

    def test_an_annotation_is_all_that_counts(self, memory: Launches) -> None:
        memory.table.describe_kernel(1, "kernel", [(0, 8), (8, 8)], [pointer(0, WRITE), pointer(8, WRITE)], True)
        annotation = ("", True, [(region(C, 64, READ, "c"), True, True)])
        inner = ("gemm", False, [(region(A, 64, WRITE), True, True)])
        for notes in ([annotation], [annotation, inner], [inner, annotation]):
            assert memory.uses(number(A), number(B), notes=notes) == [noted(region(C, 64, READ, "c"))]

    def test_an_annotation_counts_before_the_detector_knows_memory(self, launches: Launches) -> None:
        annotation = ("", True, [(region(C, 64, READ, "c"), True, True)])
        assert launches.uses(number(A), notes=[annotation]) == [noted(region(C, 64, READ, "c"))]

    def test_an_annotation_without_a_kind_leaves_the_kind_to_the_kernel(self, memory: Launches) -> None:
        pointers = [pointer(0, READ), pointer(8, WRITE), pointer(16, NONE)]
        values = [number(A), number(A + 8), number(B)]
        memory.table.describe_kernel(1, "kernel", layout(values), pointers, True)
        memory_of = [(region(address, 64, BOTH, "x"), True, False) for address in (A, B, C)]
        assert memory.uses(*values, notes=[("", True, memory_of)]) == [
            noted(region(A, 64, BOTH, "x")),
            noted(region(C, 64, BOTH, "x"), "possible"),
        ]

    def test_an_annotation_without_an_extent_is_of_the_rest_of_the_allocation(self, memory: Launches) -> None:
        gone = region(0x7F0000900000, 8, WRITE)
        notes = [("", True, [(region(A + 8, 8, WRITE, "x"), False, True), (gone, False, True)])]
        assert memory.uses(number(B), notes=notes) == [rest(A + 8, A + SIZE, WRITE, "x")]

    def test_a_library_call_names_the_operation_and_its_memory(self, memory: Launches) -> None:
        function = memory.kernel(number(A), number(B))
        arguments = Arguments(number(A), number(B + 8))
        call = [
            (region(A, 64, READ, "A"), True, True),
            (region(B, 64, WRITE, "C"), True, True),
            (region(C, 64, READ, "B"), True, True),
        ]
        name, uses = memory.reader.uses(function, "kernel", arguments.address, notes=[("cublasSgemm", False, call)])
        assert name == "cublasSgemm"
        assert uses == [
            noted(region(A, 64, READ, "A")),
            noted(region(B, 64, WRITE, "C")),
            noted(region(C, 64, READ, "B"), "possible"),  # no word of the parameters points there
        ]

    def test_a_library_call_may_have_addresses_of_the_host(self, memory: Launches) -> None:
        """A factor or the place of a result may lie on the stack of the thread: that is no memory of the detector."""
        host = 0x7FFF00001000
        call = [
            (region(host, 4, READ, "alpha"), True, True),
            (region(A, 64, WRITE, "C"), True, True),
            (region(host + 8, 4, WRITE, "result"), True, True),
            (region(host + 16, 4, BOTH, "buffer"), True, False),
        ]
        assert memory.uses(number(A), notes=[("cublasSdot", False, call)]) == [noted(region(A, 64, WRITE, "C"))]

    def test_a_description_is_trusted_more_than_a_library_call(self, memory: Launches) -> None:
        memory.table.describe_kernel(1, "kernel", [(0, 8)], [pointer(0, READ, "x")], True)
        call = [(region(A, 64, WRITE, "A"), True, True)]
        assert memory.uses(number(A), notes=[("call", False, call)]) == [noted(region(A, 64, READ, "x"))]


class Analyses:
    """An analysis of PTX that tells what it is given, and counts its calls."""

    def __init__(self) -> None:
        self.ptx: list[bytes] = []

    def of_ptx(self, text: bytes) -> Uses:
        """Every kernel that the text names after a space reads its first parameter."""
        self.ptx.append(text)
        if b"broken" in text:
            raise ValueError("broken")
        return {name.decode(): ([(0, 8)], [pointer(0, READ, "ptx")], True) for name in text.split()[1:]}


class TestCode:
    @pytest.fixture
    def analyses(self) -> Analyses:
        return Analyses()

    @pytest.fixture
    def code(self, analyses: Analyses) -> Launches:
        launches = Launches(of_ptx=analyses.of_ptx)
        launches.own(A, SIZE)
        return launches

    def label(self, launches: Launches, *, name: str = "kernel", module: int = 1, notes: _core._Scopes = ()) -> str:
        function = launches.kernel(number(A), name=name, module=module)
        ((_, _, _, _, _, label, _),) = launches.uses(number(A), function=function, name=name, notes=notes)
        return label

    def test_the_sources_in_the_order_of_trust(self, code: Launches) -> None:
        call: _core._Scopes = [("call", False, [(region(A, 64, READ, "library"), True, True)])]
        annotation: _core._Scopes = [("", True, [(region(A, 64, READ, "annotation"), True, True)])]
        assert self.label(code) == ""
        code.table.add_ptx(1, b"ptx kernel")
        assert self.label(code) == "ptx"
        assert self.label(code, notes=call) == "library"
        code.table.describe_kernel(1, "kernel", [(0, 8)], [pointer(0, READ, "description")], True)
        assert self.label(code, notes=call) == "description"
        assert self.label(code, notes=[*annotation, *call]) == "annotation"

    def test_a_kernel_whose_code_is_known_may_use_a_part_of_an_array_only(self, code: Launches) -> None:
        note: _core._Scopes = [("", False, [(region(A, 64, BOTH, "x"), True, False)])]
        code.table.add_ptx(1, b"ptx kernel")
        assert code.uses(number(A), notes=note) == [noted(region(A, 64, READ, "ptx"), "possible")]
        code.table.describe_kernel(1, "kernel", [(0, 8)], [pointer(0, READ, "description")], True)
        assert code.uses(number(A), notes=note) == [noted(region(A, 64, READ, "description"))]

    def test_code_is_analysed_once_and_only_if_a_kernel_needs_it(self, code: Launches, analyses: Analyses) -> None:
        code.table.describe_kernel(1, "described", [(0, 8)], [pointer(0, READ, "description")], True)
        code.table.add_ptx(1, b"ptx first second")
        assert self.label(code, name="described") == "description"
        assert analyses.ptx == []
        for name in ("first", "second", "first", "unknown", "unknown"):
            self.label(code, name=name)
        assert analyses.ptx == [b"ptx first second"]

    def test_no_kernel_is_read_before_the_detector_knows_memory(self, analyses: Analyses) -> None:
        code = Launches(of_ptx=analyses.of_ptx)
        code.table.add_ptx(1, b"ptx kernel")
        function = code.kernel(number(A))
        assert code.uses(number(A), function=function) == []
        assert (analyses.ptx, code.table.sizes()["functions"]) == ([], 0)
        code.own(B, SIZE)
        code.own(A, SIZE)
        assert code.uses(number(A), function=function) == [rest(A, A + SIZE, READ, "ptx")]
        assert analyses.ptx == [b"ptx kernel"]

    def test_a_text_that_cannot_be_read_tells_nothing(self, code: Launches, analyses: Analyses) -> None:
        code.table.add_ptx(1, b"ptx broken")
        assert self.label(code) == ""
        assert self.label(code) == ""
        assert len(analyses.ptx) == 1

    def test_a_text_that_a_program_loads_is_the_ptx_of_the_module(self, code: Launches, analyses: Analyses) -> None:
        for module, text in enumerate((b"  \n// kernel\0", b".version kernel\0", b"\x7fELF kernel\0"), 1):
            image = Extra(text)
            code.reader.module_loaded(module, image.block)
            assert self.label(code, module=module) == ("ptx" if module < 3 else "")
        assert analyses.ptx == [b"  \n// kernel", b".version kernel"]

    def test_a_module_that_is_loaded_anew_has_nothing_of_the_one_before(self, code: Launches) -> None:
        code.table.add_ptx(1, b"ptx kernel")
        assert self.label(code) == "ptx"
        code.reader.module_loaded(1, 0)
        assert self.label(code) == ""


class TestBounds:
    def test_launches_keep_the_size(self, memory: Launches) -> None:
        (stream,) = memory.watch.streams(1)
        array = np.zeros((4, 5))
        values = [carray(array, A), carray(array, B), carray(array, C)]
        pointers = [array_pointer(64 * place, 1 + place % 2, array, "xyz"[place]) for place in range(3)]
        assert [offset for offset, _ in layout(values)] == [0, 48, 96]
        pointers = [(48 * place, *found[1:]) for place, found in enumerate(pointers)]
        memory.table.describe_kernel(1, "kernel", layout(values), pointers, True)
        function, arguments = memory.kernel(*values), Arguments(*values)
        sizes = []
        for _ in range(2):
            memory.reader.launch(0, stream, function, "kernel", arguments.address, count=50_000)
            sizes.append({**for_tests.sizes_of_detector(memory.watch.detector), **memory.table.sizes()})
        assert sizes[0] == sizes[1]
        assert sizes[0]["accesses"] == 3
        assert memory.watch.races == []

    def test_a_hot_launch_asks_the_driver_nothing(self, memory: Launches) -> None:
        function, arguments = memory.kernel(number(A)), Arguments(number(A))
        memory.reader.uses(function, "kernel", arguments.address)
        memory.driver.asked.clear()
        memory.reader.seconds(function, "kernel", arguments.address, 1000)
        assert memory.driver.asked == {}

    def test_modules_that_come_and_go_leave_nothing(self, memory: Launches) -> None:
        for turn in range(300):
            module = 1 + turn % 7
            memory.reader.module_loaded(module, 0)
            memory.table.describe_kernel(module, "kernel", [(0, 8)], [pointer(0, READ)], True)
            memory.table.add_ptx(module, b"ptx kernel")
            memory.uses(number(A), function=memory.kernel(number(A), module=module))
            memory.reader.module_unloaded(module)
        gc.collect()
        assert set(memory.table.sizes().values()) == {0}
