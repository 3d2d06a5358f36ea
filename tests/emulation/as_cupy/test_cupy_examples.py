"""Three programs for CuPy, in ``docs/examples/cupy``, run unchanged, and give the results of NumPy."""

from __future__ import annotations

import math
import os
import runpy
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.folders import REPOSITORY

FOLDER = REPOSITORY / "docs" / "examples" / "cupy"


def printed(program: str, *arguments: str) -> list[list[str]]:
    """Run a program, and return the words of the lines that the program prints."""
    emulated = ["-m", "tcuda.emulation"] if os.environ.get("TCUDA_RUNTIME") == "emulated" else []
    done = subprocess.run(
        [sys.executable, *emulated, program, *arguments],
        cwd=FOLDER,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line.replace(",", "").split() for line in done.stdout.splitlines()]


@pytest.fixture
def functions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return the functions of a program, for arrays of NumPy: in the place of CuPy is a module without arrays."""
    kernels = dict.fromkeys(("ElementwiseKernel", "RawKernel", "ReductionKernel"), lambda *args, **kwargs: None)
    stand_in: Any = SimpleNamespace(get_array_module=lambda *args: np, **kernels)
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    return SimpleNamespace(**runpy.run_path(str(FOLDER / request.param)))


@pytest.mark.parametrize("options", [[], ["--kernels"]], ids=["functions", "kernels"])
@pytest.mark.parametrize("functions", ["kmeans.py"], indirect=True)
def test_k_means_finds_the_clusters_that_numpy_finds(functions: SimpleNamespace, options: list[str]) -> None:
    first, *lines = printed("kmeans.py", "--points", "600", "--clusters", "4", *options)
    centres, labels, iterations = functions.fit(*functions.clouds(600, 4))
    assert first == [str(iterations), "iterations"]
    assert [int(line[0]) for line in lines] == np.bincount(labels).tolist()
    np.testing.assert_allclose([[float(word) for word in line[-2:]] for line in lines], centres, atol=2e-6)


@pytest.mark.parametrize("functions", ["conjugate_gradient.py"], indirect=True)
def test_conjugate_gradient_finds_the_solution_of_numpy(functions: SimpleNamespace) -> None:
    first, values = printed("conjugate_gradient.py", "--size", "100")
    matrix, vector = functions.system(100)
    solution, iterations = functions.solve(matrix, vector)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, vector), rtol=1e-7)
    assert first == f"{iterations} iterations residual below 1e-8: True time above zero: True".split()
    np.testing.assert_allclose([float(word) for word in values], solution[:4], atol=2e-9)


def _normal_cdf(x: Any) -> Any:
    return np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in x])


def _uniform(seed: int, counter: Any) -> Any:
    x = counter.astype(np.uint32) * np.uint32(2654435761) ^ np.uint32(seed)
    x ^= x >> np.uint32(16)
    x *= np.uint32(2246822507)
    x ^= x >> np.uint32(13)
    x *= np.uint32(3266489909)
    x ^= x >> np.uint32(16)
    return (x + 0.5) / 4294967296.0


@pytest.mark.parametrize("functions", ["option_prices.py"], indirect=True)
def test_options_have_the_prices_that_numpy_computes(functions: SimpleNamespace) -> None:
    formula, simulation = printed("option_prices.py", "--options", "200", "--paths", "5000")
    price, strike, years = functions.market(200)
    rate, volatility = 0.02, 0.3
    first = (np.log(price / strike) + (rate + volatility**2 / 2) * years) / (volatility * np.sqrt(years))
    second = first - volatility * np.sqrt(years)
    discounted = strike * np.exp(-rate * years)
    call = price * _normal_cdf(first) - discounted * _normal_cdf(second)
    put = discounted * _normal_cdf(-second) - price * _normal_cdf(-first)
    assert abs(float(formula[2]) - call.mean()) < 1e-8
    assert abs(float(formula[5]) - put.mean()) < 1e-8

    paths = np.arange(5000)
    normal = np.sqrt(-2 * np.log(_uniform(1, 2 * paths))) * np.cos(2 * np.pi * _uniform(1, 2 * paths + 1))
    end = 20 * np.exp((rate - volatility**2 / 2) * 2 + volatility * math.sqrt(2) * normal)
    assert abs(float(simulation[2]) - np.maximum(end - 22, 0).mean() * math.exp(-rate * 2)) < 1e-8


def test_there_are_three_programs_and_none_names_tcuda() -> None:
    programs = sorted(FOLDER.glob("*.py"))
    assert [program.stem for program in programs] == ["conjugate_gradient", "kmeans", "option_prices"]
    for program in programs:
        assert "import cupy as cp\n" in program.read_text()
        assert "tcuda" not in program.read_text()
