"""The header ``curand_kernel.h``: cuRAND's generators and laws in kernels.

The numbers of the papers, and the relations between the functions, hold on both runtimes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tcuda
from support.folders import DATA

GENERATORS = {
    "xorwow": "curandStateXORWOW_t",
    "philox": "curandStatePhilox4_32_10_t",
    "mrg": "curandStateMRG32k3a_t",
}
_SOURCE = """
#include <curand_kernel.h>
typedef unsigned long long u64;
template <class State, class T>
__device__ void draw(u64 seed, u64 sequence, u64 offset, u64 skipped, T *out, int n, T (*law)(State *)) {
    State s;
    curand_init(seed, sequence, offset, &s);
    skipahead(skipped, &s);
    for (int i = 0; i < n; i++) out[i] = law(&s);
}
"""
_KERNEL = """
__device__ {type} {name}_{law}_law({state} *s) {{ return curand{suffix}(s{more}); }}
extern "C" __global__ void {name}_{law}(u64 seed, u64 sequence, u64 offset, u64 skipped, {type} *out, int n) {{
    draw(seed, sequence, offset, skipped, out, n, {name}_{law}_law);
}}
"""
LAWS = {
    "bits": ("unsigned int", "", ""),
    "uniform": ("float", "_uniform", ""),
    "uniform_double": ("double", "_uniform_double", ""),
    "normal": ("float", "_normal", ""),
    "normal_double": ("double", "_normal_double", ""),
    "log_normal": ("float", "_log_normal", ", 0.5f, 0.25f"),
    "log_normal_double": ("double", "_log_normal_double", ", 0.5, 0.25"),
    "poisson_5": ("unsigned int", "_poisson", ", 5.0"),
    "poisson_200": ("unsigned int", "_poisson", ", 200.0"),
    "poisson_5000": ("unsigned int", "_poisson", ", 5000.0"),
}
TYPES = {"unsigned int": np.uint32, "float": np.float32, "double": np.float64}
MOMENTS = {
    "uniform": (0.5, 12**-0.5),
    "uniform_double": (0.5, 12**-0.5),
    "normal": (0, 1),
    "normal_double": (0, 1),
    "log_normal": (np.exp(0.53125), np.exp(0.53125) * np.expm1(0.0625) ** 0.5),
    "log_normal_double": (np.exp(0.53125), np.exp(0.53125) * np.expm1(0.0625) ** 0.5),
    "poisson_5": (5, 5**0.5),
    "poisson_200": (200, 200**0.5),
    "poisson_5000": (5000, 5000**0.5),
}
"""The mean and the standard deviation of each law."""

FACTS = json.loads((DATA / "curand_h200.json").read_text())
"""The first numbers of cuRAND, by generator, by start (seed, subsequence, offset), and by function; as the bits."""

_CALLS = {
    "log_normal": ", 0.5f, 1.25f",
    "log_normal2": ", 0.5f, 1.25f",
    "log_normal4": ", 0.5f, 1.25f",
    "log_normal_double": ", 0.5, 1.25",
    "log_normal2_double": ", 0.5, 1.25",
    "log_normal4_double": ", 0.5, 1.25",
}
_FUNCTIONS = {"raw": "curand", "raw4": "curand4"}
_STORES = {1: "out[i] = bits({call});", 2: "auto v = {call}; out[i] = bits(v.x); out[i + 1] = bits(v.y);"}
_STORES[4] = "auto v = {call}; " + " ".join(f"out[i + {n}] = bits(v.{name});" for n, name in enumerate("xyzw"))
_FACTS_SOURCE = """
#include <curand_kernel.h>
typedef unsigned long long u64;
__device__ u64 bits(float x) { return __float_as_uint(x); }
__device__ u64 bits(double x) { return (u64)__double_as_longlong(x); }
__device__ u64 bits(unsigned int x) { return x; }
"""
_FACTS_KERNEL = """
extern "C" __global__ void {name}(u64 seed, u64 sequence, u64 offset, u64 *out) {{
    {state} s;
    curand_init(seed, sequence, offset, &s);
    {before}
    for (int i = 0; i < 8; i += {count}) {{ {store} }}
}}
"""
_POISSON = """
extern "C" __global__ void poisson(double mean, u64 *out) {{
    {state} s;
    curand_init(7, 0, 0, &s);
    for (int i = 0; i < 32; i++) out[i] = curand_poisson(&s, mean);
}}
"""

pytestmark = pytest.mark.usefixtures("runtime")


@pytest.fixture(scope="module")
def code() -> str:
    return _SOURCE + "".join(
        _KERNEL.format(name=name, state=state, law=law, type=of, suffix=suffix, more=more)
        for name, state in GENERATORS.items()
        for law, (of, suffix, more) in LAWS.items()
    )


class Draws:
    """The draws of one thread from a new state."""

    def __init__(self, code: str) -> None:
        self._module = compiled(code)

    def __call__(
        self, kernel: str, n: int, seed: int = 1234, sequence: int = 0, offset: int = 0, skipped: int = 0
    ) -> np.ndarray[Any, Any]:
        law = kernel.partition("_")[2]
        out = tcuda.xp.zeros(n, TYPES[LAWS[law][0]])
        numbers = [np.uint64(one) for one in (seed, sequence, offset, skipped)]
        self._module.get_function(kernel)((1,), (1,), (*numbers, out, np.int32(n)))
        found: np.ndarray[Any, Any] = out.get()
        return found


def compiled(code: str) -> Any:
    """Return a module; on CUDA, with the folder of cuRAND's headers, or skip where there are none."""
    from support.curand_headers import options

    return tcuda.xp.RawModule(code=code, options=options())


@pytest.fixture
def draws(code: str) -> Draws:
    return Draws(code)


def test_philox_has_the_numbers_of_its_authors(draws: Draws) -> None:
    # The first known answer of Random123: counter 0, key 0.
    assert [hex(one) for one in draws("philox_bits", 4, seed=0)] == [
        "0x6627e8d5",
        "0xe169c58d",
        "0xbc57ac4c",
        "0x9b00dbd8",
    ]


def test_mrg_has_the_first_number_of_its_author(draws: Draws) -> None:
    # L'Ecuyer's programs begin with 12345 in all six places, as does seed 0. His divisor is larger by 1.
    assert draws("mrg_uniform_double", 1, seed=0)[0] == pytest.approx(0.127011122046577, abs=1e-10)


def kernel_of_facts(name: str, state: str) -> str:
    """Return the kernel that stores the first numbers of the function ``name``."""
    count = next((int(part) for part in name if part in "24"), 1)
    call = f"{_FUNCTIONS.get(name, f'curand_{name}')}(&s{_CALLS.get(name, '')})"
    before = "curand(&s);" if count == 4 else ""  # The numbers of the facts begin in the middle of a counter.
    store = _STORES[count].format(call=call)
    return _FACTS_KERNEL.format(name=name, state=state, before=before, count=count, store=store)


@pytest.mark.parametrize("generator", FACTS["starts"])
def test_the_numbers_are_those_of_curand(generator: str) -> None:
    starts = FACTS["starts"][generator]
    state = f"curandState{generator}_t"
    names = next(iter(starts.values()))
    module = compiled(_FACTS_SOURCE + "".join(kernel_of_facts(name, state) for name in names))
    for start, functions in starts.items():
        for name, expected in functions.items():
            out = tcuda.xp.zeros(8, np.uint64)
            module.get_function(name)((1,), (1,), (*(np.uint64(one) for one in start.split(",")), out))
            found = out.get()
            if "normal" not in name:
                assert found.tolist() == expected, (start, name)
            elif "double" in name:
                known = np.array(expected, np.uint64).view(np.float64)
                np.testing.assert_allclose(found.view(np.float64), known, rtol=1e-15, atol=1e-15, err_msg=name)
            else:
                # A GPU's fast sine has an error of its own.
                known = np.array(expected, np.uint64).astype(np.uint32).view(np.float32)
                np.testing.assert_allclose(
                    found.astype(np.uint32).view(np.float32), known, rtol=5e-6, atol=5e-6, err_msg=name
                )


@pytest.mark.parametrize("generator", FACTS["poisson"])
def test_small_and_large_poisson_numbers_are_those_of_curand(generator: str) -> None:
    module = compiled(_FACTS_SOURCE + _POISSON.format(state=f"curandState{generator}_t"))
    for mean, expected in FACTS["poisson"][generator].items():
        out = tcuda.xp.zeros(32, np.uint64)
        module.get_function("poisson")((1,), (1,), (np.float64(mean), out))
        assert out.get().tolist() == expected, mean


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("start", [(1234, 0), (2**63 + 5, 3), (7, 2**40 + 1)])
@pytest.mark.parametrize("offset", [1, 2, 3, 4, 7, 1000])
def test_an_offset_leaves_numbers_out(draws: Draws, name: str, start: tuple[int, int], offset: int) -> None:
    seed, sequence = start
    everything = draws(f"{name}_bits", offset + 8, seed, sequence)
    np.testing.assert_array_equal(draws(f"{name}_bits", 8, seed, sequence, offset), everything[offset:])
    np.testing.assert_array_equal(draws(f"{name}_bits", 8, seed, sequence, 1, offset - 1), everything[offset:])


@pytest.mark.parametrize("name", GENERATORS)
def test_large_offsets_add_up(draws: Draws, name: str) -> None:
    one = draws(f"{name}_bits", 8, 1234, 1, 2**40 + 12345, 2**62 + 678)
    np.testing.assert_array_equal(one, draws(f"{name}_bits", 8, 1234, 1, 2**40 + 2**62 + 13023))


def test_a_subsequence_of_philox_has_a_counter_of_its_own(draws: Draws) -> None:
    # A subsequence is the upper half of the counter, and 2^66 numbers long.
    first = draws("philox_bits", 4, 1234, 1)
    last = draws("philox_bits", 8, 1234, 0, 2**64 - 4, 0)
    assert not np.isin(first, last).any()


@pytest.mark.parametrize("law", MOMENTS)
@pytest.mark.parametrize("name", GENERATORS)
def test_a_law_has_its_moments(draws: Draws, name: str, law: str) -> None:
    mean, deviation = MOMENTS[law]
    found = draws(f"{name}_{law}", 20000).astype(float)
    assert found.mean() == pytest.approx(mean, abs=5 * deviation / 20000**0.5)
    assert found.std() == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_normal_number_is_kept_for_the_next_call(name: str) -> None:
    code = f"""
    #include <curand_kernel.h>
    extern "C" __global__ void k(float *out) {{
        {GENERATORS[name]} a, b;
        curand_init(5, 0, 0, &a);
        b = a;
        for (int i = 0; i < 8; i++) out[i] = curand_normal(&a);
        for (int i = 8; i < 16; i += 2) {{
            float2 pair = curand_normal2(&b);
            out[i] = pair.x, out[i + 1] = pair.y;
        }}
    }}"""
    out = tcuda.xp.zeros(16, np.float32)
    compiled(code).get_function("k")((1,), (1,), (out,))
    found = out.get()
    np.testing.assert_array_equal(found[:8], found[8:])
    assert len(set(found[:8].tolist())) == 8


def test_philox_draws_four_numbers_at_once() -> None:
    code = """
    #include <curand_kernel.h>
    extern "C" __global__ void k(unsigned int *out, int before) {
        curandStatePhilox4_32_10_t a, b;
        curand_init(5, 1, before, &a);
        b = a;
        for (int i = 0; i < 8; i++) out[i] = curand(&a);
        for (int i = 8; i < 16; i += 4) {
            uint4 four = curand4(&b);
            out[i] = four.x, out[i + 1] = four.y, out[i + 2] = four.z, out[i + 3] = four.w;
        }
    }"""
    module = compiled(code)
    for before in range(4):
        out = tcuda.xp.zeros(16, np.uint32)
        module.get_function("k")((1,), (1,), (out, np.int32(before)))
        found = out.get()
        np.testing.assert_array_equal(found[:8], found[8:])


@pytest.mark.emulated
def test_a_state_of_another_thread_is_a_race() -> None:
    from support.racing_kernels import launch

    code = """
    #include <curand_kernel.h>
    extern "C" __global__ void k(curandState *s, float *out) {
        if (threadIdx.x == 0) curand_init(1, 0, 0, s);
        __syncthreads();
        out[threadIdx.x] = curand_uniform(s);
    }"""
    started = launch(code, np.zeros(6, np.float64), np.zeros(4, np.float32), grid=(1, 1, 1), block=(4, 1, 1), name="k")
    assert started.run() is None
    assert started.races()
