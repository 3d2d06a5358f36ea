"""The numbers of emulated kernels, beside those that torch drew on an H200."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from support.folders import DATA
from tcuda._core import PhiloxState, philox_passes
from tcuda.emulation.random import philox
from tcuda.random._philox import most_blocks

DRAWS = json.loads((DATA / "torch_random.json").read_text())["draws"]
H200 = most_blocks({"multiProcessorCount": 132, "maxThreadsPerMultiProcessor": 2048})


def drawn(name: str, size: int, seed: int) -> tuple[np.ndarray[Any, Any], int]:
    """Return the numbers of a kernel on a device like the H200, and the offset afterwards."""
    kind, *rest = name.split()
    numbers, lanes, dtype = {
        "rand float32": (philox.uniforms, 4, np.float32),
        "rand float64": (philox.double_uniforms, 2, np.float64),
        "randn float32": (philox.normals, 4, np.float32),
        "randn float64": (philox.double_normals, 2, np.float64),
        "randint 0 10": (philox.words, 4, np.int64),
        "randint -5 4294967296": (philox.long_words, 2, np.int64),
    }[name]

    def finished(words: list[Any]) -> Any:
        made = numbers(words)
        if kind == "randint":
            low, high = map(int, rest)
            return (made % made.dtype.type(high - low)).astype(np.int64) + low
        return np.where(made == 1, 0, made) if kind == "rand" else made

    out = np.empty(size, dtype)
    state = PhiloxState(seed, 8)
    for start, part, blocks, increment in philox_passes(size, out.itemsize, lanes, H200):
        philox.fill(out[start : start + part], blocks, *state.advance(increment), lanes, finished)
    return out, state.read()[1]


@pytest.mark.parametrize("fact", DRAWS, ids=lambda fact: f"{fact['draw']}-{fact['size']}-{fact['seed']}")
def test_emulated_kernels_draw_the_numbers_of_torch_on_an_h200(fact: dict[str, Any]) -> None:
    numbers, offset = drawn(fact["draw"], fact["size"], fact["seed"])
    assert offset == fact["offset"]
    if "sha256" in fact:
        assert hashlib.sha256(numbers.tobytes()).hexdigest() == fact["sha256"]
        return
    # A GPU rounds sine, cosine and logarithm in another way than the host, and less exactly for float32.
    tolerance = 4e-6 if numbers.dtype == np.float32 else 4e-15
    for key, part in (("first8", numbers[:8]), ("last8", numbers[-8:])):
        np.testing.assert_allclose(part, [float.fromhex(text) for text in fact[key]], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("factor", "addend"), [(10.4, -3.3), (1.0, 0.0), (1e-3, 1e3), (-7.7, 7.7)])
def test_a_product_and_a_sum_are_rounded_once(dtype: Any, factor: float, addend: float) -> None:
    numbers = np.random.default_rng(0).random(2000).astype(dtype)
    factor, addend = dtype(factor), dtype(addend)
    exact = [Fraction(float(number)) * Fraction(float(factor)) + Fraction(float(addend)) for number in numbers]
    rounded = [float(value) if dtype is np.float64 else np.float32(float(value)) for value in exact]
    np.testing.assert_array_equal(philox.fused(numbers, factor, addend), np.array(rounded, dtype))


def test_known_answers_of_philox() -> None:
    """The known answers come from Random123, the library of the authors of Philox (``kat_vectors``)."""

    def answer(counter: list[int], key: list[int]) -> list[int]:
        position, subsequence = (np.array([low | high << 32], np.uint64) for low, high in (counter[:2], counter[2:]))
        return [int(word[0]) for word in philox.philox(key[0] | key[1] << 32, position, subsequence)]

    assert answer([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert answer([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert answer([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == [
        *(0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ]
