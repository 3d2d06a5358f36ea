"""``tcuda trace``: a program runs as with python, and a timeline of its work is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import os, sys
import cupy
x = cupy.ones(1000)
x.fill(2)
print(*sys.argv[1:])
os.chdir("/")
"""

FAILING_WAIT = """
import tcuda
from tcuda.emulation.runtime.trace import EmulatedTrace

def fail(*_):
    raise tcuda.AcceleratorError(700)

EmulatedTrace.wait = fail
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def kernels(file: Path) -> int:
    events = json.loads(file.read_text())["traceEvents"]
    return sum(event.get("cat") == "kernel" for event in events)


@pytest.mark.emulated
class TestTrace:
    def test_the_timeline_has_the_kernels_of_the_program(
        self, tcuda_command: Any, program: Path, tmp_path: Path
    ) -> None:
        done = tcuda_command("trace", program, "one", "-o")
        assert (done.returncode, done.stdout) == (0, "one -o\n"), done.stderr
        assert "Wrote trace.json" in done.stderr
        assert kernels(tmp_path / "trace.json") == 2

    @pytest.mark.parametrize("ending", ["sys.exit(4)", "os._exit(4)"])
    def test_the_exit_status_is_that_of_the_program(
        self, tcuda_command: Any, program: Path, tmp_path: Path, ending: str
    ) -> None:
        program.write_text(f"{PROGRAM}sys.stdout.flush(); {ending}")
        done = tcuda_command("trace", "--output", "out.json", program)
        assert done.returncode == 4, done.stderr
        assert kernels(tmp_path / "out.json") == 2

    def test_the_program_may_choose_its_devices(self, tcuda_command: Any, tmp_path: Path) -> None:
        code = "import tcuda.emulation as e; e.enable(devices=3); import tcuda; tcuda.xp.ones(3)"
        done = tcuda_command("trace", "-c", code)
        assert done.returncode == 0, done.stderr
        names = [
            event["args"]["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"][:4]
        ]
        assert sum(name.startswith("cuda:") for name in names) == 3

    def test_a_lack_of_events_is_told(self, tcuda_command: Any) -> None:
        code = "import tcuda; tcuda.memory._record_memory_history(); tcuda.xp.ones(3); "
        code += "tcuda.memory._record_memory_history(None)"
        done = tcuda_command("trace", "-c", code)
        assert done.returncode == 0, done.stderr
        *_, lack, wrote = done.stderr.splitlines()
        assert lack.startswith("The trace lacks events of the memory of cuda:0, so its bytes are wrong. ")
        assert wrote.startswith("Wrote trace.json")

    @pytest.mark.parametrize(
        ("ending", "status", "told"),
        [
            ("pass", 1, "tcuda trace: CUDA error: an illegal memory access"),
            ("sys.exit('mine')", 1, "mine"),
            ("sys.exit(4)", 4, ""),
        ],
    )
    def test_a_failure_that_the_program_has_not_heard_of_is_told(
        self, tcuda_command: Any, program: Path, tmp_path: Path, ending: str, status: int, told: str
    ) -> None:
        program.write_text(f"{PROGRAM}{FAILING_WAIT}{ending}")
        done = tcuda_command("trace", program)
        assert done.returncode == status, done.stderr
        assert told in done.stderr
        assert ("illegal memory access" in done.stderr) == (ending == "pass")
        assert kernels(tmp_path / "trace.json") == 2

    def test_a_program_without_devices_has_no_timeline(self, tcuda_command: Any, tmp_path: Path) -> None:
        done = tcuda_command("trace", "-c", "pass")
        assert done.returncode == 3
        assert "The program has used no device" in done.stderr
        assert not (tmp_path / "trace.json").exists()

    def test_another_file_is_not_replaced(self, tcuda_command: Any, program: Path) -> None:
        done = tcuda_command("trace", "-o", program, "-c", "pass")
        assert done.returncode == 2
        assert "is no timeline of tcuda" in done.stderr
        assert program.read_text() == PROGRAM

    def test_an_earlier_timeline_is_replaced(self, tcuda_command: Any, program: Path, tmp_path: Path) -> None:
        for _ in range(2):
            assert tcuda_command("trace", program).returncode == 0
        assert kernels(tmp_path / "trace.json") == 2

    def test_ranges_from_before_the_first_work_are_there(self, tcuda_command: Any, tmp_path: Path) -> None:
        code = """
from tcuda import nvtx
import cupy
nvtx.mark("early")
started = nvtx.range_start("started")
with nvtx.range("outer"):
    cupy.ones(1000)
    with nvtx.range("inner"):
        cupy.ones(1000)
nvtx.range_end(started)
"""
        assert tcuda_command("trace", "-c", code).returncode == 0
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        found = {event["name"]: event for event in events if event.get("cat") in ("range", "mark")}
        assert set(found) == {"early", "started", "outer", "inner"}
        assert all(event["ts"] >= 0 for event in found.values())
        assert found["outer"]["ts"] <= found["inner"]["ts"]

    def test_a_run_without_devices_keeps_the_earlier_timeline_and_says_so(
        self, tcuda_command: Any, program: Path, tmp_path: Path
    ) -> None:
        assert tcuda_command("trace", program).returncode == 0
        done = tcuda_command("trace", "-c", "import nosuch")
        assert done.returncode == 1
        assert "trace.json is that of an earlier run." in done.stderr
        assert kernels(tmp_path / "trace.json") == 2
