"""The headers of the device language: each header compiles alone, and takes no names that sources use."""

from __future__ import annotations

import graphlib
import re
import shutil
import subprocess

import pytest

from tcuda.emulation.rtc import headers

_COMPILERS = [found for found in map(shutil.which, ("g++", "clang++")) if found]
_WITH_PARAMETERS = ("small_float_types.h", "small_float_functions.h", "cupy_small_float.cuh")
"""Headers that are included after the definition of macros, which are their parameters."""

pytestmark = pytest.mark.skipif(not _COMPILERS, reason="needs a C++ compiler: g++ or clang++")


def _messages(compiler: str, source: str, *options: str, host: bool = False) -> str:
    options += ("-DTCUDA_HOST_HEADERS", "-I", str(headers.host_folder())) if host else ("-nostdinc", "-nostdinc++")
    command = [compiler, "-x", "c++", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-parameter", *options]
    command += ["-I", str(headers.folder()), "-include", "tcuda/device.h", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False).stderr


def _names() -> list[str]:
    folder = headers.folder()
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [str(path.relative_to(folder)) for path in paths]


def test_no_headers_include_each_other_in_a_circle() -> None:
    included = re.compile(r'^ *# *include ["<](.+)[">]', re.MULTILINE)
    graph = {name: included.findall((headers.folder() / name).read_text()) for name in _names()}
    assert graph["tcuda/device.h"]
    list(graphlib.TopologicalSorter(graph).static_order())  # CycleError names the headers of a circle


@pytest.mark.parametrize("compiler", _COMPILERS)
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("host", [False, True])
def test_all_headers_compile_together_without_warnings(compiler: str, standard: str, host: bool) -> None:
    source = "".join(f"#include <{name}>\n" for name in _names() if not name.endswith(_WITH_PARAMETERS))
    assert _messages(compiler, source, f"-std={standard}", host=host) == ""


@pytest.mark.parametrize("name", [name for name in _names() if not name.startswith("tcuda/")])
def test_a_header_compiles_alone(name: str) -> None:
    assert _messages(_COMPILERS[0], f"#include <{name}>\n", "-std=c++17") == ""


@pytest.mark.parametrize("compiler", _COMPILERS)
def test_sources_may_use_the_names_of_the_host_for_their_own_things(compiler: str) -> None:
    # The C library has functions of these names.
    source = """
    __device__ int index, time, read, write, remove, signal, pipe, select;
    __constant__ float gamma[3];
    __device__ float clamp(float x, float low, float high) { return max(low, min(x, high)); }
    struct Range { int min, max; };
    extern "C" __global__ void rank(float *x) {
        int free = 3, malloc = 4, abs = -5, round = 6, j1 = 7;
        x[0] = clamp(free + malloc + abs + round + j1, gamma[0], index);
    }
    """
    assert _messages(compiler, source, "-std=c++17") == ""


@pytest.mark.parametrize("compiler", _COMPILERS)
def test_headers_of_the_standard_library_go_together_with_the_device_language(compiler: str) -> None:
    names = [
        "cmath",
        "math.h",
        "cstdlib",
        "cstdint",
        "cstring",
        "cassert",
        "cstdio",
        "limits",
        "type_traits",
        "utility",
    ]
    names += ["tuple", "array", "algorithm", "numeric", "initializer_list", "new"]
    source = "".join(f"#include <{name}>\n" for name in names)
    source += """
    using namespace std;
    __global__ void use(float *x, int n) {
        assert(n > 0);
        x[0] = sqrt(x[1]) + std::sin(x[2]) + abs(x[3]) + std::abs(n) + std::max(n, 3) + numeric_limits<float>::max();
        std::printf("%d\\n", printf("plain\\n"));
        x[1] = isnan(x[0]) + std::isinf(x[0]) + pow(x[0], 2) + static_cast<float>(M_PI);
    }
    """
    assert _messages(compiler, source, "-std=c++17", host=True) == ""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sqrt(n)", "ambiguous"),
        ("pow(n, n)", "ambiguous"),
        ("min(n, wide)", "ambiguous"),
        ("atomicAdd(&wide, wide)", "unsigned long long"),
        ("atomicMax(x, 1.0f)", "no matching function"),
    ],
)
def test_a_call_without_an_overload_in_cuda_is_an_error(call: str, message: str) -> None:
    source = f"__global__ void use(float *x, int n, long long wide) {{ x[0] = {call}; }}"
    assert message in _messages(_COMPILERS[0], source, "-std=c++17")
