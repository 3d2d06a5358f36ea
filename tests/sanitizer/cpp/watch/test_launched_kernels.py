"""Which races between usual kernels are exact: the bytes that their launches use for certain, by their PTX."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from support.core import for_tests
from support.launched_kernels import KERNELS, TEXTS, Kernel, Launch, arguments_of, packed
from support.launches import Launches
from support.stand_in_driver import Arguments, Function
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST, SECOND = 0x100, 0x102
_modules = itertools.count(0x7E57_0000)


class Program:
    """A program with two streams, which launches kernels on arrays.

    Args:
        kernel: The kernel whose arrays the program has.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.launches = Launches(table=for_tests.kernel_table())
        self.addresses: dict[str, int] = {}
        address = 0x7F00_0000_0000
        for name, (kind, count) in kernel.arrays.items():
            self.addresses[name] = self.launches.own(address, count * {"B": 1, "e": 2, "q": 8, "d": 8}.get(kind, 4))
            address += 0x100_0000
        self.modules: list[int] = []
        self._functions: dict[str, int] = {}
        for stream in (FIRST, SECOND):
            self.launches.watch.detector.stream_created(0, stream, False)

    def launch(self, stream: int, name: str, launch: Launch) -> None:
        """Launch a kernel on arrays of the program."""
        values = [packed(argument, self.kernel, self.addresses) for argument in arguments_of(launch)]
        self._launch(stream, name, launch, values)

    def use(self, stream: int, name: str, array: str, *, first: int = 0) -> None:
        """Launch ``copy`` or ``fill`` on an array from the byte ``first`` on, with a thread for each four bytes."""
        kind, count = self.kernel.arrays[array]
        size = max(1, (count * {"B": 1, "e": 2, "q": 8, "d": 8}.get(kind, 4) - first) // 4)
        address = (self.addresses[array] + first).to_bytes(8, "little")
        number = size.to_bytes(4, "little")
        values = [address, (0).to_bytes(8, "little"), number] if name == "copy" else [address, bytes(4), number]
        self._launch(stream, name, Launch((-(-size // 256),), (256,), ""), values)

    def _launch(self, stream: int, name: str, launch: Launch, values: list[bytes]) -> None:
        function = self._function(name)
        arguments = Arguments(*values)
        grid, block = ((*sizes, 1, 1)[:3] for sizes in (launch.grid, launch.block))
        self.launches.reader.launch(0, stream, function, "k", arguments.address, grid=grid, block=block)

    def _function(self, name: str) -> int:
        if name not in self._functions:
            module = next(_modules)
            self.modules.append(module)
            _core.add_ptx(module, TEXTS[name])
            ((parameters, _, _),) = _core.uses_of_ptx(TEXTS[name].encode()).values()
            self._functions[name] = handle = 0x5000 + 16 * len(self._functions)
            self.launches.driver.functions[handle] = Function(module, b"k", parameters)
        return self._functions[name]

    def wait(self) -> None:
        """Let the second stream wait for the first."""
        detector = self.launches.watch.detector
        detector.event_recorded(7, 0, FIRST)
        detector.event_waited(7, 0, SECOND)

    def synchronize(self) -> None:
        """Let the host wait for both streams."""
        self.launches.watch.detector.device_synchronized(0)
        self.launches.watch.detector.forget_races()

    def forget(self) -> None:
        """Unload the modules."""
        for module in self.modules:
            _core.forget_module(module)

    def confidences(self) -> list[str]:
        """Return the confidences of the races since the last call."""
        races = self.launches.watch.taken()
        return [
            "exact" if {race.previous.confidence, race.current.confidence} == {"exact"} else "possible"
            for race in races
        ]


@pytest.fixture
def program(name: str) -> Iterator[Program]:
    """A program with the arrays of a kernel."""
    made = Program(KERNELS[name])
    yield made
    made.forget()


each_kernel = pytest.mark.parametrize("name", KERNELS)


def certain(name: str, kind: str) -> list[str]:
    """Return the arrays of a kernel that its launch uses in any case: the field ``kind`` of the kernel."""
    return str(getattr(KERNELS[name], kind)).split()


@each_kernel
def test_a_missing_wait_between_a_kernel_and_a_reader_of_its_result_is_exact(name: str, program: Program) -> None:
    for array in KERNELS[name].arrays:
        program.launch(FIRST, name, KERNELS[name].whole)
        program.use(SECOND, "copy", array)
        found = program.confidences()
        if array in certain(name, "writes"):
            assert found == ["exact"], array
        elif array in certain(name, "maybe"):
            assert found in ([], ["possible"]), array
        else:
            assert found == [], array
        program.synchronize()


@each_kernel
def test_a_missing_wait_between_a_writer_and_a_kernel_that_reads_is_exact(name: str, program: Program) -> None:
    for array in KERNELS[name].arrays:
        program.use(FIRST, "fill", array)
        program.launch(SECOND, name, KERNELS[name].whole)
        found = program.confidences()
        if array in certain(name, "reads") + certain(name, "writes"):
            assert found == ["exact"], array
        else:
            assert array in certain(name, "maybe"), array
            assert found == ["possible"], array
        program.synchronize()


@each_kernel
def test_two_launches_on_different_elements_are_never_an_exact_race(name: str, program: Program) -> None:
    parts = KERNELS[name].parts
    if parts is None:
        pytest.skip("the launches of this kernel cannot be divided")
    for first, second in (parts, parts[::-1]):
        program.launch(FIRST, name, first)
        program.launch(SECOND, name, second)
        assert "exact" not in program.confidences()
        program.synchronize()


@each_kernel
def test_a_wait_leaves_no_race(name: str, program: Program) -> None:
    kernel = KERNELS[name]
    program.launch(FIRST, name, kernel.whole)
    program.wait()
    for array in kernel.arrays:
        program.use(SECOND, "copy", array)
    assert program.confidences() == []


def test_at_least_30_of_40_kernels_have_an_exact_race_and_most_divided_ones_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    written = [name for name in KERNELS if certain(name, "writes")]
    divided = [name for name, kernel in KERNELS.items() if kernel.parts is not None]
    doubtful = [name for name in divided if _confidences_of_parts(name)]
    with capsys.disabled():
        print(f"\n{len(written)} of {len(KERNELS)} kernels write some elements in any case")
        print(f"of {len(divided)} divided kernels, {len(divided) - len(doubtful)} are clear; possible: {doubtful}")
    assert len(KERNELS) >= 40
    assert len(written) >= 0.75 * len(KERNELS)
    assert len(doubtful) <= 0.25 * len(divided)


def _confidences_of_parts(name: str) -> list[str]:
    program = Program(KERNELS[name])
    parts = KERNELS[name].parts
    assert parts is not None
    for stream, launch in zip((FIRST, SECOND), parts, strict=True):
        program.launch(stream, name, launch)
    program.forget()
    return program.confidences()
