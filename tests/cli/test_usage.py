"""The usage of the command line: options, paths and outputs."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.environments import environment
from tcuda._base.console import memory
from tcuda.cli import main
from tcuda.demo import train

if TYPE_CHECKING:
    from pathlib import Path


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"tcuda {tcuda.__version__}\n"


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--help"])
    assert exit.value.code == 0
    assert {"info", "demo", "sanitize", "memory-viz", "graph-viz"} <= set(capsys.readouterr().out.split())


@pytest.mark.wings
def test_help_says_how_a_program_that_imports_cupy_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert capsys.readouterr().out.endswith("tcuda run PROGRAM\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dem"],
        ["info", "--frobnicate"],
        ["demo", "--epochs", "0"],
        ["demo", "--seed", "x"],
        ["demo", "--devices=33"],
        ["demo", "--save-at", "0"],
        ["demo", "--epochs", "2", "--save-at", "3"],
        ["demo", "--checkpoint", "file.npz"],
        ["demo", "--save-at", "1", "--checkpoint", "one", "--memory-viz", "one"],
        *(
            ["demo", f"{option}={value}"]
            for option in ("--epochs", "--devices", "--seed", "--save-at")
            for value in (
                "2.5",
                "-1",
                "nan",
                "inf",
                "1e3",
                "",
                "0x10",
                "99999999999999999999",
                "9" * 5000,
                "\x1b[2J",
                "ä",
            )
        ),
        *([command, "--output"] for command in ("memory-viz", "graph-viz")),
        *([command, "one", "two"] for command in ("memory-viz", "graph-viz")),
        ["graph-viz"],
        ["memory-viz", "--output", "page.html"],
        ["memory-viz", "--compare", "snapshot.pickle"],
        ["info", "one"],
    ],
)
def test_bad_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "usage: tcuda" in output.err
    assert len(output.err) < 1500


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main([])
    assert exit.value.code == 2
    listed = capsys.readouterr().err
    assert {"info", "doctor", "demo", "sanitize", "memory-viz", "graph-viz", "completion"} <= set(listed.split())
    assert "show versions, settings and devices" in listed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["dem"], "tcuda: error: there is no command 'dem'. Did you mean demo? tcuda --help lists the commands."),
        (["memoryviz"], "Did you mean memory-viz?"),
        (["qqq"], "there is no command 'qqq'. tcuda --help lists the commands."),
        (["--verson"], "there is no option '--verson'. Did you mean --version?"),
        (["info", "--jsn"], "tcuda info: error: unrecognized arguments: --jsn. Did you mean --json?"),
        (["demo", "--epochss=3"], "Did you mean --epochs?"),
        (["sanitize", "--htlm=page.html", "program.py"], "Did you mean --html?"),
        (["info", "--qqqqqq"], "unrecognized arguments: --qqqqqq."),
        (["info", "\x1b[2J"], "unrecognized arguments: "),
    ],
)
def test_a_mistyped_word_is_told_with_the_word_that_was_meant(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    said = capsys.readouterr().err
    assert told in said
    assert ("Did you mean" in said) == ("Did you mean" in told)
    assert "\x1b" not in said


def test_an_option_may_still_be_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--vers"])
    assert exit.value.code == 0
    assert main(["info", "--js"]) == 0


NO_FILE = ("no/such/file", "/dev/null/file", ".", "", "x" * 300, "file/file", "a\0b")


@pytest.mark.parametrize("path", NO_FILE)
@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--resume", "--checkpoint", "{}"],
        ["demo", "--save-at", "1", "--checkpoint", "{}"],
        ["demo", "--memory-viz", "{}"],
        ["memory-viz", "{}"],
        ["memory-viz", "good", "-o", "{}"],
        ["graph-viz", "{}"],
        ["graph-viz", "good", "-o", "{}/x.svg"],
    ],
    ids=" ".join,
)
def test_a_path_that_names_no_file_is_one_line_before_any_work(
    arguments: list[str],
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "good").write_bytes(pickle.dumps([]))
    if arguments[0] == "demo":
        monkeypatch.setattr(train, "train", lambda *_, **__: pytest.fail("it trained"))
    if arguments[-1] == "{}/x.svg" and path in (".", ""):
        pytest.skip("names a file")
    assert main([argument.format(path) for argument in arguments]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith(f"tcuda {arguments[0]}: ")
    assert line.isprintable()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "good"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--epochs", "1", "--save-at", "1", "--checkpoint", "locked/file"],
        ["demo", "--epochs", "1", "--memory-viz", "locked/file"],
        ["memory-viz", "good", "-o", "locked/file"],
        ["memory-viz", "secret"],
        ["graph-viz", "secret"],
        ["demo", "--resume", "--checkpoint", "secret"],
    ],
    ids=" ".join,
)
def test_a_missing_permission_is_one_line(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train, "train", lambda *_, **__: pytest.fail("it trained"))
    (tmp_path / "good").write_bytes(pickle.dumps([]))
    (tmp_path / "secret").touch(mode=0)
    (tmp_path / "locked").mkdir(mode=0o555)
    if os.access("locked", os.W_OK):  # root may write everywhere
        monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("locked"))
        if "secret" in arguments:
            pytest.skip("root may read everything")
    assert main(arguments) == 1
    name = arguments[-1]
    assert capsys.readouterr().err == f"tcuda {arguments[0]}: Permission denied: {name!r}\n"


@pytest.mark.parametrize("arguments", [["demo", "--resume", "--checkpoint"], ["memory-viz"], ["graph-viz"]])
def test_a_pipe_is_not_waited_for(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main([*arguments, str(tmp_path / "pipe")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"tcuda {arguments[0]}: {str(tmp_path / 'pipe')!r} ")


@pytest.mark.wings
@pytest.mark.long
@pytest.mark.parametrize("arguments", [["info"], ["info", "--json"], ["demo", "--epochs=1"], ["demo", "--json"]])
def test_an_output_that_is_full_or_closed_is_no_traceback(arguments: list[str], tmp_path: Path) -> None:
    variables = environment(TCUDA_RUNTIME="emulated")
    command = [sys.executable, "-m", "tcuda", *arguments]

    def run(output: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=variables, stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )

    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = run(full)
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, last) == (1, f"tcuda {arguments[0]}: No space left on device")
    assert "Traceback" not in done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    done = run(writer)
    os.close(writer)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 19, "1.5 MiB"), (2 << 40, "2,048.0 GiB")]
)
def test_sizes_of_memory_are_readable(size: int, text: str) -> None:
    assert memory(size) == text


BAD_VARIABLES = {
    "TCUDA_SANITIZER": "ja",
    "TCUDA_SANITIZER_POSSIBLE": "ja",
    "TCUDA_SANITIZER_SUPPRESSIONS": "absent",
    "TCUDA_LOG": "ja",
    "TCUDA_RUNTIME": "ja",
    "TCUDA_EMULATED_DEVICES": "ja",
    "TCUDA_EMULATED_MEMORY": "ja",
    "TCUDA_EMULATED_SCHEDULE": "ja",
    "TCUDA_ALLOC_CONF": "ja:1",
    "PYTORCH_ALLOC_CONF": "ja:1",
    "TCUDA_POISON_FREED": "ja",
}


@pytest.mark.emulated
@pytest.mark.parametrize("name", [*BAD_VARIABLES, "TCUDA_EMULATED_CHECKS"])
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["tcuda", "doctor"], 1),
        (["tcuda", "demo", "--epochs=1"], 1),
        (["tcuda", "sanitize", "program.py"], 2),
        (["tcuda.emulation", "program.py"], 2),
        (["tcuda", "run", "program.py"], 2),
    ],
    ids=str,
)
def test_a_variable_with_a_bad_value_ends_a_command_in_one_line(
    command: list[str], status: int, name: str, tmp_path: Path
) -> None:
    if name == "TCUDA_EMULATED_CHECKS" and status == 1:
        pytest.skip("The command tells the failures of its kernels, or has none.")
    (tmp_path / "program.py").write_text("from tcuda import xp\nxp.zeros(1)")
    variables = {"TCUDA_RUNTIME": "emulated", name: BAD_VARIABLES.get(name, "ja")}
    if name.startswith("TCUDA_SANITIZER_"):
        variables["TCUDA_SANITIZER"] = "collect"
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tmp_path,
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert not done.stdout or command[1:] == ["doctor"]  # which reports SciPy also where no device can be initialised
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith((f"{' '.join(command[:2])}: ", "python -m tcuda.emulation: error: "))
    assert name in last


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["TCUDA_SANITIZER", "TCUDA_LOG"])
def test_a_command_without_devices_needs_no_variables(name: str, tmp_path: Path) -> None:
    (tmp_path / "snapshot").write_bytes(pickle.dumps([]))
    for arguments in (["--version"], ["memory-viz", "snapshot"]):
        done = subprocess.run(
            [sys.executable, "-m", "tcuda", *arguments],
            cwd=tmp_path,
            env=environment(**{name: "ja"}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
