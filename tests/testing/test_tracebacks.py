"""What pytest prints of a failure in tcuda, in pytest processes of their own, on emulated devices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.wings

RACE = """
import cupy as xp
import tcuda
import tcuda.sanitizer

def work():
    main, side = tcuda.current_stream(), tcuda.Stream()
    x = xp.ones(1000)
    with tcuda.stream(side):
        return x * 2

def test_work():
    with tcuda.sanitizer.check():
        work()
"""

ERRORS = """
import unittest
import cupy as xp
import tcuda

def test_in_numpy():
    xp.ones(3) + xp.ones(4)

def test_with_a_context():
    xp.linalg.inv(xp.ones((2, 3)))

def test_in_a_kernel():
    kernel = xp.RawKernel('extern "C" __global__ void f(int* x) { x[7] = 1; }', "f")
    kernel((1,), (1,), (xp.zeros(1, "i"),))
    tcuda.synchronize()

class TestCase(unittest.TestCase):
    def test_an_index(self):
        xp.ones(3)[5]
"""

CYTHON = """
import cupy as xp
from cupyx.scipy.interpolate import PPoly

def test_a_derivative():
    PPoly(xp.ones((3, 2)), xp.arange(3.0))(xp.ones(2), nu=-5)
"""

FAULTY = """
import cupy as xp
import tcuda

def test_in_a_kernel():
    kernel = xp.RawKernel('extern "C" __global__ void f(int* x) { x[7] = 1; }', "f")
    x = xp.zeros(1, "i")
    kernel((1,), (1,), (x,))
    tcuda.synchronize()

def test_in_numpy():
    xp.ones(3) + xp.ones(4)
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Run pytest on a file of tests that fail."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name in ("TCUDA_EMULATED_CHECKS", "TCUDA_EMULATED_SCHEDULE", "TCUDA_RUNTIME", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(code: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(code)
        plugins = ("-p", "tcuda.testing.plugin", "--tcuda-cupy", "emulated")
        return pytester.runpytest_subprocess("-W", "error", *plugins, *options)

    return run


def test_one_race_fits_one_screen(run: Callable[..., pytest.RunResult]) -> None:
    result = run(RACE)
    result.assert_outcomes(failed=1)
    assert len(result.outlines) <= 40
    assert [line for line in result.outlines if re.search(r"site-packages|[/\\]tcuda[/\\]|CSAN", line)] == []
    told = [line.removeprefix("E").strip() for line in result.outlines if line.startswith("E ")]
    name = "test_one_race_fits_one_screen.py"
    assert told == [
        "tcuda.sanitizer.CUDASanitizerErrors: read after write",
        f"{name}:7  fill writes its argument a on main of device 0",
        f"{name}:9  multiply reads its argument x1 on side of device 0",
        "both touch elements 0 to 999",
        f"missing: side.wait_stream(main) before {name}:9",
    ]


def test_an_error_ends_at_the_line_of_the_program(run: Callable[..., pytest.RunResult]) -> None:
    result = run(ERRORS)
    result.assert_outcomes(failed=4)
    places = [line for line in result.outlines if re.match(r"\S+\.py:\d+: \w+", line)]
    name = "test_an_error_ends_at_the_line_of_the_program.py"
    assert [place.partition(": ")[0] for place in places] == [f"{name}:{line}" for line in (6, 9, 13, 18)]
    assert "During handling of the above exception" not in result.stdout.str()


def test_an_error_in_the_cython_of_scipy_ends_at_the_line_of_the_program(run: Callable[..., pytest.RunResult]) -> None:
    pytest.importorskip("scipy", reason="the functions of cupyx.scipy compute by SciPy")
    result = run(CYTHON)
    result.assert_outcomes(failed=1)
    assert [line for line in result.outlines if re.search(r"\.pyx|[/\\]tcuda[/\\]", line)] == []


@pytest.mark.parametrize("option", ["--full-trace", "--tb=native"])
def test_the_functions_of_tcuda_are_shown_on_demand(option: str, run: Callable[..., pytest.RunResult]) -> None:
    assert re.search(r"[/\\]tcuda[/\\]emulation[/\\]", run(RACE, option).stdout.str())


def test_a_race_is_an_annotation_on_github(
    run: Callable[..., pytest.RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    told = [line for line in run(RACE).outlines if line.startswith("::")]
    (line,) = told
    name = "test_a_race_is_an_annotation_on_github.py"
    assert line.startswith(f"::error file={name},line=9,title=read after write::read after write%0A{name}:7  fill ")
    assert line.endswith(f"missing: side.wait_stream(main) before {name}:9")


@pytest.mark.parametrize(("schedule", "place"), [("eager", 7), ("late", 8)])
def test_an_error_of_a_kernel_is_an_annotation_on_github(
    schedule: str, place: int, run: Callable[..., pytest.RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("TCUDA_EMULATED_SCHEDULE", schedule)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    (line,) = [line for line in run(FAULTY).outlines if line.startswith("::")]  # the other error is of no kernel
    name = "test_an_error_of_a_kernel_is_an_annotation_on_github.py"
    assert line.startswith(f"::error file={name},line={place},title=error of a kernel::")
    assert "Invalid __global__ write of size 4 bytes" in line
