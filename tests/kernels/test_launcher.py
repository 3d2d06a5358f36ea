"""The launch of a kernel through the driver, with a library in place of the driver."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import CompiledCpp, OutputOf

PREPARATION = """
import ctypes
from tcuda import _core

stub = ctypes.CDLL("libcuda.so.1")
stub.stub_calls.restype = stub.stub_launch.restype = ctypes.c_char_p
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
get_stream = ctypes.CFUNCTYPE(ctypes.c_ssize_t)(lambda: 11)
current_stream = new_capsule(ctypes.cast(get_stream, ctypes.c_void_p), None, None)
repairs = []

class Stream:
    ptr = 12

class TorchStream:
    cuda_stream = 13

class Data:
    ptr = 0x1000
    device_id = 0

class Array:
    data = Data()

def repair(*failure):
    repairs.append(failure)
    on_failure(*failure)

def on_failure(*failure):
    raise KeyError(failure)

launcher = _core.KernelLauncher()
parameters = _core.KernelParameters([("p", 8, 0), ("f", 8, 8)])
kernel = _core.cuda_kernel("f", parameters, launcher, current_stream, repair)
launcher.add(100, 0)
"""


class TestLauncher:
    def test_the_driver_gets_the_sizes_the_stream_and_the_arguments(
        self, output_of: OutputOf, driver_stub: str
    ) -> None:
        code = f"""{PREPARATION}
for stream in (None, Stream(), TorchStream()):
    kernel((2, 3), 64, (Array(), 1.5), 4096, stream)
    print(stub.stub_launch().decode())
"""
        expected = [f"100 2 3 1 64 1 1 4096 {stream} 4096 1.500000" for stream in (11, 12, 13)]
        assert output_of(code, LD_LIBRARY_PATH=driver_stub).splitlines() == expected

    @pytest.mark.parametrize(
        ("options", "launch"),
        [((), "cuLaunchKernelEx cuLaunchKernel"), (("-DWITHOUT_CONFIGURED_LAUNCHES",), "cuLaunchKernel")],
    )
    def test_a_launch_is_one_call_of_the_driver_after_the_look_up_of_the_context(
        self,
        fresh_output_of: OutputOf,
        compiled_cpp: CompiledCpp,
        tmp_path: Path,
        options: tuple[str, ...],
        launch: str,
    ) -> None:
        shutil.move(compiled_cpp("driver_stub", *options), tmp_path / "libcuda.so.1")
        code = f"""{PREPARATION}
stub.stub_forget()
kernel((2, 3, 4), (5, 6, 7), (None, 0), 8)
print(stub.stub_calls().decode().strip())
print(stub.stub_launch().decode())
"""
        # The stub's cuLaunchKernelEx() calls its cuLaunchKernel().
        expected = [f"cuCtxGetCurrent {launch}", "100 2 3 4 5 6 7 8 11 0 0.000000"]
        assert fresh_output_of(code, LD_LIBRARY_PATH=str(tmp_path)).splitlines() == expected

    def test_a_launch_runs_no_python_frame(self, output_of: OutputOf, driver_stub: str) -> None:
        code = f"""{PREPARATION}
import sys

class Slots:
    ptr = 0x1000

stream, arguments, frames = Stream(), (Slots(), 1.5), []
sys.setprofile(lambda frame, event, _: frames.append((event, frame.f_code.co_name)))
kernel(1, 1, arguments, 0, stream)
sys.setprofile(None)
print([frame for frame in frames if frame[0] == "call"])
print(stub.stub_launch().decode())
"""
        launched = "100 1 1 1 1 1 1 0 12 4096 1.500000"
        assert output_of(code, LD_LIBRARY_PATH=driver_stub).splitlines() == ["[]", launched]

    def test_each_device_has_a_function_of_its_own(self, output_of: OutputOf, driver_stub: str) -> None:
        code = f"""{PREPARATION}
def on_failure(*failure):
    launcher.add(200, 1)

for context in (8, 7, 8):
    stub.stub_use(context)
    kernel(1, 1, (None, 0))
    print(stub.stub_launch().decode().split()[0], repairs)
"""
        missing = [(201, 0, (1, 1, 1), (1, 1, 1), 0)]
        expected = [f"{function} {missing}" for function in (200, 100, 200)]
        assert output_of(code, LD_LIBRARY_PATH=driver_stub).splitlines() == expected

    def test_a_failed_launch_is_tried_again_after_the_repair(self, output_of: OutputOf, driver_stub: str) -> None:
        code = f"""{PREPARATION}
def on_failure(status, attempt, grid, block, shared):
    if attempt == 1:
        stub.stub_fail_launches(0)

stub.stub_fail_launches(1)
kernel((4, 5, 6), (7, 8), (None, 2.5), 9)
print(repairs)
print(stub.stub_launch().decode())
"""
        failures = [(1, attempt, (4, 5, 6), (7, 8, 1), 9) for attempt in (0, 1)]
        launched = "100 4 5 6 7 8 1 9 11 0 2.500000"
        assert output_of(code, LD_LIBRARY_PATH=driver_stub).splitlines() == [str(failures), launched]

    def test_an_exception_of_the_repair_reaches_the_caller(self, output_of: OutputOf, driver_stub: str) -> None:
        code = f"""{PREPARATION}
stub.stub_fail_launches(719)
try:
    kernel(1, 1, (None, 0))
except KeyError as error:
    print(error.args[0])
"""
        assert output_of(code, LD_LIBRARY_PATH=driver_stub) == "(719, 0, (1, 1, 1), (1, 1, 1), 0)"

    def test_a_wrong_argument_or_stream_calls_no_driver(self, output_of: OutputOf, driver_stub: str) -> None:
        code = f"""{PREPARATION}
for given in (("x", 1.0), None), ((None, 1.0), 5):
    try:
        kernel(1, 1, *given[:1], 0, given[1])
    except TypeError as error:
        print(error)
print("cuLaunchKernel" in stub.stub_calls().decode())
"""
        wrong_argument, wrong_stream, called = output_of(code, LD_LIBRARY_PATH=driver_stub).splitlines()
        assert wrong_argument.startswith("argument 1 of kernel f: the parameter is a pointer")
        assert wrong_stream.startswith("stream must be a stream of tcuda, CuPy or torch")
        assert called == "False"

    def test_the_address_of_an_array_comes_from_the_descriptors(self, output_of: OutputOf, driver_stub: str) -> None:
        code = f"""{PREPARATION}
from tcuda._core import for_tests

class Fast:
    @property
    def data(self):
        return Data()

    def __getattribute__(self, name):
        raise AssertionError("a look-up by name")

class Pointer(Data):
    @property
    def address(self):
        return 0x2000

Fast.data = property(lambda array: Pointer())
arrays = _core.ArrayAddresses(Fast, Fast.__dict__["data"], Pointer.__dict__["address"])
print(for_tests.packed_arguments(_core.KernelParameters([("p", 8, 0)], arrays), "f", (Fast(),)).hex())
"""
        assert output_of(code, LD_LIBRARY_PATH=driver_stub) == (0x2000).to_bytes(8, "little").hex()

    def test_an_array_of_another_device_is_asked_about(self, output_of: OutputOf, driver_stub: str) -> None:
        code = f"""{PREPARATION}
class Other:
    data = property(lambda array: Data())

class Numbers:
    ptr = property(lambda data: data.ptr)
    device_id = property(lambda data: data.device_id)

def reach(device, other):
    print("reach", device, other)
    if device == 1:
        raise ValueError("out of reach")

arrays = _core.ArrayAddresses(Other, Other.data, Numbers.ptr, Numbers.device_id, reach)
parameters = _core.KernelParameters([("p", 8, 0), ("f", 8, 8)], arrays)
launcher = _core.KernelLauncher()
launcher.add(100, 0)
stub.stub_use(8)
launcher.add(200, 1)
kernel = _core.cuda_kernel("f", parameters, launcher, current_stream, repair)
stub.stub_use(7)
kernel(1, 1, (Other(), 0))
Data.device_id = 3
kernel(1, 1, (Other(), 0))
stub.stub_use(8)
try:
    kernel(1, 1, (Other(), 0))
except ValueError as error:
    print(error)
"""
        assert output_of(code, LD_LIBRARY_PATH=driver_stub).splitlines() == ["reach 0 3", "reach 1 3", "out of reach"]

    def test_a_launch_without_a_driver_says_so(self, fresh_output_of: OutputOf, tmp_path: Path) -> None:
        (tmp_path / "libcuda.so.1").write_text("no library")
        code = """
from tcuda import _core

try:
    _core.KernelLauncher()
except RuntimeError as error:
    print(str(error).partition(":")[0])
"""
        assert fresh_output_of(code, LD_LIBRARY_PATH=str(tmp_path)) == "libcuda.so.1 cannot be loaded"
