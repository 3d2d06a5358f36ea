"""The names of CuPy that tcuda uses exist in the installed CuPy, which runs without a device here."""

from __future__ import annotations

import ast
import importlib.util
import json
from typing import TYPE_CHECKING

import pytest

from support.cupy_uses import names_in, used_names
from support.folders import TESTS

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

needs_cupy = pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")

WITHOUT_DEVICE = """
import json
import warnings
warnings.simplefilter("ignore")
from support.cupy_without_device import without_device
without_device()
"""


@pytest.fixture
def output(output_of: OutputOf) -> OutputOf:
    """Run code in a process whose CuPy has no device."""
    return lambda code, **environment: output_of(
        WITHOUT_DEVICE + code, PYTHONPATH=str(TESTS), TCUDA_RUNTIME="cuda", TCUDA_NO_CUPY_TAKEOVER="1", **environment
    )


def test_names_are_read_off_imports_attributes_and_variables() -> None:
    source = """
import cupy
import cupyx.jit as jit
from cupy.cuda import runtime, stream as streams
from numpy import array
CALLS = streams.Stream
def first(cupy, x):
    memory = cupy.cuda.memory
    memory.MemoryPointer(x.data).mem
    def second(): return memory.BaseMemory
    return CALLS.null, jit.rawkernel, array.sum
class Third:
    def method(self): return runtime.malloc(cupy.ndarray.__mro__)
"""
    expected = """
cupy.cuda cupy.cuda.memory cupy.cuda.memory.BaseMemory cupy.cuda.memory.MemoryPointer cupy.cuda.runtime
cupy.cuda.runtime.malloc cupy.cuda.stream cupy.cuda.stream.Stream cupy.cuda.stream.Stream.null cupy.ndarray
cupy.ndarray.__mro__ cupyx.jit.rawkernel
"""
    assert {name for name, _ in names_in(ast.parse(source))} == set(expected.split())


def test_the_source_uses_names_of_cupy() -> None:
    used = used_names()
    assert len(used) > 90
    assert used["cupy.cuda.memory.CFunctionAllocator"].startswith("tcuda/_cupy/backend.py:")


@needs_cupy
def test_cupy_has_the_names(output: OutputOf) -> None:
    code = (
        "from support.cupy_uses import exists, used_names\n"
        "print(json.dumps({name: exists(name) for name in used_names()}))"
    )
    found = json.loads(output(code).splitlines()[-1])
    assert not [f"{used_names()[name]} uses {name}" for name, state in found.items() if state is False]
    unknown = {name for name, state in found.items() if state is None}  # modules that load a library of CUDA
    assert unknown <= {"cupy_backends.cuda.libs.cublas", "cupy.cuda.nccl", "cupy.cuda.nccl.available"}


@needs_cupy
def test_cupy_has_all_calls_of_the_runtime(output: OutputOf) -> None:
    code = (
        "from tcuda._runtime.cuda import CudaRuntime\n"
        "from tcuda._runtime.protocol import Runtime\n"
        "calls = [name for name in vars(Runtime) if name[0] != '_']\n"
        "made = CudaRuntime()\n"
        "print(len(calls) > 60, [name for name in calls if not hasattr(made, name)])\n"
    )
    assert output(code) == "True []"


@needs_cupy
def test_the_array_library_takes_its_functions_from_cupy(output: OutputOf) -> None:
    code = (
        "import cupy\n"
        "from cupy_backends.cuda.stream import __pyx_capi__ as functions\n"
        "from tcuda._backend import Backend as Protocol\n"
        "from tcuda._cupy.backend import Backend\n"
        "from tcuda._runtime.cuda import CudaRuntime\n"
        "made = Backend(CudaRuntime())\n"
        "members = [name for name in vars(Protocol) if name[0] != '_']\n"
        "print(len(members) > 20, [name for name in members if not hasattr(made, name)])\n"
        "print('intptr_t (void' in repr(functions['get_current_stream_ptr']))\n"
        "before = cupy.cuda.runtime.deviceSynchronize, cupy.cuda.stream._BaseStream.synchronize\n"
        "made.watch_waits(True)\n"
        "print(all(old is not new for old, new in zip(before, (cupy.cuda.runtime.deviceSynchronize,\n"
        "    cupy.cuda.stream._BaseStream.synchronize))))\n"
        "made.watch_waits(False)\n"
        "print(before == (cupy.cuda.runtime.deviceSynchronize, cupy.cuda.stream._BaseStream.synchronize))\n"
    )
    assert output(code) == "True []\nTrue\nTrue\nTrue"
