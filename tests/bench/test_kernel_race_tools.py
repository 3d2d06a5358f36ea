"""The comparison of the search for races in kernels with compute-sanitizer, with a stand-in for compute-sanitizer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.kernel_corpus import WORDS, topics, wrong_source

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

STAND_IN = """#!{python}
import sys
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


@pytest.fixture
def tools(bench_module: Callable[[str], Any]) -> Any:
    return bench_module("kernel_race_tools")


def test_the_messages_of_racecheck(tools: Any) -> None:
    first, second = tools.messages(RACECHECK, NAMES)
    assert first.kernel == "single_buffer__read"
    assert first.races == {frozenset([10, 12])}
    assert first.text.startswith("Error: Race reported between Write access")
    assert second.kernel == "single_buffer__written"
    assert second.races == {frozenset([29, 31]), frozenset([31])}


def test_the_messages_of_memcheck(tools: Any) -> None:
    (only,) = tools.messages(MEMCHECK, NAMES)
    assert only == ("chain_of_blocks__before", "Invalid __shared__ read of size 4 bytes", frozenset())


def test_a_race_without_lines(tools: Any) -> None:
    text = "Race reported between Write access at look_back+0x140"
    output = f"========= Error: {text}\n=========     and Read access at look_back+0xe0 [4 hazards]\n"
    (only,) = tools.messages(output, ["look_back"])
    assert only == ("look_back", f"Error: {text}", {frozenset([None])})


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
    report = tools.watched("racecheck", "wrong", TOPIC, stand_in(tmp_path, act), seconds=2)
    assert report.stopped == [NAMES[2]]
    assert [one.kernel for one in report.said] == [NAMES[1]]


def test_a_process_that_launches_nothing_is_an_error(tools: Any, tmp_path: Path) -> None:
    path = tmp_path / "compute-sanitizer"
    path.write_text("#!/bin/sh\necho no GPU\n")
    path.chmod(0o755)
    with pytest.raises(RuntimeError, match=r"racecheck on scans ended before the first launch:\nno GPU"):
        tools.watched("racecheck", "wrong", TOPIC, str(path))


def test_the_verdicts_compare_with_the_marks(tools: Any) -> None:
    source = wrong_source(TOPIC)
    marked = source.marked(source.kernels[NAMES[0]])  # type: ignore[arg-type]
    at_marks = tools.Said(NAMES[0], "", frozenset([marked, frozenset([1])]))
    elsewhere = tools.Said(NAMES[0], "", frozenset([frozenset([1])]))
    without_lines = tools.Said(NAMES[1], "", frozenset([frozenset([None])]))
    other = tools.Said(NAMES[2], "no race", frozenset())
    wrong = tools.Report([elsewhere, at_marks, without_lines, other], [NAMES[3]])
    right = tools.Report([tools.Said("look_back", "", frozenset())], [])
    verdicts = tools.verdicts([right], [(source, wrong)])
    assert verdicts == ({NAMES[0], NAMES[1]}, {NAMES[2]}, {"look_back"}, {NAMES[3]})


def test_the_table_counts_the_kernels_of_each_word(tools: Any) -> None:
    barriers = {name for name, one in wrong_source(TOPIC).kernels.items() if one.missing == "barrier"}  # type: ignore[union-attr]
    first = min(barriers)
    table = tools.rows({"some tool": tools.Verdicts(barriers - {first}, {first}, {"look_back"}, set())}, [TOPIC])
    assert table[0] == ("the kernel misses", "kernels", "some tool")
    assert [row[0] for row in table[1:4]] == ["a barrier", "a warp barrier", "an atomic function"]
    assert len(table) == len(WORDS) + 4
    assert table[1] == ("a barrier", str(len(barriers)), f"{len(barriers) - 1} and 1 at other lines")
    assert table[-2][:2] == ("in all", str(len(NAMES)))
    assert table[-1] == ("nothing: accused", str(len(topics()[TOPIC])), "1")


def test_the_whole_comparison(tools: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tools, "by_tcuda", lambda chosen: tools.Verdicts(set(NAMES), set(), set(), set()))
    stand_in(tmp_path, "sys.exit(1)")
    assert tools.main(["--tools", "racecheck", "--topics", TOPIC, "--workers", "2", "--names"]) == 0
    printed = capsys.readouterr().out
    assert f"| in all | {len(NAMES)} | {len(NAMES)} | 1 |" in printed
    assert f"racecheck: did not end: {NAMES[2]}" in printed
    assert "tcuda: not found: \n" in printed


def test_the_program_must_exist(tools: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert tools.main([]) == 1
    assert "compute-sanitizer is neither on the PATH nor in" in capsys.readouterr().err
