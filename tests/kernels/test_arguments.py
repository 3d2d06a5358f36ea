"""The arguments of kernels: what becomes of Python's values, and what is refused."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest

from support.core import for_tests
from tcuda import _core


class FakeArray:
    """An array as the core sees an array."""

    class data:
        ptr = 0x1234
        device_id = 1


class Pair(ctypes.Structure):
    _fields_ = (("x", ctypes.c_float), ("n", ctypes.c_int))


def packed(kind: str, size: int, argument: Any) -> bytes:
    return for_tests.packed_arguments(_core.KernelParameters([(kind, size, 0)]), "f", (argument,))


GOOD = [
    ("p", 8, None, struct.pack("Q", 0)),
    ("p", 8, 0, struct.pack("Q", 0)),
    ("p", 8, 2**63, struct.pack("Q", 2**63)),
    ("p", 8, FakeArray(), struct.pack("Q", 0x1234)),
    ("p", 8, FakeArray.data, struct.pack("Q", 0x1234)),
    ("p", 8, np.uint64(7), struct.pack("Q", 7)),
    ("p", 8, ctypes.c_void_p(7), struct.pack("Q", 7)),
    ("i", 1, -128, struct.pack("b", -128)),
    ("i", 2, -3, struct.pack("h", -3)),
    ("i", 4, 2**31 - 1, struct.pack("i", 2**31 - 1)),
    ("i", 8, -(2**63), struct.pack("q", -(2**63))),
    ("i", 4, True, struct.pack("i", 1)),
    ("i", 4, np.int32(-9), struct.pack("i", -9)),
    ("i", 4, np.uint32(9), struct.pack("i", 9)),
    ("i", 4, ctypes.c_int(-9), struct.pack("i", -9)),
    ("u", 1, 255, b"\xff"),
    ("u", 8, 2**64 - 1, struct.pack("Q", 2**64 - 1)),
    ("u", 8, np.int64(9), struct.pack("Q", 9)),
    ("f", 8, 0.1, struct.pack("d", 0.1)),
    ("f", 8, np.float64(0.1), struct.pack("d", 0.1)),
    ("f", 4, 0.1, struct.pack("f", 0.1)),
    ("f", 4, 3, struct.pack("f", 3)),
    ("f", 4, float("-inf"), struct.pack("f", float("-inf"))),
    ("f", 4, np.float32(0.1), struct.pack("f", 0.1)),
    ("f", 4, ctypes.c_float(0.5), struct.pack("f", 0.5)),
    ("f", 2, np.float16(0.1), struct.pack("e", 0.1)),
    ("g", 2, 1.0, b"\x80\x3f"),
    ("g", 2, 0.1, b"\xcd\x3d"),
    ("b", 1, True, b"\x01"),
    ("b", 1, np.False_, b"\x00"),
    ("s", 8, 1 - 2j, struct.pack("ff", 1, -2)),
    ("s", 16, 1 - 2j, struct.pack("dd", 1, -2)),
    ("s", 8, np.complex64(1 - 2j), struct.pack("ff", 1, -2)),
    ("s", 8, Pair(1, 2), struct.pack("fi", 1, 2)),
    ("s", 8, np.array((1, 2), "f4,i4")[()], struct.pack("fi", 1, 2)),
    ("s", 12, np.arange(3, dtype="f4"), struct.pack("fff", 0, 1, 2)),
]


@pytest.mark.parametrize(("kind", "size", "argument", "expected"), GOOD)
def test_a_value_becomes_what_the_parameter_is(kind: str, size: int, argument: Any, expected: bytes) -> None:
    assert packed(kind, size, argument) == expected


@pytest.mark.parametrize(
    "number", [0.0, -0.0, 0.1, 1e-8, 6e-5, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 1023.5, 65504.0, 65519.0, -3.3]
)
def test_a_float_becomes_the_nearest_half(number: float) -> None:
    assert packed("f", 2, number) == np.float16(number).tobytes()


@pytest.mark.parametrize(
    ("kind", "size", "argument"),
    [
        ("p", 8, 1.5),
        ("p", 8, True),
        ("p", 8, "x"),
        ("p", 8, np.zeros(3)),
        ("p", 8, np.int32(3)),
        ("i", 4, 1.0),
        ("i", 4, None),
        ("i", 4, np.int64(1)),
        ("i", 4, np.float32(1)),
        ("i", 4, FakeArray()),
        ("f", 4, "1"),
        ("f", 4, np.float64(1)),
        ("f", 4, np.int32(1)),
        ("f", 4, 1j),
        ("b", 1, 1.0),
        ("s", 8, 3),
        ("s", 8, b"four"),
        ("s", 12, 1j),
    ],
)
def test_a_value_of_another_type_or_size_is_refused(kind: str, size: int, argument: Any) -> None:
    with pytest.raises(TypeError, match=r"argument 1 of kernel f: the parameter is .*got an object of <class"):
        packed(kind, size, argument)


@pytest.mark.parametrize(
    ("kind", "size", "argument"),
    [
        ("p", 8, -1),
        ("p", 8, 2**64),
        ("i", 1, 128),
        ("i", 4, 2**31),
        ("i", 4, -(2**31) - 1),
        ("i", 8, 2**63),
        ("i", 4, np.uint32(2**31)),
        ("u", 4, -1),
        ("u", 4, 2**32),
        ("u", 8, 2**64),
        ("u", 8, np.int64(-1)),
        ("f", 4, 1e39),
        ("f", 8, 10**400),
        ("f", 2, 65520.0),
        ("g", 2, 1e39),
        ("b", 1, 2),
        ("s", 8, 1e39j),
    ],
)
def test_a_number_that_does_not_fit_is_refused(kind: str, size: int, argument: Any) -> None:
    with pytest.raises(OverflowError, match="argument 1 of kernel f: .* does not fit into the parameter"):
        packed(kind, size, argument)


def test_the_message_names_the_kernel_the_place_the_type_and_the_value() -> None:
    parameters = _core.KernelParameters([("p", 8, 0), ("i", 4, 8)])
    with pytest.raises(TypeError) as error:
        for_tests.packed_arguments(parameters, "scale<float>", (None, 1.5))
    assert str(error.value) == (
        "argument 2 of kernel scale<float>: the parameter is int32 and takes an int, or a scalar of NumPy or ctypes of "
        "that size; got an object of <class 'float'>"
    )
    with pytest.raises(TypeError, match="kernel scale<float> takes 2 arguments, but args has 1"):
        for_tests.packed_arguments(parameters, "scale<float>", (None,))


def test_arguments_lie_at_the_offsets_of_the_parameters() -> None:
    parameters = _core.KernelParameters([("b", 1, 0), ("f", 8, 8), ("i", 2, 16)])
    assert for_tests.list_of_parameters(parameters) == [("b", 1, 0), ("f", 8, 8), ("i", 2, 16)]
    assert for_tests.packed_arguments(parameters, "f", (True, 2.0, 3)) == struct.pack("?7xdh", True, 2.0, 3)


@pytest.mark.parametrize("parameter", [("x", 8, 0), ("p", 4, 0), ("f", 3, 0), ("i", 16, 0), ("s", 0, 0), ("", 1, 0)])
def test_a_parameter_that_cannot_exist_is_refused(parameter: tuple[str, int, int]) -> None:
    with pytest.raises(ValueError, match="kind"):
        _core.KernelParameters([parameter])


class Launches:
    """A kernel that notes its launches."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.kernel = _core.python_kernel("f", _core.KernelParameters([("i", 4, 0)]), self.launch)

    def launch(self, *given: Any) -> None:
        self.seen.append(given)


class TestCall:
    def test_the_defaults_are_one_thread_and_the_current_stream(self) -> None:
        launches = Launches()
        launches.kernel(args=[5])
        assert launches.seen == [((1, 1, 1), (1, 1, 1), struct.pack("i", 5), (5,), 0, None)]

    def test_arguments_go_by_place_and_by_name(self) -> None:
        launches = Launches()
        launches.kernel((2, 3), 4, (5,), 6, "s")
        launches.kernel(stream="s", shared_mem=6, args=(5,), block=[4], grid=(np.int64(2), 3))
        assert launches.seen == [((2, 3, 1), (4, 1, 1), struct.pack("i", 5), (5,), 6, "s")] * 2

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            ({"grid": "x"}, TypeError, "grid must be an int, or a tuple"),
            ({"grid": (1.5,)}, TypeError, "grid must be an int, or a tuple"),
            ({"grid": ()}, ValueError, "grid must be an int, or a tuple"),
            ({"block": (1, 2, 3, 4)}, ValueError, "block must be an int, or a tuple"),
            ({"block": -1}, ValueError, "block must be an int, or a tuple"),
            ({"block": 2**32}, ValueError, "block must be an int, or a tuple"),
            ({"block": np.int64(-1)}, ValueError, "block must be an int, or a tuple"),
            ({"block": [1, np.int64(2**32)]}, ValueError, "block must be an int, or a tuple"),
            ({"block": np.ones(2)}, TypeError, "block must be an int, or a tuple"),
            ({"shared_mem": -1}, ValueError, "shared_mem must be a number of bytes"),
            ({"shared_mem": np.int64(-1)}, ValueError, "shared_mem must be a number of bytes"),
            ({"shared_mem": 1.5}, TypeError, "shared_mem must be a number of bytes"),
            ({"args": 5}, TypeError, "args must be a tuple or a list"),
            ({"arguments": 5}, TypeError, "got the argument 'arguments'"),
            ({"args": ("x",)}, TypeError, "argument 1 of kernel f"),
            ({"args": None}, TypeError, "takes 1 argument, but args has 0"),
        ],
    )
    def test_a_wrong_argument_launches_nothing(
        self, given: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        launches = Launches()
        with pytest.raises(error, match=message):
            launches.kernel(**{"args": (5,), **given})
        assert launches.seen == []

    def test_an_argument_is_not_given_twice(self) -> None:
        with pytest.raises(TypeError, match="'grid' is given twice"):
            Launches().kernel(1, grid=1)

    def test_more_than_five_arguments_are_refused(self) -> None:
        with pytest.raises(TypeError, match="go into the tuple args"):
            Launches().kernel(1, 1, (5,), 0, None, 6)  # type: ignore[call-arg]

    def test_an_exception_of_the_launch_reaches_the_caller(self) -> None:
        def fail(*_: Any) -> None:
            raise KeyError("launch")

        with pytest.raises(KeyError, match="launch"):
            _core.python_kernel("f", _core.KernelParameters([]), fail)()

    def test_the_kernel_shows_its_name_and_its_parameters(self) -> None:
        kernel = Launches().kernel
        assert (repr(kernel), kernel.name) == ("<kernel f>", "f")
        assert for_tests.list_of_parameters(kernel.parameters) == [("i", 4, 0)]
