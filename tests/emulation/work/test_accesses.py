"""A race detector is told of the exact regions that operations on arrays read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.race_recorder import BOTH, READ, WRITE, RaceRecorder, recorded, span, whole
from tcuda.emulation import xp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import Captured
    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


@pytest.fixture
def recorder(runtime: EmulatedRuntime) -> Iterator[RaceRecorder]:
    """A recorder that watches until the test ends."""
    with recorded(runtime) as made:
        yield made


def told(recorder: RaceRecorder, function: Callable[[], Any]) -> tuple[str, list[Any]]:
    """Return the name and the accesses of the only operation of ``function``."""
    recorder.take()
    function()
    [operation] = recorder.operations()
    return operation


# Operands


def test_an_operator_reads_its_operands_and_writes_a_new_array(recorder: RaceRecorder) -> None:
    a, b = xp.ones(3), xp.ones(3, "f")
    recorder.take()
    c = a - b
    assert recorder.operations() == [("subtract", [whole(a, READ, "x1"), whole(b, READ, "x2"), whole(c, WRITE, "out")])]


def test_an_operator_in_place_reads_and_writes(recorder: RaceRecorder) -> None:
    a, b = xp.ones(3), xp.ones(3)

    def add() -> None:
        nonlocal a
        a += b

    assert told(recorder, add) == ("add", [whole(b, READ, "x2"), whole(a, BOTH, "out")])


def test_an_operand_that_is_given_twice_is_read_once(recorder: RaceRecorder) -> None:
    a, out = xp.ones(3), xp.ones(3)
    accesses = told(recorder, lambda: xp.multiply(a, a, out=out))[1]
    assert accesses == [whole(a, READ, "x1"), whole(out, WRITE, "out")]


def test_two_outputs_are_written(recorder: RaceRecorder) -> None:
    a, first, second = xp.ones(3), xp.empty(3), xp.empty(3)
    assert told(recorder, lambda: xp.modf(a, out=(first, second))) == (
        "modf",
        [whole(a, READ, "x"), whole(first, WRITE, "out"), whole(second, WRITE, "out")],
    )


def test_views_are_regions_with_gaps(recorder: RaceRecorder) -> None:
    a, b = xp.ones((4, 6)), xp.ones((4, 6))
    assert told(recorder, lambda: xp.copyto(a[::2, 1::2], b[1::2, ::-2])) == (
        "copyto",
        [
            (b.data.ptr + 6 * 8 + 5 * 8, 8, (2, 3), (96, -16), READ, "src"),
            (a.data.ptr + 8, 8, (2, 3), (96, 16), WRITE, "dst"),
        ],
    )


def test_a_broadcast_operand_is_the_elements_that_it_has(recorder: RaceRecorder) -> None:
    row = xp.ones(3)
    wide = xp.broadcast_to(row, (4, 3))
    accesses = told(recorder, lambda: wide.copy())[1]
    assert accesses[0] == (row.data.ptr, 8, (4, 3), (0, 8), READ, "src")


def test_arrays_without_elements_are_left_out(recorder: RaceRecorder) -> None:
    empty = xp.ones((0, 3))
    assert told(recorder, lambda: empty + 1) == ("add", [])
    assert [kind for *_, kind, _ in told(recorder, lambda: empty.sum(axis=0))[1]] == [WRITE]


def test_scalars_are_no_memory(recorder: RaceRecorder) -> None:
    a = xp.ones(3)
    assert [label for *_, label in told(recorder, lambda: 2 * a)[1]] == ["x2", "out"]


# Functions


@pytest.mark.parametrize("by_name", [False, True])
def test_an_output_is_written_and_not_read(recorder: RaceRecorder, by_name: bool) -> None:
    a, out = xp.ones((2, 3)), xp.empty(3)
    call = (lambda: xp.sum(a, axis=0, out=out)) if by_name else (lambda: xp.sum(a, 0, None, out))
    assert told(recorder, call) == ("sum", [whole(a, READ, "a"), whole(out, WRITE, "out")])


def test_an_output_by_place_is_written_by_the_stream(runtime: EmulatedRuntime, captured: Captured) -> None:
    a, out = xp.ones((2, 3)), xp.zeros(3)
    _, launch = captured(lambda: xp.sum(a, 0, None, out))
    assert out.tolist() == [0, 0, 0]
    launch()
    assert out.tolist() == [2, 2, 2]


def test_arrays_in_a_sequence_have_numbers(recorder: RaceRecorder) -> None:
    a, b = xp.ones(2), xp.ones(3)
    recorder.take()
    c = xp.concatenate([a, b])
    assert recorder.operations() == [
        ("concatenate", [whole(a, READ, "arrays[0]"), whole(b, READ, "arrays[1]"), whole(c, WRITE, "out")])
    ]


def test_a_product_reads_both_factors(recorder: RaceRecorder) -> None:
    a, b, out = xp.ones((2, 3)), xp.ones((3, 2)), xp.empty((2, 2))
    expected = "matmul", [whole(a, READ, "x1"), whole(b, READ, "x2"), whole(out, WRITE, "out")]
    assert told(recorder, lambda: xp.matmul(a, b, out=out)) == expected
    assert [label for *_, label in told(recorder, lambda: xp.dot(a, b))[1]] == ["a", "b", "out"]
    assert [label for *_, label in told(recorder, lambda: xp.einsum("ij,jk", a, b))[1]] == [
        "operands[1]",
        "operands[2]",
        "out",
    ]


def test_library_functions_write_every_result(recorder: RaceRecorder) -> None:
    square = xp.eye(3) * 2
    name, accesses = told(recorder, lambda: xp.linalg.qr(square))
    assert (name, [access[4:] for access in accesses]) == ("qr", [(READ, "a"), (WRITE, "out"), (WRITE, "out")])
    assert told(recorder, lambda: xp.fft.fft(square))[1][0] == whole(square, READ, "a")


def test_methods_of_ufuncs_have_their_names(recorder: RaceRecorder) -> None:
    a, places = xp.ones(4), xp.asarray([0, 2])
    assert [access[4:] for access in told(recorder, lambda: xp.add.reduce(a))[1]] == [(READ, "array"), (WRITE, "out")]
    name, accesses = told(recorder, lambda: xp.add.reduceat(a, places))
    assert (name, [access[5] for access in accesses]) == ("add.reduceat", ["array", "indices", "out"])
    assert told(recorder, lambda: np.add.at(a, slice(1, 3), 2)) == (
        "add.at",
        [(a.data.ptr + 8, 8, (2,), (8,), BOTH, "a")],
    )


def test_views_are_no_work(recorder: RaceRecorder) -> None:
    a = xp.ones((2, 3))
    recorder.take()
    assert a.T[1:].reshape(2, 1, 2)[0].base is a
    assert recorder.take() == []


def test_a_function_that_may_overwrite_its_input_writes_the_input(recorder: RaceRecorder) -> None:
    a = xp.asarray([3.0, 1.0, 2.0])
    accesses = told(recorder, lambda: xp.median(a, overwrite_input=True))[1]
    assert accesses[0] == whole(a, BOTH, "a")
    assert told(recorder, lambda: xp.median(a))[1][0] == whole(a, READ, "a")


def test_a_function_that_cleans_in_place_is_work_of_the_stream(recorder: RaceRecorder, captured: Captured) -> None:
    a = xp.asarray([1.0, np.nan])
    _, launch = captured(lambda: xp.nan_to_num(a, copy=False))
    assert np.isnan(a.get()[1])
    launch()
    assert a.tolist() == [1, 0]
    assert told(recorder, lambda: xp.nan_to_num(a, copy=False)) == ("nan_to_num", [whole(a, BOTH, "x")])


# Parts of arrays


def test_an_assignment_writes_the_elements_that_the_index_selects(recorder: RaceRecorder) -> None:
    a, value = xp.ones((4, 6)), xp.ones(2)
    assert told(recorder, lambda: a.__setitem__((slice(1, None, 2), 3), value)) == (
        "assign",
        [whole(value, READ, "value"), (a.data.ptr + 9 * 8, 8, (2,), (96,), WRITE, "a")],
    )
    assert told(recorder, lambda: a.__setitem__((2, 5), 1))[1] == [(a.data.ptr + 17 * 8, 8, (), (), WRITE, "a")]
    assert told(recorder, lambda: a.__setitem__(slice(4, 9), 1))[1] == []


def test_an_assignment_to_itself_reads_the_value(recorder: RaceRecorder) -> None:
    a = xp.arange(6)
    assert told(recorder, lambda: a.__setitem__(slice(None), a[::-1]))[1] == [
        (a.data.ptr + 40, 8, (6,), (-8,), READ, "value"),
        whole(a, WRITE, "a"),
    ]


def test_a_failing_assignment_is_not_told(recorder: RaceRecorder) -> None:
    a = xp.ones(3)
    recorder.take()
    for index, value in ((5, 1), (slice(None), xp.ones(2))):
        with pytest.raises((IndexError, ValueError)):
            a[index] = value
    assert [name for name, _ in recorder.operations()] == ["fill"], "only xp.ones() is work"


def test_a_trace_reads_the_diagonal(recorder: RaceRecorder) -> None:
    a = xp.ones((3, 4))
    assert told(recorder, lambda: a.trace())[1][0] == (a.data.ptr, 8, (3,), (40,), READ, "a")
    assert told(recorder, lambda: xp.trace(a, offset=1))[1][0] == (a.data.ptr + 8, 8, (3,), (40,), READ, "a")
    assert told(recorder, lambda: xp.fill_diagonal(a, 7)) == (
        "fill_diagonal",
        [(a.data.ptr, 8, (3,), (40,), WRITE, "a")],
    )


def test_filling_writes(recorder: RaceRecorder) -> None:
    a, value = xp.ones((3, 4)), xp.ones(())
    assert told(recorder, lambda: a[1].fill(2)) == ("fill", [(a.data.ptr + 32, 8, (4,), (8,), WRITE, "a")])
    assert told(recorder, lambda: a.fill(value))[1] == [whole(value, READ, "value"), whole(a, WRITE, "a")]


# New arrays, copies, random numbers


def test_new_arrays_are_written(recorder: RaceRecorder) -> None:
    recorder.take()
    made = [xp.empty(3), xp.zeros(3), xp.full(3, 2.0), xp.arange(3), xp.asarray(5.0), xp.asarray([1.0, 2.0])]
    assert recorder.operations() == [
        ("memset", [span(made[1].data.ptr, 24, WRITE, "a")]),
        ("fill", [whole(made[2], WRITE, "a")]),
        ("arange", [whole(made[3], WRITE, "out")]),
        ("copyto", [whole(made[4], WRITE, "dst")]),
        ("memcpy", [span(made[5].data.ptr, 16, WRITE, "dst")]),
    ]


def test_a_copy_to_the_host_reads_and_waits(recorder: RaceRecorder) -> None:
    a = xp.ones((2, 3))
    recorder.take()
    a.get()
    calls = recorder.take()
    assert calls[0] == ("work", 0, 0, "memcpy", [span(a.data.ptr, 48, READ, "src")])
    assert calls[1] == ("stream_synchronized", 0, 0)


def test_a_copy_to_page_locked_memory_is_an_access_of_the_stream(
    runtime: EmulatedRuntime, recorder: RaceRecorder
) -> None:
    a, host = xp.ones(8), np.zeros(8)
    runtime.hostRegister(host.ctypes.data, host.nbytes, 0)
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        recorder.take()
        a.get(out=host, blocking=False)
        a.set(host)
        b = xp.asarray(host)
    calls = recorder.take()
    runtime.hostUnregister(host.ctypes.data)
    there, here = host.ctypes.data, a.data.ptr
    assert calls == [
        ("work", 0, stream.cuda_stream, "memcpy", [span(there, 64, WRITE, "dst"), span(here, 64, READ, "src")]),
        ("work", 0, stream.cuda_stream, "memcpy", [span(here, 64, WRITE, "dst"), span(there, 64, READ, "src")]),
        ("work", 0, stream.cuda_stream, "memcpy", [span(b.data.ptr, 64, WRITE, "dst"), span(there, 64, READ, "src")]),
    ]


def test_random_numbers_are_written(recorder: RaceRecorder) -> None:
    out = xp.empty(5)
    name, accesses = told(recorder, lambda: xp.random.rand(5))
    assert (name, [access[1:] for access in accesses]) == ("draw", [(8, (5,), (8,), WRITE, "out")])
    accesses = told(recorder, lambda: xp.random.poisson(out))[1]
    assert [access[4:] for access in accesses] == [(READ, "parameters[0]"), (WRITE, "out")]


def test_a_draw_reads_and_writes_the_state_of_a_bit_generator(recorder: RaceRecorder) -> None:
    source = xp.random.Philox4x3210(1, size=256)
    state, lam = source._state, xp.ones(3)
    accesses = told(recorder, lambda: xp.random.Generator(source).poisson(lam))[1]
    assert accesses[0] == whole(lam, READ, "parameters[0]")
    assert [access[4:] for access in accesses[1:]] == [(WRITE, "out"), (BOTH, "state")]
    assert accesses[2] == whole(state, BOTH, "state")


# Fused functions


def test_a_fused_function_reads_and_writes_its_arguments_once(recorder: RaceRecorder) -> None:
    @xp.fuse()
    def step(x: Any, y: Any) -> Any:
        y += x * 2
        return y - 1

    a, b = xp.ones(4), xp.ones(4)
    recorder.take()
    c = step(a, b)
    assert recorder.operations() == [("step", [whole(a, READ, "x"), whole(b, BOTH, "y"), whole(c, WRITE, "out")])]


def test_a_fused_function_does_not_read_an_argument_that_it_only_writes(recorder: RaceRecorder) -> None:
    def negate(x: Any, out: Any) -> None:
        out[...] = -x

    fused, a, b = xp.fuse(negate), xp.ones(4), xp.ones(4)
    assert told(recorder, lambda: fused(a, b)) == ("negate", [whole(a, READ, "x"), whole(b, WRITE, "out")])


def test_a_fused_function_that_writes_through_a_view_writes_its_argument(recorder: RaceRecorder) -> None:
    def reverse(x: Any, y: Any) -> None:
        view = y[::-1]
        view += x

    fused, a, b = xp.fuse(reverse), xp.ones(4), xp.arange(4.0)
    assert told(recorder, lambda: fused(a, b)) == ("reverse", [whole(a, READ, "x"), whole(b, BOTH, "y")])
    assert b.tolist() == [1, 2, 3, 4]


# Collectives


def test_a_collective_accesses_the_memory_of_all_ranks(recorder: RaceRecorder) -> None:
    arrays = []
    for index in range(2):
        with tcuda.device(index):
            arrays.append(xp.ones(4, "f"))
    recorder.take()
    tcuda.nccl.all_reduce(arrays)
    [call] = [call for call in recorder.take() if call[0] == "work_together"]
    assert call[1:3] == ([(0, 0), (1, 0)], "nccl_all_reduce")
    assert call[3] == [span(array.data.ptr, 16, BOTH, "recvbuff") for array in arrays]
