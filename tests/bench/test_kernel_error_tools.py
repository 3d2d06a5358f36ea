"""The comparison of the checks of kernels with compute-sanitizer, with a stand-in for compute-sanitizer."""

from __future__ import annotations

import json
import math
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.kernel_corpus import ERRORS, right_source, topics, wrong_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOPIC = "scans"
NAMES = list(wrong_source(TOPIC).kernels)

RACECHECK = """
launches: single_buffer__read
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at single_buffer__read+0x90 in /tmp/tmp1/a4f2.cu:12
=========     and Read access at single_buffer__read+0x70 in /tmp/tmp1/a4f2.cu:10 [126 hazards]
=========
launches: single_buffer__written
========= Warning: Race reported between Write access at single_buffer__written+0x90 in /tmp/tmp1/a4f2.cu:31
=========     and Read access at single_buffer__written_scan(int *, int)+0x70 in /tmp/tmp1/a4f2.cu:29 [4 hazards]
=========     and Write access at single_buffer__written+0x90 in /tmp/tmp1/a4f2.cu:31 [2 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""

HAZARDS = """
========= Error: Potential WAR hazard detected at __shared__ 0x410 in block (11,0,0) :
=========     Read Thread (127,0,0) at single_buffer__read+0x860 in a4f2.cu:10
=========     Write Thread (0,0,0) at single_buffer__read+0x9d0 in a4f2.cu:12
=========     Current Value : 0, Incoming Value : 181
=========
"""

MEMCHECK = """
========= COMPUTE-SANITIZER
launches: chain_of_blocks__before
========= Invalid __shared__ read of size 4 bytes
=========     at chain_of_blocks__before+0x150 in /tmp/tmp1/a4f2.cu:40
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x400 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernel [0x7f1] in libcuda.so.1
=========         Host Frame: launch in wrapper.cu:77
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure"
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 2 errors
"""

INITCHECK = """
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at chain_of_blocks__before_part(int *)+0x150 in a4f2.cu:44
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========         Device Frame: chain_of_blocks__before+0x20 in a4f2.cu:52
=========
========= Uninitialized __global__ memory read of size 4 bytes
=========     at cupy_copy__int32_int32+0x150
=========     by thread (31,0,0) in block (1,0,0)
=========
========= ERROR SUMMARY: 2 errors
"""

SYNCCHECK = """
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at look_back(int *)+0x2c8 in a4f2.cu:9
=========     by thread (19,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""

STAND_IN = """#!{python}
import sys
if "--help" in sys.argv:
    print("--print-limit <number>  --port <number>")
    sys.exit()
names = sys.argv[sys.argv.index("--launch") + 3:]
for name in names:
    print("launches:", name)
    if name == "{bad}":
        {act}
    if name == "{found}":
        print("========= Error: Race reported between Write access at {found}+0x90 in a.cu:{first}")
        print("=========     and Read access at {found}+0x70 in a.cu:{second} [126 hazards]")
        print("=========")
print("all launches are done")
"""


def lines(*numbers: int | None) -> frozenset[int | None]:
    return frozenset(numbers)


@pytest.fixture
def tools(bench_module: Callable[[str], Any]) -> Any:
    return bench_module("kernel_error_tools")


def test_the_messages_of_racecheck(tools: Any) -> None:
    first, second = tools.messages(RACECHECK, NAMES)
    assert first.kernel == "single_buffer__read"
    assert first.places == {lines(10, 12)}
    assert first.text.startswith("Error: Race reported between Write access")
    assert second.kernel == "single_buffer__written"
    assert second.places == {lines(29, 31), lines(31)}


def test_the_hazards_of_racecheck(tools: Any) -> None:
    (only,) = tools.messages(HAZARDS, NAMES)
    assert (only.kernel, only.places) == ("single_buffer__read", {lines(10, 12)})


def test_the_messages_of_memcheck(tools: Any) -> None:
    (only,) = tools.messages(MEMCHECK, NAMES)
    assert only == ("chain_of_blocks__before", "Invalid __shared__ read of size 4 bytes", {lines(40)})


def test_the_messages_of_initcheck(tools: Any) -> None:
    (only,) = tools.messages(INITCHECK, NAMES)  # the other kernel is one of CuPy
    assert only.kernel == "chain_of_blocks__before"
    assert only.places == {lines(44), lines(52)}


def test_the_messages_of_synccheck(tools: Any) -> None:
    (only,) = tools.messages(SYNCCHECK, ["look_back"])
    assert only == ("look_back", "Barrier error detected. Divergent thread(s) in block.", {lines(9)})


def test_a_race_without_lines(tools: Any) -> None:
    text = "Race reported between Write access at look_back+0x140"
    output = f"========= Error: {text}\n=========     and Read access at look_back+0xe0 [4 hazards]\n"
    (only,) = tools.messages(output, ["look_back"])
    assert only == ("look_back", f"Error: {text}", {lines(None)})


def test_a_message_without_errors_is_none(tools: Any) -> None:
    clean = "========= COMPUTE-SANITIZER\nlaunches: look_back\n========= ERROR SUMMARY: 0 errors\n"
    assert tools.messages(clean, ["look_back"]) == []


def stand_in(folder: Path, act: str) -> str:
    """Return the path of a program that finds the race of the second kernel, and does ``act`` at the third."""
    path = folder / "compute-sanitizer"
    source = wrong_source(TOPIC)
    first, second = sorted(source.marked(source.kernels[NAMES[1]]))  # type: ignore[arg-type]
    words = {"python": sys.executable, "bad": NAMES[2], "found": NAMES[1], "act": act}
    path.write_text(STAND_IN.format(**words, first=first, second=second))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("act", ["sys.exit(1)", "sys.stdout.flush(); __import__('signal').pause()"])
def test_the_kernels_after_one_that_does_not_end_are_launched(tools: Any, tmp_path: Path, act: str) -> None:
    job = tools.Job("racecheck", "wrong", TOPIC)
    job.run([stand_in(tmp_path, act)], tmp_path, math.inf, patience=1)
    report = job.report(tmp_path)
    assert report.stopped == [NAMES[2]]
    assert report.launched == NAMES
    assert [one.kernel for one in report.said] == [NAMES[1]]
    assert len(job.outputs(tmp_path)) == 2


def test_what_was_printed_by_the_end_of_the_time_is_kept(tools: Any, tmp_path: Path) -> None:
    act = "sys.stdout.flush(); __import__('signal').pause()"
    job = tools.Job("racecheck", "wrong", TOPIC)
    tools.run([job, job], stand_in(tmp_path, act), tmp_path, 1, 1)
    assert len(job.outputs(tmp_path)) == 1  # the second job had no time
    report = job.report(tmp_path)
    assert report.launched == NAMES[:3]
    assert [one.kernel for one in report.said] == [NAMES[1]]


def test_a_process_that_launches_nothing_is_not_repeated(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "compute-sanitizer"
    path.write_text("#!/bin/sh\necho no GPU\n")
    path.chmod(0o755)
    job = tools.Job("racecheck", "wrong", TOPIC)
    job.run([str(path)], tmp_path, time.monotonic() + 60)
    (output,) = job.outputs(tmp_path)
    assert output.read_text() == "no GPU\n"
    assert job.report(tmp_path) == ([], [], [])


def test_options_that_the_version_lacks_are_left_out(tools: Any) -> None:
    known = "--print-limit <number> --port <number> --initcheck-address-space <all>"
    first, second = (tools.options_of("initcheck", place, known) for place in (0, 1))
    assert first == [
        *("--tool", "initcheck", "--print-limit", "0", "--port", "49152"),
        *("--initcheck-address-space", "all"),
    ]
    assert second[5] == "49168"
    assert "--initcheck-address-space" not in tools.options_of("memcheck", 0, known)


def test_the_verdicts_compare_with_the_marks(tools: Any) -> None:
    source = wrong_source(TOPIC)
    marked = source.marked(source.kernels[NAMES[0]])  # type: ignore[arg-type]
    at_marks = tools.Said(NAMES[0], "", frozenset([marked, lines(1)]))
    elsewhere = tools.Said(NAMES[0], "", frozenset([lines(1)]))
    without_lines = tools.Said(NAMES[1], "", frozenset([lines(None)]))
    other = tools.Said(NAMES[2], "no race", frozenset([lines(2)]))
    wrong = tools.Report([elsewhere, at_marks, without_lines, other], [NAMES[3]], NAMES[:4])
    right = tools.Report([tools.Said("look_back", "", frozenset())], [], ["look_back"])
    verdicts = tools.verdicts([right], [(source, wrong)])
    assert verdicts[:4] == ({NAMES[0], NAMES[1]}, {NAMES[2]}, {"look_back"}, {NAMES[3]})
    words = [verdicts.of(name) for name in (NAMES[0], NAMES[2], NAMES[3], "look_back", NAMES[4])]
    assert words == ["found", "elsewhere", "silent", "accused", "not launched"]


def test_the_table_counts_the_kernels_of_each_mistake(tools: Any) -> None:
    barriers = {name for name, one in wrong_source(TOPIC).kernels.items() if one.missing == "barrier"}  # type: ignore[union-attr]
    first = min(barriers)
    rights = set(right_source(TOPIC).kernels)
    launched = {*NAMES, *rights} - {"look_back"}
    verdicts = tools.Verdicts(barriers - {first}, {first}, {"single_buffer"}, set(), launched)
    table = tools.rows({"some tool": verdicts}, [TOPIC, "alignment"])
    assert table[0] == ("the mistake", "kernels", "some tool")
    assert table[1] == ("a race: a barrier is missing", str(len(barriers)), f"{len(barriers) - 1} and 1 elsewhere")
    assert table[-3] == ("a misaligned address", "3", "0 of 0")
    assert table[-2][:2] == ("all wrong kernels", str(len(NAMES) + 3))
    count = len(topics()[TOPIC]) + 3
    assert table[-1] == ("none: right kernels that are accused", str(count), f"1 of {count - 4}")


def test_each_kind_of_the_second_corpus_has_a_title(tools: Any) -> None:
    assert set(topics(ERRORS)) <= set(tools._TITLES)


def test_tools_come_first_where_they_should_find_something(tools: Any) -> None:
    jobs = tools._jobs(topics(), tools.TOOLS)
    first = [job.tool for job in jobs if job.topic in (TOPIC, "alignment", "barriers", "unwritten_local")]
    assert sorted(first[:8]) == sorted(["racecheck", "memcheck", "synccheck", "initcheck"] * 2)
    assert len(jobs) == len(topics()) * 8


def test_the_whole_comparison(tools: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    everything = set(NAMES) | set(right_source(TOPIC).kernels)
    monkeypatch.setattr(tools, "by_tcuda", lambda chosen: tools.Verdicts(set(NAMES), set(), set(), set(), everything))
    stand_in(tmp_path, "sys.exit(1)")
    folder = tmp_path / "results"
    chosen = ["--tools", "racecheck", "--topics", TOPIC]
    assert tools.main([str(folder), *chosen, "--workers", "2"]) == 0
    printed = capsys.readouterr().out
    assert f"| all wrong kernels | {len(NAMES)} | {len(NAMES)} | 1 |" in printed
    assert (folder / "table.md").read_text() == printed
    results = json.loads((folder / "results.json").read_text())
    assert results["did not end"] == {"tcuda": [], "racecheck": [NAMES[2]]}
    assert results["kernels"][NAMES[1]] == {
        "kernel": tools.kind_of(wrong_source(TOPIC).kernels[NAMES[1]]),
        "tcuda": "found",
        "racecheck": "found",
    }
    (tmp_path / "compute-sanitizer").unlink()
    assert tools.main([str(folder), *chosen, "--read"]) == 0
    assert capsys.readouterr().out == printed
    assert tools.main([str(folder), *chosen, "--read", "--without-tcuda"]) == 0
    assert f"| all wrong kernels | {len(NAMES)} | 1 |" in capsys.readouterr().out


def test_the_program_must_exist(tools: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert tools.main([str(tmp_path)]) == 1
    assert "compute-sanitizer is neither on the PATH nor in" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        tools.main([])
