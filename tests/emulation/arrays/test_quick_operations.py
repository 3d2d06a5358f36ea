"""Operations that the core computes without Python functions: the results and errors are those of the long way."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda.emulation import xp
from tcuda.emulation.work import numpy_work

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("runtime")]

OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.lt,
    operator.eq,
    operator.ge,
]
DTYPES = ["bool", "int8", "uint8", "int64", "float16", "float32", "float64", "complex64"]
SCALARS = [0, 1, 127, 128, -1, 2.5, True, 1j]
REDUCTIONS = ["all", "any", "max", "mean", "min", "prod", "std", "sum", "var"]
REDUCTIONS_OF_NOTHING = ["all", "any", "prod", "sum"]
SHAPES: list[tuple[int, ...]] = [(6,), (2, 3), ()]


def outcome(function: Callable[..., Any], *operands: Any) -> Any:
    """Return the result as a NumPy array, or the type of the error."""
    with np.errstate(all="ignore"):
        try:
            result = function(*operands)
        except (TypeError, OverflowError, ValueError) as error:
            return type(error).__mro__[-3]  # the builtin behind NumPy's own types
    return result.get() if isinstance(result, xp.ndarray) else np.asarray(result)


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours is theirs


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
def test_repeated_operations_give_the_results_of_numpy(function: Callable[..., Any], dtype: str) -> None:
    host = np.arange(6).astype(dtype)
    array = xp.asarray(host)
    for scalar in SCALARS:
        for _ in range(3):  # the types of the results are known from the second time on
            assert_same(outcome(function, array, scalar), outcome(function, host, scalar))
            assert_same(outcome(function, scalar, array), outcome(function, scalar, host))
    for _ in range(3):
        assert_same(outcome(function, array, array), outcome(function, host, host))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "shape"),
    [*((name, shape) for name in REDUCTIONS for shape in SHAPES), *((name, (0,)) for name in REDUCTIONS_OF_NOTHING)],
)
def test_reductions_give_the_results_of_numpy(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    host = (np.arange(np.prod(shape)).reshape(shape) + 1).astype(dtype)
    reduced = getattr(xp.asarray(host), name)()
    assert isinstance(reduced, xp.ndarray)
    assert_same(reduced.get(), np.asarray(getattr(np, name)(host)))


@pytest.mark.eager  # the late schedule raises when the work is done
def test_an_operation_that_fails_keeps_no_memory() -> None:
    x = xp.asarray([2, 3])
    add = numpy_work.at_once(np.add, pytest.fail, 2, {(x.dtype, x.dtype): np.dtype(bool)})
    allocated = tcuda.memory_allocated()
    with pytest.raises(TypeError, match="Cannot cast") as caught:
        add(x, x)
    assert tcuda.memory_allocated() == allocated
    del caught


def test_an_operation_without_room_raises_and_keeps_no_memory() -> None:
    x = xp.ones(1 << 21)
    assert float((x + 1).sum()) == 2 << 21
    tcuda.empty_cache()
    allocated = tcuda.memory_allocated()
    tcuda.set_per_process_memory_fraction(tcuda.memory_reserved() / tcuda.get_device_properties().total_memory)
    try:
        with pytest.raises(tcuda.OutOfMemoryError):
            x + 1
        assert tcuda.memory_allocated() == allocated
    finally:
        tcuda.set_per_process_memory_fraction(1.0)


def test_a_subclass_may_have_its_own_operations() -> None:
    class Own(xp.ndarray):  # type: ignore[misc, name-defined]
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
            return "own"

    x, own = xp.ones(2), Own(2)
    own.fill(1)
    for applied in (own + 1, np.float64(1) * own, np.add(own, x), np.negative(own)):
        assert applied == "own"
    # As in CuPy, the operators of two arrays, and of one, do not ask the subclass.
    for computed in (own + x, x + own, -own, xp.add(own, 1)):
        assert type(computed) is Own


def test_floating_point_errors_give_no_warnings() -> None:
    x = xp.asarray([0.0, 1.0])
    before = np.geterr()
    for _ in range(3):
        assert (x / 0.0).tolist()[1] == float("inf")  # pytest makes errors of warnings
    assert np.geterr() == before


def test_memory_of_another_library_takes_part_in_operations() -> None:
    memory = tcuda.emulation.devices.memory.ForeignBlock(0, 0, 0, None)
    x = xp.ones(4)
    memory.ptr, memory.size = x.data.ptr, 32
    foreign = xp.ndarray(4, float, tcuda.emulation.devices.memory.MemoryPointer(memory))
    for _ in range(2):
        assert (foreign + 1).tolist() == [2.0] * 4
        assert float(foreign.sum()) == 4.0


def test_the_memory_of_an_array_is_freed_with_its_last_view() -> None:
    allocated = tcuda.memory_allocated()
    view = xp.ones(1000)[1:][::2].reshape(-1, 4).T
    assert view.base.shape == (1000,)
    assert tcuda.memory_allocated() > allocated
    del view
    assert tcuda.memory_allocated() == allocated


def test_an_array_that_dies_with_an_error_in_flight_leaves_the_error() -> None:
    def fail() -> None:
        x = xp.ones(10)
        raise KeyError(x.shape)

    allocated = tcuda.memory_allocated()
    with pytest.raises(KeyError, match="10"):
        fail()
    assert tcuda.memory_allocated() == allocated


@pytest.mark.parametrize("index", [slice(2**63, None), slice(None, -(2**63) - 1), slice(0, 1, 2**70), 2**63])
def test_an_index_beyond_64_bits_is_refused(index: Any) -> None:
    with pytest.raises(OverflowError):
        xp.ones(3)[index]


def test_views_of_views_have_the_whole_array_as_base() -> None:
    x = xp.arange(10)
    view = x[2:][1:]
    assert view.base is x
    assert view.tolist() == [3, 4, 5, 6, 7, 8, 9]
    assert x[3].shape == ()
    assert x[-1].base is x


@pytest.mark.parametrize("shape", [3, (3,), (2, 3), (), 0, (0, 3), [2, 3], np.int64(3), (np.int64(3),), (1,) * 40])
def test_new_arrays_have_the_shape_and_type_that_the_program_names(shape: Any) -> None:
    for dtype in (float, "f4", "float32", np.float32, np.dtype("q"), "l", np.longlong, np.dtype([("a", "i4")]), None):
        made, model = xp.empty(shape, dtype), np.empty(shape, dtype)
        assert (made.shape, made.dtype, made.dtype.char) == (model.shape, model.dtype, model.dtype.char)
        assert made.strides == model.strides or not model.size
    assert xp.empty(shape).dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1,), ValueError),
        (((2, -1),), ValueError),
        ((2.5,), TypeError),
        ((3, ">f8"), ValueError),
        ((3, [3]), TypeError),
    ],
)
def test_shapes_and_types_that_no_array_has_are_refused_every_time(
    arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    for _ in range(2):
        with pytest.raises(error):
            xp.empty(*arguments)


def test_results_of_functions_of_each_element_are_in_row_major_order() -> None:
    x = xp.asfortranarray(xp.ones((3, 4)))
    for _ in range(2):
        for result in (x + 1, x + x, xp.sqrt(x), -x, xp.add(x.T, x.T), xp.divmod(x, 2)[1]):
            assert result.flags.c_contiguous  # as in CuPy; NumPy keeps the order of the inputs


def test_new_memory_is_that_of_the_current_stream() -> None:
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        x = xp.empty(5 << 20)  # too large for a segment of other arrays
    owners = {segment["stream"] for segment in tcuda.memory_snapshot() if segment["address"] == x.data.ptr}
    assert owners == {stream.cuda_stream}


def test_the_results_of_operations_are_in_memory_of_the_allocator_of_the_program() -> None:
    x = xp.arange(4.0)
    assert (x + x).tolist() == [0.0, 2.0, 4.0, 6.0]  # the type of the result is known now
    sizes: list[int] = []

    def allocate(size: int) -> Any:
        sizes.append(size)
        return xp.cuda.malloc_async(size)

    with xp.cuda.using_allocator(allocate):
        results = [x + x, x.sum(), xp.empty(4), xp.zeros(4)]
    assert sizes == [32, 8, 32, 32]
    assert all(isinstance(result.data.mem, xp.cuda.MemoryAsync) for result in results)
    assert [results[0].tolist(), float(results[1]), results[3].tolist()] == [[0.0, 2.0, 4.0, 6.0], 6.0, [0.0] * 4]


def test_an_allocator_that_returns_no_memory_of_a_device_is_refused() -> None:
    pointer = xp.cuda.MemoryPointer(bytearray(32), 0)
    with xp.cuda.using_allocator(lambda _: pointer), pytest.raises(TypeError, match="BaseMemory"):
        xp.empty(4)


@pytest.mark.parametrize("function", [operator.lt, operator.eq, operator.ge], ids=lambda function: function.__name__)
def test_booleans_are_compared_with_integers_of_all_sizes(function: Callable[..., Any]) -> None:
    host = np.array([True, False])
    array = xp.asarray(host)
    for scalar in [1, 0, -(2**63), 2**63, 2**64 - 1, 1]:
        for _ in range(2):
            assert function(array, scalar).tolist() == [function(value, scalar) for value in host.tolist()]


def test_structured_elements_are_compared_again_and_again() -> None:
    host = np.array([(1, 2.0), (3, 4.0)], np.dtype([("a", "i8"), ("b", "f8")]))
    array, other = xp.asarray(host), xp.asarray(host[::-1].copy())
    for _ in range(3):
        assert (array == array).tolist() == [True, True]
        assert (array != other).tolist() == [True, True]
        assert (array["a"] + array["a"]).tolist() == [2, 6]
        assert array[1:]["b"].tolist() == [4.0]
        with pytest.raises(TypeError):
            array + array
        with pytest.raises(TypeError):
            array.max()


def test_arrays_with_the_interface_of_cuda_take_part_in_operations() -> None:
    x = xp.arange(3.0)

    class Foreign:
        __cuda_array_interface__ = x.__cuda_array_interface__

    for _ in range(3):
        assert (x + Foreign()).tolist() == [0.0, 2.0, 4.0]
        assert (Foreign() * x).tolist() == [0.0, 1.0, 4.0]
        assert xp.add(Foreign(), Foreign(), x.copy()).tolist() == [0.0, 2.0, 4.0]
        assert (x + xp.asarray(Foreign())).tolist() == [0.0, 2.0, 4.0]
        assert float(xp.asarray(Foreign()).sum()) == 3.0


def test_elements_that_no_kernel_knows_are_refused_every_time() -> None:
    longs = xp.zeros(32, "u1").view(np.longdouble)
    large = xp.zeros(16, "u1").view(">f8")
    for _ in range(3):
        for operate in (lambda: longs + longs, longs.sum, longs.max):
            with pytest.raises(ValueError, match="Unsupported dtype"):
                operate()
        assert (large + large).dtype == np.float64


# Python frees the current device and the current stream of a thread before it runs the last finalizers of the thread.
AT_THE_END_OF_A_THREAD = """
import threading
import tcuda
from tcuda import xp

kept, seen = threading.local(), set()

class Last:
    def __del__(self):
        made = [{"device": 0, "streams": number} for number in range(300)]
        del made  # dictionaries in freed memory, and again freed
        array = xp.ones(3)
        seen.add((array.device.id, tcuda.current_device(), str(array + 1)))

def work():
    tcuda.set_device(tcuda.device_count() - 1)
    xp.ones(3)
    kept.last = Last()

for _ in range(20):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
print(*seen)
"""


@pytest.mark.parametrize("malloc", ["debug", "pymalloc"])
def test_a_finalizer_may_compute_at_the_end_of_its_thread(fresh_output_of: OutputOf, malloc: str) -> None:
    assert fresh_output_of(AT_THE_END_OF_A_THREAD, PYTHONMALLOC=malloc) == "(0, 0, '[2. 2. 2.]')"
