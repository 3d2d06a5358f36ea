"""The annotation of the arrays that calls use."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcuda
from support.core import for_tests
from tcuda.sanitizer import check, uses

READ, WRITE, BOTH = 1, 2, 3


class Foreign:
    """An array of another library, which has only the CUDA array interface."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> None:
        self.__cuda_array_interface__ = {
            "data": (0x7000_0000, False), "shape": shape, "typestr": "<f8", "strides": strides, "version": 3
        }  # fmt: skip


class Tensor:
    """Stands for a tensor of torch."""

    is_cuda, device, shape = True, "cuda:0", (2, 3)

    def data_ptr(self) -> int:
        return 0x6000_0000

    def element_size(self) -> int:
        return 2

    def stride(self) -> tuple[int, ...]:
        return (3, 1)


class HostTensor(Tensor):
    is_cuda, device = False, "cpu"


def noted(**arguments: Any) -> list[Any]:
    """Return the memory that is noted in the block of an annotation while a detector watches."""
    with check(mode="collect"), uses(**arguments):
        ((name, memory, exclusive),) = for_tests.current_notes()
    assert (name, exclusive) == ("", True)
    assert for_tests.current_notes() == []
    found: list[Any] = memory
    return found


@pytest.fixture
def x(xp: Any) -> Any:
    return xp.zeros((4, 6), np.float32)


def test_the_memory_of_arrays(x: Any) -> None:
    address = x.data.ptr
    assert noted(reads=[x], writes=[x[0], x[:, ::2]]) == [
        (address, 4, (4, 6), (24, 4), READ, ""),
        (address, 4, (6,), (4,), WRITE, ""),
        (address, 4, (4, 3), (24, 8), WRITE, ""),
    ]


def test_one_array_needs_no_list(x: Any) -> None:
    assert noted(reads=x) == [(x.data.ptr, 4, (4, 6), (24, 4), READ, "")]
    assert noted(writes=x)[0][4] == WRITE


def test_an_array_in_both_is_read_and_written(x: Any) -> None:
    assert [memory[4] for memory in noted(reads=[x], writes=(x,))] == [BOTH]


def test_arrays_of_other_libraries() -> None:
    assert noted(reads=[Foreign((2, 3)), Foreign((2,), (-16,))], writes=[Tensor()]) == [
        (0x7000_0000, 8, (2, 3), (24, 8), READ, ""),
        (0x7000_0000, 8, (2,), (-16,), READ, ""),
        (0x6000_0000, 2, (2, 3), (6, 2), WRITE, ""),
    ]


def test_no_array_at_all() -> None:
    assert noted(reads=[]) == []
    assert noted(reads=[], writes=()) == []


def test_without_a_detector_nothing_is_noted(x: Any) -> None:
    with uses(reads=[x]):
        assert for_tests.current_notes() == []


def test_annotations_nest(x: Any) -> None:
    with check(mode="collect"), uses(reads=[x]), uses(writes=[x]):
        assert [memory[0][4] for _, memory, _ in for_tests.current_notes()] == [WRITE, READ]


def test_an_annotation_ends_with_an_exception(x: Any) -> None:
    with check(mode="collect"), pytest.raises(KeyError), uses(reads=[x]):
        raise KeyError
    assert for_tests.current_notes() == []


def test_a_decorated_function_is_annotated_at_each_call(x: Any) -> None:
    @uses(reads=[x])
    def kinds() -> list[Any]:
        return [memory[0][4] for _, memory, _ in for_tests.current_notes()]

    with check(mode="collect"):
        assert [kinds(), kinds()] == [[READ], [READ]]
    assert kinds() == []


def test_other_threads_have_no_annotation(x: Any) -> None:
    seen: list[Any] = []
    with check(mode="collect"), uses(reads=[x]):
        thread = threading.Thread(target=lambda: seen.append(for_tests.current_notes()))
        thread.start()
        thread.join()
    assert seen == [[]]


def test_the_end_in_another_thread_is_an_error(x: Any) -> None:
    scope = uses(reads=[x])
    raised: list[BaseException] = []

    def leave() -> None:
        try:
            scope.__exit__(None, None, None)
        except RuntimeError as error:
            raised.append(error)

    with check(mode="collect"):
        scope.__enter__()
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        (error,) = raised
        assert "must end in the thread in which it began" in str(error)
        assert len(for_tests.current_notes()) == 1
        scope.undo()
    assert for_tests.current_notes() == []


def test_tasks_one_after_the_other(x: Any) -> None:
    async def step() -> int:
        with uses(reads=[x]):
            return len(for_tests.current_notes())

    async def run() -> list[int]:
        return list(await asyncio.gather(step(), step()))

    with check(mode="collect"):
        assert asyncio.run(run()) == [1, 1]


def test_work_in_an_annotated_block_gives_the_same_result(x: Any) -> None:
    with check(mode="collect") as report, uses(reads=[], writes=[x]):
        x += 1
    assert float(x.sum()) == 24
    assert not report


@pytest.mark.emulated
def test_emulated_devices_tell_the_truth_whatever_the_annotation_says(xp: Any) -> None:
    x, other = xp.zeros(8), xp.zeros(8)
    tcuda.synchronize()
    with check(mode="collect") as report:
        with uses(reads=[other]):
            x += 1
        with tcuda.stream(tcuda.Stream()), uses(reads=[other]):
            x += 1
    assert len(report.races) == 1


class TestErrors:
    def test_no_arguments(self) -> None:
        with pytest.raises(ValueError, match=r"uses\(\) needs reads=..., writes=... or both; reads=\[\] says"):
            uses()

    @pytest.mark.parametrize(("given", "message"), [
        (3, r"reads must be an array on a device or a sequence of such arrays; got .*int"),
        (np.zeros(3), r"reads\[0\] must be an array on a device; got .*float64"),
        ([None], r"reads\[0\] must be an array on a device; got a NoneType"),
        ([Tensor(), "x"], r"reads\[1\] must be an array on a device; got .*str"),
        ([HostTensor()], r"reads\[0\] must be an array on a device; got a tensor on cpu"),
        (SimpleNamespace(data=5), r"reads must be an array on a device or a sequence"),
    ])  # fmt: skip
    def test_no_array(self, given: Any, message: str) -> None:
        with pytest.raises(TypeError, match=message):
            uses(reads=given)
        with pytest.raises(TypeError, match=message.replace("reads", "writes", 1)):
            uses(writes=given)

    def test_a_second_use(self, x: Any) -> None:
        scope = uses(reads=[x])
        with scope:
            pass
        with pytest.raises(RuntimeError, match="entered before"), scope:
            pass

    def test_positional_arguments(self, x: Any) -> None:
        with pytest.raises(TypeError, match="positional"):
            uses([x])  # type: ignore[misc]
