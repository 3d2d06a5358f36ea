"""Random kernels in PTX: the accesses that are certain against what runs of the kernels do."""

from __future__ import annotations

import itertools
import random

import pytest

from support.core import for_tests
from support.launches import Launches, number
from support.ptx_programs import ARGUMENTS, BUFFERS, Program, Run, random_program
from support.races import READ, WRITE, access
from support.stand_in_driver import Arguments, Function
from tcuda import _core

FIRST, SECOND = 0x100, 0x102
_modules = itertools.count(0x7A57_0000)


def certain_uses(program: Program) -> list[int]:
    """Return for each pointer what a launch does with the memory in any case: 1 reads, 2 writes, 3 both."""
    launches = Launches(table=for_tests.kernel_table())
    detector = launches.watch.detector
    for stream in (FIRST, SECOND):
        detector.stream_created(0, stream, False)
    for address, size in BUFFERS:
        launches.own(address, size)
    module = next(_modules)
    _core.add_ptx(module, program.text())
    layout = [(8 * place, 8) for place in range(len(ARGUMENTS))]
    launches.driver.functions[module] = Function(module, b"k", layout)
    arguments = Arguments(*map(number, ARGUMENTS))
    found = []
    for address, size in BUFFERS:
        certain = 0
        for kind, told in ((READ, 2), (WRITE, 1)):
            launches.reader.launch(0, FIRST, module, "k", arguments.address)
            detector.work(0, SECOND, "other", (access(kind, address, size),))
            races = launches.watch.taken()
            exact = [race for race in races if {race.current.confidence, race.previous.confidence} == {"exact"}]
            certain |= told * (exact != [])
            detector.device_synchronized(0)
            detector.forget_races()
        found.append(certain)
    _core.forget_module(module)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_what_is_certain_happens_in_each_run(seed: int) -> None:
    numbers = random.Random(seed)
    compared = 0
    for _ in range(60):
        program = random_program(numbers)
        certain = certain_uses(program)
        for _ in range(20):
            run = Run(program, numbers)
            if not run.is_finished:
                continue
            for pointer, (told, seen) in enumerate(zip(certain, run.uses, strict=True)):
                compared += told != 0
                assert (seen != 0) >= (told != 0), f"{pointer} {told} {seen}\n{program.text().decode()}"
                assert seen & 2 >= told & 2, f"{pointer} {told} {seen}\n{program.text().decode()}"
    assert compared > 50
