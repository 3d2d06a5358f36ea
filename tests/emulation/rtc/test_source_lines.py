"""The lines of places in a library that is built for the search for races."""

from __future__ import annotations

import pytest

from tcuda.emulation.rtc import checks, compiler, source_lines
from tcuda.emulation.rtc.build import build

SOURCE = 'extern "C" __global__ void kernel(int* x) { *x = 1; }'

try:
    compiler.find()
except RuntimeError as error:
    pytestmark = pytest.mark.skip(reason=str(error))


def test_places_without_a_line_are_none() -> None:
    library, _ = build(SOURCE, races=True)
    assert source_lines.source_lines(library, []) == []
    assert source_lines.source_lines(library, [0, 1 << 40]) == [None, None]


def test_a_machine_without_addr2line_has_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    library, _ = build(SOURCE, races=True)
    monkeypatch.setattr(source_lines, "_PROGRAM", "no-such-program")
    assert source_lines.source_lines(library, [5000]) == [None]


def test_the_innermost_line_outside_of_the_device_language_counts() -> None:
    output = (
        "0x0000000000001234\n/x/tcuda/emulation/rtc/include/tcuda/memory.h:9\n/tmp/tcuda-compile-a1/kernel.cu:7 "
        "(discriminator 2)\nkernel.cu:9\n0x0000000000001238\n??:0\n0x000000000000123c\n/home/mine.cuh:3\n"
    )
    assert list(source_lines._lines(output)) == [("kernel.cu", 7), None, ("/home/mine.cuh", 3)]


@pytest.mark.parametrize("clang", [False, True])
def test_the_search_for_races_has_its_own_flags(clang: bool) -> None:
    usual = checks.flags(SOURCE, memory=True, clang=clang)
    found = checks.flags(SOURCE, memory=True, clang=clang, races=True)
    assert {"-DTCUDA_RACES=1", "-g1", "-fsanitize=thread"} <= set(found)
    assert "-DTCUDA_RACES=1" not in usual
    assert checks.flags(SOURCE, memory=False, clang=clang, races=True) == found
