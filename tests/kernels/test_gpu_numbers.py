"""Shifts and casts in kernels give the numbers of a GPU, whatever the processor of emulated devices gives."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda
from support.gpu_numbers import MEASURED

pytestmark = pytest.mark.usefixtures("runtime")

TYPES = {
    "unsigned int": np.uint32,
    "int": np.int32,
    "unsigned long long": np.uint64,
    "long long": np.int64,
    "unsigned char": np.uint8,
    "short": np.int16,
}
NAMES = {
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}
SHIFTS = {
    "operator": "left[i] = value[0] << counts[i]; right[i] = value[0] >> counts[i];",
    "assignment": "left[i] = right[i] = value[0]; left[i] <<= counts[i]; right[i] >>= counts[i];",
    "macro": "left[i] = SHIFT(value[0], <<, counts[i]); right[i] = RIGHT(value[0], counts[i]);",
    "template": "left[i] = shifted(value[0], counts[i]); right[i] = value[0]>>counts[i];",
}


@pytest.mark.parametrize("form", SHIFTS)
@pytest.mark.parametrize("name", TYPES)
def test_shifts_by_any_count(xp, name, form):
    code = f"""
    #define SHIFT(x, direction, n) ((x) << (n))
    #define RIGHT(x, n) \\
        ((x) >> (n))
    template <typename T> __device__ T shifted(T x, int n) {{ return x << n; }}
    extern "C" __global__ void shift(const {name}* value, const int* counts, {name}* left, {name}* right) {{
        const int i = threadIdx.x;
        {SHIFTS[form]}
    }}"""
    kernel = xp.RawKernel(code, "shift")
    counts = xp.asarray(MEASURED["counts"], np.int32)
    for key, expected in MEASURED["shifts"].items():
        kind, _, number = key.rpartition(" ")
        if kind == name:
            value = xp.asarray(np.asarray([int(number)], np.int64).astype(TYPES[name]))
            left, right = xp.zeros(counts.size, TYPES[name]), xp.zeros(counts.size, TYPES[name])
            kernel((1,), (counts.size,), (value, counts, left, right))
            assert left.tolist() == expected["left"]
            assert right.tolist() == expected["right"]


def test_the_usual_masks_of_lanes(xp):
    kernel = xp.RawKernel(
        r"""
        extern "C" __global__ void masks(unsigned* below, unsigned* above) {
            const unsigned lane = threadIdx.x;
            below[lane] = 0xffffffffu >> (32 - lane);
            above[lane] = 0xfffffffeu << lane;
        }""",
        "masks",
    )
    below, above = xp.zeros(32, np.uint32), xp.zeros(32, np.uint32)
    kernel((1,), (32,), (below, above))
    assert below.tolist() == [(1 << lane) - 1 for lane in range(32)]
    assert above.tolist() == [0xFFFFFFFE << lane & 0xFFFFFFFF for lane in range(32)]


CASTS = {
    "C": "to[i] = ({0})from[i];",
    "C of an expression": "to[i] = ({0})(from[i] * 1) + 0;",
    "static_cast": "to[i] = static_cast<{0}>(from[i]);",
    "function": "typedef {0} Wanted; to[i] = 0 + Wanted(from[i]);",
    "template": "to[i] = converted<{0}>(from[i]);",
    "macro": "to[i] = CONVERTED({0}, from[i]);",
    "assignment": "to[i] = from[i];",
    "initialization": "{0} x = from[i]; to[i] = x;",
    "return": "to[i] = returned<{0}>(from[i]);",
    "argument": "to[i] = passed<{0}>(from[i]);",
}


@pytest.mark.parametrize("form", CASTS)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_casts_to_integers(xp, source, form):
    targets = [name for name in NAMES if "int" in name]
    kernels = "".join(
        f"""extern "C" __global__ void to_{target}(const {NAMES[source]}* from, {NAMES[target]}* to) {{
            const int i = threadIdx.x;
            {CASTS[form].format(NAMES[target])}
        }}"""
        for target in targets
    )
    module = xp.RawModule(
        code="""
        #define CONVERTED(T, x) ((T)x)
        template <typename T, typename U> __device__ T converted(U x) { return (T)x; }
        template <typename T, typename U> __device__ T returned(U x) { return x; }
        template <typename T> __device__ T same(T x) { return x; }
        template <typename T, typename U> __device__ T passed(U x) { return same<T>(x); }
        """
        + kernels
    )
    values = xp.asarray(np.asarray([float(text) for text in MEASURED["values"]]).astype(source))
    for target in targets:
        found = xp.zeros(values.size, target)
        module.get_function(f"to_{target}")((1,), (values.size,), (values, found))
        assert found.tolist() == MEASURED["kernel"][f"{source}->{target}"], target


@pytest.mark.parametrize("target", ["uint8", "int32", "uint64"])
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_casts_in_elementwise_and_reduction_kernels(xp, source, target):
    with np.errstate(over="ignore"):
        values = xp.asarray(np.asarray([float(text) for text in MEASURED["values"]]).astype(source))
    expected = MEASURED["astype"][f"{source}->{target}"]
    cast = xp.ElementwiseKernel("T x", "U y", "y = static_cast<U>(x)", "cast")
    assert cast(values, xp.zeros(values.size, target)).tolist() == expected
    assert xp.ElementwiseKernel("T x", f"{target} y", "y = x", "assign")(values).tolist() == expected
    sums = xp.ReductionKernel("T x", f"{target} y", f"({NAMES[target]})x", "a + b", "y = a", "0", "cast_sum")
    assert sums(values[:, None], axis=1).tolist() == expected


def test_operators_that_a_program_defines_and_constants_stay_what_they_are(xp):
    code = r"""
    #define MASK (1 << 3)
    #if MASK << 1 == 16
    #define WIDTH 4
    #endif
    template <int n> struct Box { int items[n]; enum { size = 1 << n }; };
    template <class T> struct Pair { T first, second; };
    struct Total {
        int sum;
        __device__ Total& operator<<(int n) { sum += n; return *this; }
        Total() : sum(0) {}
        Total(const Total&) = delete;
    };
    enum class Color { red };
    __device__ int operator<<(Color, int n) { return 100 + n; }
    struct Bits { unsigned low : 5, high : 27; };
    __device__ int twice(int (*function)(int), int x) { return function(x) + function(x); }
    __device__ int same(int x) { return int(x); }
    extern "C" __global__ void run(int* out, int shift) {
        Total total;
        total << 3 << shift;
        out[0] = total.sum;
        out[1] = Color::red << shift;
        Bits bits;
        bits.low = shift;
        out[2] = (1 << bits.low) + (bits.low << shift);
        Pair<Pair<int>> pairs = {{1, 2}, {3, 4}};
        out[3] = pairs.second.first >> (shift - 2);
        Box<(1 << 2)> box;
        out[4] = sizeof(box.items) / sizeof(int) + Box<3>::size;
        constexpr int n = 4;
        int items[1 << n];
        out[5] = sizeof(items) / sizeof(int);
        switch (shift << 1) { case 1 << 2: out[6] = 7; }
        out[7] = twice(same, (int)3.7f) + (shift < 3 && shift > 1) + (int)sizeof(int);
        unsigned char byte = 200;
        byte <<= shift;
        out[8] = byte;
        out[9] = -(int)2.5f * (int)(float)shift;
        const auto twice = [](int x) -> int { return x << 1; };
        out[10] = twice(shift) + (true << shift);
        static_assert((1u << 31 >> n) == 0x8000000u, "");
        volatile int changing = 3;
        changing <<= shift;
        out[11] = changing + WIDTH;
    }"""
    out = xp.zeros(12, np.int32)
    xp.RawKernel(code, "run")((1,), (1,), (out, np.int32(2)))
    assert out.tolist() == [5, 102, 12, 3, 12, 16, 7, 11, 32, -4, 8, 16]


def test_implicit_conversions_in_expressions_of_several_lines(xp):
    code = r"""
    #define SET(target, value) target = value
    template <class T, class U> __device__ void copy(T* to, const U* from) { *to = *from; }
    extern "C" __global__ void run(int* out, const float* in, unsigned char* bytes) {
    TAB int sum = in[0] * 2.0f +
            in[1];
        out[0] = sum;
        out[1] += in[0];
        out[2] -= in[0] * 2;
        SET(out[3], in[0] + 1);
        copy(out + 4, in);
        copy(bytes, in + 2);
        float same;
        copy(&same, in + 1);
        out[5] = threadIdx.x ? in[1] : in[0];
        out[6] = same, out[7] = (in[2]);
        out[8] = [](float x) -> int { return x; }(in[0]);
        bytes[1] = in[2] - 1, bytes[2] = 2.75;
    }"""
    code = code.replace("TAB", "\t")
    out, data = xp.full(9, 5, np.int32), xp.asarray([3e10, 7.5, -3.5], np.float32)
    data_bytes = xp.zeros(3, np.uint8)
    xp.RawKernel(code, "run")((1,), (1,), (out, data, data_bytes))
    most = 2**31 - 1
    assert out.tolist() == [most, most, -most - 1, most, most, most, 7, -3, most]
    assert data_bytes.tolist() == [0, 0, 2]


STREAM = r"""
struct Stream { int total; };
template <class T> __device__ Stream& operator<<(Stream& stream, T value) { stream.total += value; return stream; }
extern "C" __global__ void run(int* out, int count, float number) {
    Stream stream{0};
    stream << count << 3;
    out[0] = stream.total;
    out[1] = 1 << count;
    out[2] = number;
}"""


def test_operators_that_the_tokens_do_not_tell_are_those_of_the_language(xp):
    kernel = xp.RawKernel(STREAM, "run")
    out = xp.zeros(3, np.int32)
    kernel((1,), (1,), (out, np.int32(4), np.float32(2.5)))
    assert out.tolist() == [7, 16, 2]


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("count", "number", "said"), [(33, 2.5, "a shift by the width"), (3, 3e10, "a cast to an int")]
)
def test_a_result_that_the_processor_cannot_give_is_an_error(xp, count, number, said):
    kernel = xp.RawKernel(STREAM, "run")

    def run():
        kernel((1,), (1,), (xp.zeros(3, np.int32), np.int32(count), np.float32(number)))
        tcuda.synchronize()

    with pytest.raises(tcuda.AcceleratorError, match=said):
        run()
