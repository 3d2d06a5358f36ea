"""``tcuda sanitize``: programs with and without a race, and what the command prints, writes and returns."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.browser import embedded, needs_browser, show_page
from support.environments import NO_GPU, environment
from support.folders import TESTS
from support.race_reports import FILE, SIDE, access, race, report, unwritten_read
from support.terminal import run_on_terminal, without_colours
from tcuda._base.console import console
from tcuda.cli import main
from tcuda.sanitizer._command import split
from tcuda.sanitizer._command.race_summary import Summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.forked_programs import ForkedPrograms

    Sanitize = Callable[..., subprocess.CompletedProcess[str]]

RACY = """\
import sys
import tcuda
from tcuda import xp

main, side = tcuda.default_stream(), tcuda.Stream()
x = xp.zeros(1000, dtype="float32")


def step():
    x.fill(1)
    with tcuda.stream(side):
        return x + 1


kept = [step() for _ in range(3)]
"""
CLEAN = """\
import tcuda
from tcuda import xp

main, side = tcuda.default_stream(), tcuda.Stream()
x = xp.zeros(1000, dtype="float32")
x.fill(1)
side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1
"""
MISSING = "side.wait_stream(main) before program.py:12"


COMMAND = """
import runpy, sys, warnings

warnings.resetwarnings()  # The warnings of programs in copies are errors.
sys.argv[1:] = {}
runpy.run_module("tcuda", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def sanitize(tmp_path: Path, forked_programs: ForkedPrograms) -> Sanitize:
    """Return a function that writes a program and runs the command with the program, on emulated devices.

    The command runs in a copy of a process. With other options of the process, or on a GPU, the process is fresh.
    """

    def sanitize(
        program: str, *arguments: str, options: Any = ("program.py",), **more: Any
    ) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(program)
        variables = {"TCUDA_RUNTIME": "emulated", "TCUDA_EMULATED_DEVICES": "2", **more.pop("variables", {})}
        if not more and os.environ["TCUDA_RUNTIME"] != "cuda":  # as run_forked does
            command = COMMAND.format(["sanitize", *options, *arguments])
            return forked_programs.run(command, tmp_path, environment(**variables))
        return subprocess.run(
            [sys.executable, "-m", "tcuda", "sanitize", *options, *arguments],
            cwd=tmp_path,
            env=environment(**variables),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **more,
        )

    return sanitize


def test_a_race_is_found_and_named(sanitize: Sanitize) -> None:
    done = sanitize(RACY + "print('the program ends')")
    assert (done.returncode, done.stdout) == (1, "the program ends\n")
    lines = [line.strip() for line in done.stderr.splitlines()]
    assert f"missing: {MISSING}" in lines
    assert "program.py:10  fill writes its argument a on main of device 0" in lines
    assert "program.py:12  add reads its argument x1 on side of device 0" in lines
    assert re.fullmatch(r"\d races, seen \d+ times, in \d+ operations\.", lines[-1])


@pytest.mark.emulated
def test_a_terminal_is_told_that_the_report_follows_and_what_is_made(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(RACY)
    arguments = ("--emulated=2", "--html", "page.html", "program.py", "an argument")
    done = run_on_terminal("-m", "tcuda", "sanitize", *arguments, folder=tmp_path)
    assert (done.status, done.stdout) == (1, "")
    begin, rest = done.said.replace("\r\n", "\n").split("\n", 1)
    assert begin == "Watching program.py an argument: the report follows at the end of the program."
    parts = [part for part in rest.split("\r\x1b[K") if part.endswith(" ...")]
    assert parts == ["making the report ...", "writing page.html ..."]
    assert without_colours(rest).endswith("\nwrote page.html\n")
    assert (tmp_path / "page.html").as_uri() in rest


def test_a_program_without_a_race_keeps_its_status(sanitize: Sanitize) -> None:
    done = sanitize(CLEAN + "raise SystemExit(7)")
    assert (done.returncode, done.stdout) == (7, "")
    assert re.fullmatch(r"No race in \d operations\.\n", done.stderr)


ENDINGS = {
    "return": ("", 0, None),
    "status": ("sys.exit(7)", 7, None),
    "message": ("sys.exit('no luck')", 1, None),
    "exception": ("raise ValueError('no luck')", 1, "ValueError: no luck"),
    "os._exit": ("import os; sys.stdout.write('kept'); sys.stdout.flush(); os._exit(8)", 8, None),
    "os._exit in a thread": ("import os, threading; threading.Thread(target=os._exit, args=[8]).start()", 8, None),
    "interrupt": ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ENDINGS)
def test_a_program_that_ends_in_any_way_gets_its_report(name: str, sanitize: Sanitize, tmp_path: Path) -> None:
    code, status, failure = ENDINGS[name]
    for program, found in ((RACY, True), ("import sys\n" + CLEAN, False)):
        done = sanitize(program + code, options=["--json=report.json", "program.py"])
        assert done.returncode == (1 if found else status), done.stderr
        content = json.loads((tmp_path / "report.json").read_text())
        assert bool(content["races"]) == found
        place = content["program"].pop("place")
        assert content["program"] == {"arguments": ["program.py"], "status": status, "failure": failure}
        assert (place is None) == (failure is None)
        assert ("No race in" in done.stderr) != found
        if failure is not None:
            assert f"The program failed: {failure}" in done.stderr
            assert "tcuda/cli" not in done.stderr


def test_the_work_of_threads_that_outlive_the_program_counts(sanitize: Sanitize) -> None:
    thread = "import threading\ngo = threading.Event()\nthreading.Thread(target=lambda: go.wait() and step()).start()\n"
    done = sanitize(RACY.replace("kept = [step() for _ in range(3)]", thread + "go.set()"))
    assert done.returncode == 1
    assert MISSING in done.stderr


NOTHING = "No operation was watched.\nWarning: the program made no operation on a device that the detector could see, "


def test_a_forked_child_writes_no_report(sanitize: Sanitize) -> None:
    fork = "import os, sys\nchild = os.fork()\nif child: print(os.waitpid(child, 0)[1] >> 8)\nelse: sys.exit(5)\n"
    done = sanitize(fork)
    assert (done.returncode, done.stdout) == (3, "5\n")
    assert done.stderr.startswith(NOTHING)
    assert "did not finish" not in done.stderr


def test_a_child_that_leaves_by_os_exit_writes_no_report(sanitize: Sanitize) -> None:
    fork = "import os\nchild = os.fork()\nif child: print(os.waitpid(child, 0)[1] >> 8)\nelse: os._exit(5)\n"
    done = sanitize(fork)
    assert (done.returncode, done.stdout) == (3, "5\n")
    assert done.stderr.startswith(NOTHING)
    assert "did not finish" not in done.stderr


@pytest.mark.parametrize("options", [["-m", "program"], ["-mprogram"]], ids=" ".join)
def test_a_module_is_run(options: list[str], sanitize: Sanitize) -> None:
    done = sanitize(RACY + "print(sys.argv[1:], __spec__.name)", "-m", "--json", options=options)
    assert (done.returncode, done.stdout) == (1, "['-m', '--json'] program\n")
    assert MISSING in done.stderr


def test_pytest_is_run(sanitize: Sanitize, tmp_path: Path) -> None:
    (tmp_path / "test_racy.py").write_text(RACY.replace("kept = [step() for _ in range(3)]", "def test_it(): step()"))
    done = sanitize("", "-q", "-p", "no:cacheprovider", "test_racy.py", options=["-m", "pytest"])
    assert "1 passed" in done.stdout
    assert done.returncode == 1
    assert "side.wait_stream(main) before test_racy.py:12" in done.stderr


def test_arguments_after_the_program_are_the_programs(sanitize: Sanitize, tmp_path: Path) -> None:
    arguments = ["--json", "--html", "page.html", "--help", "--", "-m", "--version", "--emulated=9", "--no-such-option"]
    done = sanitize("import sys; print(sys.argv)", *arguments)
    assert (done.returncode, done.stdout) == (3, f"{['program.py', *arguments]}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py"]


@pytest.mark.parametrize(
    ("given", "own", "program"),
    [
        ("sanitize a.py --json", "sanitize", "a.py --json"),
        ("sanitize --json a.py", "sanitize --json", "a.py"),
        ("sanitize --json=x a.py", "sanitize --json=x", "a.py"),
        ("sanitize --html x a.py", "sanitize --html x", "a.py"),
        ("sanitize --html=x --emulated a.py -m", "sanitize --html=x --emulated", "a.py -m"),
        ("sanitize --suppress x -m a -m b", "sanitize --suppress x", "-m a -m b"),
        ("sanitize --warn -- -odd.py x", "sanitize --warn", "-odd.py x"),
        ("sanitize --html", "sanitize --html", ""),
        ("sanitize --warn -c a b", "sanitize --warn", "-c a b"),
        ("sanitize - --json", "sanitize", "- --json"),
        ("sanitize", "sanitize", ""),
        ("demo --json a.py", "demo --json a.py", ""),
        ("", "", ""),
    ],
)
def test_the_program_begins_with_the_first_argument_that_is_no_option(given: str, own: str, program: str) -> None:
    assert split(given.split()) == (own.split(), program.split())


def test_the_json_has_the_whole_report(sanitize: Sanitize, tmp_path: Path) -> None:
    done = sanitize(RACY, options=["--json=report.json", "program.py", "x y"])
    assert done.returncode == 1
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["version"] == 1
    assert content["program"] == {"arguments": ["program.py", "x y"], "status": 0, "failure": None, "place": None}
    assert {"operations", "suppressed", "syncs"} <= content.keys()
    first = content["races"][0]
    assert (first["kind"], first["count"], first["use_after_free"]) == ("read after write", 3, False)
    assert first["missing"] == "side.wait_stream(main)"
    assert first["before"] == {"file": str(tmp_path / "program.py"), "line": 12}
    assert first["element_range"] == [0, 999]
    for name, operation, kind, line in (("previous", "fill", "write", 10), ("current", "add", "read", 12)):
        access = first[name]
        assert (access["operation"], access["kind"], access["stack"][0]["line"]) == (operation, kind, line)
        files = {frame["filename"] for frame in access["stack"]}
        assert files == {str(tmp_path / "program.py")}  # no frame of the command


def test_json_on_stdout_stands_alone(sanitize: Sanitize) -> None:
    print_more = "import os, subprocess\nprint('said')\nos.system('echo by a child')\nsys.exit(3)"
    done = sanitize(RACY + print_more, options=["--json", "program.py"])
    assert done.returncode == 1
    assert json.loads(done.stdout)["program"]["status"] == 3
    assert "said\n" in done.stderr
    assert "by a child\n" in done.stderr


def test_json_on_stdout_survives_an_abrupt_exit(sanitize: Sanitize) -> None:
    done = sanitize(RACY + "import os; os._exit(3)", options=["--json", "program.py"])
    assert (done.returncode, json.loads(done.stdout)["program"]["status"]) == (1, 3)


def test_raise_ends_the_program_at_the_first_race(sanitize: Sanitize) -> None:
    done = sanitize(RACY + "print('unreached')", options=["--raise", "program.py"])
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback (most recent call last):" in done.stderr
    assert 'program.py", line 12, in step' in done.stderr
    assert re.search(r"The program failed: \S*CUDASanitizerErrors", done.stderr)
    assert "tcuda/cli" not in done.stderr


def test_warn_warns_at_the_line_and_goes_on(sanitize: Sanitize, tmp_path: Path) -> None:
    done = sanitize(RACY + "print('reached')", options=["--warn", "program.py"])
    assert (done.returncode, done.stdout) == (1, "reached\n")
    assert f"{tmp_path / 'program.py'}:12: RaceWarning" in done.stderr


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--possible",), 1)])
def test_possible_races_are_shown_and_count_on_demand(
    options: tuple[str, ...], status: int, sanitize: Sanitize, tmp_path: Path
) -> None:
    program = f"import sys\nsys.path.append({str(TESTS)!r})\nfrom support.made_races import race\nrace(possible=[0])"
    done = sanitize(program, options=["--json=races.json", *options, "program.py"])
    assert done.returncode == status
    lines = [line.strip() for line in done.stderr.splitlines()]
    assert "1. possible write after write" in lines
    assert any(line.startswith("possible: `add` gets a pointer into this memory") for line in lines)
    assert "No race in 2 operations; 1 possible race." in lines
    told = "Only possible races were found, which leave the exit status alone. With --possible they count."
    assert (told in lines[-2:]) is (not options)
    data = json.loads((tmp_path / "races.json").read_text())
    assert (len(data["races"]), len(data["possible"])) == (0, 1)
    assert "/cli/" not in json.dumps(data["possible"])


def test_suppressed_races_are_left_out_and_counted(sanitize: Sanitize, tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_text("# on purpose\nfile=program.py function=step\n")
    done = sanitize(RACY, options=["--suppress", "known.txt", "program.py"])
    assert done.returncode == 0
    assert re.fullmatch(r"No race in \d+ operations; \d suppressed\.\n", done.stderr)
    (tmp_path / "other.txt").write_text("file=other.py\n")
    assert sanitize(RACY, options=["--suppress=other.txt", "program.py"]).returncode == 1


def test_synchronizations_are_counted_by_line_on_demand(sanitize: Sanitize, tmp_path: Path) -> None:
    waits = CLEAN + "tcuda.synchronize()\nfor _ in range(3):\n    float(y[0])\n"
    assert "host waited" not in sanitize(waits).stderr
    done = sanitize(waits, options=["--syncs", "--json=report.json", "program.py"])
    assert done.returncode == 0
    rows = [line.split() for line in done.stderr.splitlines()]
    assert ["host", "waited", "call", "line"] in rows
    counted = {(sync["line"], sync["count"]) for sync in json.loads((tmp_path / "report.json").read_text())["syncs"]}
    assert counted == {(10, 1), (12, 3)}


def test_a_program_may_change_its_folder_and_its_files(sanitize: Sanitize, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    change = (
        "import io, os\nos.chdir('other')\nsys.stderr = io.StringIO()\nsys.stdout = io.StringIO()\nsys.stdout.close()"
    )
    done = sanitize(RACY + change, options=["--json=report.json", "--html=page.html", "program.py"])
    assert done.returncode == 1
    assert MISSING in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "page.html", "program.py", "report.json"]
    done = sanitize(RACY + change, options=["--json", "program.py"])
    assert (done.returncode, len(json.loads(done.stdout)["races"]) > 0) == (1, True)


@pytest.mark.parametrize("name", ["page.html", "report.json"])
def test_a_full_disk_leaves_no_report(sanitize: Sanitize, tmp_path: Path, name: str) -> None:
    sanitize(CLEAN, options=[f"--{name[-4:]}={name}", "program.py"])
    assert (tmp_path / name).exists()
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    done = sanitize(RACY + limit, options=[f"--{name[-4:]}={name}", "program.py"])
    assert "File too large" in done.stderr
    assert done.returncode != 0
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


@pytest.mark.parametrize("end", ["", "import os; os._exit(0)"], ids=["return", "os._exit"])
@pytest.mark.parametrize("option", ["--html=/dev/full", "--json=/dev/full"])
def test_the_summary_is_shown_if_a_file_cannot_be_written(option: str, end: str, sanitize: Sanitize) -> None:
    done = sanitize(CLEAN + end, options=[option, "program.py"])
    assert done.returncode == 1
    assert "No race in" in done.stderr
    assert "No space left on device" in done.stderr
    assert "wrote" not in done.stderr


def test_a_program_may_close_its_files(sanitize: Sanitize, tmp_path: Path) -> None:
    done = sanitize(RACY + "sys.stderr.close(); sys.stdout.close()", options=["--json=report.json", "program.py"])
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert json.loads((tmp_path / "report.json").read_text())["races"]


def test_an_error_that_a_destructor_drops_is_in_the_report(sanitize: Sanitize) -> None:
    destructor = "class Late:\n    def __del__(self): step()\nlate = Late()\ndel late\nprint('reached')\n"
    program = RACY.replace("kept = [step() for _ in range(3)]\n", destructor)
    done = sanitize(program, options=["--raise", "program.py"])
    assert (done.returncode, done.stdout) == (1, "reached\n")
    assert MISSING in done.stderr
    assert "tcuda sanitize:" not in done.stderr


def test_a_check_of_the_program_keeps_its_races(sanitize: Sanitize) -> None:
    own = "with tcuda.sanitizer.check('collect') as report:\n    step()\nprint(len(report))"
    done = sanitize(RACY.replace("kept = [step() for _ in range(3)]", own))
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "No race in" in done.stderr


def test_a_program_in_a_pipe_is_run(sanitize: Sanitize) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"print('from a pipe')")
    os.close(writer)
    done = sanitize("", options=[f"/dev/fd/{reader}"], pass_fds=[reader])
    os.close(reader)
    assert (done.returncode, done.stdout) == (3, "from a pipe\n")


# Child processes

OF_CUPY = """\
import multiprocessing, os, subprocess, sys
import cupy as cp


def work(_):
    side = cp.cuda.Stream(non_blocking=True)
    x = cp.zeros(1000)
    with side:
        y = x + 1
    return float(y[0])


def race():
    work(0)


def fork():
    if not os.fork():
        work(0)
        os._exit(0)
    os.wait()


def by_pool(method):
    with multiprocessing.get_context(method).Pool(1) as pool:  # the end of the block terminates the worker
        pool.map(work, [0])


def spawn():
    by_pool("spawn")


def fork_pool():
    by_pool("fork")


def process():
    subprocess.run([sys.executable, __file__, "race"], check=True)


def killed():
    code = "import os, signal, program; program.work(0); os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", code])


if __name__ == "__main__":
    globals()[sys.argv[1]]()
"""


@pytest.mark.emulated
@pytest.mark.parametrize("way", ["race", "fork", "spawn", "fork_pool", "process", "killed"])
def test_races_of_programs_that_import_cupy_are_found_in_children_too(
    way: str, sanitize: Sanitize, tmp_path: Path
) -> None:
    done = sanitize(OF_CUPY, way, options=["--json=report.json", "program.py"])
    content = json.loads((tmp_path / "report.json").read_text())
    assert done.returncode == 1, done.stderr
    lines = {race[access]["stack"][0]["line"] for race in content["races"] for access in ("previous", "current")}
    assert lines >= {7, 9}
    assert [len(race["processes"]) > 0 for race in content["races"]] == [way != "race"] * len(content["races"])
    assert ("in child process" in done.stderr) == (way != "race")
    assert content["children"] == {"reports": int(way != "race"), "unfinished": int(way == "killed")}
    assert ("1 child process did not finish" in done.stderr) == (way == "killed")
    assert "/cli/" not in json.dumps(content)
    assert content["operations"] >= 2


@pytest.mark.emulated
def test_suppressions_and_the_mode_hold_in_children(sanitize: Sanitize, tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_text("file=program.py function=work\n")
    done = sanitize(OF_CUPY, "process", options=["--suppress", "known.txt", "program.py"])
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"No race in \d+ operations; \d suppressed\.\n", done.stderr)
    done = sanitize(OF_CUPY, "process", options=["--raise", "program.py"])
    assert "CUDASanitizerErrors" in done.stderr
    assert done.returncode == 1


@pytest.mark.emulated
def test_the_status_of_a_program_goes_before_that_of_nothing_watched(sanitize: Sanitize) -> None:
    done = sanitize("raise SystemExit(7)")
    assert done.returncode == 7
    assert done.stderr.startswith(NOTHING)


# Devices


@pytest.mark.parametrize(("option", "devices"), [("--emulated", 2), ("--emulated=3", 3)])
def test_the_program_runs_on_emulated_devices_on_demand(option: str, devices: int, sanitize: Sanitize) -> None:
    code = "import tcuda; print(tcuda.device_count(), tcuda.emulation.clock() is not None)"
    done = sanitize(code, options=[option, "program.py"], variables={"TCUDA_RUNTIME": "cuda"})
    assert (done.returncode, done.stdout) == (3, f"{devices} True\n")
    assert "There is no GPU" not in done.stderr


@pytest.mark.parametrize("options", [[], ["--emulated=3"]], ids=str)
def test_a_program_may_choose_its_devices(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import tcuda; tcuda.emulation.enable(devices=5); print(tcuda.device_count())\n" + CLEAN
    )
    done = subprocess.run(
        [sys.executable, "-m", "tcuda", "sanitize", *options, "program.py"],
        cwd=tmp_path,
        env=environment(**NO_GPU),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
    assert ("There is no GPU: using 2 emulated devices." in done.stderr) == (not options)


# Usage


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the program to run, or -m and a module, or -c and code"),
        (["-m"], "give the name of a module after -m"),
        (["absent.py"], "No such file or directory: 'absent.py'"),
        (["--html", "absent/page.html", "good.py"], "No such file or directory: 'absent/page.html'"),
        (["--json=.", "good.py"], "Is a directory: '.'"),
        (["--html=.", "good.py"], "Is a directory: '.'"),
        (["--suppress", "absent.txt", "good.py"], "absent.txt"),
        (["--suppress", "bad.txt", "good.py"], "bad.txt:2: 'color=red' is not a condition"),
        (["--suppress", "pipe", "good.py"], "'pipe' holds no suppressions: it is not a regular file"),
        (["--suppress", "binary", "good.py"], "'binary' holds no suppressions: 'utf-8' codec can't decode"),
        (["--raise", "--warn", "good.py"], "not allowed with argument"),
        (["--emulated=0", "good.py"], "'0' is not a number of devices that can be emulated"),
        (["--emulated=x", "good.py"], "'x' is not a number of devices that can be emulated"),
        (["--emulated=" + "9" * 5000, "good.py"], "is not a number of devices that can be emulated"),
        (["--frobnicate", "good.py"], "unrecognized arguments: --frobnicate"),
        (["-c"], "give code after -c"),
        (["--htm=x", "good.py"], "unrecognized arguments: --htm=x"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_bad_usage_exits_with_2_before_the_program(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.py").write_text("raise SystemExit('the program ran')")
    (tmp_path / "bad.txt").write_text("file=a.py\ncolor=red\n")
    (tmp_path / "binary").write_bytes(b"\xff")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SystemExit) as exit:
        main(["sanitize", *arguments])
    assert exit.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert "the program ran" not in output.err
    assert len(output.err) < 1500
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "binary", "good.py", "pipe"]


# The summary


def summary(content: dict[str, Any], capsys: pytest.CaptureFixture[str], **more: Any) -> list[str]:
    content = {"program": {"arguments": ["a.py"], "status": 0, "failure": None}, **content}
    more = {"syncs": False, "possible": False, **more}
    Summary(console(stderr=True), Path.cwd()).show(content, **more)
    return capsys.readouterr().err.splitlines()


def test_the_summary_shows_the_first_races_and_counts_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    races = [race(count=number, current=access("add", "read", SIDE + number, 14)) for number in range(1, 14)]
    for found in races:
        found["advice"] += f" {found['count']}"
    lines = summary(report(*races, suppressed=1), capsys)
    assert [line for line in lines if re.match(r"\d+\. ", line)] == [
        "1. read after write",
        *(f"{number}. read after write, {number} times" for number in range(2, 11)),
    ]
    assert "and 3 more races; --json and --html show all" in lines
    assert lines[-1] == "13 races, seen 91 times, in 20 operations; 1 suppressed."


def test_the_summary_has_one_entry_for_races_that_one_call_mends(capsys: pytest.CaptureFixture[str]) -> None:
    races = [race(current=access("add", "read", SIDE, line), before={"file": FILE, "line": line}) for line in (14, 15)]
    lines = summary(report(*races, race(doubt="It is not known.")), capsys)
    assert [line for line in lines if re.match(r"\d+\. ", line)] == [
        "1. read after write",
        "2. possible read after write",
    ]
    assert lines[6] == f"   one call mends these 2: also {FILE}:15"
    assert lines[-1] == "2 races, seen 2 times, in 20 operations; 1 possible race."


@pytest.mark.parametrize(
    ("previous", "current", "words"),
    [
        (([0, 63], 4, [64]), ([0, 63], 4, [64]), "elements 0 to 63"),
        (([5, 5], 4, [8, 8]), ([5, 5], 4, [64]), "element 5"),
        (([0, 255], 1, [256]), ([16, 79], 4, [256]), "elements 16 to 79 of a"),
        (([16, 79], 4, [256]), ([0, 255], 1, [256]), "elements 16 to 79 of out"),
        (([0, 1023], 1, [2048]), ([0, 1023], 1, [1024]), "bytes 0 to 1,023"),
        (([0, 3], 1, [2, 2]), (None, 4, [2]), "elements 0 to 3"),
    ],
)
def test_the_summary_counts_the_larger_elements(
    previous: Any, current: Any, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = race()
    for side, values in (("previous", previous), ("current", current)):
        found[side] |= dict(zip(("element_range", "itemsize", "shape"), values, strict=True))
    assert f"   both touch {words}" in summary(report(found), capsys)


def test_the_summary_names_the_byte_that_the_host_touches_first(capsys: pytest.CaptureFixture[str]) -> None:
    found = race()
    touch = {"operation": "read by the host", "element_range": [40, 40], "itemsize": 1, "shape": [65536]}
    found["current"] |= {"host": True, "device": -1} | touch
    lines = summary(report(found), capsys)
    assert "   the host touches byte 40 of 65,536 first, and perhaps other bytes later" in lines


def test_the_summary_counts_races_and_reads_apart(capsys: pytest.CaptureFixture[str]) -> None:
    reads = [unwritten_read(count=number) for number in range(2, 14)]
    lines = summary(report(unwritten_reads=reads[:1]), capsys)
    assert lines[1:3] == [
        "1. read of unwritten memory in the kernel `total`, 2 times",
        "   kernel.cu:2  thread (1, 0, 0) of block (0, 0, 0) writes: out[0] += x[i];",
    ]
    assert lines[-1] == "No race, and 1 read of unwritten memory, seen 2 times, in 20 operations."
    lines = summary(report(race(), race(doubt="It is not known."), unwritten_reads=reads), capsys)
    assert [line.split()[0] for line in lines if re.match(r"\d+\. ", line)] == [f"{n}." for n in [*range(1, 12), 14]]
    assert "and 2 more reads of unwritten memory; --json and --html show all" in lines
    assert lines[-1] == (
        "1 race, seen 1 time, and 12 reads of unwritten memory, seen 90 times, in 20 operations; 1 possible race."
    )


READS = """\
from tcuda import xp

code = 'extern "C" __global__ void twice(int* x) { x[threadIdx.x] *= 2; }'
xp.RawKernel(code, "twice")((1,), (8,), (xp.empty(8, "i"),))
"""


@pytest.mark.emulated
def test_a_read_of_unwritten_memory_is_no_race_and_makes_the_status_1(sanitize: Sanitize, tmp_path: Path) -> None:
    options = ["--json=report.json", "--html=page.html", "program.py"]
    done = sanitize(READS, options=options, variables={"TCUDA_EMULATED_CHECKS": "memory,init"})
    assert done.returncode == 1
    assert "No race, and 1 read of unwritten memory, seen 8 times, in 1 operation." in done.stderr
    content = json.loads((tmp_path / "report.json").read_text())
    assert (content["races"], len(content["unwritten_reads"])) == ([], 1)
    assert embedded((tmp_path / "page.html").read_text())["unwritten"] == 1


@pytest.mark.parametrize("possible", [False, True])
def test_the_last_line_says_that_there_are_only_possible_races(
    possible: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = summary(report(race(doubt="It is not known.")), capsys, possible=possible)
    assert lines[-1].startswith("Only possible races" if not possible else "No race in 20 operations")
    lines = summary(report(race(), race(doubt="It is not known.")), capsys, possible=possible)
    assert lines[-1].startswith("1 race, seen")


def test_the_summary_names_the_capture_and_the_launch(capsys: pytest.CaptureFixture[str]) -> None:
    found = race()
    found["current"]["launch_stack"] = [{"name": "f", "filename": "/a/b.py", "line": 40}]
    lines = summary(report(found), capsys)
    file = found["before"]["file"]
    assert (
        f"   {file}:14  multiply reads its argument a on side of device 0, in the graph launched at /a/b.py:40" in lines
    )
    assert f"   {file}:12  add writes its argument out on main of device 0" in lines


def test_no_text_of_a_program_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x1b[2J\x07\n\u202e[red]b"
    names = {"operation": hostile, "argument": hostile, "stream_name": hostile}
    found = race(missing=hostile, before={"file": hostile, "line": 1})
    found["current"] |= names
    found["current"]["stack"] = [{"name": hostile, "filename": f"/{hostile}.py", "line": 1}]
    content = report(found, syncs=[{"call": hostile, "file": hostile, "line": 1, "count": 1}])
    content["program"] = {"arguments": [hostile], "status": 1, "failure": hostile}
    lines = summary(content, capsys, syncs=True)
    assert all(line.isprintable() for line in lines)
    assert sum("[red]b" in line for line in lines) >= 4


def test_the_summary_counts_synchronizations_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    syncs = [{"call": f"call {line}", "file": "/a/b.py", "line": line, "count": line} for line in range(1, 13)]
    lines = summary(report(syncs=syncs), capsys, syncs=True)
    assert [line.split() for line in lines[:3]] == [
        ["host", "waited", "call", "line"],
        ["12", "call", "12", "/a/b.py:12"],
        ["11", "call", "11", "/a/b.py:11"],
    ]
    assert "and 2 more lines; --json and --html show all" in lines
    assert summary(report(), capsys, syncs=True)[0] == "No call made the host wait."


# The page


@needs_browser
def test_the_page_shows_the_race_of_the_program(sanitize: Sanitize, tmp_path: Path) -> None:
    done = sanitize(RACY, options=["--html", "races.html", "program.py", "--epochs", "3"])
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "wrote races.html")
    document = show_page((tmp_path / "races.html").read_text(encoding="utf-8"), tmp_path)
    assert document.text_of("title") == "program.py --epochs 3"
    assert "side.wait_stream(main)| before program.py:12" in document.words
    here = re.findall(r'<span class="here"[^>]*><i>(\d+)</i>(.*?)\n', document.body)
    assert here == [("10", "    x.fill(1)"), ("12", "        return x + 1")]
    assert document.attribute("timeline", "data-lanes") == "2"


def test_a_page_without_races_is_written(sanitize: Sanitize, tmp_path: Path) -> None:
    done = sanitize(CLEAN, options=["--html=races.html", "program.py"])
    assert done.returncode == 0
    assert "wrote races.html" in done.stderr
    assert (tmp_path / "races.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


# Races in kernels

IN_KERNEL = """\
import os
import sys

import tcuda
from tcuda import xp

sys.path.append({folder!r})
import pytest
from support.made_kernel_races import MadeAccess, MadeRace, make_up

code = '''extern "C" __global__ void total(const float* x, float* out) {{
    out[0] += x[threadIdx.x];
}}'''
x, out = xp.ones(8, "f"), xp.zeros(1, "f")
made = MadeRace(out.data.ptr, MadeAccess("write", 2), MadeAccess("read", 2, (3, 0, 0)), "atomic", count=7)
make_up(pytest.MonkeyPatch(), lambda: [made])
xp.RawKernel(code, "total")((1,), (8,), (x, out))
print(os.environ["TCUDA_EMULATED_CHECKS"])
"""


def test_races_in_kernels_are_found_on_demand(sanitize: Sanitize, tmp_path: Path) -> None:
    program = IN_KERNEL.format(folder=str(TESTS))
    done = sanitize(program, options=("--kernels", "--json=report.json", "--html=page.html", "program.py"))
    assert (done.returncode, done.stdout) == (1, "memory,races\n")
    assert done.stderr.splitlines()[:10] == [
        "",
        "1. race in the kernel `total`, 7 times",
        "   kernel.cu:2  thread (0, 0, 0) of block (0, 0, 0) writes: out[0] += x[threadIdx.x];",
        "   kernel.cu:2  thread (3, 0, 0) of block (0, 0, 0) reads: out[0] += x[threadIdx.x];",
        "   both touch element 0 of `out` (float32, shape (1,)), allocated at program.py:14",
        "   launched at program.py:17",
        "   missing: An atomic function, such as `atomicAdd(&out[0], ...)`, in line 2 lets no update get lost.",
        "",
        "1 race, seen 7 times, in 3 operations.",
        "wrote report.json",
    ]
    (found,) = json.loads((tmp_path / "report.json").read_text())["races"]
    assert (found["kernel"], found["count"], found["processes"]) == ("total", 7, [])
    data = embedded((tmp_path / "page.html").read_text())
    assert data["races"][0]["kernel"] == "total"
    assert data["races"][0]["words"]["shared"] == "both touch element 0 of `out` (float32, shape (1,))"
    assert data["races"][0]["current"]["excerpt"][1] == [2, "    out[0] += x[threadIdx.x];"]


IN_CHILD = """\
import subprocess
import sys

from tcuda import xp

if not sys.argv[1:]:
    subprocess.run([sys.executable, __file__, "child"], check=True)
code = 'extern "C" __global__ void last(int* out) { out[0] = threadIdx.x; }'
xp.RawKernel(code, "last")((1,), (8,), (xp.zeros(1, "i"),))
"""


def test_races_in_kernels_of_child_processes_are_found_too(sanitize: Sanitize) -> None:
    done = sanitize(IN_CHILD, options=("--kernels", "--json", "program.py"))
    assert done.returncode == 1
    found = json.loads(done.stdout)["races"]
    # Races with equal stacks are one race. A copy of a process, in which the command may run, has other stacks.
    assert {(race["kernel"], *race["memory"]["index"]) for race in found} == {("last", 0)}
    assert sum(race["count"] for race in found) == 2 * 7  # of each of the seven later threads, in two processes
    assert len(found[-1]["processes"]) == 1
    lines = [line.strip() for line in done.stderr.splitlines()]
    assert lines.count("launched at program.py:9") == len(found)
    assert sum(re.fullmatch(r"in child process \d+", line) is not None for line in lines) == 1
    assert sanitize(IN_CHILD).returncode == 0  # without the option, no kernel is looked into


@pytest.mark.parametrize(
    ("variable", "checks"),
    [("1", "memory,races"), ("types", "types,races"), ("memory,races:benign=off", "memory,races:benign=off")],
)
def test_the_option_keeps_the_checks_of_the_environment(variable: str, checks: str, sanitize: Sanitize) -> None:
    code = "import os; print(os.environ['TCUDA_EMULATED_CHECKS']); from tcuda import xp; xp.ones(3)"
    done = sanitize("", options=("--kernels", "-c", code), variables={"TCUDA_EMULATED_CHECKS": variable})
    assert (done.returncode, done.stdout) == (0, f"{checks}\n")


def test_races_in_kernels_need_emulated_devices_and_known_checks(sanitize: Sanitize) -> None:
    done = sanitize("", options=("--kernels", "program.py"), variables={"TCUDA_EMULATED_CHECKS": "race"})
    assert done.returncode == 2
    assert "TCUDA_EMULATED_CHECKS is 'race'; write 1 for the usual checks" in done.stderr
    done = sanitize("", options=("--kernels", "program.py"), variables={"TCUDA_RUNTIME": "cuda"})
    assert done.returncode == 2
    assert "--kernels needs emulated devices: add --emulated." in done.stderr


OF_ARGUMENTS = """\
import multiprocessing
import cupy as cp


def work(x):
    with cp.cuda.Stream(non_blocking=True):
        return float((x + 1)[0])


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.map(work, [cp.zeros(1000)])
"""


@pytest.mark.emulated
def test_the_command_of_a_child_is_no_place_of_a_race(sanitize: Sanitize, tmp_path: Path) -> None:
    sanitize(OF_ARGUMENTS, options=["--json=report.json", "program.py"])
    content = json.loads((tmp_path / "report.json").read_text())
    places = {Path(race["previous"]["stack"][0]["filename"]).name for race in content["races"]}
    assert places == {"queues.py"}  # where the child reads the argument, for which the program has no line
