"""The measure of the search for races by kernels of other suites, with made-up kernels in both conventions."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEAD = "//{verdict}\n//--blockDim={block} --gridDim=2 --no-inline\n"
LAST = """
#include <cuda.h>

__global__ void last(int* out, int n) {
  __requires(n == blockDim.x);
  if (threadIdx.x < n) out[0] = threadIdx.x;
}
"""
EACH = """
#include "sizes.h"

__global__ void each(float* out, const float* x) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = SCALE * x[i];
}
"""
WITH_HOST = """
#include <stdio.h>
#define THREADS 4

struct Pair { int* first; int* second; };

__device__ int twice(int x) { return 2 * x; }

__global__ void ends(Pair pair) { pair.first[0] = twice(threadIdx.x); pair.second[threadIdx.x] = 1; }

int helper(int x) { if (x) { printf("x"); } return x; }

int main() {
  Pair pair;
  ends<<<1, THREADS * 2>>>(pair);
  return helper(0);
}
"""


@pytest.fixture
def suites(bench_module: Callable[[str], Any]) -> Any:
    return bench_module("foreign_suites")


@pytest.fixture
def races(bench_module: Callable[[str], Any]) -> Any:
    return bench_module("foreign_races")


@pytest.fixture
def launch(bench_module: Callable[[str], Any]) -> Any:
    return bench_module("foreign_launch")


def written(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("head", "verdict"),
    [
        ("//pass\n//--blockDim=2 --gridDim=1", "free"),
        ("//xfail:NOT_ALL_VERIFIED\n//--blockDim=2 --gridDim=1\n//possible write-write race on A", "race"),
        ("//xfail:NOT_ALL_VERIFIED\n//--blockDim=2 --gridDim=1\n\n//This kernel is racy.", "race"),
        ("//xfail:NOT_ALL_VERIFIED\n//--blockDim=2 --gridDim=1\n//possible null pointer access", "other"),
        ("//xfail:NOT_ALL_VERIFIED\n//--blockDim=2 --gridDim=1\n//", "wrong"),
        ("//xfail:BUGLE_ERROR\n//--blockDim=2 --gridDim=1", "none"),
    ],
)
def test_the_head_of_a_file_has_a_verdict(suites: Any, tmp_path: Path, head: str, verdict: str) -> None:
    written(tmp_path, "one/kernel.cu", f"{head}\n__global__ void k() {{}}\n")
    (case,) = suites.read_suite(tmp_path).cases
    assert (case.name, case.verdict, case.block, case.grid, case.steps) == ("one", verdict, (2,), (1,), False)


def test_the_options_of_a_head(suites: Any, tmp_path: Path) -> None:
    written(tmp_path, "k.cu", "//pass\n//--gridDim=[4,2,1] --blockDim=[16,8] --warp-sync=32 -DWIDTH=8\n")
    (case,) = suites.read_suite(tmp_path).cases
    assert (case.block, case.grid, case.steps, case.defined) == ((16, 8), (4, 2, 1), True, ("-DWIDTH=8",))


def test_the_first_line_of_the_list_that_matches_counts(suites: Any, tmp_path: Path) -> None:
    written(tmp_path, "suite/racy/a.cu", "")
    written(tmp_path, "suite/free.cu", "//xfail:NOT_ALL_VERIFIED\n")
    written(tmp_path, "suite/other.cu", "")
    written(
        tmp_path,
        "list",
        'racy/*.cu race blockDim=[8,2] kernel=k "-DN=+ 1" warp-sync  # all\nfree.cu free\n*/a.cu free\n',
    )
    suite = suites.read_suite(tmp_path / "suite", tmp_path / "list")
    free, racy = suite.cases
    assert (free.name, free.verdict) == ("free.cu", "free")  # the list counts before the head
    assert racy[2:] == ("race", (8, 2), None, "k", ("-DN=+ 1",), True)
    assert suite.without == ["other.cu"]


@pytest.mark.parametrize("line", ["a.cu", "a.cu racy", "a.cu race threads=2"])
def test_a_line_that_is_not_understood_is_named(suites: Any, tmp_path: Path, line: str) -> None:
    written(tmp_path, "list", f"# a comment\n{line}\n")
    with pytest.raises(ValueError, match="line 2 of list"):
        suites.read_suite(tmp_path, tmp_path / "list")


def test_signatures(suites: Any) -> None:
    text = suites.without_comments(
        "__global__ void __launch_bounds__(64, 2)\n"
        "one(const float *x, /* y */ float y[][8], pair<int, 2> z, unsigned int n) {}\n"
        "template <class T> __global__ void two(T* x) {}\ntemplate __global__ void two<int>(int* x);\n"
        "template <int N> __global__ void three() { }\nvoid go() { three<4><<<dim3(2, 3), 8>>>(); }\n"
        "template <int N> __global__ void four(void) {}\n__global__ void declared(int);"
    )
    found = {one.name: one.parameters for one in suites.signatures(text)}
    assert list(found) == ["one", "two<int>", "three<4>", "four<>"]
    assert found["one"] == (("const float *", "x"), ("float*", "y"), ("pair<int, 2>", "z"), ("unsigned int", "n"))
    assert suites.launch_text(text, "three<4>") == ("dim3(2, 3)", "8")
    assert suites.launch_text(text, "one") is None


def test_the_headers_of_a_suite_are_a_part_of_the_source(suites: Any, tmp_path: Path) -> None:
    written(tmp_path, "common/a.h", '#include "b.h"\nint a; // first\n')
    written(tmp_path, "common/b.h", "int b;\n#include <cuda.h>\n")
    written(tmp_path, "loop.h", '#include "loop.h"\n')
    text = suites.with_headers('#include "common/a.h"\n#include "absent.h"\nint c;\n', tmp_path)
    assert text.split() == ["int", "b;", "#include", "<cuda.h>", "int", "a;", "#include", '"absent.h"', "int", "c;"]
    assert suites.with_headers('#include "loop.h"', tmp_path).split() == ["#include", '"loop.h"']


def test_code_of_the_host_is_left_out(suites: Any) -> None:
    code = suites.device_code(suites.without_comments(WITH_HOST))
    assert code.count("\n") == WITH_HOST.count("\n")
    assert all(word in code for word in ("#define THREADS 4", "struct Pair", "int twice", "__global__ void ends"))
    assert "main" not in code
    assert "helper" not in code


def test_functions_without_a_body_get_one(launch: Any) -> None:
    known = "__device__ int known(int x);\n__device__ int known(int x) { return x; }"
    source = f"__device__ int any(int x);\n__device__ void go(); {known}"
    assert launch.bodies(source).split("\n")[1:] == [
        "__device__ int any(int x) { return {}; }",
        "__device__ void go() {  }",
    ]


def test_a_launch_is_made_smaller_but_keeps_two_blocks_of_each_axis(launch: Any) -> None:
    assert launch.sizes_of(None, (64,), (4, 2)) == ((64,), (4, 2))
    assert launch.sizes_of(None, (2048,), (64, 64)) == ((1024,), (4, 4))
    assert launch.sizes_of(None, (32, 32), (4096,)) == ((32, 32), (16,))


def test_the_numbers_of_rounds_are_sizes_and_numbers_of_the_source(launch: Any) -> None:
    numbers = launch.numbers_of_rounds("if (i == 15) x[i + n] = 1; if (i == 200) x[200] = 1.5f;", (32,), (4,))
    assert numbers[:3] == [128, 32, 1]
    assert {15, 200, 185} <= set(numbers)


def judged(races: Any, suites: Any, verdict: str, *rounds: dict[str, Any]) -> str:
    blank = {"numbers": "", "races": [], "benign": [], "error": ""}
    result = {"rounds": [blank | one for one in rounds], "launch": {"smaller": False}}
    return str(races.judge(suites.Case("k", None, verdict), result).word)


def test_the_rounds_are_compared_with_the_verdict(races: Any, suites: Any) -> None:
    race, same, bad, stuck = (
        {"races": ["r"]},
        {"benign": ["b"]},
        {"error": "Invalid read"},
        {"error": "The block cannot go on"},
    )
    expected = {
        "race": [
            ("found", [{}, race]),
            ("missed", [{}, bad]),
            ("found", [same]),
            ("not runnable", [bad]),
            ("missed", [{}, stuck]),
        ],
        "free": [
            ("accused", [bad, race]),
            ("quiet", [{}, bad]),
            ("same value", [same]),
            ("not runnable", [bad]),
            ("accused", [stuck]),
        ],
        "wrong": [("found", [race]), ("found", [stuck]), ("missed", [{}])],
        "other": [("reported", [race]), ("no verdict on races", [{}])],
        "none": [("no verdict on races", [bad])],
    }
    for verdict, several in expected.items():
        for word, rounds in several:
            assert judged(races, suites, verdict, *rounds) == word, (verdict, rounds)


@pytest.mark.wings
def test_a_whole_suite(races: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "suite"
    written(suite, "sizes.h", "#define SCALE 2\n")
    written(suite, "last/kernel.cu", HEAD.format(verdict="xfail:NOT_ALL_VERIFIED", block=8) + "//race" + LAST)
    written(suite, "each.cu", HEAD.format(verdict="pass", block=32) + EACH)
    written(suite, "texture.cu", HEAD.format(verdict="pass", block=32) + "texture<float> t;\n__global__ void k() {}\n")
    written(suite, "ends.cu", WITH_HOST)
    written(suite, "unknown.cu", EACH)
    written(tmp_path, "list", "ends.cu race\n")
    assert races.main([str(suite), "--verdicts", str(tmp_path / "list"), "--json", str(tmp_path / "out.json")]) == 0
    told = capsys.readouterr().out
    assert "| a race | 2 | 2 | 2 | 0 |" in told
    assert "| no race | 2 | 1 |  |  | 0 | 0 |" in told
    assert "* texture.cu: does not compile: " in told
    assert "files without a verdict: 1" in told
    results = {one["kernel"]: one for one in json.loads((tmp_path / "out.json").read_text())}
    assert "element 0 of `out` (int32" in results["last"]["why"]
    assert {name: one["result"] for name, one in results.items()} == {
        "last": "found",
        "each.cu": "quiet",
        "ends.cu": "found",
        "texture.cu": "not runnable",
    }


def test_a_kernel_that_does_not_end_is_ended(
    races: Any, suites: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!{sys.executable}\nimport signal\nsignal.pause()\n")
    program.chmod(0o755)
    monkeypatch.setattr(races.sys, "executable", str(program))
    result = races.run_case(suites.Case("k", tmp_path / "k.cu", "race"), 0.2)
    assert result == {"not runnable": "did not end within 0.2 seconds"}


def test_a_process_that_dies_is_a_reason(
    races: Any, suites: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho a line >&2\necho the last line >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(races.sys, "executable", str(program))
    result = races.run_case(suites.Case("k", tmp_path / "k.cu", "race"), 60)
    assert result == {"not runnable": "the process failed: the last line"}


def test_a_folder_without_verdicts_is_refused(races: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([str(tmp_path)], [str(tmp_path / "absent")]):
        with pytest.raises(SystemExit):
            races.main(arguments)
    told = capsys.readouterr().err
    assert "no kernel with a verdict is in" in told
    assert "FOLDER must be a folder" in told
