"""Which races between usual kernels are exact on a GPU. ``tests/data/launches`` has the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.launched_kernels import KERNELS, SOURCES, Kernel, Launch, arguments_of
from tcuda import xp

if TYPE_CHECKING:
    from tcuda.sanitizer import Report

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("runtime")]

each_kernel = pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if "{" not in kernel.whole[2]])

EITHER_WAY = {"relu"}
"""The kernels that write their results in both ways of a branch. A compiler may make one write of the two."""

_raw_kernels: dict[str, Any] = {}


def raw_kernel(name: str) -> Any:
    """Return a kernel, which is compiled once."""
    if name not in _raw_kernels:
        made = xp.RawKernel(SOURCES[name], "k")
        try:
            made.compile()
        except xp.cuda.compiler.CompileException as error:
            if "#include" in SOURCES[name] and "open source file" in str(error):
                pytest.skip("the headers of CUDA are not installed")
            raise
        _raw_kernels[name] = made
    return _raw_kernels[name]


class Program:
    """A program with two streams, which launches kernels on arrays.

    Args:
        kernel: The kernel whose arrays the program has.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.arrays = {
            name: xp.full(count, name == "flag", dtype=np.dtype(kind)) for name, (kind, count) in kernel.arrays.items()
        }
        self.main, self.side = tcuda.current_stream(), tcuda.Stream()
        tcuda.synchronize()

    def launch(self, name: str, launch: Launch) -> None:
        """Launch a kernel on the current stream."""
        given = [argument.parts[0] for argument in arguments_of(launch)]
        arguments = [
            np.dtype(kind[0]).type(number) if kind.endswith(":") else self.arrays[kind][int(number) :]
            for kind, number in given
        ]
        raw_kernel(name)(launch.grid, launch.block, tuple(arguments))

    def use(self, name: str, array: str) -> None:
        """Launch ``copy`` or ``fill`` on an array, with a thread for each four bytes."""
        used = self.arrays[array].view(np.uint8)
        used = used[: used.size // 4 * 4].view(np.float32)
        size = np.int32(used.size)
        arguments = (
            (used, self.copies[: used.size], size) if name == "copy" else (used, np.float32(array == "flag"), size)
        )
        raw_kernel(name)((-(-used.size // 256),), (256,), arguments)

    def prepare(self) -> None:
        """Make the target of the copies."""
        self.copies = xp.zeros(max(array.nbytes for array in self.arrays.values()) // 4 + 1, dtype=np.float32)
        tcuda.synchronize()


@pytest.fixture
def program(name: str) -> Program:
    """A program with the arrays of a kernel."""
    made = Program(KERNELS[name])
    made.prepare()
    return made


def confidences(report: Report) -> list[str]:
    """Return the confidences of the races of a report, and forget them."""
    return ["exact"] * len(report) + ["possible"] * len(report.possible)


def expected(name: str, array: str, *kinds: str) -> tuple[list[str], ...]:
    """Return the lists of confidences that may be found."""
    kernel = KERNELS[name]
    if name in EITHER_WAY and array in kernel.maybe.split():
        return ["exact"], ["possible"]
    if any(array in getattr(kernel, kind).split() for kind in kinds):
        return (["exact"],)
    return (["possible"], []) if array in kernel.maybe.split() else ([],)


@each_kernel
def test_a_missing_wait_after_a_kernel_is_exact(name: str, program: Program) -> None:
    for array in KERNELS[name].arrays:
        with tcuda.sanitizer.check(mode="collect") as report:
            program.launch(name, KERNELS[name].whole)
            with tcuda.stream(program.side):
                program.use("copy", array)
        assert confidences(report) in expected(name, array, "writes"), f"{array}\n{report}"
        tcuda.synchronize()


@each_kernel
def test_a_missing_wait_before_a_kernel_is_exact(name: str, program: Program) -> None:
    for array in KERNELS[name].arrays:
        with tcuda.sanitizer.check(mode="collect") as report:
            program.use("fill", array)
            with tcuda.stream(program.side):
                program.launch(name, KERNELS[name].whole)
        assert confidences(report) in expected(name, array, "reads", "writes"), f"{array}\n{report}"
        tcuda.synchronize()


@each_kernel
def test_launches_on_different_elements_are_not_accused(name: str, program: Program) -> None:
    parts = KERNELS[name].parts
    if parts is None:
        pytest.skip("the launches of this kernel cannot be divided")
    with tcuda.sanitizer.check(mode="collect") as report:
        program.launch(name, parts[0])
        with tcuda.stream(program.side):
            program.launch(name, parts[1])
    assert list(report) == []
    tcuda.synchronize()


@each_kernel
def test_a_wait_leaves_no_race(name: str, program: Program) -> None:
    with tcuda.sanitizer.check(mode="collect") as report:
        program.launch(name, KERNELS[name].whole)
        program.side.wait_stream(program.main)
        with tcuda.stream(program.side):
            for array in KERNELS[name].arrays:
                program.use("copy", array)
    assert confidences(report) == []
    tcuda.synchronize()
