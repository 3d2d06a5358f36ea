"""What is known of the kernels of the installed CuPy, which runs without a device here."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")

SETUP = """
import ctypes
import warnings
warnings.simplefilter("ignore")
from support.cupy_without_device import without_device
driver = without_device()
import cupy
from tcuda import _core
from tcuda._core import for_tests
from tcuda.sanitizer._cuda import kernel_uses
from tcuda._cupy import loaded_kernels

compiler = cupy.cuda.compiler
compile_with_nvrtc = compiler._compile_with_cache_cuda

def compile_nothing(source, options, *rest, **others):
    module = cupy.cuda.function.Module()
    module.load(b"an image")
    return module

compiler._compile_with_cache_cuda = compile_nothing
loaded_kernels.follow(cupy)

class Table:
    descriptions, ptx, forgotten = {}, {}, []
    def describe_kernel(self, module, name, parameters, pointers, complete):
        self.descriptions[module, name] = parameters, pointers, complete
    def add_ptx(self, module, text):
        self.ptx[module] = text
    def forget_module(self, module):
        self.forgotten.append(module)
    def uses_of_ptx(self, text):
        return {}

table = Table()
cupy._core.set_reduction_accelerators([])
seen, undescribed, notes = [], [], []

def look(function, parameters):
    # Reads the arrays of a launch by the description, from the parameters that CuPy has made.
    notes.append(for_tests.current_notes())
    module, name = driver.functions[function]
    if (module, name) not in table.descriptions:
        undescribed.append(name)
        return
    places, pointers, complete = table.descriptions[module, name]
    addresses = ctypes.cast(parameters, ctypes.POINTER(ctypes.c_void_p))
    of = {offset: number for number, (offset, size) in enumerate(places)}
    for offset, kind, possible, dimensions, itemsize, label in pointers:
        words = ctypes.cast(addresses[of[offset]], ctypes.POINTER(ctypes.c_ssize_t))
        count = max(dimensions, 0)
        shape, strides = tuple(words[2 : 2 + count]), tuple(words[2 + count : 2 + 2 * count])
        seen.append((label, kind, words[0], itemsize, shape, strides))

driver.on_launch = look

def seen_in(call):
    del seen[:], notes[:]
    result = call()
    return result, list(seen)

def memory(array):
    return array.data.ptr, array.itemsize, array.shape, array.strides
"""


@pytest.fixture
def output(output_of: OutputOf) -> OutputOf:
    """Run code after the set-up, in a process whose CuPy has no device."""
    tests = str(REPOSITORY / "tests")
    return lambda code, **environment: output_of(
        SETUP + code, PYTHONPATH=tests, TCUDA_NO_CUPY_TAKEOVER="1", **environment
    )


def test_the_arrays_of_a_launch_are_found_by_the_description(output: OutputOf) -> None:
    code = """
kernel_uses.begin(cupy, table)
x, y = cupy.empty((6, 8), "f")[::2, ::2], cupy.empty((3, 4), "d")
z, found = seen_in(lambda: x + y)
assert found == [("in0", 1, *memory(x)), ("in1", 1, *memory(y)), ("out0", 2, z.data.ptr, 8, (3, 4), (32, 8))], found
i = cupy.empty(5, "q")
w, found = seen_in(lambda: x.take(i, axis=1))
assert [(label, kind) for label, kind, *_ in found[-3:]] == [("a", 1), ("indices", 1), ("out", 2)], found
total, found = seen_in(lambda: cupy.empty((6, 8), "F").sum(axis=0))
assert [(label, kind, *rest) for label, kind, _, *rest in found] == [
    ("in0", 1, 8, (48,), (8,)), ("out0", 2, 8, (8,), (8,))
], found
kernel_uses.end()
print("ok", undescribed)
"""
    assert output(code) == "ok []"


def test_all_kernels_of_many_operations_are_described(output: OutputOf) -> None:
    code = """
from support.cupy_kernels import operations
kernel_uses.begin(cupy, table)
for accelerators in ([], ["cub"]):
    cupy._core.set_reduction_accelerators(accelerators)
    for name, operation in operations(cupy).items():
        try:
            operation()
        except (RuntimeError, ImportError):  # the operation calls a library, or reads a result
            pass
kernel_uses.end()
print(len(notes) > 100, sorted(set(undescribed)))
"""
    assert output(code) == "True []"


def test_kernels_that_were_loaded_before_are_described_at_the_begin(output: OutputOf) -> None:
    code = """
x = cupy.empty(3)
x + x
assert undescribed == ["cupy_add__float64_float64_float64"]
kernel_uses.begin(cupy, table)
_, found = seen_in(lambda: x + x)
kernel_uses.end()
print(len(undescribed), len(found), table.forgotten == [module for module, _ in table.descriptions])
"""
    assert output(code) == "1 3 True"


def test_launches_without_pythons_lock_have_the_stack_of_the_operation(output: OutputOf) -> None:
    code = """
from tcuda._core import for_tests

square = cupy.ElementwiseKernel("T x", "T y", "y = x * x", "square")
total = cupy.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
raw = cupy.RawKernel('extern "C" __global__ void f(float *x) {}', "f")
x = cupy.empty(5, "f")
names = []

def look(function, parameters):
    # The thread that notes stacks for others has not begun, so a stack with frames is that of the call.
    names.append([frame["name"] for frame in _core.frames_of(for_tests.note_stack_without_lock())][:1])

def operate():
    global x
    x += 1
    cupy.add(x, x, out=x)
    square(x)
    total(x)
    cupy.empty((6, 8), "f").sum(axis=0)
    raw((1,), (1,), (x,))

driver.on_launch = look
operate()
assert names == [[]] * 6, names
del names[:]
kernel_uses.begin(cupy, table)
operate()
kernel_uses.end()
found = names[:]
del names[:]
operate()
print(len(found), {*map(tuple, found)}, {*map(tuple, names)})
"""
    assert output(code) == "6 {('operate',)} {()}"


def test_the_arrays_of_raw_kernels_are_noted(output: OutputOf) -> None:
    code = """
import numpy
import sys
sys.path.insert(0, ".")
with open("jitted.py", "w") as file:
    file.write("from cupyx import jit\\n@jit.rawkernel()\\ndef jitted(x, y):\\n    y[0] = x[0, 0]\\n")
from jitted import jitted

source = 'extern "C" __global__ void f(const float *x, float *y, int n) {}'
raw = cupy.RawKernel(source, "f")
function = cupy.RawModule(code=source).get_function("f")
x, y = cupy.empty((4, 6), "f")[:, ::2], cupy.empty(5, "f")
calls = {
    "RawKernel": lambda: raw((1,), (1,), (x, y, numpy.int32(3))),
    "RawModule": lambda: function((1,), (1,), args=(x, y, numpy.int32(3)), shared_mem=8),
    "Function": lambda: raw.kernel((1,), (1,), [x, y.data, numpy.int32(3)]),
    "jit": lambda: jitted[1, 1](x, y),
    "ufunc": lambda: x + 1,
}
kernel_uses.begin(cupy, table)
for name, call in calls.items():
    seen_in(call)
    print(name, [[label for *_, label in memory] for _, memory, _ in notes[0]])
    for _, noted, exclusive in notes[0]:
        assert noted[0] == (*memory(x), None, "x") and not exclusive
        assert noted[1][0] == y.data.ptr
kernel_uses.end()
for call in calls.values():
    seen_in(call)
    assert notes == [[]]
"""
    both = "[['x', 'y']]"
    expected = [f"RawKernel {both}", f"RawModule {both}", f"Function {both}", f"jit {both}", "ufunc []"]
    assert output(code).splitlines() == expected


def test_errors_of_raw_kernels_stay_as_they_are(output: OutputOf) -> None:
    code = """
raw = cupy.RawKernel('extern "C" __global__ void f(float *x) {}', "f")
calls = lambda: raw(), lambda: raw(1, 2, 3), lambda: raw((1,), (1,), (object(),)), lambda: raw.kernel((1,), (1,), None)

def errors():
    for call in calls:
        try:
            call()
        except Exception as error:
            yield repr(error)

before = list(errors())
kernel_uses.begin(cupy, table)
assert list(errors()) == before and len(before) == 4
kernel_uses.end()
print("ok")
"""
    assert output(code) == "ok"


def test_a_module_of_a_file_is_noted(output: OutputOf) -> None:
    code = """
with open("kernels.ptx", "w") as file:
    file.write("// made by hand\\n.version 8.0\\n")
kernel_uses.begin(cupy, table)
function = cupy.RawModule(path="kernels.ptx").get_function("f")
function((1,), (1,), ())
kernel_uses.end()
print(*table.ptx.values())
"""
    assert output(code) == "// made by hand\n.version 8.0"


NEEDS_NVRTC = """
try:
    from cupy_backends.cuda.libs import nvrtc
    nvrtc.getVersion()
    cupy._core.core.assemble_cupy_compiler_options(())
except Exception as error:
    print("no NVRTC")
    raise SystemExit
"""


def test_nvrtc_makes_the_ptx_of_raw_kernels(output: OutputOf) -> None:
    code = f"""{NEEDS_NVRTC}
kernel_uses.begin(cupy, table)
raw = cupy.RawKernel('extern "C" __global__ void f(float *x) {{ *x = FIVE; }}', "f", options=("-DFIVE=5",))
raw((1,), (1,), (cupy.empty(1, "f"),))
source = "template<typename T> __global__ void g(T *x) {{ *x = 3; }}"
other = cupy.RawModule(code=source, name_expressions=["g<float>"])
module = other.module
loaded_kernels.note(1, loaded_kernels.source_of(module.ptr))
broken = cupy.RawKernel("this is no source", "f")
broken((1,), (1,), ())
from tcuda.sanitizer._cuda.kernel_ptx import ptx_of
found = [*table.ptx.values(), ptx_of(loaded_kernels.source_of(module.ptr))]
kernel_uses.end()
print(len(found), ".entry f(" in found[0], "st.global" in found[0], ".entry _Z1gIfEvPT_(" in found[1])
"""
    found = output(code)
    if found == "no NVRTC":
        pytest.skip("NVRTC or the headers of CUDA are not installed")
    assert found == "2 True True True"
