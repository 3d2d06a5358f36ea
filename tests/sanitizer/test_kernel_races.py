"""Races inside of kernels in checks, reports and errors. A made-up launch finds the races."""

from __future__ import annotations

import json
import pickle
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.made_kernel_races import MadeAccess, MadeRace, make_up
from tcuda.sanitizer import CUDASanitizerErrors, KernelRace, KernelRaceError, RaceWarning, check

if TYPE_CHECKING:
    from pathlib import Path

    Found = list[MadeRace]

pytestmark = [pytest.mark.emulated, pytest.mark.eager, pytest.mark.usefixtures("kernels_are_searched")]

CODE = """\
extern "C" __global__ void total(const float* x, float* out) {
    __shared__ float part[8];
    part[threadIdx.x] = x[threadIdx.x];
    out[0] += part[7 - threadIdx.x];
    atomicAdd_block(&out[1], 1);
    out[2] = max(out[2], part[0]);
    __syncthreads();
    out[3] = part[7];
}
"""


class Program:
    """A program with a kernel, whose launches find the races in ``found``."""

    def __init__(self, xp: Any, found: Found) -> None:
        self.kernel = xp.RawKernel(CODE, "total")
        self.kernel.compile()  # From then on, the lines of allocations are noted.
        self.x, self.out = xp.ones(8, "f"), xp.zeros((3, 4), "f")
        self.found = found

    def race(self, missing: str = "atomic", element: int = 0, lines: tuple[int, int] = (4, 4), **more: Any) -> MadeRace:
        """Return a race for the next launches to find."""
        kinds = more.pop("kinds", ("write", "read"))
        block = more.pop("block", (0, 0, 0))
        made = MadeRace(
            self.out.data.ptr + 4 * element,
            MadeAccess(kinds[0], lines[0]),
            MadeAccess(kinds[1], lines[1], thread=(3, 0, 0), block=block),
            missing,
            **more,
        )
        self.found.append(made)
        return made

    def launch(self) -> None:
        """Launch the kernel."""
        self.kernel((1,), (8,), (self.x, self.out))


@pytest.fixture
def program(xp: Any, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A program whose launches find made-up races."""
    found: Found = []
    make_up(monkeypatch, lambda: found)
    return Program(xp, found)


def only(report: tcuda.sanitizer.Report) -> KernelRace:
    """Return the only race of a report."""
    (race,) = report.races
    assert isinstance(race, KernelRace)
    return race


# Reports


def test_a_report_names_the_kernel_the_memory_and_both_accesses(program: Program) -> None:
    program.race("atomic", element=6)
    with check(mode="collect") as report:
        program.launch()
    race = only(report)
    launched = race.current.stack[0]
    allocated = race.allocation.stack[0] if race.allocation is not None else None
    assert (race.kernel, race.kind, race.benign, race.confidence) == ("total", "race in a kernel", False, "exact")
    assert (race.memory.space, race.memory.name, race.memory.index) == ("global", "out", (1, 2))
    assert (race.memory.dtype, race.memory.shape, race.memory.expression) == ("float32", (3, 4), "out[6]")
    assert (race.previous.thread, race.current.thread, race.current.block) == ((0, 0, 0), (3, 0, 0), (0, 0, 0))
    assert (race.previous.kind, race.current.kind) == ("write", "read")
    assert race.current.place == race.current.line == ("total", "kernel.cu", 4)
    assert race.current.source == "out[0] += part[7 - threadIdx.x];"
    assert launched.name == "launch"
    assert allocated is not None
    assert allocated.name == "__init__"
    assert str(race) == (
        "Race in the kernel `total`: two threads use the same memory, and nothing orders them.\n"
        f"  Memory: element [1, 2] of `out` (float32, shape (3, 4)), allocated at {__file__}:{allocated.line}\n"
        "    kernel.cu:4: thread (0, 0, 0) of block (0, 0, 0) writes\n"
        "        out[0] += part[7 - threadIdx.x];\n"
        "    kernel.cu:4: thread (3, 0, 0) of block (0, 0, 0) reads\n"
        "        out[0] += part[7 - threadIdx.x];\n"
        "  Missing: An atomic function, such as `atomicAdd(&out[6], ...)`, in line 4 lets no update get lost.\n"
        f"  Launched at {__file__}:{launched.line}"
    )


def test_races_in_kernels_come_with_the_races_of_streams(program: Program, xp: Any) -> None:
    program.race()
    with check(mode="collect") as report:
        program.launch()
        y = xp.ones(8)
        with tcuda.stream(tcuda.Stream()):
            y *= 2
    assert [race.kind for race in report] == ["race in a kernel", "write after write"]
    assert [isinstance(race, KernelRace) for race in report] == [True, False]
    assert report.summary.startswith("2 races, seen ")


def test_a_pair_of_lines_is_kept_once_with_its_count(program: Program) -> None:
    program.race(element=0, count=3)
    program.race(element=1, count=2)  # the same lines
    program.race(element=2, lines=(4, 6))
    program.race(element=3, lines=(6, 4), kinds=("read", "write"))
    program.race(element=4, lines=(6, 4), kinds=("write", "write"))
    with check(mode="collect") as report:
        for _ in range(2):
            program.launch()
    assert [report.count(race) for race in report] == [10, 6]
    assert "This race was found 10 times." in str(report)


def test_kernels_that_differ_have_races_of_their_own(program: Program, xp: Any) -> None:
    program.race()
    other = xp.RawKernel(CODE.replace("total", "second"), "second")
    with check(mode="collect") as report:
        program.launch()
        other((1,), (8,), (program.x, program.out))
    assert [race.kernel for race in report if isinstance(race, KernelRace)] == ["total", "second"]


def test_a_report_as_data_has_all_of_a_race(program: Program) -> None:
    program.race("barrier", lines=(3, 4))
    with check(mode="collect") as report:
        program.launch()
    (race,) = json.loads(json.dumps(report.as_dict()))["races"]
    assert (race["kind"], race["kernel"], race["benign"], race["count"]) == ("race in a kernel", "total", False, 1)
    assert race["memory"] == {
        "space": "global",
        "name": "out",
        "index": [0, 0],
        "dtype": "float32",
        "shape": [3, 4],
        "text": "element [0, 0] of `out` (float32, shape (3, 4))",
    }
    assert race["current"]["line"] == {"file": "kernel.cu", "line": 4}
    assert race["current"]["thread"] == [3, 0, 0]
    assert race["previous"]["source"] == "part[threadIdx.x] = x[threadIdx.x];"
    assert race["previous"]["excerpt"][0] == [1, CODE.splitlines()[0]]
    assert race["missing"] == "__syncthreads()"
    assert race["before"] == {"file": "kernel.cu", "line": 4}


# What is missing


@pytest.mark.parametrize(
    ("made", "call", "sentence"),
    [
        ({"missing": "barrier", "lines": (3, 4)}, "__syncthreads()", "A barrier (`__syncthreads()`) between line 3 and "
         "line 4 orders them."),
        ({"missing": "barrier"}, "__syncthreads()", "A barrier (`__syncthreads()`) between the access of one thread "
         "and that of the other in line 4 orders them."),
        ({"missing": "barrier", "block": (1, 0, 0)}, "two launches", "No barrier orders the blocks of a launch. Two "
         "launches, one after the other, order them."),
        ({"missing": "warp barrier", "lines": (3, 4)}, "__syncwarp()", "A barrier of the warp (`__syncwarp()`) between "
         "line 3 and line 4 orders them."),
        ({"missing": "atomic"}, "atomicAdd(&out[0], ...)", "An atomic function, such as `atomicAdd(&out[0], ...)`, in "
         "line 4 lets no update get lost."),
        ({"missing": "atomic", "lines": (6, 6)}, "atomicMax(&out[0], ...)", None),
        ({"missing": "atomic", "lines": (3, 3)}, "atomicExch(&out[0], ...)", None),
        ({"missing": "atomic", "lines": (5, 4), "kinds": ("atomic", "read")}, "atomicAdd(&out[0], ...)", "An atomic "
         "function, such as `atomicAdd(&out[0], ...)`, in line 4 lets no update get lost."),
        ({"missing": "atomic", "lines": (5, 8), "kinds": ("atomic", "volatile read")}, "atomicAdd(&out[0], 0)", "An "
         "atomic function, such as `atomicAdd(&out[0], 0)`, in line 8 reads what the other thread has written."),
        ({"missing": "barrier", "kinds": ("write", "write")}, "__syncthreads()", "A barrier (`__syncthreads()`) "
         "between the access of one thread and that of the other in line 4 orders them, or one thread alone writes."),
        ({"missing": "barrier", "lines": (4, 3)}, "__syncthreads()", "A barrier (`__syncthreads()`) between line 3 and "
         "line 4 orders them."),
        ({"missing": "barrier", "lines": (4, 8)}, "__syncthreads()", "A barrier (`__syncthreads()`) between line 8 and "
         "line 4 of the next round orders them."),
        ({"missing": "fence", "lines": (3, 4)}, "__threadfence()", "Two fences order them: `__threadfence()` between "
         "line 3 and the atomic function that hands the memory over, and `__threadfence()` between the atomic function "
         "that takes the memory and line 4."),
        ({"missing": "fence", "without_fence": "first", "lines": (3, 4)}, "__threadfence()", "The thread that hands "
         "the memory over lacks a fence: `__threadfence()` between line 3 and the atomic function that hands the "
         "memory over."),
        ({"missing": "fence", "without_fence": "second", "lines": (3, 4)}, "__threadfence()", "The thread that takes "
         "the memory lacks a fence: `__threadfence()` between the atomic function that takes the memory and line 4."),
        ({"missing": "scope", "lines": (5, 5), "kinds": ("atomic", "atomic"), "block": (1, 0, 0)}, "atomicAdd()",
         "`atomicAdd_block()` in line 5 needs device scope: `atomicAdd()` holds for all blocks of the device."),
        ({"missing": "scope", "lines": (3, 4)}, "device scope", "What orders line 3 and line 4 holds for one block, "
         "and needs device scope: a function whose name does not end with `_block`, or `cuda::thread_scope_device`."),
        ({"missing": "atomic", "same_value": True, "lines": (3, 6)}, "atomicExch(&out[0], ...)", "One thread alone, or "
         "an atomic function such as `atomicExch(&out[0], ...)`, may write in line 3 and line 6."),
    ],
)  # fmt: skip
def test_the_report_says_what_is_missing(
    made: dict[str, Any], call: str, sentence: str | None, program: Program
) -> None:
    program.race(**made)
    with check(mode="collect") as report:
        program.launch()
    missing = only(report).missing
    assert missing.call == call
    assert sentence is None or missing.sentence == sentence


def test_torchs_accesses_only_read_or_write(program: Program) -> None:
    program.race("atomic", kinds=("atomic", "volatile read"))
    program.race("atomic", kinds=("volatile write", "read"), lines=(4, 6))
    with check(mode="collect") as report:
        program.launch()
    kinds = [[access.type.name for access in race.torchs_accesses] for race in report]
    assert kinds == [["READ", "WRITE"], ["READ", "WRITE"]]
    assert "reads through volatile" in str(report)
    assert "writes through volatile" in str(report)
    assert "updates by an atomic function" in str(report)


def test_a_line_that_is_not_known_is_said_to_be_unknown(program: Program) -> None:
    program.race("barrier", lines=(0, 0))
    with check(mode="collect") as report:
        program.launch()
    race = only(report)
    assert race.current.line is None
    assert race.current.place == race.current.stack[0]
    assert "    unknown line: thread (3, 0, 0) of block (0, 0, 0) reads\n" in str(race)


# Writes of the same value


def test_writes_of_the_same_value_are_reported_as_benign(program: Program) -> None:
    program.race(kinds=("write", "write"), same_value=True)
    with check(mode="collect") as report:
        program.launch()
    race = only(report)
    assert (race.kind, race.benign) == ("benign race in a kernel", True)
    assert str(race).startswith(
        "Benign race in the kernel `total`: two threads use the same memory, and nothing orders them, and write the "
        "same value.\n"
    )


def test_benign_races_can_be_left_out(program: Program, xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "races:benign=off")
    program = Program(xp, program.found)
    program.race(kinds=("write", "write"), same_value=True)
    program.launch()  # raises no error
    program.race(lines=(6, 6))
    with check(mode="collect") as report:
        program.launch()
    assert not only(report).benign


def test_a_race_of_the_same_lines_that_is_not_benign_goes_first(program: Program) -> None:
    program.race(kinds=("write", "write"), same_value=True, count=2)
    program.race(count=3)
    with check(mode="collect") as report:
        program.launch()
    assert not only(report).benign
    assert report.count(report[0]) == 5


# Errors and warnings


def test_without_a_check_the_launch_raises_an_error_of_its_own_type(program: Program) -> None:
    race = program.race()
    program.found.append(MadeRace(race.address, MadeAccess("write", 3), race.second, "barrier"))
    with pytest.raises(KernelRaceError, match="Race in the kernel `total`") as caught:
        program.launch()
    error = caught.value
    assert isinstance(error, tcuda.AcceleratorError)
    assert error.error_code == 719
    assert error.call == "cuLaunchKernel(total)"
    assert [race.missing.call for race in error.races] == ["atomicAdd(&out[0], ...)", "__syncthreads()"]
    assert error.details == "\n".join(map(str, error.races))
    again = pickle.loads(pickle.dumps(error))
    assert (again.races, str(again)) == (error.races, str(error))
    program.found.clear()
    program.launch()  # the device stays usable


def test_the_error_has_one_entry_for_each_missing_barrier(program: Program) -> None:
    for lines in ((3, 6), (3, 5), (4, 6)):
        program.race("barrier", lines=lines)
    with pytest.raises(KernelRaceError) as caught:
        program.launch()
    assert len(caught.value.races) == 3
    assert caught.value.details.count("Race in the kernel `total`") == 1
    assert "one barrier between line 4 and line 5 mends these 3" in caught.value.details


def test_the_error_tells_of_races_that_were_not_kept(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.race()
    make_up(monkeypatch, lambda: program.found, left_out=1200)
    with pytest.raises(KernelRaceError, match="1,200 more races of this launch were not kept"):
        program.launch()


def test_a_check_that_raises_tells_each_race_once(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    program.race()
    program.race(lines=(6, 6))
    with check() as report:
        for _ in range(2):
            with pytest.raises(CUDASanitizerErrors) as caught:
                program.launch()
    assert [str(error) for error in caught.value.errors] == [str(race) for race in report]
    assert str(caught.value) == "\n\n".join(str(race) for race in report)
    assert capsys.readouterr().err == ""


def test_a_check_that_warns_points_to_the_launch(program: Program) -> None:
    program.race()
    with check(mode="warn") as report, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.launch()
        program.launch()
    (warning,) = caught
    assert isinstance(warning.message, RaceWarning)
    assert warning.message.race is report[0]
    assert (warning.filename, warning.lineno) == (__file__, report[0].current.stack[0].line)


@pytest.mark.parametrize(
    "suppression",
    [
        {"file": "kernel.cu", "line": 4},
        {"function": "total"},
        {"function": "launch"},
        {"file": __file__},
    ],
)
def test_a_suppression_names_the_kernel_or_the_program(suppression: dict[str, Any], program: Program) -> None:
    program.race()
    with check(mode="collect") as report, tcuda.sanitizer.suppress(**suppression):
        program.launch()
    assert (len(report), report.suppressed) == (0, 1)
    with tcuda.sanitizer.suppress(**suppression):
        program.launch()
    with tcuda.sanitizer.suppress(file="kernel.cu", line=5), pytest.raises(KernelRaceError):
        program.launch()


def test_a_suppressed_array_has_no_races(program: Program) -> None:
    program.race()
    with tcuda.sanitizer.suppress(array=program.x), pytest.raises(KernelRaceError):
        program.launch()
    with tcuda.sanitizer.suppress(array=program.out):
        program.launch()


# Graphs


def test_a_race_in_a_graph_has_the_lines_of_the_capture_and_of_the_launch(program: Program) -> None:
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        program.launch()
    program.race()
    with check(mode="collect") as report:
        graph.replay()
    race = only(report)
    assert race.current.stack[0].name == "launch"
    assert race.current.launch_stack is not None
    assert race.current.launch_stack[0].name == "test_a_race_in_a_graph_has_the_lines_of_the_capture_and_of_the_launch"
    assert f"Launched at {__file__}:{race.current.launch_stack[0].line}" in str(race)


def test_without_the_choice_nothing_is_asked_of_a_launch(xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> Found:
        raise AssertionError

    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "memory")
    make_up(monkeypatch, never)
    program = Program(xp, [])
    program.launch()
    assert program.out.get().sum() > 0


@pytest.mark.parametrize("order", [1, -1])
def test_of_races_of_the_same_lines_the_barrier_of_the_block_is_told(program: Program, order: int) -> None:
    needs = ["warp barrier", "barrier", "warp barrier"][::order]
    for element, missing in enumerate(needs[:2]):
        program.race(missing, element, (3, 5))
    with check(mode="collect") as report:
        program.launch()
    assert only(report).missing.call == "__syncthreads()"


def test_a_barrier_of_a_warp_between_the_lines_is_no_round_of_a_loop(xp: Any) -> None:
    code = """\
extern "C" __global__ void turn(float* x) {
    __shared__ float part[64];
    part[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    x[threadIdx.x] = part[63 - threadIdx.x];
}
"""
    with check(mode="collect") as report:
        xp.RawKernel(code, "turn")((1,), (64,), (xp.ones(64, "f"),))
    sentence = "A barrier (`__syncthreads()`) between line 3 and line 5 orders them."
    assert only(report).missing.sentence == sentence


def test_lines_of_two_files_with_one_number_are_told_apart(xp: Any, tmp_path: Path) -> None:
    (tmp_path / "keep.cuh").write_text(
        "#pragma once\n__device__ void keep(float* part, float value) { part[threadIdx.x] = value; }\n"
    )
    code = """\
#include "keep.cuh"
extern "C" __global__ void turn(float* x) { __shared__ float p[64]; keep(p, 2); x[threadIdx.x] = p[63 - threadIdx.x]; }
"""
    with check(mode="collect") as report:
        xp.RawKernel(code, "turn", ("-I" + str(tmp_path),))((1,), (64,), (xp.ones(64, "f"),))
    sentence = only(report).missing.sentence
    header = tmp_path / "keep.cuh"
    assert sentence == f"A barrier (`__syncthreads()`) between line 2 of kernel.cu and line 2 of {header} orders them."
