"""The arrays that a program gives to a raw kernel are noted around the call."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from support.core import for_tests
from support.threads import in_thread
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESS = 0x7_0000_0000


class Memory:
    """Stands for an allocation."""

    ptr, size = ADDRESS, 1000


class Pointer:
    """Stands for CuPy's class of pointers."""

    def __init__(self, offset: int = 0) -> None:
        self.mem, self.ptr = Memory(), ADDRESS + offset


class Array:
    """Stands for CuPy's class of arrays."""

    def __init__(self, shape: tuple[int, ...] = (3, 4), strides: tuple[int, ...] = (16, 4), itemsize: int = 4) -> None:
        self.data, self.shape, self.strides, self.itemsize = Pointer(), shape, strides, itemsize


class Broken(Array):
    """An array that cannot be read."""

    @property
    def shape(self) -> Any:
        raise RuntimeError("no shape")

    @shape.setter
    def shape(self, value: Any) -> None: ...


class Slotted:
    """An array that no weak reference can refer to."""

    __slots__ = ()

    data, shape, strides, itemsize = Pointer(), (2,), (4,), 4


class Function:
    """Stands for CuPy's class of functions, whose calls go through a slot of the type."""

    def __init__(self, ptr: int = 1) -> None:
        self.ptr = ptr
        self.seen: list[Any] = []

    def __call__(self, grid: Any, block: Any, args: Any, shared_mem: int = 0) -> int:
        self.seen = for_tests.current_notes()
        if args == ("fail",):
            raise ValueError("the call failed")
        return 7


class Released(Function):
    """A function that notes its stack without and with Python's lock."""

    def __init__(self) -> None:
        super().__init__()
        self.stacks: list[list[dict[str, Any]]] = []

    def __call__(self, *_: Any, **__: Any) -> int:
        without_lock, with_lock = for_tests.note_stack_without_lock(), _core.note_stack()
        self.stacks = [_core.frames_of(without_lock), _core.frames_of(with_lock)]
        return 7


@contextlib.contextmanager
def noting(function: type[Any], array: type[Any]) -> Iterator[None]:
    """Note the calls of a type in a block of code."""
    _core.note_calls(function, array, Pointer, Prepared())
    try:
        yield
    finally:
        _core.stop_noting_calls()


class Prepared(list[Any]):
    """The functions that were prepared; calling the object prepares."""

    names: Any = ()

    def __call__(self, function: Any) -> Any:
        self.append(function)
        return self.names


@pytest.fixture
def prepared() -> Iterator[Prepared]:
    made = Prepared()
    _core.note_calls(Function, Array, Pointer, made)
    yield made
    _core.stop_noting_calls()


def noted(*arguments: Any, function: Function | None = None) -> list[Any]:
    """Return what was noted in the call of a function with the arguments."""
    called = function if function is not None else Function()
    assert called((1,), (32,), arguments) == 7
    ((name, memory, exclusive),) = called.seen
    assert (name, exclusive) == ("", False)
    found: list[Any] = memory
    return found


def test_arrays_are_noted_as_they_are(prepared: Prepared) -> None:
    assert noted(Array(), 3, Array((5,), (-8,), 8)) == [
        (ADDRESS, 4, (3, 4), (16, 4), None, ""),
        (ADDRESS, 8, (5,), (-8,), None, ""),
    ]


def test_a_pointer_is_noted_up_to_the_end_of_its_memory(prepared: Prepared) -> None:
    assert noted(Pointer(10)) == [(ADDRESS + 10, 990, (), (), None, "")]
    assert noted(Pointer(1000)) == []


def test_arrays_have_the_names_of_the_parameters(prepared: Prepared) -> None:
    prepared.names = ("x", "n", "y")
    assert [memory[-1] for memory in noted(Array(), 5, Array(), Array())] == ["x", "y", ""]


def test_arguments_by_name_and_in_a_list(prepared: Prepared) -> None:
    function = Function()
    assert function((1,), (1,), shared_mem=8, args=[Array()]) == 7
    assert [len(memory) for _, memory, _ in function.seen] == [1]


def test_a_function_is_prepared_once(prepared: Prepared) -> None:
    first, second = Function(1), Function(2)
    for function in (first, second, first):
        noted(Array(), function=function)
    assert list(prepared) == [first, second]
    _core.forget_prepared_calls()
    noted(Array(), function=first)
    assert list(prepared) == [first, second, first]


def test_notes_end_with_the_call_also_after_an_exception(prepared: Prepared) -> None:
    noted(Array())
    assert for_tests.current_notes() == []
    with pytest.raises(ValueError, match="the call failed"):
        Function()((1,), (1,), ("fail",))
    assert for_tests.current_notes() == []


def test_an_array_that_cannot_be_read_is_not_noted(prepared: Prepared) -> None:
    assert noted(Broken(), Array((2,), (4,))) == [(ADDRESS, 4, (2,), (4,), None, "")]


class Counted(Array):
    """An array that counts how often its strides are read."""

    reads = 0

    @property
    def strides(self) -> Any:
        self.reads += 1
        return (8, 4)

    @strides.setter
    def strides(self, value: Any) -> None: ...


def test_an_array_is_read_twice_and_then_known(prepared: Prepared) -> None:
    first, second = Counted((1, 2)), Counted((3, 4))
    expected = [(ADDRESS, 4, (1, 2), (8, 4), None, ""), (ADDRESS, 4, (3, 4), (8, 4), None, "")]
    for _ in range(5):
        assert noted(first, second) == expected
        assert noted(second, first) == expected[::-1]
    assert first.reads == second.reads == 2


def test_an_array_of_one_call_tells_nothing_of_later_arrays_at_its_address(prepared: Prepared) -> None:
    kept = Array((9,), (4,))
    for count in range(1, 50):
        expected = [(ADDRESS, 4, (count,), (8,), None, ""), (ADDRESS, 4, (9,), (4,), None, "")]
        assert noted(Array((count,), (8,)), kept) == expected


def test_more_arrays_than_are_kept_are_noted(prepared: Prepared) -> None:
    arrays = [Array((count,), (8,)) for count in range(5000)]
    for _ in range(3):
        for count, array in enumerate(arrays):
            assert noted(array) == [(ADDRESS, 4, (count,), (8,), None, "")]


def test_an_array_without_weak_references_is_noted() -> None:
    array = Slotted()
    with noting(Function, Slotted):
        for _ in range(4):
            assert noted(array) == [(ADDRESS, 4, (2,), (4,), None, "")]


def test_without_pythons_lock_the_stack_is_that_of_the_call() -> None:
    function = Released()
    with noting(Released, Array):
        function((1,), (1,), ())
    (without_lock, with_lock) = function.stacks
    assert [frame["name"] for frame in with_lock[:2]] == ["__call__", without_lock[0]["name"]]
    assert without_lock[0]["name"] == "test_without_pythons_lock_the_stack_is_that_of_the_call"
    assert without_lock == with_lock[1:]
    assert _core.frames_of(for_tests.note_stack_without_lock()) == []  # the keeper of stacks has not begun


@pytest.mark.parametrize("arguments", [None, 3, "text"])
def test_arguments_that_are_no_tuple_are_left_to_the_call(prepared: Prepared, arguments: Any) -> None:
    function = Function()
    assert function((1,), (1,), arguments) == 7
    assert [memory for _, memory, _ in function.seen] == [[]]


def test_wrong_calls_raise_the_errors_of_the_call(prepared: Prepared) -> None:
    for call in (lambda: Function()(), lambda: Function()(1, 2, 3, 4, 5), lambda: Function()(1, 2, wrong=3)):
        with pytest.raises(TypeError, match="__call__"):
            call()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failed_preparation_does_not_fail_the_call(prepared: Prepared) -> None:
    prepared.names = 5
    assert noted(Array()) == [(ADDRESS, 4, (3, 4), (16, 4), None, "")]
    _core.forget_prepared_calls()
    prepared.names = ("x", 5)
    assert noted(Array())[0][-1] == "x"


def test_notes_are_of_one_thread(prepared: Prepared) -> None:
    function = Function()
    with _Noting((ADDRESS, 4, (1,), (4,), 1, "outer")):
        elsewhere = in_thread(for_tests.current_notes)
        noted_here = function((1,), (1,), (Array(),))
    assert noted_here == 7
    assert elsewhere == []
    assert [exclusive for _, _, exclusive in function.seen] == [False, True]


class _Noting:
    """A scope of an annotation."""

    def __init__(self, *accesses: Any) -> None:
        self.notes = _core.Notes(accesses)

    def __enter__(self) -> _Noting:
        self.notes.begin()
        return self

    def __exit__(self, *_: Any) -> None:
        assert self.notes.end()


def test_the_arrays_of_a_kernel_that_the_core_launches(prepared: Prepared) -> None:
    seen: list[Any] = []
    parameters = _core.KernelParameters([("p", 8, 0), ("i", 4, 8)])
    kernel = _core.python_kernel("f", parameters, lambda *_: seen.append(for_tests.current_notes()))
    kernel((1,), (1,), (Array(), 3))
    _core.stop_noting_calls()
    kernel((1,), (1,), (Array(), 3))
    assert seen == [[("", [(ADDRESS, 4, (3, 4), (16, 4), None, "")], False)], []]


def test_after_the_end_calls_are_as_before() -> None:
    slot = Function.__call__
    _core.note_calls(Function, Array, Pointer, Prepared())
    _core.stop_noting_calls()
    _core.stop_noting_calls()
    function = Function()
    assert function((1,), (1,), (Array(),)) == 7
    assert function.seen == []
    assert Function.__call__ is slot


def test_one_type_at_a_time(prepared: Prepared) -> None:
    class Other:
        def __call__(self) -> None: ...

    with pytest.raises(RuntimeError, match="noted already"):
        _core.note_calls(Other, Array, Pointer, Prepared())


def test_a_type_without_calls() -> None:
    class Other:
        pass

    with pytest.raises(RuntimeError, match="slot"):
        _core.note_calls(Other, Array, Pointer, Prepared())


def test_the_end_keeps_no_reference(prepared: Prepared) -> None:
    import gc
    import weakref

    class Kept(Prepared):
        pass

    _core.stop_noting_calls()
    made = Kept()
    gone = weakref.ref(made)
    _core.note_calls(Function, Array, Pointer, made)
    noted(Array())
    _core.stop_noting_calls()
    del made
    gc.collect()
    assert gone() is None


def test_the_end_inside_of_a_call(prepared: Prepared) -> None:
    class Ending(Function):
        def __call__(self, *args: Any) -> int:
            _core.stop_noting_calls()
            return 8

    _core.stop_noting_calls()
    _core.note_calls(Ending, Array, Pointer, prepared)
    assert Ending()((1,), (1,), (Array(),)) == 8
    assert for_tests.current_notes() == []


class TestAnnotations:
    def test_the_innermost_comes_first(self) -> None:
        first, second = (ADDRESS, 4, (2,), (4,), 1, "x"), (ADDRESS, 8, (), (), 3, "")
        with _Noting(first), _Noting(second):
            assert [memory for _, memory, _ in for_tests.current_notes()] == [[second], [first]]
        assert for_tests.current_notes() == []

    def test_scopes_may_end_in_any_order(self) -> None:
        first, second = (_core.Notes([(ADDRESS, size, (), (), 1, "")]) for size in (1, 2))
        first.begin()
        second.begin()
        assert first.end()
        assert [memory[0][1] for _, memory, _ in for_tests.current_notes()] == [2]
        assert second.end()
        assert for_tests.current_notes() == []

    def test_a_second_begin_or_end_does_nothing(self) -> None:
        notes = _core.Notes([])
        notes.begin()
        notes.begin()
        assert len(for_tests.current_notes()) == 1
        assert notes.end()
        assert notes.end()

    def test_another_thread_cannot_end_them(self) -> None:
        notes = _core.Notes([])
        notes.begin()
        assert in_thread(notes.end) is False
        assert notes.end()

    def test_notes_that_are_dropped_end(self) -> None:
        notes = _core.Notes([])
        notes.begin()
        del notes
        assert for_tests.current_notes() == []

    def test_wrong_accesses(self) -> None:
        with pytest.raises(ValueError, match="an access is"):
            _core.Notes([(1, 2)])  # type: ignore[list-item]
