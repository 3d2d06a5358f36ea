"""Reads of unwritten memory in kernels, in checks, reports and errors, beside the races."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda.sanitizer import (
    CUDASanitizerErrors,
    Finding,
    Race,
    RaceWarning,
    UnwrittenMemoryError,
    UnwrittenRead,
    UnwrittenReadError,
    check,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = [pytest.mark.emulated, pytest.mark.eager]

CODE = """\
extern "C" __global__ void scale(const float* x, float* y, int n) {
    int i = threadIdx.x;
    float factor = x[n];
    y[i] += factor * x[i];
}
"""


class Program:
    """A kernel that reads what nothing has written in the lines 3 and 4."""

    def __init__(self, xp: Any) -> None:
        self.kernel = xp.RawKernel(CODE, "scale")
        self.x, self.y = xp.ones(8, "f"), xp.empty((2, 4), "f")
        self.y[0] = 1

    def launch(self, last: int = 0) -> None:
        """Launch the kernel; ``last`` is the element with the factor."""
        self.kernel((1,), (8,), (self.x, self.y, tcuda.xp.int32(last)))


@pytest.fixture
def program(runtime: EmulatedRuntime, xp: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "memory,init")
    runtime.contents.watch(True)
    yield Program(xp)
    runtime.contents.watch(False)


def test_a_report_names_the_kernel_the_line_the_thread_and_the_memory(program: Program) -> None:
    with check(mode="collect") as report:
        program.launch()
    (read,) = report
    assert isinstance(read, UnwrittenRead)
    assert (read.kernel, read.kind) == ("scale", "read of unwritten memory in a kernel")
    assert (read.current.line.line, read.current.thread, read.current.block) == (4, (4, 0, 0), (0, 0, 0))
    assert (read.memory.name, read.memory.index, read.memory.dtype) == ("y", (1, 0), "float32")
    assert read.allocation is not None
    assert [frame.filename for frame in read.allocation.stack] == [__file__]
    assert report.count(read) == 4
    assert report.summary.startswith("No race, and 1 read of unwritten memory, seen 4 times, in ")
    assert (report.races, report.unwritten_reads, bool(report)) == ((), (read,), True)
    assert isinstance(read, Finding)
    assert not isinstance(read, Race)
    assert "This read was found 4 times." in str(report)
    assert str(read).splitlines() == [
        "Read of unwritten memory in the kernel `scale`: nothing has written what the kernel reads.",
        f"  Memory: element [1, 0] of `y` (float32, shape (2, 4)), allocated at {__file__}:"
        f"{read.allocation.stack[0].line}",
        "    kernel.cu:4: thread (4, 0, 0) of block (0, 0, 0) reads",
        "        y[i] += factor * x[i];",
        f"  Launched at {__file__}:{read.current.stack[0].line}",
        "  Write the memory first, or let the kernel leave the memory out.",
    ]


def test_the_kernel_goes_on_and_counts_as_the_writer(program: Program) -> None:
    with check(mode="collect") as report:
        program.launch()
        program.launch()
    assert report.count(report[0]) == 4
    assert program.y.get().shape == (2, 4)


def test_each_line_is_a_finding_of_its_own(program: Program, xp: Any) -> None:
    program.x = xp.empty(8, "f")
    with check(mode="collect") as report:
        program.launch()
    assert sorted((read.current.line.line, read.memory.name) for read in report) == [(3, "x"), (4, "x"), (4, "y")]
    assert report.count(report[0]) == 8


def test_a_report_as_data_has_no_earlier_access(program: Program) -> None:
    with check(mode="collect") as report:
        program.launch()
    data = json.loads(json.dumps(report.as_dict()))
    (found,) = data["unwritten_reads"]
    assert data["races"] == []
    assert not {"previous", "use_after_free", "missing"} & found.keys()
    assert found["kernel"] == "scale"
    assert found["current"]["line"] == {"file": "kernel.cu", "line": 4}
    assert found["memory"]["index"] == [1, 0]
    assert found["allocation"]["stack"][0]["filename"] == __file__


def test_the_page_shows_one_access(program: Program) -> None:
    from tcuda.sanitizer._page import render

    with check(mode="collect") as report:
        program.launch()
    for page in (render(report.as_dict(), "test"), report[0]._repr_html_().replace("&quot;", '"')):
        assert '"found":1,"unwritten":1,"possible":0' in page
        assert '"isSingle":true' in page


def test_without_a_check_the_launch_raises_an_error(program: Program) -> None:
    with pytest.raises(UnwrittenMemoryError) as caught:
        program.launch()
    (read,) = caught.value.reads
    assert (caught.value.error_code, read.kernel, read.memory.expression) == (719, "scale", "y[4]")
    assert str(read) in str(caught.value)


def test_a_check_raises(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    with check(), pytest.raises(CUDASanitizerErrors) as caught:
        program.launch()
    (error,) = caught.value.errors
    assert isinstance(error, UnwrittenReadError)
    assert str(caught.value) == str(error) == str(error.read)
    assert str(error).startswith("Read of unwritten memory in the kernel `scale`")
    assert capsys.readouterr().err == ""


def test_a_check_warns_at_the_launch(program: Program) -> None:
    with check(mode="warn"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        program.launch()
    (warning,) = told
    assert (warning.category, warning.filename) == (RaceWarning, __file__)


@pytest.mark.parametrize("suppression", [{"function": "scale"}, {"file": "kernel.cu", "line": 4}])
def test_a_suppression_names_the_kernel_or_the_line(suppression: dict[str, Any], program: Program) -> None:
    with tcuda.sanitizer.suppress(**suppression), check(mode="collect") as report:
        program.launch()
    assert (len(report), report.suppressed) == (0, 4)


def test_what_was_read_is_told_before_the_failure_that_it_makes(program: Program, xp: Any) -> None:
    code = 'extern "C" __global__ void pick(const long long* at, float* x) { x[at[0] | 1ll << 40] = 1; }'
    with pytest.raises(UnwrittenMemoryError) as caught:
        xp.RawKernel(code, "pick")((1,), (1,), (xp.empty(1, "i8"), xp.empty(8, "f")))
    assert caught.value.reads[0].memory.name == "at"
    assert isinstance(caught.value.__cause__, tcuda.AcceleratorError)
    assert caught.value.__cause__.error_code == 700


def test_one_unwritten_byte_of_a_number_is_enough(program: Program, xp: Any) -> None:
    code = 'extern "C" __global__ void copy(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }'
    bytes = xp.empty(16, "i1")
    bytes[:13] = 1
    with check(mode="collect") as report:
        xp.RawKernel(code, "copy")((1,), (4,), (bytes.view("i4"), xp.empty(4, "i4")))
    assert [read.memory.index for read in report] == [(3,)]
    bytes[13:] = 1
    with check(mode="collect") as report:
        xp.RawKernel(code, "copy")((1,), (4,), (bytes.view("i4"), xp.empty(4, "i4")))
    assert not report


def test_padding_of_structures_is_no_finding(program: Program, xp: Any) -> None:
    code = """
        struct Pair { int key; char kind; };
        extern "C" __global__ void fill(Pair* x) { x[threadIdx.x].key = 1; x[threadIdx.x].kind = 2; }
        extern "C" __global__ void copy(const Pair* x, Pair* y) { y[threadIdx.x] = x[threadIdx.x]; }
    """
    x, y = xp.empty(16, "i4"), xp.empty(16, "i4")
    with check(mode="collect") as report:
        xp.RawKernel(code, "fill")((1,), (7,), (x,))
        xp.RawKernel(code, "copy")((1,), (7,), (x, y))
    assert not report
    with check(mode="collect") as report:
        xp.RawKernel(code, "copy")((1,), (8,), (x, y))
    assert [(read.current.thread, read.current.line.line) for read in report] == [((7, 0, 0), 4)]


def test_a_launch_looks_at_the_blocks_that_it_uses_only(
    program: Program, xp: Any, runtime: EmulatedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwritten = runtime.contents.unwritten
    assert unwritten is not None
    program.y[:] = 1
    program.launch()  # compiles the kernel
    kept = [xp.empty(8) for _ in range(50)]
    asked: list[tuple[int, int]] = []
    open_blocks = unwritten.open_blocks
    monkeypatch.setattr(unwritten, "open_blocks", lambda *range: asked.append(range) or open_blocks(*range))
    program.launch()
    assert {begin for begin, _ in asked} == {program.x.data.ptr, program.y.data.ptr}
    assert len(kept) <= unwritten.open
