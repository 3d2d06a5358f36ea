"""Calls that the core computes without Python, with a library in place of the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

SETUP = """
import ctypes
import math
from tcuda import _core

class Pointer:
    def __init__(self, array, device):
        self._memory, self._device = array._memory, device
    ptr = property(lambda self: ctypes.addressof(self._memory))
    device_id = property(lambda self: self._device)

class Dtype:
    def __init__(self, itemsize):
        self.itemsize = itemsize

d, f = Dtype(8), Dtype(4)

class Array:
    made = 0
    def __init__(self, shape, dtype, values=None, device=0, strides=None):
        Array.made += 1
        size = 1
        for length in shape:
            size *= length
        self._memory = (ctypes.c_double * max(size, 1))(*(values or ()))
        self._shape, self._dtype, self._device, self._strides = tuple(shape), dtype, device, strides
        self.transposed = None
    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)
    @property
    def strides(self):
        if self._strides is not None:
            return self._strides
        return tuple(8 * math.prod(self._shape[axis + 1:]) for axis in range(len(self._shape)))
    size = property(lambda self: math.prod(self._shape))
    ndim = property(lambda self: len(self._shape))
    _c_contiguous = property(lambda self: self._strides is None)
    data = property(lambda self: Pointer(self, self._device))
    def values(self):
        return list(self._memory)
    def transpose(self, axes):
        self.transposed = axes
        return self

launches = []
outputs = 1
status = 0

def value(address, kind):
    return ctypes.cast(address, ctypes.POINTER(kind))[0]

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint)
def kernel(parameters, blocks):
    size = value(parameters[0], ctypes.c_longlong)
    first, second, out = (
        ctypes.cast(value(parameters[place], ctypes.c_void_p), ctypes.POINTER(ctypes.c_double)) for place in (1, 2, 3)
    )
    scale = value(parameters[3 + outputs], ctypes.c_double)
    launches.append((size, blocks, scale))
    for element in range(size if status == 0 else 0):
        out[element] = scale * (first[element] + second[element])
    return status

current_stream = ctypes.CFUNCTYPE(ctypes.c_ssize_t)(lambda: 0)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule = new_capsule(ctypes.cast(current_stream, ctypes.c_void_p), None, None)

class Fallback:
    name = "fallback"
    def __call__(self, *inputs, **scalars):
        return "Python"
    def __repr__(self):
        return "<fallback>"

layouts = []

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint)
def strided_kernel(parameters, blocks):
    layouts.append(ctypes.string_at(parameters[1], 4 * (1 + 3 * 16 + 2 * 16)))
    return status

def address_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value

addresses = _core.ArrayAddresses(Array, Array.data, Pointer.ptr, Pointer.device_id)
arrays = _core.ArrayType(addresses)

def function(outputs=1, device=0, dtypes=(d, d), result=d):
    state = _core.ElementwiseState(("scale",), (2.0,), outputs)
    functions = address_of(kernel), address_of(strided_kernel)
    state.learn(arrays, capsule, dtypes, (1,), result, *functions, device, kernel)
    return _core.elementwise_call(Fallback(), state)

add = function()
x, y = Array((2, 2), d, [1, 2, 3, 4]), Array((2, 2), d, [10, 20, 30, 40])
"""


@pytest.fixture
def computed(driver_stub: str, output_of: OutputOf) -> OutputOf:
    """Run code after the set-up, with the library in place of the driver."""
    return lambda code, **environment: output_of(SETUP + code, LD_LIBRARY_PATH=driver_stub, **environment)


def test_a_learned_call_launches_the_kernel(computed: OutputOf) -> None:
    code = """
result = add(x, y)
print(type(result).__name__, result.shape, result.dtype is d, result.values(), launches)
"""
    assert computed(code) == "Array (2, 2) True [22.0, 44.0, 66.0, 88.0] [(4, 1, 2.0)]"


def test_a_keyword_replaces_the_default(computed: OutputOf) -> None:
    assert computed("print(add(x, y, scale=0.5).values(), add(x, y).values()[0])") == "[5.5, 11.0, 16.5, 22.0] 22.0"


def test_several_outputs_are_a_tuple(computed: OutputOf) -> None:
    code = """
outputs = 2
both = function(outputs=2)
first, second = both(x, y)
print(first.values(), second.values(), Array.made)
"""
    assert computed(code) == "[22.0, 44.0, 66.0, 88.0] [0.0, 0.0, 0.0, 0.0] 4"


def test_an_empty_call_launches_nothing(computed: OutputOf) -> None:
    code = "print(add(Array((0, 3), d), Array((0, 3), d)).shape, launches)"
    assert computed(code) == "(0, 3) []"


def test_a_grid_has_a_block_for_1024_elements(computed: OutputOf) -> None:
    code = """
a, b = Array((1025,), d), Array((1025,), d)
add(a, b)
add(Array((1024,), d), Array((1024,), d))
print([blocks for _, blocks, _ in launches])
"""
    assert computed(code) == "[2, 1]"


def test_inputs_with_strides_have_the_plan_of_python(computed: OutputOf) -> None:
    code = """
import random
from tcuda.jiterator._layout import layout_of
from tcuda.jiterator._plan import plan_of

choose = random.Random(0)

def chosen(lengths):
    lengths = [choose.choice([1, length]) for length in lengths][choose.randrange(len(lengths) + 1):]
    order = choose.sample(range(len(lengths)), len(lengths))
    step, strides = 8, [0] * len(lengths)
    for axis in order:
        strides[axis] = step * choose.choice([1, 1, 1, -1, 2])
        step = abs(strides[axis]) * lengths[axis]
    return Array(lengths, d, strides=tuple(strides))

kernels = set()
for _ in range(2000):
    lengths = [choose.randrange(1, 6) for _ in range(choose.randrange(6))]
    pair = chosen(lengths), chosen(lengths)
    plan = plan_of(tuple(a.shape for a in pair), tuple(a.strides for a in pair), (8, 8))
    del layouts[:], launches[:]
    result = add(*pair)
    assert result.shape == plan.made, (plan, result.shape)
    assert result.transposed == plan.axes, (plan, result.transposed)
    assert len(layouts) + len(launches) == 1
    if plan.kernel == "tcuda_strided":
        (layout,) = layouts
        expected = layout_of(plan.kernel, plan.loop, 2).tobytes()
        axes = len(plan.loop)
        rows = [slice(0, 4)] + [slice(4 + 64 * row, 4 + 64 * row + 4 * axes) for row in range(5)]
        assert [layout[row] for row in rows] == [expected[row] for row in rows], plan
    else:
        assert launches[0][0] == plan.size
    kernels.add(plan.kernel)
print(sorted(kernels))
"""
    assert computed(code) == "['tcuda_contiguous', 'tcuda_strided']"


def test_vectors_and_matrices_of_one_size_are_told_apart(computed: OutputOf) -> None:
    code = """
shapes = []
for first, second in [((4,), (4,)), ((4,), (1, 4)), ((1, 4), (4,)), ((4,), (4, 1)), ((), (1,)), ((1,), ())]:
    shapes.append(add(Array(first, d), Array(second, d)).shape)
print(shapes)
"""
    assert computed(code) == "[(4,), (1, 4), (1, 4), (4, 4), (1,), (1,)]"


def test_inputs_with_strides_may_be_empty(computed: OutputOf) -> None:
    code = "print(add(Array((0, 3), d, strides=(24, 8)), Array((3,), d, strides=(8,))).shape, layouts, launches)"
    assert computed(code) == "(0, 3) [] []"


def test_an_input_without_axes_of_the_same_dtype_is_broadcast(computed: OutputOf) -> None:
    assert computed("print(add(x, Array((), d, [1])).shape, len(layouts))") == "(2, 2) 1"


@pytest.mark.parametrize(
    "call",
    [
        "add()",
        "add(x)",
        "add(x, y, x)",
        "add(*[x] * 9)",
        "add(x, 3.0)",
        "add(x, Array((2, 2), f))",
        "add(x, Array((3, 2), d))",
        "add(Array((3,), d), Array((2,), d))",
        "add(x, Array((1,) * 17, d, strides=(8,) * 17))",
        "add(x, Array((2, 2), d, strides=(2**31, 8)))",
        "function(dtypes=(d, f))(x, Array((), f, strides=()))",
        "add(x, y, scale=2)",
        "add(x, y, scale=True)",
        "add(x, y, scale='2')",
        "add(x, y, other=2.0)",
        "add(x, Array((2, 2), d, device=1))",
        "add(x, type('Derived', (Array,), {})((2, 2), d))",
    ],
)
def test_other_calls_go_to_python(computed: OutputOf, call: str) -> None:
    assert computed(f"print({call}, launches)") == "Python []"


def test_a_launch_that_fails_goes_to_python(computed: OutputOf) -> None:
    assert computed("status = 201\nprint(add(x, y), len(launches))") == "Python 1"


def test_an_error_of_an_array_reaches_the_caller(computed: OutputOf) -> None:
    code = """
def refuse(self, shape, dtype, memory):
    raise MemoryError("no room")
Array.__init__ = refuse
try:
    add(x, y)
except MemoryError as error:
    print(error, launches)
"""
    assert computed(code) == "no room []"


def test_outputs_are_made_of_the_base_if_there_is_a_method_for_it(computed: OutputOf) -> None:
    code = """
def initialize(array, shape, dtype, *others):
    initialized.append((type(array).__name__, shape, dtype, others))
    setup(array, shape, dtype)

initialized, setup = [], Array.__init__
arrays = _core.ArrayType(addresses, object, initialize)
add = function()
Array.__init__ = None
print(add(x, y).values(), initialized == [("Array", (2, 2), d, (None,) * 3)])
"""
    assert computed(code) == "[22.0, 44.0, 66.0, 88.0] True"


def test_an_error_of_the_method_that_makes_arrays_leaves_no_array(computed: OutputOf) -> None:
    code = """
import weakref

def initialize(array, *arguments):
    made.append(weakref.ref(array))
    raise MemoryError("no room")

made = []
arrays = _core.ArrayType(addresses, object, initialize)
try:
    function()(x, y)
except MemoryError as error:
    print(error, launches)
print(made[0]())
"""
    assert computed(code).splitlines() == ["no room []", "None"]


def test_the_call_has_the_attributes_of_the_function_in_python(computed: OutputOf) -> None:
    code = """
print(add, add.name, type(add.__wrapped__).__name__, hasattr(add, "other"))
"""
    assert computed(code) == "<fallback> fallback Fallback False"


def test_a_function_frees_what_it_has_learned(computed: OutputOf) -> None:
    code = """
import gc, weakref
dtype = Dtype(8)
alive = weakref.ref(dtype)
made = function(dtypes=(dtype, dtype), result=dtype)
del dtype
gc.collect()
before = alive() is not None
del made
gc.collect()
print(before, alive())
"""
    assert computed(code) == "True None"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("_core.ElementwiseState((), (), 0)", "1 to 8 outputs"),
        ("_core.ElementwiseState(('a',), (), 1)", "a default for each keyword argument"),
        ("_core.ElementwiseState(('a',), ('1',), 1)", "a default is a bool"),
        ("_core.ElementwiseState(('a',), (1,), 1).learn(arrays, capsule, (), (), d, 1, 2, 0, 0)", "a kind for"),
    ],
)
def test_wrong_descriptions_are_errors(computed: OutputOf, code: str, message: str) -> None:
    assert message in computed(f"try:\n    {code}\nexcept (TypeError, ValueError) as error:\n    print(error)")


@pytest.mark.wings
def test_the_memory_of_a_call_is_noted_while_kernels_are_noted(computed: OutputOf) -> None:
    code = """
from tcuda._core import for_tests

class Function:
    def __call__(self): ...

seen = []
Array.itemsize = property(lambda self: self.dtype.itemsize)
launches = type("Noting", (), {"append": lambda self, launch: seen.append(for_tests.current_notes())})()
add(x, y)
_core.note_calls(Function, Array, Pointer, tuple)
result = add(x, y)
made = for_tests.current_notes()
_core.stop_noting_calls()
add(x, y)
((_, memory, exclusive),) = seen[1]
of = {x.data.ptr: "x", y.data.ptr: "y", result.data.ptr: "result"}
print(seen[0], made, seen[2], exclusive, [(of[address], *rest) for address, *rest in memory])
"""
    x, y = "('x', 8, (2, 2), (16, 8), 1, '')", "('y', 8, (2, 2), (16, 8), 1, '')"
    assert computed(code) == f"[] [] [] True [{x}, {y}, ('result', 8, (2, 2), (16, 8), 2, '')]"
