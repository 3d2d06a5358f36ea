"""Modules in CUDA C++: kernels by name and by name expression, and global variables, on both runtimes."""

from __future__ import annotations

import ctypes
import pickle
import shutil
from typing import Any

import numpy as np
import pytest

import tcuda
from support.kernels import SAXPY, launch_status

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

TEMPLATES = r"""
template <typename T, int N> __global__ void fill(T* x) { x[threadIdx.x] = N; }
namespace inner { __global__ void ones(int* x) { x[threadIdx.x] = 1; } }
extern "C" __global__ void plain(int* x) { x[threadIdx.x] = 2; }
"""
VARIABLES = r"""
extern "C" {
__constant__ float weights[4];
__device__ int counter = 7;
__global__ void read(float* x) { x[threadIdx.x] = weights[threadIdx.x]; }
__global__ void count(int* x) { x[0] = atomicAdd(&counter, 1); }
__global__ void through(int* p, int* x) { x[0] = *p; }
}
"""


def test_a_module_gives_its_kernels(xp: Any) -> None:
    module = xp.RawModule(code=SAXPY + 'extern "C" __global__ void zero(float* x) { x[threadIdx.x] = 0; }')
    x, y = xp.arange(4, dtype=xp.float32), xp.ones(4, dtype=xp.float32)
    module.get_function("saxpy")((1,), (4,), (4, xp.float32(3), x, y))
    assert y.get().tolist() == [1, 4, 7, 10]
    module.get_function("zero")((1,), (2,), (y,))
    assert y.get().tolist() == [0, 0, 7, 10]
    assert isinstance(module.get_function("zero"), xp.RawKernel)


def test_name_expressions_find_templates_and_names_in_namespaces(xp: Any) -> None:
    names = ["fill<float, 3>", "fill<int, 4>", "inner::ones"]
    module = xp.RawModule(code=TEMPLATES, name_expressions=names, options=("--std=c++17",))
    x, n = xp.zeros(2, dtype=xp.float32), xp.zeros(2, dtype=xp.int32)
    module.get_function("fill<float, 3>")((1,), (2,), (x,))
    assert x.get().tolist() == [3, 3]
    module.get_function("fill<int, 4>")((1,), (2,), (n,))
    assert n.get().tolist() == [4, 4]
    module.get_function("inner::ones")((1,), (2,), (n,))
    assert n.get().tolist() == [1, 1]
    module.get_function("plain")((1,), (2,), (n,))
    assert n.get().tolist() == [2, 2]
    assert tuple(module.name_expressions) == tuple(names)


def test_name_expressions_find_variables(xp: Any) -> None:
    code = r"""
template <typename T> __device__ volatile T value = T(3);
namespace inner { __constant__ int table[4] = {1, 2, 3, 4}; }
template <typename T> __global__ void read(T* x) { x[0] = value<T> + inner::table[1]; }
"""
    variables = ["&value<float>", "&inner::table"]
    module = xp.RawModule(code=code, name_expressions=[*variables, "read<float>"], options=("--std=c++17",))
    value, table = (module.get_global(module.module.mapping[variable]) for variable in variables)
    x = xp.ndarray((1,), xp.float32, memptr=value)
    assert xp.ndarray((4,), xp.int32, memptr=table).get().tolist() == [1, 2, 3, 4]
    x[0] = 40
    result = xp.zeros(1, dtype=xp.float32)
    module.get_function("read<float>")((1,), (1,), (result,))
    assert result.get().tolist() == [42]
    assert launch_status(lambda: module.get_function(variables[0])) == 500


@pytest.mark.parametrize("name", ["absent", "inner::ones", "::inner::ones", "ones", "fill<int, 5>"])
def test_names_that_were_not_asked_for_are_not_found(name: str, xp: Any) -> None:
    module = xp.RawModule(code=TEMPLATES, name_expressions=["fill<int, 4>"])
    assert launch_status(lambda: module.get_function(name)) == 500


def test_a_global_variable_is_memory_of_the_device(xp: Any) -> None:
    module = xp.RawModule(code=VARIABLES)
    weights = xp.ndarray((4,), xp.float32, module.get_global("weights"))
    weights[...] = xp.asarray([1, 2, 3, 4], dtype=xp.float32)
    x = xp.zeros(4, dtype=xp.float32)
    module.get_function("read")((1,), (4,), (x,))
    assert x.get().tolist() == [1, 2, 3, 4]
    weights.set(np.asarray([5, 6, 7, 8], dtype=np.float32))
    module.get_function("read")((1,), (4,), (x,))
    assert x.get().tolist() == weights.get().tolist() == [5, 6, 7, 8]


def test_a_global_variable_keeps_its_value_between_launches(xp: Any) -> None:
    module = xp.RawModule(code=VARIABLES + "// kept")
    counter = xp.ndarray((1,), xp.int32, module.get_global("counter"))
    before = counter.item()
    x = xp.zeros(1, dtype=xp.int32)
    for step in range(3):
        module.get_function("count")((1,), (1,), (x,))
        assert x.item() == before + step
    assert counter.item() == before + 3


def test_another_module_reads_a_global_variable_through_a_pointer(xp: Any) -> None:
    counter = xp.ndarray((1,), xp.int32, xp.RawModule(code=VARIABLES + "// source").get_global("counter"))
    other = xp.RawModule(code=VARIABLES + "// reader")
    x = xp.zeros(1, dtype=xp.int32)
    other.get_function("through")((1,), (1,), (counter, x))
    assert x.item() == counter.item()


def test_a_variable_that_does_not_exist_is_not_found(xp: Any) -> None:
    module = xp.RawModule(code=VARIABLES)
    assert launch_status(lambda: module.get_global("absent")) == 500


def test_each_device_has_its_own_variables(xp: Any) -> None:
    if tcuda.device_count() < 2:
        pytest.skip("needs two devices")
    module = xp.RawModule(code=VARIABLES + "// per device")
    for device in range(2):
        with tcuda.device(device):
            counter = xp.ndarray((1,), xp.int32, module.get_global("counter"))
            assert counter.item() == 7
            counter[...] = 100 + device
    for device in range(2):
        with tcuda.device(device):
            x = xp.zeros(1, dtype=xp.int32)
            module.get_function("count")((1,), (1,), (x,))
            assert x.item() == 100 + device


def test_modules_of_one_source_share_their_variables(xp: Any) -> None:
    first, second = (xp.RawModule(code=VARIABLES + "// shared") for _ in range(2))
    assert first.get_global("counter").ptr == second.get_global("counter").ptr
    other = xp.RawModule(code=VARIABLES + "// shared", options=("-DX",))
    assert other.get_global("counter").ptr != first.get_global("counter").ptr


def test_a_variable_is_copied_in_a_capture(xp: Any) -> None:
    module = xp.RawModule(code=VARIABLES + "// captured")
    weights = xp.ndarray((4,), xp.float32, module.get_global("weights"))
    read = module.get_function("read")
    x = xp.zeros(4, dtype=xp.float32)
    source = xp.ones(4, dtype=xp.float32)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        weights[...] = source
        read((1,), (4,), (x,))
    source[...] = 3
    graph.replay()
    tcuda.synchronize()
    assert x.get().tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "Exactly one of `code` and `path`"),
        ({"code": "", "path": "x"}, TypeError, "Exactly one of `code` and `path`"),
        ({"code": "", "options": ["-w"]}, TypeError, "options"),
        ({"code": "", "backend": "nvcc", "name_expressions": ["f"]}, ValueError, "only nvrtc supports"),
        ({"path": "x", "name_expressions": ["f"]}, ValueError, "need CUDA C\\+\\+ code"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], message: str, xp: Any) -> None:
    with pytest.raises(error, match=message):
        xp.RawModule(**arguments)


def test_an_unknown_backend_is_refused(xp: Any) -> None:
    with pytest.raises(ValueError, match="Invalid backend clang"):
        xp.RawModule(code="", backend="clang").compile()


@pytest.mark.emulated
def test_compiled_code_of_a_gpu_is_refused(xp: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"RawModule\(path='kernels.cubin'\).*Pass the source as code="):
        xp.RawModule(path="kernels.cubin")


@pytest.mark.emulated
def test_a_module_is_pickled(xp: Any) -> None:
    module = xp.RawModule(code=TEMPLATES, name_expressions=["inner::ones"], options=("-DX",))
    copied = pickle.loads(pickle.dumps(module))
    assert (copied.code, copied.name_expressions, copied.options) == (TEMPLATES, ("inner::ones",), ("-DX",))
    kernel = pickle.loads(pickle.dumps(module.get_function("inner::ones")))
    x = xp.zeros(1, dtype=xp.int32)
    kernel((1,), (1,), (x,))
    assert x.item() == 1


def test_modules_with_the_same_names_do_not_share_variables(xp: Any) -> None:
    """Two modules may have equal symbols, also of variables that are templates."""
    code = r"""
    template <typename T> __device__ T value = %d;
    extern "C" __global__ void get(int* x) { x[0] = value<int>++; }
    """
    x = xp.zeros(1, dtype=xp.int32)
    for number in (10, 20):
        module = xp.RawModule(code=code % number, options=("--std=c++17",))
        module.get_function("get")((1,), (1,), (x,))
        assert x.item() == number


def test_a_variable_is_copied_through_its_pointer(xp: Any) -> None:
    module = xp.RawModule(code=VARIABLES + "// copied")
    weights = module.get_global("weights")
    host = np.asarray([1, 2, 3, 4], dtype=np.float32)
    weights.copy_from_host(host.ctypes.data, host.nbytes)
    x = xp.zeros(4, dtype=xp.float32)
    module.get_function("read")((1,), (4,), (x,))
    assert x.get().tolist() == [1, 2, 3, 4]
    weights.copy_from_device_async((x.data + 8), 8)
    (weights + 12).memset_async(0, 4)
    back = np.empty(4, dtype=np.float32)
    tcuda.synchronize()
    weights.copy_to_host(ctypes.c_void_p(back.ctypes.data), 16)
    assert back.tolist() == [3, 4, 3, 0]
    weights.copy_from(x.data, 16)
    (weights + 4 - 4).memset(0, 4)
    weights.copy_to_host(ctypes.c_void_p(back.ctypes.data), 16)
    assert back.tolist() == [0, 2, 3, 4]


@pytest.mark.parametrize("jitify", [True, False])
def test_jitify_is_deprecated(jitify: bool, xp: Any) -> None:
    with pytest.warns(DeprecationWarning, match="jitify"):
        xp.RawModule(code="", jitify=jitify)
    with pytest.warns(DeprecationWarning, match="jitify"):
        xp.RawKernel("", "f", jitify=jitify)
