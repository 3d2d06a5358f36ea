"""The source of a module: the user's code, and the kernels that call the user's function for every element."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tcuda.jiterator import _scalars
from tcuda.jiterator._dtypes import ELEMENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = "jiterator code"
"""The name of the user's code in messages of the compiler."""

KERNELS = CONTIGUOUS, STRIDED, WIDE = "tcuda_contiguous", "tcuda_strided", "tcuda_wide"
"""The kernels of a module: for elements side by side, for strides of 32 bits, and for strides of 64 bits."""

OPTIONS = ("-std=c++17", "-default-device")
"""The options of the compiler. With the second option, functions without ``__device__`` are functions of the device."""

BLOCK = 256
"""The threads in a block."""

LANES = 4
"""The elements of a thread."""

NARROW_AXES, WIDE_AXES = 16, 32
"""The most axes of a layout in 32 and in 64 bits, after axes were merged."""

_COMPLEX_HEADER = "#include <cupy/complex.cuh>"
_HEADERS = {
    "complex<float>": _COMPLEX_HEADER,
    "complex<double>": _COMPLEX_HEADER,
    "__half": "#include <cuda_fp16.h>",
    "__nv_bfloat16": "#include <cuda_bf16.h>",
}

# torch's jiterator offers these names, and NVRTC has no <stdint.h>. <cuda/std/cstdint> defines the same types.
_INTEGERS = """\
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
"""

# torch's jiterator offers the functions of <cmath> also in the namespace std. NVRTC has them without a namespace only.
_MATH = """\
abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax
fmin fmod frexp hypot ilogb isfinite isinf isnan ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf
nearbyint nextafter pow remainder rint round scalbln scalbn signbit sin sinh sqrt tan tanh tgamma trunc
"""
_COMPLEX_MATH = "abs acos acosh asin asinh atan atanh cos cosh exp log log10 pow sin sinh sqrt tan tanh"

_CONVERSIONS = {
    "__half": ("__half2float", "__float2half"),
    "__nv_bfloat16": ("__bfloat162float", "__float2bfloat16"),
}

_HELPERS = """\
template <typename S> __device__ inline S tcuda_widened(S x) { return x; }
%(widened)s
__device__ inline tcuda_R tcuda_stored(tcuda_T x) { return %(stored)s(x); }
// The rounding to the common dtype comes first, as if the array were converted before the call.
template <typename S> __device__ inline tcuda_T tcuda_input(S x) {
    return tcuda_widened(tcuda_stored(static_cast<tcuda_T>(tcuda_widened(x))));
}
template <typename S> struct alignas(sizeof(S) < 4 ? %(lanes)d * sizeof(S) : 16) tcuda_Lanes { S values[%(lanes)d]; };
template <typename S> __device__ inline bool tcuda_aligned(const S *p) {
    return reinterpret_cast<unsigned long long>(p) %% alignof(tcuda_Lanes<S>) == 0;
}
template <typename S> __device__ inline void tcuda_load(tcuda_Lanes<S> &lanes, const S *p, int count) {
    if (count == %(lanes)d && tcuda_aligned(p)) {
        lanes = *reinterpret_cast<const tcuda_Lanes<S> *>(p);
    } else {
        for (int lane = 0; lane < count; ++lane)
            lanes.values[lane] = p[lane];
    }
}
template <typename S> __device__ inline void tcuda_store(S *p, const tcuda_Lanes<S> &lanes, int count) {
    if (count == %(lanes)d && tcuda_aligned(p)) {
        *reinterpret_cast<tcuda_Lanes<S> *>(p) = lanes;
    } else {
        for (int lane = 0; lane < count; ++lane)
            p[lane] = lanes.values[lane];
    }
}
// Axis 0 varies fastest. A division by the length of an axis is a multiplication and a shift.
struct tcuda_Narrow {
    typedef unsigned Size;
    typedef int Offset;
    int axes;
    unsigned lengths[%(narrow_axes)d], multipliers[%(narrow_axes)d], shifts[%(narrow_axes)d];
    int strides[%(inputs)d][%(narrow_axes)d];
    __device__ unsigned divided(unsigned n, int axis) const {
        const unsigned high = static_cast<unsigned>((static_cast<unsigned long long>(n) * multipliers[axis]) >> 32);
        return (high + n) >> shifts[axis];
    }
};
struct tcuda_Wide {
    typedef unsigned long long Size;
    typedef long long Offset;
    long long axes, lengths[%(wide_axes)d], strides[%(inputs)d][%(wide_axes)d];
    __device__ unsigned long long divided(unsigned long long n, int axis) const { return n / lengths[axis]; }
};
template <typename Layout>
__device__ inline void tcuda_locate(const Layout &layout, typename Layout::Size index,
                                    typename Layout::Offset (&offsets)[%(inputs)d]) {
    for (int axis = 0; axis < layout.axes; ++axis) {
        typename Layout::Size next = 0;
        if (axis + 1 < layout.axes)
            next = layout.divided(index, axis);
        const typename Layout::Offset place = index - next * static_cast<typename Layout::Size>(layout.lengths[axis]);
        for (int input = 0; input < %(inputs)d; ++input)
            offsets[input] += place * layout.strides[input][axis];
        index = next;
    }
}
"""


@functools.lru_cache(maxsize=256)
def source(
    code: str,
    function: str,
    inputs: tuple[str, ...],
    common: str,
    outputs: int,
    by_reference: bool,
    kinds: tuple[int, ...],
) -> str:
    """Return the source of a module.

    Args:
        code: The user's code.
        function: The user's function for an element.
        inputs: The names of the dtypes of the inputs.
        common: The name of the dtype of the outputs.
        outputs: The number of outputs.
        by_reference: Whether the function writes its outputs to references, and returns nothing.
        kinds: The kinds of the scalars.
    """
    result = ELEMENT_TYPES[common]
    storages = [ELEMENT_TYPES[name].storage for name in inputs]
    scalars = [_scalars.C_TYPES[kind] for kind in kinds]
    used = [*storages, *scalars, result.storage]
    arguments = [f"tcuda_input(x{number})" for number in range(len(inputs))]
    arguments += [f"s{number}" for number in range(len(scalars))]
    return "\n".join(
        [
            *dict.fromkeys(_HEADERS[name] for name in used if name in _HEADERS),
            _INTEGERS,
            *([_standard_functions(used)] if "std::" in code else ()),
            f'#line 1 "{FILE}"',
            code,
            '#line 1 "tcuda.jiterator"',
            f"typedef {result.compute} tcuda_T;",
            f"typedef {result.storage} tcuda_R;",
            _helpers(storages, result.storage),
            _element(function, storages, scalars, arguments, outputs, by_reference),
            _contiguous(storages, scalars, outputs),
            _located(STRIDED, "tcuda_Narrow", storages, scalars, outputs),
            _located(WIDE, "tcuda_Wide", storages, scalars, outputs),
        ]
    )


def _standard_functions(used: Sequence[str]) -> str:
    names = [f"using ::{name};" for name in _MATH.split()]
    if any(_HEADERS.get(name) == _COMPLEX_HEADER for name in used):
        names += [f"using thrust::{name};" for name in _COMPLEX_MATH.split()]
    return _function("namespace std", names)


def _helpers(storages: Sequence[str], result: str) -> str:
    widened = [
        f"__device__ inline float tcuda_widened({name} x) {{ return {to_float}(x); }}"
        for name, (to_float, _) in _CONVERSIONS.items()
        if name in {*storages, result}
    ]
    return _HELPERS % {
        "widened": "\n".join(widened),
        "stored": _CONVERSIONS[result][1] if result in _CONVERSIONS else "static_cast<tcuda_R>",
        "lanes": LANES,
        "inputs": len(storages),
        "narrow_axes": NARROW_AXES,
        "wide_axes": WIDE_AXES,
    }


def _element(
    function: str,
    storages: Sequence[str],
    scalars: Sequence[str],
    arguments: Sequence[str],
    outputs: int,
    by_reference: bool,
) -> str:
    """Return the function that computes one element of each output."""
    results = [f"r{number}" for number in range(outputs)]
    parameters = [f"{storage} x{number}" for number, storage in enumerate(storages)]
    parameters += [f"{scalar} s{number}" for number, scalar in enumerate(scalars)]
    parameters += [f"tcuda_R &{name}" for name in results]
    if by_reference:
        temporary = [f"t{number}" for number in range(outputs)]
        body = [
            f"tcuda_T {', '.join(f'{name} = tcuda_T()' for name in temporary)};",
            f"::{function}<tcuda_T>({', '.join([*arguments, *temporary])});",
            *(f"{name} = tcuda_stored({value});" for name, value in zip(results, temporary, strict=True)),
        ]
    else:
        body = [f"r0 = tcuda_stored(static_cast<tcuda_T>(::{function}<tcuda_T>({', '.join(arguments)})));"]
    return _function(f"__device__ inline void tcuda_element({', '.join(parameters)})", body)


def _contiguous(storages: Sequence[str], scalars: Sequence[str], outputs: int) -> str:
    inputs = range(len(storages))
    arguments = [f"a{number}.values[lane]" for number in inputs]
    arguments += [f"s{number}" for number in range(len(scalars))]
    arguments += [f"r{number}.values[lane]" for number in range(outputs)]
    return _kernel(
        CONTIGUOUS,
        ["long long size", *_parameters(storages, scalars, outputs)],
        [
            f"const long long first = {LANES}ll * (blockIdx.x * {BLOCK}ll + threadIdx.x);",
            "if (first >= size) return;",
            f"const int count = size - first < {LANES} ? static_cast<int>(size - first) : {LANES};",
            *(f"tcuda_Lanes<{storage}> a{number};" for number, storage in enumerate(storages)),
            *(f"tcuda_Lanes<tcuda_R> r{number};" for number in range(outputs)),
            *(f"tcuda_load(a{number}, in{number} + first, count);" for number in inputs),
            "#pragma unroll",
            f"for (int lane = 0; lane < {LANES}; ++lane)",
            f"    if (lane < count) tcuda_element({', '.join(arguments)});",
            *(f"tcuda_store(out{number} + first, r{number}, count);" for number in range(outputs)),
        ],
    )


def _located(name: str, layout: str, storages: Sequence[str], scalars: Sequence[str], outputs: int) -> str:
    """Return the kernel for inputs with strides. The outputs lie side by side in the order of the axes."""
    arguments = [
        f"*reinterpret_cast<const {storage} *>(reinterpret_cast<const char *>(in{number}) + offsets[{number}])"
        for number, storage in enumerate(storages)
    ]
    arguments += [f"s{number}" for number in range(len(scalars))]
    arguments += [f"out{number}[index]" for number in range(outputs)]
    return _kernel(
        name,
        ["long long size", f"const {layout} layout", *_parameters(storages, scalars, outputs)],
        [
            f"const long long first = {LANES * BLOCK}ll * blockIdx.x + threadIdx.x;",
            "#pragma unroll",
            f"for (int lane = 0; lane < {LANES}; ++lane) {{",
            f"    const long long index = first + lane * {BLOCK}ll;",
            "    if (index >= size) return;",
            f"    {layout}::Offset offsets[{len(storages)}] = {{}};",
            f"    tcuda_locate(layout, static_cast<{layout}::Size>(index), offsets);",
            f"    tcuda_element({', '.join(arguments)});",
            "}",
        ],
    )


def _parameters(storages: Sequence[str], scalars: Sequence[str], outputs: int) -> list[str]:
    return [
        *(f"const {storage} *in{number}" for number, storage in enumerate(storages)),
        *(f"tcuda_R *out{number}" for number in range(outputs)),
        *(f"{scalar} s{number}" for number, scalar in enumerate(scalars)),
    ]


def _kernel(name: str, parameters: Sequence[str], body: Sequence[str]) -> str:
    return _function(f'extern "C" __global__ void __launch_bounds__({BLOCK}) {name}({", ".join(parameters)})', body)


def _function(head: str, body: Sequence[str]) -> str:
    return "\n".join([f"{head} {{", *(line if line[0] == "#" else f"    {line}" for line in body), "}"])
