"""The device language of CUDA C++: a kernel computes a table of expressions, and NumPy tells the results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.devices import synchronized

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Array = np.ndarray[Any, Any]
    Expected = Callable[..., Any]

_C_TYPES = {
    "f4": "float",
    "f8": "double",
    "i4": "int",
    "u4": "unsigned int",
    "i8": "long long",
    "u8": "unsigned long long",
    "u2": "unsigned short",
    "c8": "complex<float>",
    "c16": "complex<double>",
}


def evaluated(
    xp: Any, expressions: Sequence[str], result: str, *inputs: Array, before: str = "", body: str = ""
) -> list[Array]:
    """Compute expressions of the inputs ``a``, ``b``, ``c`` in one kernel, each for every element."""
    count = inputs[0].size
    names = "abc"[: len(inputs)]
    kinds = [_C_TYPES[array.dtype.str[1:]] for array in inputs]
    parameters = [f"const {kind} *all_{name}" for kind, name in zip(kinds, names, strict=True)]
    lines = [f"    {kind} {name} = all_{name}[i];" for kind, name in zip(kinds, names, strict=True)]
    lines += [f"    results[{place} * count + i] = {text};" for place, text in enumerate(expressions)]
    source = (
        f'{before}\nextern "C" __global__ void evaluate({", ".join(parameters)}, '
        f"{_C_TYPES[result]} *results, int count) {{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= count) return;\n"
        f"    {body}\n" + "\n".join(lines) + "\n}\n"
    )
    results = xp.zeros(len(expressions) * count, dtype=result)
    arguments = [xp.asarray(array) for array in inputs]
    kernel = xp.RawKernel(source, "evaluate")
    kernel(((count + 63) // 64,), (64,), (*arguments, results, np.int32(count)))
    return list(results.get().reshape(len(expressions), count))


def require_table(
    xp: Any, table: Mapping[str, Expected], inputs: Sequence[Array], result: str, rtol: float, atol: float, **texts: str
) -> None:
    found = evaluated(xp, list(table), result, *inputs, **texts)
    wide = [array.astype("f8") if array.dtype.kind == "f" else array for array in inputs]
    for (text, expected), values in zip(table.items(), found, strict=True):
        with np.errstate(all="ignore"):
            wanted = expected(*wide)
        np.testing.assert_allclose(values, wanted, rtol=rtol, atol=atol, err_msg=text)


def each(function: Callable[..., float]) -> Expected:
    return np.vectorize(function, otypes=["f8"])


def integral(kernel: Callable[[Array, float], Array]) -> Expected:
    """The mean over half a turn: the integral of a Bessel function converges with few points."""
    angles = (np.arange(400) + 0.5) * math.pi / 400
    return each(lambda x: float(np.mean(kernel(angles, x))))


def inverse_normal(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def normal_distribution(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


ANY = {
    "sin(a)": np.sin,
    "cos(a)": np.cos,
    "tan(a)": np.tan,
    "atan(a)": np.arctan,
    "sinh(a)": np.sinh,
    "cosh(a)": np.cosh,
    "tanh(a)": np.tanh,
    "asinh(a)": np.arcsinh,
    "exp(a)": np.exp,
    "exp2(a)": np.exp2,
    "exp10(a)": lambda x: 10.0**x,
    "expm1(a)": np.expm1,
    "cbrt(a)": np.cbrt,
    "rcbrt(a)": lambda x: 1 / np.cbrt(x),
    "erf(a)": each(math.erf),
    "erfc(a)": each(math.erfc),
    "erfcx(a)": each(lambda x: math.exp(x * x) * math.erfc(x)),
    "normcdf(a)": each(normal_distribution),
    "sinpi(a)": lambda x: np.sin(np.pi * x),
    "cospi(a)": lambda x: np.cos(np.pi * x),
    "j0(a)": integral(lambda t, x: np.cos(x * np.sin(t))),
    "j1(a)": integral(lambda t, x: np.cos(t - x * np.sin(t))),
    "jn(3, a)": integral(lambda t, x: np.cos(3 * t - x * np.sin(t))),
    "cyl_bessel_i0(a)": integral(lambda t, x: np.exp(x * np.cos(t))),
    "cyl_bessel_i1(a)": integral(lambda t, x: np.exp(x * np.cos(t)) * np.cos(t)),
    "abs(a)": np.abs,
    "fabs(a)": np.abs,
    "floor(a)": np.floor,
    "ceil(a)": np.ceil,
    "trunc(a)": np.trunc,
    "rint(a)": np.rint,
    "nearbyint(a)": np.rint,
    "round(a)": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "pow(a, 3)": lambda x: x**3,
    "ldexp(a, 3)": lambda x: x * 8,
    "scalbn(a, -2)": lambda x: x / 4,
    "logb(a)": lambda x: np.floor(np.log2(np.abs(x))),
    "ilogb(a) * 1.0f": lambda x: np.floor(np.log2(np.abs(x))),
    "lrint(a) * 1.0f": np.rint,
    "llround(a) * 1.0f": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}
POSITIVE = {
    "log(a)": np.log,
    "log2(a)": np.log2,
    "log10(a)": np.log10,
    "log1p(a)": np.log1p,
    "sqrt(a)": np.sqrt,
    "rsqrt(a)": lambda x: 1 / np.sqrt(x),
    "acosh(a + 1)": lambda x: np.arccosh(x + 1),
    "lgamma(a)": each(math.lgamma),
    "tgamma(a)": each(math.gamma),
    "y1(a) * j0(a) - j1(a) * y0(a)": lambda x: -2 / (np.pi * x),
    "yn(1, a) - y1(a)": lambda x: 0 * x,
    "jn(1, a) - j1(a)": lambda x: 0 * x,
}
UNIT = {
    "asin(a)": np.arcsin,
    "acos(a)": np.arccos,
    "atanh(a)": np.arctanh,
    "erf(erfinv(a))": lambda x: x,
    "erfc(erfcinv(1 + a))": lambda x: 1 + x,
    "normcdfinv((1 + a) / 2)": each(lambda x: inverse_normal((1 + x) / 2)),
}
PAIRS = {
    "atan2(a, b)": np.arctan2,
    "pow(fabs(a), b)": lambda x, y: np.abs(x) ** y,
    "hypot(a, b)": np.hypot,
    "rhypot(a, b)": lambda x, y: 1 / np.hypot(x, y),
    "fmod(a, b)": np.fmod,
    "remainder(a, b)": lambda x, y: each(math.remainder)(x, y),
    "copysign(a, b)": np.copysign,
    "fmax(a, b)": np.maximum,
    "fmin(a, b)": np.minimum,
    "max(a, b)": np.maximum,
    "min(a, b)": np.minimum,
    "fdim(a, b)": lambda x, y: np.maximum(x - y, 0),
    "fma(a, b, a)": lambda x, y: x * y + x,
    "(a < b ? a : b) / fdivide(a, b)": lambda x, y: np.minimum(x, y) / (x / y),
}
POINTERS = {
    "frexp(a, &whole)": lambda x: np.frexp(x)[0],
    "(frexp(a, &whole), whole)": lambda x: np.frexp(x)[1],
    "modf(a, &part)": lambda x: np.modf(x)[0],
    "(modf(a, &part), part)": lambda x: np.modf(x)[1],
    "(sincos(a, &part, &other), part + 2 * other)": lambda x: np.sin(x) + 2 * np.cos(x),
    "(sincospi(a, &part, &other), part + 2 * other)": lambda x: np.sin(np.pi * x) + 2 * np.cos(np.pi * x),
    "remquo(a, a / 3 + 0.01, &whole)": lambda x: each(math.remainder)(x, x / 3 + 0.01),
}


def spread(dtype: str, low: float, high: float, seed: int = 1) -> Array:
    values: Array = np.random.default_rng(seed).uniform(low, high, 200).astype(dtype)
    return values


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("table", "low", "high"),
    [(ANY, -4.0, 4.0), (POSITIVE, 0.1, 8.0), (UNIT, -0.99, 0.99)],
    ids=["any", "positive", "unit"],
)
def test_functions_of_one_number(xp: Any, dtype: str, table: Mapping[str, Expected], low: float, high: float) -> None:
    rtol, atol = (5e-5, 2e-5) if dtype == "f4" else (1e-11, 1e-11)
    require_table(xp, table, [spread(dtype, low, high)], dtype, rtol, atol)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_of_two_numbers(xp: Any, dtype: str) -> None:
    rtol, atol = (2e-5, 1e-6) if dtype == "f4" else (1e-12, 1e-13)
    require_table(xp, PAIRS, [spread(dtype, -4, 4), spread(dtype, -4, 4, seed=2)], dtype, rtol, atol)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_that_store_a_second_result(xp: Any, dtype: str) -> None:
    rtol, atol = (2e-5, 1e-5) if dtype == "f4" else (1e-12, 1e-13)
    table = {text.replace("0.01", "0.01f"): expected for text, expected in POINTERS.items()}
    if dtype == "f8":
        table = POINTERS
    body = f"{_C_TYPES[dtype]} part, other; int whole;"
    require_table(xp, table, [spread(dtype, -4, 4)], dtype, rtol, atol, body=body)


def test_functions_of_single_precision_give_single_precision(xp: Any) -> None:
    double = ("rhypot", "(a < b")  # rhypot and fdivide have no overload for single precision
    names = [text for text in [*ANY, *POSITIVE, *UNIT, *PAIRS] if "1.0f" not in text and not text.startswith(double)]
    ones = np.ones(1, dtype="f4")
    sizes = evaluated(xp, [f"sizeof({text})" for text in names], "i4", ones, ones)
    assert {name: int(size[0]) for name, size in zip(names, sizes, strict=True)} == dict.fromkeys(names, 4)


def test_functions_with_the_suffix_of_single_precision(xp: Any) -> None:
    table = {
        "sinf(a)": np.sin,
        "expf(a)": np.exp,
        "sqrtf(fabsf(a))": lambda x: np.sqrt(np.abs(x)),
        "powf(fabsf(a), 1.5f)": lambda x: np.abs(x) ** 1.5,
        "sinpif(a)": lambda x: np.sin(np.pi * x),
        "normcdff(a)": each(normal_distribution),
        "norm3df(a, 1, 2)": lambda x: np.sqrt(x * x + 5),
        "rnorm3df(a, 1, 2)": lambda x: 1 / np.sqrt(x * x + 5),
        "norm4df(a, 1, 2, 3)": lambda x: np.sqrt(x * x + 14),
        "rnorm4df(a, 1, 2, 3)": lambda x: 1 / np.sqrt(x * x + 14),
        "erfcinvf(erfcf(a))": lambda x: x,
        "__saturatef(a)": lambda x: np.clip(x, 0, 1),
        "__sinf(a)": np.sin,
        "__cosf(a)": np.cos,
        "__expf(a)": np.exp,
        "__logf(fabsf(a) + 2)": lambda x: np.log(np.abs(x) + 2),
        "__powf(fabsf(a) + 1, 2)": lambda x: (np.abs(x) + 1) ** 2,
        "__fdividef(1, a)": lambda x: 1 / x,
        "__frcp_rn(a)": lambda x: 1 / x,
        "__fsqrt_rn(fabsf(a))": lambda x: np.sqrt(np.abs(x)),
        "__frsqrt_rn(fabsf(a))": lambda x: 1 / np.sqrt(np.abs(x)),
        "__fmaf_rn(a, a, 1)": lambda x: x * x + 1,
    }
    require_table(xp, table, [spread("f4", -2, 2)], "f4", 5e-5, 1e-5)


def test_norms_of_arrays(xp: Any) -> None:
    table = {
        "(values[0] = a, values[1] = 3, values[2] = 4, norm(3, values))": lambda x: np.sqrt(x * x + 25),
        "(values[0] = a, values[1] = 3, values[2] = 4, rnorm(3, values))": lambda x: 1 / np.sqrt(x * x + 25),
        "norm3d(a, 3, 4)": lambda x: np.sqrt(x * x + 25),
    }
    require_table(xp, table, [spread("f8", -2, 2)], "f8", 1e-14, 0, body="double values[3];")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_special_values(xp: Any, dtype: str) -> None:
    # CuPy compiles with -ftz=true, by which CUDA takes subnormal numbers of 4 bytes for zero.
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -1e-30], dtype=dtype)
    texts = ["isnan(a) != 0", "isinf(a) != 0", "isfinite(a) != 0", "signbit(a) != 0"]
    found = evaluated(xp, texts, "i4", values)
    wanted = [np.isnan(values), np.isinf(values), np.isfinite(values), np.signbit(values)]
    np.testing.assert_array_equal(found[1:], wanted[1:])
    np.testing.assert_array_equal(found[0], wanted[0])
    exact = {
        "fmin(a, 2)": lambda x: np.fmin(x, 2),
        "fmax(a, 2)": lambda x: np.fmax(x, 2),
        "min(a, b)": np.fmin,
        "max(a, b)": np.fmax,
        "sqrt(a)": np.sqrt,
        "exp(a)": np.exp,
        "erfinv(a * 0 + 1)": lambda x: np.where(np.isfinite(x), np.inf, np.nan),
        "erfcinv(fabs(a) * 0)": lambda x: np.where(np.isfinite(x), np.inf, np.nan),
        "sinpi(a)": lambda x: np.where(np.isfinite(x), np.sin(np.pi * x), np.nan),
        "cospi(a)": lambda x: np.where(np.isfinite(x), np.abs(x) < 1, np.nan),
        "nextafter(b, a)": lambda x, y: np.nextafter(y.astype(dtype), x.astype(dtype)),
    }
    one = {text: expected for text, expected in exact.items() if "b" not in text.replace("fabs", "")}
    two = {text: expected for text, expected in exact.items() if text not in one}
    require_table(xp, one, [values], dtype, 1e-6, 1e-44)
    require_table(xp, two, [values, np.ones_like(values)], dtype, 0, 0)


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def reversed_bits(value: int, bits: int) -> int:
    return int(format(value & ((1 << bits) - 1), f"0{bits}b")[::-1], 2)


def permuted_bytes(a: int, b: int) -> int:
    pool = [*a.to_bytes(4, "little"), *b.to_bytes(4, "little")]
    return int.from_bytes(bytes([pool[7], pool[0], pool[5], pool[2]]), "little")


def test_intrinsic_functions_of_integers(xp: Any) -> None:
    random = np.random.default_rng(3)
    a, b = random.integers(0, 2**32, (2, 100)).astype("u4")
    a[:4], b[:4] = [0, 1, 0x80000000, 0xFFFFFFFF], [0xFFFFFFFF, 0, 0x80000000, 0xFFFFFFFF]
    table: dict[str, Callable[[int, int], int]] = {
        "__clz(a)": lambda x, y: 32 - x.bit_length(),
        "__ffs(a)": lambda x, y: (x & -x).bit_length(),
        "__popc(a)": lambda x, y: x.bit_count(),
        "__brev(a)": lambda x, y: reversed_bits(x, 32),
        "__byte_perm(a, b, 0xa507)": permuted_bytes,
        "__mul24(a, b)": lambda x, y: signed(x, 24) * signed(y, 24),
        "__umul24(a, b)": lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF),
        "__mulhi((int)a, (int)b)": lambda x, y: signed(x) * signed(y) >> 32,
        "__umulhi(a, b)": lambda x, y: x * y >> 32,
        "__sad(a, b, 7)": lambda x, y: abs(signed(x) - signed(y)) + 7,
        "__usad(a, b, 7)": lambda x, y: abs(x - y) + 7,
        "__hadd(a, b)": lambda x, y: signed(x) + signed(y) >> 1,
        "__rhadd(a, b)": lambda x, y: signed(x) + signed(y) + 1 >> 1,
        "__uhadd(a, b)": lambda x, y: x + y >> 1,
        "__urhadd(a, b)": lambda x, y: x + y + 1 >> 1,
        "__funnelshift_l(a, b, 37)": lambda x, y: (y << 32 | x) << 5 >> 32,
        "__funnelshift_r(a, b, 37)": lambda x, y: (y << 32 | x) >> 5,
        "__funnelshift_lc(a, b, 37)": lambda x, y: x,
        "__funnelshift_rc(a, b, 37)": lambda x, y: y,
        "__dp4a((int)a, (int)b, 5)": lambda x, y: (
            5 + sum(signed(x >> place, 8) * signed(y >> place, 8) for place in (0, 8, 16, 24))
        ),
        "__dp4a(a, b, 5u)": lambda x, y: 5 + sum((x >> s & 0xFF) * (y >> s & 0xFF) for s in (0, 8, 16, 24)),
        "min(a, b)": min,
        "max((int)a, (int)b)": lambda x, y: max(signed(x), signed(y)),
        "min((int)a, b)": min,
        "abs((int)(a >> 1))": lambda x, y: x >> 1,
    }
    found = evaluated(xp, list(table), "u4", a, b)
    for (text, expected), values in zip(table.items(), found, strict=True):
        wanted = [expected(int(x), int(y)) & 0xFFFFFFFF for x, y in zip(a, b, strict=True)]
        assert values.tolist() == wanted, text


def test_intrinsic_functions_of_wide_integers(xp: Any) -> None:
    random = np.random.default_rng(4)
    a, b = random.integers(0, 2**64, (2, 100), dtype="u8")
    a[:2] = [0, 2**63]
    table: dict[str, Callable[[int, int], int]] = {
        "__clzll(a)": lambda x, y: 64 - x.bit_length(),
        "__ffsll((long long)a)": lambda x, y: (x & -x).bit_length(),
        "__popcll(a)": lambda x, y: x.bit_count(),
        "__brevll(a)": lambda x, y: reversed_bits(x, 64),
        "__mul64hi(a, b)": lambda x, y: signed(x, 64) * signed(y, 64) >> 64,
        "__umul64hi(a, b)": lambda x, y: x * y >> 64,
        "min(a, b)": min,
        "max((long long)a, (long long)b)": lambda x, y: max(signed(x, 64), signed(y, 64)),
        "ullmax(a, b)": max,
    }
    found = evaluated(xp, list(table), "u8", a, b)
    for (text, expected), values in zip(table.items(), found, strict=True):
        wanted = [expected(int(x), int(y)) & (2**64 - 1) for x, y in zip(a, b, strict=True)]
        assert values.tolist() == wanted, text


@pytest.mark.parametrize("count", [2, 4])
def test_intrinsic_functions_of_packed_integers(xp: Any, count: int) -> None:
    a, b = np.random.default_rng(5).integers(0, 2**32, (2, 200)).astype("u4")
    a[:2], b[:2] = [0x80008080, 0x7F7F7FFF], [0x80008080, 0x7F7F7FFF]
    kind = {2: "2", 4: "1"}[count]
    low, high = np.iinfo(f"i{kind}").min, np.iinfo(f"i{kind}").max
    top = np.iinfo(f"u{kind}").max
    signed_table: dict[str, Expected] = {
        "__vabs": lambda x, y: np.abs(x),
        "__vabsss": lambda x, y: np.minimum(np.abs(x), high),
        "__vneg": lambda x, y: -x,
        "__vaddss": lambda x, y: np.clip(x + y, low, high),
        "__vsubss": lambda x, y: np.clip(x - y, low, high),
        "__vmaxs": np.maximum,
        "__vmins": np.minimum,
        "__vabsdiffs": lambda x, y: np.abs(x - y),
        "__vcmpgts": lambda x, y: -(x > y).astype("i8"),
        "__vsetles": lambda x, y: (x <= y).astype("i8"),
    }
    unsigned_table: dict[str, Expected] = {
        "__vadd": np.add,
        "__vsub": np.subtract,
        "__vaddus": lambda x, y: np.minimum(x + y, top),
        "__vsubus": lambda x, y: np.maximum(x - y, 0),
        "__vavgu": lambda x, y: x + y + 1 >> 1,
        "__vhaddu": lambda x, y: x + y >> 1,
        "__vmaxu": np.maximum,
        "__vminu": np.minimum,
        "__vabsdiffu": lambda x, y: np.abs(x - y),
        "__vcmpeq": lambda x, y: -(x == y).astype("i8"),
        "__vsetltu": lambda x, y: (x < y).astype("i8"),
    }
    one = ("__vabs", "__vabsss", "__vneg")
    names = [*signed_table, *unsigned_table]
    texts = [f"{name}{count}({'a' if name in one else 'a, b'})" for name in names]
    found = evaluated(xp, [*texts, f"__vsadu{count}(a, b)", f"__vsads{count}(a, b)"], "u4", a, b)
    for name, values in zip(names, found, strict=False):
        letter, table = ("i", signed_table) if name in signed_table else ("u", unsigned_table)
        parts = table[name](a.view(f"{letter}{kind}").astype("i8"), b.view(f"{letter}{kind}").astype("i8"))
        np.testing.assert_array_equal(values, parts.astype(f"u{kind}").view("u4"), err_msg=name)
    for letter, values in zip("ui", found[-2:], strict=True):
        parts = np.abs(a.view(f"{letter}{kind}").astype("i8") - b.view(f"{letter}{kind}").astype("i8"))
        np.testing.assert_array_equal(values, parts.reshape(-1, count).sum(axis=1))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("name", "result"), [("int", "i4"), ("uint", "u4"), ("ll", "i8"), ("ull", "u8")])
def test_conversions_to_integers_round_and_clamp(xp: Any, dtype: str, name: str, result: str) -> None:
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.7, 3.2, 1e6 + 0.5, 1e30, -1e30, np.inf, -np.inf], dtype=dtype)
    source = {"f4": "float", "f8": "double"}[dtype]
    modes: dict[str, Callable[[Array], Array]] = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}
    found = evaluated(xp, [f"__{source}2{name}_{mode}(a)" for mode in modes], result, values)
    limits = np.iinfo(result)
    for (mode, rounded), got in zip(modes.items(), found, strict=True):
        wanted = [
            int(limits.max if x > limits.max else limits.min if x < limits.min else x) for x in rounded(values).tolist()
        ]
        assert got.tolist() == wanted, mode


@pytest.mark.parametrize(("dtype", "letter", "fused"), [("f4", "f", "__fmaf"), ("f8", "d", "__fma")])
def test_arithmetic_rounds_in_the_direction_of_the_name(xp: Any, dtype: str, letter: str, fused: str) -> None:
    from fractions import Fraction

    a, b = spread(dtype, -4, 4), spread(dtype, -4, 4, seed=2)
    operations: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
        f"__{letter}add": lambda x, y: x + y,
        f"__{letter}sub": lambda x, y: x - y,
        f"__{letter}mul": lambda x, y: x * y,
        f"__{letter}div": lambda x, y: x / y,
        fused: lambda x, y: x * y + x,
    }
    texts = [
        f"{name}_{mode}(a, b{', a' if name == fused else ''})"
        for name in operations
        for mode in ("rn", "rz", "ru", "rd")
    ]
    found = evaluated(xp, texts, dtype, a, b)
    for place, operation in enumerate(operations.values()):
        for i in range(a.size):
            exact = operation(Fraction(float(a[i])), Fraction(float(b[i])))
            nearest, zero, up, down = (Fraction(float(found[4 * place + mode][i])) for mode in range(4))
            assert down <= exact <= up
            assert up == down == exact or np.nextafter(np.dtype(dtype).type(down), np.inf) == up
            assert zero == (down if exact > 0 else up)
            assert abs(nearest - exact) == min(abs(up - exact), abs(down - exact))


def test_bits_of_numbers(xp: Any) -> None:
    a = spread("f8", -4, 4)
    found = evaluated(
        xp,
        ["__double_as_longlong(a)", "__float_as_int((float)a)", "__float_as_uint((float)a)"],
        "i8",
        a,
    )
    np.testing.assert_array_equal(found[0], a.view("i8"))
    np.testing.assert_array_equal(found[1], a.astype("f4").view("i4"))
    np.testing.assert_array_equal(found[2], a.astype("f4").view("u4"))
    texts = [
        "__longlong_as_double(__double_as_longlong(a))",
        "__hiloint2double(__double2hiint(a), __double2loint(a))",
        "__int_as_float(__float_as_int((float)a))",
    ]
    found = evaluated(xp, texts, "f8", a)
    np.testing.assert_array_equal(found, [a, a, a.astype("f4").astype("f8")])


# Half precision and bfloat16

_SMALL = {"half": ("#include <cuda_fp16.h>", "__half"), "bfloat16": ("#include <cuda_bf16.h>", "__nv_bfloat16")}


def bfloat16_bits(values: Array) -> Array:
    bits = values.astype("f4").view("u4").astype("u8")
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return rounded.astype("u2")


@pytest.mark.parametrize("word", ["half", "bfloat16"])
def test_every_short_number_becomes_the_same_float(xp: Any, word: str) -> None:
    include, _ = _SMALL[word]
    bits = np.arange(65536).astype("u2")
    (found,) = evaluated(xp, [f"__{word}2float(__ushort_as_{word}(a))"], "f4", bits, before=include)
    wanted = bits.view("f2").astype("f4") if word == "half" else (bits.astype("u4") << 16).view("f4")
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("word", ["half", "bfloat16"])
def test_floats_round_to_the_nearest_short_number(xp: Any, word: str) -> None:
    include, kind = _SMALL[word]
    random = np.random.default_rng(5)
    values = random.integers(0, 2**32, 40000).astype("u4").view("f4")
    values = np.concatenate(
        [values, (random.standard_normal(40000) * 2.0 ** random.integers(-28, 18, 40000)).astype("f4")]
    )
    shorts = np.arange(0, 0x7C00, dtype="u2").view("f2").astype("f8")
    middles = ((shorts[1:] + shorts[:-1]) / 2).astype("f4")
    values = np.concatenate(
        [values, middles, np.nextafter(middles, np.float32(0)), np.nextafter(middles, np.float32(9e9))]
    )
    values = values[~np.isnan(values)]
    (found,) = evaluated(xp, [f"__{word}_as_ushort({kind}(a))"], "u2", values, before=include)
    with np.errstate(over="ignore"):
        wanted = values.astype("f2").view("u2") if word == "half" else bfloat16_bits(values)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("word", ["half", "bfloat16"])
def test_directed_roundings_of_short_numbers(xp: Any, word: str) -> None:
    include, _ = _SMALL[word]
    values = np.concatenate([spread("f4", -4, 4), np.array([0, 1, -2, 1e-8, -1e-8], dtype="f4")])
    texts = [f"__{word}2float(__float2{word}_{mode}(a))" for mode in ("rd", "ru", "rz")]
    down, up, zero = evaluated(xp, texts, "f4", values, before=include)
    assert (down <= values).all()
    assert (up >= values).all()
    assert (down[values == 1] == 1).all()
    np.testing.assert_array_equal(zero, np.where(values > 0, down, up))
    back = evaluated(xp, [f"__{word}2float(__float2{word}((a + b) / 2))"], "f4", down, up, before=include)
    assert ((back[0] == down) | (back[0] == up)).all()


@pytest.mark.parametrize("word", ["half", "bfloat16"])
def test_arithmetic_of_short_numbers(xp: Any, word: str) -> None:
    include, kind = _SMALL[word]

    def shortened(values: Array) -> Array:
        if word == "half":
            return values.astype("f2").astype("f4")
        return (bfloat16_bits(values).astype("u4") << 16).view("f4")

    a, b = shortened(spread("f4", -4, 4)), shortened(spread("f4", 0.1, 4, seed=2))
    table: dict[str, Expected] = {
        "x + y": np.add,
        "x - y": np.subtract,
        "x * y": np.multiply,
        "x / y": np.divide,
        "-x": lambda x, y: -x,
        "__hadd(x, y)": np.add,
        "__hmul(x, y)": np.multiply,
        "__hfma(x, y, x)": lambda x, y: (x.astype("f8") * y + x).astype("f4"),
        "__hmax(x, y)": np.maximum,
        "__hmin(x, y)": np.minimum,
        "__habs(x)": lambda x, y: np.abs(x),
        "__hmul2(p, p).y": lambda x, y: y * y,
        "__hfma2(p, p, p).x": lambda x, y: (x.astype("f8") * x + x).astype("f4"),
        "(p + p).y": lambda x, y: y + y,
        "(p * p).x": lambda x, y: x * x,
        "hfloor(x)": lambda x, y: np.floor(x),
        "(x += y, x -= y, x = x + y, x)": lambda x, y: shortened(shortened(shortened(shortened(x + y) - y)) + y),
    }
    comparisons: dict[str, Expected] = {
        "x < y": np.less,
        "x >= y": np.greater_equal,
        "__hlt(x, y)": np.less,
        "__hge(x, y)": np.greater_equal,
        "__heq(x, x)": lambda x, y: x == x,
        "__hne(x, y)": np.not_equal,
        "__hisnan(x)": lambda x, y: np.isnan(x),
        "__hbgt2(p, p)": lambda x, y: x > x,
    }
    body = f"{kind} x(all_a[i]), y(all_b[i]); {kind}2 p = __halves2{word}2(x, y);"
    found = evaluated(xp, [f"float({text})" for text in table], "f4", a, b, before=include, body=body)
    for (text, expected), values in zip(table.items(), found, strict=True):
        np.testing.assert_array_equal(values, shortened(expected(a, b)), err_msg=text)
    found = evaluated(xp, list(comparisons), "i4", a, b, before=include, body=body)
    for (text, expected), values in zip(comparisons.items(), found, strict=True):
        np.testing.assert_array_equal(values, expected(a, b), err_msg=text)


@pytest.mark.parametrize("word", ["half", "bfloat16"])
def test_functions_of_short_numbers(xp: Any, word: str) -> None:
    include, kind = _SMALL[word]
    table: dict[str, Expected] = {
        "hexp(x)": np.exp,
        "hlog(x)": np.log,
        "hsqrt(x)": np.sqrt,
        "hrsqrt(x)": lambda x: 1 / np.sqrt(x),
        "hrcp(x)": lambda x: 1 / x,
        "hsin(x)": np.sin,
        "hcos(x)": np.cos,
        "h2exp2(p).y": np.exp2,
        "hlog2(x)": np.log2,
        "hlog10(x)": np.log10,
        "htrunc(x)": np.trunc,
        "hrint(x)": np.rint,
    }
    a = spread("f4", 0.5, 4)
    body = f"{kind} x(all_a[i]); {kind}2 p = __{word}2{word}2(x);"
    found = evaluated(xp, [f"float({text})" for text in table], "f4", a, before=include, body=body)
    a = a.astype("f2").astype("f4") if word == "half" else (bfloat16_bits(a).astype("u4") << 16).view("f4")
    unit = 2.0**-10 if word == "half" else 2.0**-7
    for (text, expected), values in zip(table.items(), found, strict=True):
        np.testing.assert_allclose(values, expected(a), rtol=2 * unit, atol=2 * unit, err_msg=text)


# Atomic functions


def test_atomic_functions(xp: Any) -> None:
    source = r"""
    extern "C" __global__ void count(int *i, unsigned int *u, unsigned long long *w, float *f, double *d) {
        int t = blockIdx.x * blockDim.x + threadIdx.x;
        atomicAdd(i, t);
        atomicSub(i + 1, t);
        atomicMin(i + 2, -t);
        atomicMax(i + 3, t);
        atomicAnd(i + 4, ~(1 << t % 8));
        atomicOr(i + 5, 1 << t % 8);
        atomicXor(i + 6, t);
        atomicExch(i + 7, 5);
        for (int old = i[8], seen; (seen = atomicCAS(i + 8, old, old + 2)) != old; old = seen) {}
        if (blockIdx.x == 0) atomicAdd_block(i + 9, 2);
        atomicInc(u, 9);
        atomicDec(u + 1, 9);
        atomicMax(u + 2, 0xffffff00u + t);
        atomicAdd(u + 3, 2u);
        atomicAdd(w, 1ull << 32);
        atomicMax(w + 1, (unsigned long long)t << 40);
        atomicAdd(f, 0.5f);
        atomicAdd(d, 0.25);
        int before = atomicAdd(i + 10, 1);
        atomicOr(i + 11 + before / 32, 1 << before % 32);
    }"""
    start_i = np.zeros(15, dtype="i4")
    start_i[4] = 0x1FF
    arrays = [
        xp.asarray(start_i),
        xp.asarray(np.array([0, 3, 0, 0], dtype="u4")),
        xp.zeros(2, dtype="u8"),
        xp.zeros(1, dtype="f4"),
        xp.zeros(1, dtype="f8"),
    ]
    xp.RawKernel(source, "count")((2,), (64,), tuple(arrays))
    i, u, w, f, d = (array.get().tolist() for array in arrays)
    threads = range(128)
    total = sum(threads)
    xored = 0
    for t in threads:
        xored ^= t
    assert i == [total, -total, -127, 127, 0x100, 0xFF, xored, 5, 256, 128, 128, -1, -1, -1, -1]
    assert u == [128 % 10, (3 - 128) % 10, 0xFFFFFF7F, 256]
    assert w == [128 << 32, 127 << 40]
    assert (f, d) == ([64.0], [32.0])


def test_atomic_addition_of_short_numbers(xp: Any) -> None:
    source = r"""
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void add(__half *h, __half2 *p, __nv_bfloat16 *b) {
        atomicAdd(h + 1, __float2half(0.5f));
        atomicAdd(p, __floats2half2_rn(1.0f, 2.0f));
        atomicAdd(b, __float2bfloat16(2.0f));
    }"""
    h, p, b = xp.zeros(2, dtype="f2"), xp.zeros(2, dtype="f2"), xp.zeros(2, dtype="u2")
    xp.RawKernel(source, "add")((1,), (64,), (h, p, b))
    assert h.get().tolist() == [0, 32]
    assert p.get().tolist() == [64, 128]
    assert b.get().tolist() == bfloat16_bits(np.array([128, 0])).tolist()


@pytest.mark.parametrize(
    "acquire",
    ["while (atomicCAS(lock, 0, 1) != 0) {}", "while (atomicExch(lock, 1) != 0) {}"],
    ids=["compare and swap", "exchange"],
)
def test_threads_of_a_block_take_turns_with_a_lock(xp: Any, acquire: str) -> None:
    source = f"""
    extern "C" __global__ void add(int *lock, volatile int *sum) {{
        {acquire}
        __threadfence();
        int before = *sum;
        *sum = before + 1;
        __threadfence();
        atomicExch(lock, 0);
    }}"""
    lock, total = xp.zeros(1, dtype="i4"), xp.zeros(1, dtype="i4")
    xp.RawKernel(source, "add")((2,), (64,), (lock, total))
    assert (int(lock.get()[0]), int(total.get()[0])) == (0, 128)


@pytest.mark.emulated
@pytest.mark.parametrize(
    "statement",
    [
        "memset(out + far, 0, 64)",
        "memcpy(out, out + far, 64)",
        "memmove(out + far, out, 64)",
        "atomicAdd(out + far, 1)",
        "frexp(1.0, out + far)",
        "sincosf(1.0f, (float *)out, (float *)(out + far))",
        "out[0] = __ldg(out + far)",
    ],
)
def test_functions_check_the_memory_that_they_use(xp: Any, statement: str) -> None:
    source = f'extern "C" __global__ void use(int *out, long long far) {{ {statement}; }}'
    out = xp.zeros(16, dtype="i4")
    with pytest.raises(tcuda.AcceleratorError, match="illegal memory access"), synchronized():
        xp.RawKernel(source, "use")((1,), (1,), (out, np.int64(1 << 24)))


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("out[0] = __shfl(1, 2);", "__shfl_sync"),
        ("out[0] = __ballot(1);", "__ballot_sync"),
        ("out[0] = __isShared(out);", "one address space"),
    ],
)
def test_a_function_that_devices_lack_is_named(xp: Any, statement: str, message: str) -> None:
    source = f'extern "C" __global__ void use(int *out) {{ {statement} }}'
    with pytest.raises(Exception, match=message):
        xp.RawKernel(source, "use")((1,), (1,), (xp.zeros(1, dtype="i4"),))


# Warps


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8", "f4", "f8"])
def test_shuffles(xp: Any, dtype: str) -> None:
    lane = np.arange(64) % 32
    values = (np.arange(64) * 3 + 1).astype(dtype)

    def chosen(source: Array, inside: Array) -> Array:
        return values[np.where(inside, source, lane) + np.arange(64) // 32 * 32]

    table: dict[str, Array] = {}
    for width in (32, 16, 8, 2):
        low, high = lane & ~(width - 1), lane | (width - 1)
        always = np.ones(64, dtype=bool)
        table[f"__shfl_sync(~0u, a, 5, {width})"] = chosen(low | (5 & (width - 1)), always)
        table[f"__shfl_sync(~0u, a, threadIdx.x + 3, {width})"] = chosen(low | (lane + 3 & (width - 1)), always)
        table[f"__shfl_up_sync(~0u, a, 3, {width})"] = chosen(lane - 3, lane - 3 >= low)
        table[f"__shfl_down_sync(~0u, a, 3, {width})"] = chosen(lane + 3, lane + 3 <= high)
        table[f"__shfl_xor_sync(~0u, a, 5, {width})"] = chosen(lane ^ 5, (lane ^ 5) <= high)
    found = evaluated(xp, list(table), dtype, values)
    for (text, wanted), got in zip(table.items(), found, strict=True):
        np.testing.assert_array_equal(got, wanted, err_msg=text)


def test_shuffles_of_short_numbers(xp: Any) -> None:
    values = np.arange(64).astype("f4")
    include = "#include <cuda_fp16.h>"
    (got,) = evaluated(xp, ["__half2float(__shfl_down_sync(~0u, __float2half(a), 1))"], "f4", values, before=include)
    wanted = np.where(values % 32 == 31, values, values + 1)
    np.testing.assert_array_equal(got, wanted)


def test_votes_and_matches(xp: Any) -> None:
    values = (np.arange(64) // 3 % 4).astype("i4")
    texts = [
        "__ballot_sync(~0u, a == 1)",
        "__all_sync(~0u, a < 4)",
        "__all_sync(~0u, a < 3)",
        "__any_sync(~0u, a == 3)",
        "__any_sync(~0u, a == 4)",
        "__match_any_sync(~0u, a)",
        "(mask = __match_all_sync(~0u, a, &all), mask + all)",
        "(mask = __match_all_sync(~0u, 7, &all), mask - all)",
        "__activemask()",
    ]
    found = evaluated(xp, texts, "u4", values, body="int all; unsigned int mask;")
    warps = values.reshape(2, 32)
    bits = np.array([1 << lane for lane in range(32)], dtype="u8")

    def masks(function: Callable[[Array, int], Array]) -> list[int]:
        return [int(bits[function(warp, value)].sum()) for warp in warps for value in warp]

    assert found[0].tolist() == masks(lambda warp, value: warp == 1)
    assert [int(row.min()) for row in found[1:5]] == [int(row.max()) for row in found[1:5]] == [1, 0, 1, 0]
    assert found[5].tolist() == masks(lambda warp, value: warp == value)
    assert set(found[6].tolist()) == {0}
    assert set(found[7].tolist()) == {0xFFFFFFFE}
    assert set(found[8].tolist()) == {0xFFFFFFFF}


def test_reductions_of_a_warp(xp: Any) -> None:
    values = np.random.default_rng(7).integers(-1000, 1000, 64).astype("i4")
    table: dict[str, Callable[[Array], Any]] = {
        "__reduce_add_sync(~0u, a)": np.sum,
        "__reduce_min_sync(~0u, a)": np.min,
        "__reduce_max_sync(~0u, a)": np.max,
        "__reduce_and_sync(~0u, (unsigned)a)": np.bitwise_and.reduce,
        "__reduce_or_sync(~0u, (unsigned)a)": np.bitwise_or.reduce,
        "__reduce_xor_sync(~0u, (unsigned)a)": np.bitwise_xor.reduce,
    }
    found = evaluated(xp, list(table), "i4", values)
    for (text, expected), got in zip(table.items(), found, strict=True):
        assert got.tolist() == [int(expected(warp)) for warp in values.reshape(2, 32) for _ in range(32)], text


def test_warp_functions_of_part_of_a_warp(xp: Any) -> None:
    source = r"""
    extern "C" __global__ void halves(int *out) {
        int t = threadIdx.x;
        if (t < 16) {
            out[t] = __shfl_xor_sync(0x0000ffff, t, 1) + 100 * (__ballot_sync(0x0000ffff, t % 2) == 0xaaaa);
        } else {
            out[t] = __reduce_add_sync(0xffff0000, t);
            __syncwarp(0xffff0000);
        }
    }"""
    out = xp.zeros(32, dtype="i4")
    xp.RawKernel(source, "halves")((1,), (32,), (out,))
    assert out.get().tolist() == [(t ^ 1) + 100 for t in range(16)] + [sum(range(16, 32))] * 16


def test_cooperative_groups(xp: Any) -> None:
    source = r"""
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    #include <cooperative_groups/scan.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void groups(int *out) {
        __shared__ int shared[64];
        cg::thread_block block = cg::this_thread_block();
        int t = block.thread_rank();
        shared[t] = t * t;
        block.sync();
        auto tile = cg::tiled_partition<8>(block);
        cg::thread_block_tile<4> small = cg::tiled_partition<4>(tile);
        int *own = out + 16 * t;
        own[0] = shared[63 - t];
        own[1] = tile.thread_rank();
        own[2] = tile.meta_group_rank();
        own[3] = tile.meta_group_size();
        own[4] = tile.size();
        own[5] = tile.shfl(t, 3);
        own[6] = tile.shfl_down(t, 1);
        own[7] = tile.shfl_xor(t, 2);
        own[8] = tile.ballot(t % 2);
        own[9] = cg::reduce(tile, t, cg::plus<int>());
        own[10] = cg::reduce(tile, t, cg::greater<int>());
        own[11] = cg::inclusive_scan(tile, t);
        own[12] = cg::exclusive_scan(tile, t);
        own[13] = small.any(t % 16 == 5);
        own[14] = small.meta_group_rank() + 10 * small.meta_group_size();
        own[15] = block.size() + block.group_index().x + block.thread_index().y;
        cg::sync(block);
    }"""
    out = xp.zeros(64 * 16, dtype="i4")
    xp.RawKernel(source, "groups")((1,), (16, 4), (out,))
    t = np.arange(64)
    first = t // 8 * 8
    wanted = [
        (63 - t) ** 2,
        t % 8,
        t // 8,
        8 + 0 * t,
        8 + 0 * t,
        first + 3,
        np.where(t % 8 == 7, t, t + 1),
        t ^ 2,
        0xAA + 0 * t,
        8 * first + 28,
        first + 7,
        [sum(range(x // 8 * 8, x + 1)) for x in range(64)],
        [sum(range(x // 8 * 8, x)) for x in range(64)],
        t % 16 // 4 == 1,
        t % 8 // 4 + 20,
        64 + t // 16,
    ]
    found = out.get().reshape(64, 16).T
    for place, (got, row) in enumerate(zip(found, wanted, strict=True)):
        np.testing.assert_array_equal(got, row, err_msg=f"own[{place}]")


# Complex numbers


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_numbers(xp: Any, dtype: str) -> None:
    part = "f4" if dtype == "c8" else "f8"
    a = (spread(part, -2, 2, 1) + 1j * spread(part, -2, 2, 2)).astype(dtype)
    b = (spread(part, -2, 2, 3) + 1j * spread(part, -2, 2, 4)).astype(dtype)
    number = _C_TYPES[part]
    table: dict[str, Expected] = {
        "a + b": np.add,
        "a - b": np.subtract,
        "a * b": np.multiply,
        "a / b": np.divide,
        "-a": lambda x, y: -x,
        f"a * {number}(2) + {number}(1) / b": lambda x, y: x * 2 + 1 / y,
        f"a - {number}(3)": lambda x, y: x - 3,
        "conj(a)": lambda x, y: np.conj(x),
        "abs(a)": lambda x, y: np.abs(x),
        "arg(a)": lambda x, y: np.angle(x),
        "norm(a)": lambda x, y: np.abs(x) ** 2,
        "real(a) + b.imag()": lambda x, y: x.real + y.imag,
        "exp(a)": lambda x, y: np.exp(x),
        "log(a)": lambda x, y: np.log(x),
        "log10(a)": lambda x, y: np.log10(x),
        "sqrt(a)": lambda x, y: np.sqrt(x),
        "sin(a)": lambda x, y: np.sin(x),
        "cos(a)": lambda x, y: np.cos(x),
        "tan(a)": lambda x, y: np.tan(x),
        "sinh(a)": lambda x, y: np.sinh(x),
        "cosh(a)": lambda x, y: np.cosh(x),
        "tanh(a)": lambda x, y: np.tanh(x),
        "asin(a)": lambda x, y: np.arcsin(x),
        "acos(a)": lambda x, y: np.arccos(x),
        "atan(a)": lambda x, y: np.arctan(x),
        "asinh(a)": lambda x, y: np.arcsinh(x),
        "acosh(a)": lambda x, y: np.arccosh(x),
        "atanh(a)": lambda x, y: np.arctanh(x),
        "pow(a, b)": lambda x, y: x**y,
        f"pow(a, {number}(2))": lambda x, y: x**2,
        f"thrust::polar({number}(2), a.real())": lambda x, y: 2 * np.exp(1j * x.real),
        "a == b": lambda x, y: x == y,
        "a != b": lambda x, y: x != y,
        "a < b": lambda x, y: x.real < y.real,
        "(a += b, a *= b, a)": lambda x, y: (x + y) * y,
    }
    found = evaluated(xp, list(table), dtype, a, b, before="#include <cupy/complex.cuh>")
    rtol, atol = (5e-4, 5e-5) if dtype == "c8" else (1e-11, 1e-12)
    for (text, expected), values in zip(table.items(), found, strict=True):
        np.testing.assert_allclose(
            values, expected(a.astype("c16"), b.astype("c16")), rtol=rtol, atol=atol, err_msg=text
        )


def test_vector_types_have_the_layout_of_cuda(xp: Any) -> None:
    names = [
        f"{base}{count}" for base in ("char", "ushort", "int", "float", "longlong", "double") for count in (1, 2, 3)
    ]
    names += ["char4", "ushort4", "int4", "float4", "dim3"]
    found = evaluated(xp, [f"sizeof({name}) * 100 + alignof({name})" for name in names], "i4", np.zeros(1, dtype="i4"))
    sizes = {"char": 1, "ushort": 2, "int": 4, "float": 4, "longlong": 8, "double": 8}
    wanted = []
    for base in ("char", "ushort", "int", "float", "longlong", "double"):
        size = sizes[base]
        wanted += [101 * size, 202 * size, 301 * size]
    wanted += [404, 808, 1616, 1616, 1204]
    assert [int(row[0]) for row in found] == wanted


def test_vectors_are_made_loaded_and_stored(xp: Any) -> None:
    source = r"""
    extern "C" __global__ void turn(const float4 *x, float4 *y, float first, float second) {
        float4 v = __ldg(x + threadIdx.x);
        y[threadIdx.x] = make_float4(v.w + first, v.z + second, v.y, v.x);
    }"""
    x, y = xp.arange(32, dtype="f4"), xp.zeros(32, dtype="f4")
    xp.RawKernel(source, "turn")((1,), (8,), (x, y, np.float32(10), np.float32(20)))
    wanted = np.arange(32, dtype="f4").reshape(8, 4)[:, ::-1] + np.array([10, 20, 0, 0])
    np.testing.assert_array_equal(y.get().reshape(8, 4), wanted)


def test_memory_of_the_device_heap(xp: Any) -> None:
    source = r"""
    extern "C" __global__ void sums(int *out, int n) {
        int t = threadIdx.x;
        int *values = (int *)malloc(n * sizeof(int));
        if (values == NULL) { out[t] = -1; return; }
        memset(values, 0, n * sizeof(int));
        for (int i = 0; i < n; ++i) values[i] += i + t;
        int copy[4];
        memcpy(copy, values, sizeof(copy));
        out[t] = copy[0] + copy[3] + values[n - 1];
        free(values);
    }"""
    out = xp.zeros(64, dtype="i4")
    kernel = xp.RawKernel(source, "sums")
    for _ in range(3):
        kernel((1,), (64,), (out, np.int32(1000)))
    assert out.get().tolist() == [t + t + 3 + t + 999 for t in range(64)]


def test_new_and_delete_use_the_device_heap(xp: Any) -> None:
    source = r"""
    struct Pair {
        int first, second;
        __device__ Pair(int first, int second) : first(first), second(second) {}
    };
    extern "C" __global__ void sums(int *out) {
        Pair *pair = new Pair(threadIdx.x, 5);
        int *squares = new int[10];
        for (int i = 0; i < 10; ++i) squares[i] = i * i;
        out[threadIdx.x] = pair->first + pair->second + squares[9];
        delete[] squares;
        delete pair;
    }"""
    out = xp.zeros(32, dtype="i4")
    xp.RawKernel(source, "sums")((1,), (32,), (out,))
    assert out.get().tolist() == [t + 86 for t in range(32)]


def test_clocks_do_not_go_back(xp: Any) -> None:
    source = r"""
    extern "C" __global__ void ticks(long long *out) {
        long long first = clock64();
        __nanosleep(100);
        out[0] = clock64() - first;
        out[1] = clock() != 0;
    }"""
    out = xp.zeros(2, dtype="i8")
    xp.RawKernel(source, "ticks")((1,), (1,), (out,))
    elapsed, clock_runs = out.get().tolist()
    assert elapsed > 0
    assert clock_runs == 1


def test_a_kernel_prints(output_of: Any, runtime: Any) -> None:
    code = r"""
import numpy as np, tcuda
xp = tcuda.xp
source = 'extern "C" __global__ void say(int n) { printf("thread %d of %d: %.2f\\n", threadIdx.x, n, 0.5);'
source += ' printf("plain\\n"); }'
xp.RawKernel(source, 'say')((1,), (2,), (np.int32(2),))
tcuda.synchronize()
"""
    lines = output_of(code).splitlines()
    assert sorted(lines) == ["plain", "plain", "thread 0 of 2: 0.50", "thread 1 of 2: 0.50"]


def test_headers_of_cuda_can_be_included(xp: Any) -> None:
    names = [
        "cuda_runtime",
        "device_launch_parameters",
        "math_constants",
        "cuComplex",
        "cuda_fp16",
        "cooperative_groups",
    ]
    before = "\n".join(f"#include <{name}.h>" for name in names)
    texts = [
        "CUDART_PI_F + a",
        "cuCrealf(cuCmulf(make_cuFloatComplex(a, 2), make_cuFloatComplex(3, 4)))",
        "CUDART_INF_F",
    ]
    values = spread("f4", -1, 1)
    found = evaluated(xp, texts, "f4", values, before=before)
    np.testing.assert_allclose(found[0], np.float32(np.pi) + values, rtol=1e-6)
    np.testing.assert_allclose(found[1], values * 3 - 8, rtol=1e-6)
    assert np.isinf(found[2]).all()


@pytest.mark.parametrize("scope", ["", "_block", "_system"])
def test_vectors_of_floats_are_added_atomically(scope: str, xp: Any) -> None:
    # Only devices since Hopper have these functions.
    source = f"""
    extern "C" __global__ void add(float2 *pairs, float4 *quads, float *before) {{
        const float t = threadIdx.x;
        const float2 old = atomicAdd{scope}(pairs, make_float2(1, t));
        atomicAdd{scope}(quads, make_float4(1, 2, t, -t));
        before[(int)old.x] = old.x;
    }}"""
    if tcuda.get_device_capability() < (9, 0):
        pytest.skip("the device has no such functions")
    pairs, quads, before = (xp.zeros(count, dtype="f4") for count in (2, 4, 64))
    xp.RawKernel(source, "add")((1,), (64,), (pairs, quads, before))
    total = sum(range(64))
    assert pairs.get().tolist() == [64, total]
    assert quads.get().tolist() == [64, 128, total, -total]
    assert before.get().tolist() == list(range(64))


def test_the_sizes_of_a_launch_are_values_of_dim3(xp: Any) -> None:
    """As on CUDA, the variables are constants: a kernel cannot write them, but can copy and convert them."""
    source = """
    __device__ unsigned int of_size(dim3 size) { return size.x + 10 * size.y + 100 * size.z; }
    __device__ unsigned int of_index(uint3 index) { return index.x + 10 * index.y + 100 * index.z; }
    __device__ unsigned int of_reference(const dim3 &size) { return of_size(size); }
    extern "C" __global__ void sizes(unsigned int *out, int flag) {
        dim3 copy = blockDim, direct(gridDim), chosen = flag ? blockDim : dim3(9, 9, 9), assigned(1, 1, 1);
        assigned = gridDim;
        uint3 index = blockDim;
        auto same = blockDim;
        const dim3 &reference = gridDim;
        const unsigned int found[] = {
            of_size(blockDim), of_size(gridDim), of_size(copy), of_size(direct), of_size(chosen), of_size(assigned),
            of_index(index), of_index(blockDim), of_size(same), of_reference(reference), of_reference(blockDim),
            of_index(blockIdx), of_index(threadIdx)};
        if (blockIdx.x + blockIdx.y == 0 && threadIdx.x + threadIdx.y + threadIdx.z == 0)
            for (int i = 0; i < 13; i++) out[i] = found[i];
    }
    """
    out = xp.zeros(13, dtype="u4")
    xp.RawKernel(source, "sizes")((5, 6), (2, 3, 4), (out, np.int32(1)))
    block, grid = 432, 165
    assert out.get().tolist() == [block, grid, block, grid, block, grid, block, block, block, grid, block, 0, 0]


@pytest.mark.parametrize("name", ["blockIdx", "blockDim", "gridDim"])
def test_a_kernel_cannot_write_what_is_the_same_for_its_block(xp: Any, name: str) -> None:
    with pytest.raises(xp.cuda.compiler.CompileException, match=r"modifiable lvalue|read-only|const-qualified"):
        xp.RawModule(code=f'extern "C" __global__ void f() {{ {name}.x = 1; }}').get_function("f")
