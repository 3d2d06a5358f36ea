"""The headers that a kernel can include: NVRTC has headers of CUDA and libcu++, and none of the host."""

from __future__ import annotations

import pickle
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

STORE = 'extern "C" __global__ void f(double* x) {{ x[0] = ({}); }}'


def stored(xp: Any, expression: str, before: str = "", **settings: Any) -> float:
    """Return what ``expression`` gives in a kernel."""
    x = xp.zeros(1)
    xp.RawKernel(f"{before}\n{STORE.format(expression)}", "f", **settings)((1,), (1,), (x,))
    return float(x.item())


def error_of(xp: Any, code: str, **settings: Any) -> Exception:
    """Return the error of the compiler about ``code``."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - CuPy and emulated devices have classes of their own
        xp.RawKernel(code, "f", **settings).compile()
    assert type(caught.value).__name__ == "CompileException"
    return caught.value


@pytest.mark.parametrize(
    "header",
    ["stdint.h", "cstdint", "math.h", "cmath", "type_traits", "limits", "stdio.h", "assert.h", "cassert", "vector"],
)  # fmt: skip
def test_nvrtc_has_no_headers_of_the_host(header: str, xp: Any) -> None:
    message = str(error_of(xp, f"#include <{header}>\n{STORE.format(1)}"))
    assert "cannot open source file" in message


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("stdint.h", "Include <cuda/std/cstdint>, or pass backend='nvcc'"),
        ("type_traits", "Include <cuda/std/type_traits>, or pass backend='nvcc'"),
        ("assert.h", "assert(), sin() and memcpy() need no header."),
        ("vector", "Pass backend='nvcc'"),
        ("mine.cuh", "Name the folder of \"mine.cuh\" with the option -I."),
    ],
)  # fmt: skip
def test_a_missing_header_is_explained(header: str, advice: str, xp: Any) -> None:
    message = str(error_of(xp, f"\n#include <{header}>\n{STORE.format(1)}"))
    assert message.startswith(f'kernel.cu:2:10: error: cannot open source file "{header}"')
    assert message.splitlines()[-1].endswith(advice) or advice in message.splitlines()[-1]


def test_a_header_in_a_condition_is_not_missing(xp: Any) -> None:
    before = "#ifdef __CUDACC_RTC__\ntypedef int number;\n#else\n#include <stdint.h>\ntypedef int32_t number;\n#endif"
    assert stored(xp, "number(3)", before) == 3


def test_the_user_may_have_a_header_of_that_name(tmp_path: Path, xp: Any) -> None:
    (tmp_path / "stdint.h").write_text("typedef unsigned long long uint64_t;\n")
    assert stored(xp, "uint64_t(-1) > 5", "#include <stdint.h>", options=(f"-I{tmp_path}",)) == 1


@pytest.mark.emulated
@pytest.mark.parametrize("settings", [{"backend": "nvcc"}, {"jitify": True}])
@pytest.mark.filterwarnings("ignore:jitify")
def test_nvcc_and_jitify_have_headers_of_the_host(settings: dict[str, Any], xp: Any) -> None:
    before = "#include <cstdint>\n#include <cmath>\n#include <type_traits>\n#include <cuda/std/cstdint>"
    expression = "std::is_same<uint8_t, unsigned char>::value + std::sqrt(x[0]) + M_PI + cuda::std::int8_t(2)"
    assert stored(xp, expression, before, **settings) == 3 + np.pi
    kernel = xp.RawKernel(f"{before}\n{STORE.format(expression)}", "f", **settings)
    module = xp.RawModule(code=kernel.code, **settings)
    for restored in (pickle.loads(pickle.dumps(kernel)), module.get_function("f"), pickle.loads(pickle.dumps(module))):
        restored.compile()


@pytest.mark.parametrize(
    "statement",
    [
        "uint64_t n = 1;",
        "int8_t n = 1;",
        "uint n = 1;",
        "float n = INFINITY;",
        "float n = NAN;",
        "double n = M_PI;",
        "double n = DBL_MAX;",
        "int n = INT_MAX;",
        "int n = std::min(1, 2);",
        "std::isnan(1.0);",
        "std::size_t n = 1;",
        "nullptr_t n;",
        "half n;",
        "complex<float> n;",
        "float n = CUDART_INF_F;",
        "auto n = std::is_same<int, int>::value;",
        "size_t n = offsetof(dim3, y);",
    ],
)
def test_names_of_headers_need_the_header(statement: str, xp: Any) -> None:
    error_of(xp, f'extern "C" __global__ void f(double* x) {{ {statement} }}')


def test_the_names_of_headers_are_free(xp: Any) -> None:
    before = """
    typedef unsigned long uint64_t;
    typedef signed int int8_t;
    #define INFINITY 4
    #define M_PI 3
    struct complex {}; struct half {}; typedef char uint;
    namespace std { template <class T> __device__ T min(T a, T b) { return b < a ? b : a; } struct true_type {}; }
    """
    assert stored(xp, "uint64_t(1) + int8_t(1000) + INFINITY + M_PI + std::min(2, 5)", before) == 1010


def test_some_names_of_headers_need_no_header(xp: Any) -> None:
    before = """
    __device__ int sum(std::initializer_list<int> numbers) {
        int all = 0;
        for (int number : numbers) all += number;
        return all;
    }
    struct Pair { int a, b; };
    __device__ int place() {
        alignas(Pair) char room[sizeof(Pair)];
        Pair* made = new (room) Pair{3, 4};
        return std::move(*made).a + std::forward<int>(made->b);
    }
    __device__ int last(int count, ...) {
        va_list list;
        va_start(list, count);
        int found = 0;
        while (count--) found = va_arg(list, int);
        va_end(list);
        return found;
    }
    """
    expression = "sum({1, 2}) + place() + last(2, 5, 6) + (NULL == nullptr) + sizeof(size_t) + sizeof(ptrdiff_t)"
    assert stored(xp, expression, before) == 3 + 7 + 6 + 1 + 16


_LIBCUXX = {
    "cstdint": [
        ("cuda::std::uint8_t(-1)", 255),
        ("uint64_t(1) << 40", 2**40),
        ("sizeof(int_fast8_t) + sizeof(intptr_t) + INT16_MAX", 32776),
    ],
    "cstddef": [
        ("cuda::std::to_integer<int>(cuda::std::byte(5) | cuda::std::byte(2))", 7),
        ("offsetof(dim3, y) + sizeof(cuda::std::size_t)", 12),
    ],
    "climits": [("INT_MAX", 2**31 - 1), ("CHAR_BIT", 8)],
    "cfloat": [("FLT_MAX", float(np.finfo("f4").max)), ("DBL_EPSILON", 2.0**-52)],
    "cstring": [("(cuda::std::memset(x, 0, 8), x[0])", 0)],
    "initializer_list": [("cuda::std::initializer_list<int>({1, 2, 3}).size()", 3)],
    "limits": [
        ("cuda::std::numeric_limits<float>::max()", float(np.finfo("f4").max)),
        ("cuda::std::numeric_limits<double>::infinity()", np.inf),
        ("cuda::std::numeric_limits<int>::lowest()", -(2**31)),
        ("cuda::std::numeric_limits<unsigned short>::max()", 65535),
        ("cuda::std::numeric_limits<long long>::digits", 63),
        ("cuda::std::numeric_limits<float>::digits10 + cuda::std::numeric_limits<double>::max_digits10", 23),
        ("cuda::std::numeric_limits<bool>::max() + cuda::std::numeric_limits<int*>::is_specialized", 1),
    ],
    "cmath": [
        ("cuda::std::sqrt(4) + cuda::std::abs(-2) + cuda::std::pow(2, 3)", 12),
        ("cuda::std::isnan(NAN) + cuda::std::isinf(INFINITY) + cuda::std::fmax(2.0f, 3.0f)", 5),
        ("sizeof(cuda::std::sqrt(2.0f)) + sizeof(cuda::std::pow(2.0f, 2))", 12),
    ],
    "type_traits": [
        ("cuda::std::is_same_v<cuda::std::remove_cvref_t<const int&>, int>", 1),
        ("cuda::std::is_integral<long>::value + cuda::std::is_floating_point_v<const float>", 2),
        ("cuda::std::is_pointer_v<int* const> + cuda::std::is_array_v<int[3]> + cuda::std::is_function_v<int(int)>", 3),
        ("cuda::std::is_convertible_v<int, double> + cuda::std::is_convertible_v<int*, double>", 1),
        ("sizeof(cuda::std::common_type_t<char, float, double>) + sizeof(cuda::std::make_unsigned_t<short>)", 10),
        ("cuda::std::is_same_v<cuda::std::decay_t<int[3]>, int*> + cuda::std::is_unsigned_v<bool>", 2),
        ("cuda::std::is_same_v<cuda::std::conditional_t<true, int, char>, int>", 1),
        ("cuda::std::is_trivially_copyable_v<double> + cuda::std::is_void_v<void> + cuda::std::is_enum_v<int>", 2),
        ("cuda::std::conjunction_v<cuda::std::true_type, cuda::std::is_signed<int>>", 1),
        ("cuda::std::is_same_v<cuda::std::make_signed_t<const unsigned long>, const long>", 1),
        ("cuda::std::is_invocable_v<int(int), int> + cuda::std::is_base_of_v<int, int>", 1),
    ],
    "utility": [
        ("cuda::std::make_pair(1, 2.5).second + cuda::std::get<0>(cuda::std::pair<int, int>{3, 4})", 5.5),
        ("cuda::std::make_index_sequence<5>::size() + cuda::std::cmp_less(-1, 2u)", 6),
        ("cuda::std::make_pair(1, 2) < cuda::std::make_pair(1, 3)", 1),
    ],
}


@pytest.mark.parametrize(
    "header",
    [
        *(f"cuda/std/{name}" for name in ("cmath", "cstring", "limits", "type_traits", "utility")),
        "cupy/cuda_workaround.h",
    ],
)
def test_headers_that_define_the_integer_types_too(header: str, xp: Any) -> None:
    assert stored(xp, "sizeof(uint64_t) + sizeof(cuda::std::int8_t) + CHAR_BIT", f"#include <{header}>") == 17


@pytest.mark.parametrize("header", sorted(_LIBCUXX))
def test_libcuxx(header: str, xp: Any) -> None:
    table = _LIBCUXX[header]
    lines = "".join(f"x[{place}] = ({text});\n" for place, (text, _) in enumerate(table))
    x = xp.zeros(len(table))
    code = f'#include <cuda/std/{header}>\nextern "C" __global__ void f(double* x) {{\n{lines}}}'
    xp.RawKernel(code, "f")((1,), (1,), (x,))
    assert x.get().tolist() == [wanted for _, wanted in table]


@pytest.mark.parametrize("name", ["norm", "max", "rsqrt", "sqrt"])
def test_a_kernel_cannot_have_the_name_of_a_function_of_the_language(name: str, xp: Any) -> None:
    error_of(xp, f'extern "C" __global__ void {name}(float* x, int n) {{ x[n] = 1; }}')


@pytest.mark.emulated
def test_a_kernel_with_the_name_of_a_function_is_explained(xp: Any) -> None:
    message = str(error_of(xp, 'extern "C" __global__ void norm(float* x, int n) { x[n] = 1; }'))
    assert message.startswith("kernel.cu: error: the kernel 'norm' has the name of a function of CUDA C++")


@pytest.mark.emulated
@pytest.mark.parametrize("header", ["cuda/semaphore", "cuda/std/tuple", "cub/cub.cuh"])
def test_other_headers_of_libcuxx_are_refused_with_advice(header: str, xp: Any) -> None:
    message = str(error_of(xp, f"#include <{header}>"))
    assert message.startswith(f"kernel.cu:1: error: a header of CUDA's C++ libraries ({header}) is not supported")
    assert "<cuda/std/type_traits> and <cuda/std/utility>" in message


@pytest.mark.emulated  # On CUDA, this backend needs nvcc.
@pytest.mark.parametrize("header", ["stdlib.h", "cstdlib"])
def test_the_standard_library_of_the_host_has_the_absolute_values_of_the_device_language(header: str, xp: Any) -> None:
    expression = 'std::abs(-3) + std::abs(-4l) + std::abs(-5ll) + std::abs(-0.5) + abs(-0.25f) + atoi("7")'
    assert stored(xp, expression, f"#include <{header}>", backend="nvcc") == 19.75


def test_the_header_of_arrays_declares_the_small_floating_point_numbers(xp: Any) -> None:
    before = """
#include <cupy/carray.cuh>
template <typename T> struct Size { static const int value = 1; };
template <> struct Size<float16> { static const int value = 2; };
template <> struct Size<bfloat16> { static const int value = 3; };
"""
    assert stored(xp, "10 * Size<float16>::value + Size<bfloat16>::value", before) == 23


DYNAMIC = """\
template <typename T> __device__ T* dynamic() {
    extern __shared__ __align__(16) char bytes[];
    return reinterpret_cast<T*>(bytes);
}
"""
STORES = """\
#pragma once
#include "deep/dynamic.cuh"
__device__ void store(int value) {
    extern __shared__ int many[];
    many[threadIdx.x] = value;
}
"""
READS = """
#include <stores.cuh>
#include "stores.cuh"
extern "C" __global__ void f(int* x) {
    store(x[threadIdx.x]);
    __syncthreads();
    x[threadIdx.x] = dynamic<int>()[31 - threadIdx.x];
}
"""


@pytest.fixture
def with_shared_memory(tmp_path: Path) -> tuple[str, ...]:
    """The options that find headers with dynamic shared memory."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "dynamic.cuh").write_text(DYNAMIC)
    (tmp_path / "stores.cuh").write_text(STORES)
    return (f"-I{tmp_path}",)


def test_headers_of_the_program_may_declare_dynamic_shared_memory(with_shared_memory: tuple[str, ...], xp: Any) -> None:
    x = xp.arange(32, dtype=xp.int32)
    xp.RawModule(code=READS, options=with_shared_memory).get_function("f")((1,), (32,), (x,), shared_mem=128)
    assert x.get().tolist() == list(range(31, -1, -1))


@pytest.mark.emulated
@pytest.mark.usefixtures("kernels_are_searched")
def test_a_race_in_a_header_has_the_line_of_the_header(
    with_shared_memory: tuple[str, ...], tmp_path: Path, xp: Any
) -> None:
    x = xp.arange(32, dtype=xp.int32)
    code = READS.replace("__syncthreads();", "")
    with tcuda.sanitizer.check(mode="collect") as report:
        xp.RawModule(code=code, options=with_shared_memory).get_function("f")((1,), (32,), (x,), shared_mem=128)
    (race,) = report.races
    assert isinstance(race, tcuda.sanitizer.KernelRace)
    assert {access.line[1:] for access in race.accesses if access.line is not None} == {
        (str(tmp_path / "stores.cuh"), 5),
        ("kernel.cu", 7),
    }


def test_an_error_in_a_header_has_the_line_of_the_header(
    with_shared_memory: tuple[str, ...], tmp_path: Path, xp: Any
) -> None:
    (tmp_path / "stores.cuh").write_text(f"{STORES}int wrong = ;\n")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - CuPy and emulated devices have classes of their own
        xp.RawModule(code=READS, options=with_shared_memory).get_function("f")
    assert f"{tmp_path / 'stores.cuh'}" in str(caught.value)
