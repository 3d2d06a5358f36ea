"""The command line: what it prints where, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda.cli import main
from tcuda.cli.interrupt import interruptible
from tcuda.cli.terminal import memory
from tcuda.demo import train

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Python installs no handler for Ctrl-C in a process that is started in the background; these may be.
WITH_CTRL_C = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from tcuda.cli import main; sys.exit(main())"
)
WITHOUT_CUPY = "import sys; sys.modules['cupy'] = None; from tcuda.cli import main; sys.exit(main())"
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


def environment(**variables: str) -> dict[str, str]:
    ours = ("TCUDA_", "CUDA_VISIBLE_DEVICES")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | variables


@pytest.fixture
def tcuda_command(tmp_path: Path) -> Any:
    """Run the command in a process of its own, away from the source tree, with the variables given and no others."""

    def run(*arguments: str, code: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        start = ["-m", "tcuda"] if code is None else ["-c", code]
        return subprocess.run(
            [sys.executable, *start, *arguments],
            cwd=tmp_path,
            env=environment(**variables),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


# Usage


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"tcuda {tcuda.__version__}\n"


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--help"])
    assert exit.value.code == 0
    assert {"info", "demo", "memory-viz", "graph-viz"} <= set(capsys.readouterr().out.split())


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
        *([command] for command in ("memory-viz", "graph-viz")),
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
    if os.access("locked", os.W_OK):  # as root, who may do anything
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


@pytest.mark.parametrize("arguments", [["info"], ["info", "--json"], ["demo", "--epochs=1"], ["demo", "--json"]])
def test_an_output_that_takes_no_more_is_no_traceback(arguments: list[str], tmp_path: Path) -> None:
    variables = environment(TCUDA_RUNTIME="emulated", **NO_GPU)
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
def test_memory_is_written_for_people(size: int, text: str) -> None:
    assert memory(size) == text


# tcuda info


def test_info_describes_the_devices_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["problem"] is None
    assert facts["runtime"] == os.environ["TCUDA_RUNTIME"]
    assert facts["chosen_by"] == "environment"
    assert facts["environment"]["TCUDA_RUNTIME"] == os.environ["TCUDA_RUNTIME"]
    assert facts["architectures"] == tcuda.get_arch_list()
    assert int(facts["driver"].split(".")[0]) >= 12
    assert len(facts["devices"]) == tcuda.device_count()
    for index, device in enumerate(facts["devices"]):
        properties = tcuda.get_device_properties(index)
        assert device["index"] == index
        assert device["name"] == properties.name
        assert device["capability"] == f"{properties.major}.{properties.minor}"
        assert device["uuid"] == str(properties.uuid)
        assert device["multiprocessors"] == properties.multi_processor_count
        assert device["total_memory"] == tcuda.mem_get_info(index)[1]
        assert 0 < device["free_memory"] <= device["total_memory"]
        assert 0 <= device["driver_used_memory"] < device["total_memory"]


def test_info_is_plain_text_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["tcuda", tcuda.__version__]
    for index in range(tcuda.device_count()):
        properties = tcuda.get_device_properties(index)
        (line,) = (line for line in lines if str(properties.uuid) in line)  # one line, however long
        assert properties.name in line
    assert all(line.isascii() and line.isprintable() for line in lines)


def test_info_on_emulated_devices(tcuda_command: Any) -> None:
    done = tcuda_command("info", "--json", TCUDA_RUNTIME="emulated", TCUDA_EMULATED_DEVICES="3", **NO_GPU)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert (facts["runtime"], facts["chosen_by"], len(facts["devices"])) == ("emulated", "environment", 3)
    assert facts["environment"] == {
        "CUDA_VISIBLE_DEVICES": "",
        "TCUDA_EMULATED_DEVICES": "3",
        "TCUDA_RUNTIME": "emulated",
    }


def test_info_without_a_gpu_says_why_and_what_to_do(tcuda_command: Any) -> None:
    done = tcuda_command("info", **NO_GPU)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("There is no device. "))
    assert "CUDA_VISIBLE_DEVICES=''" in line or "CuPy cannot be imported" in line
    assert "TCUDA_RUNTIME=emulated" in line
    assert "tcuda emulated device" not in done.stdout


def test_info_without_a_gpu_as_json(tcuda_command: Any) -> None:
    facts = json.loads(tcuda_command("info", "--json", **NO_GPU).stdout)
    assert facts["devices"] == facts["architectures"] == []
    assert facts["problem"]
    assert facts["runtime"] != "emulated"
    assert facts["chosen_by"] == "default"


def test_info_without_cupy_says_so(tcuda_command: Any) -> None:
    done = tcuda_command("info", "--json", code=WITHOUT_CUPY)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert (facts["runtime"], facts["driver"], facts["allocator"]) == (None, None, None)
    assert "CuPy cannot be imported" in facts["problem"]


@pytest.mark.parametrize("command", ["info", "demo"])
@pytest.mark.parametrize(
    "variables", [{"TCUDA_RUNTIME": "hip"}, {"TCUDA_RUNTIME": "emulated", "TCUDA_EMULATED_DEVICES": "many"}]
)
def test_bad_environment_is_one_line_on_stderr(tcuda_command: Any, command: str, variables: dict[str, str]) -> None:
    done = tcuda_command(command, **variables)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    name, value = list(variables.items())[-1]
    assert line.startswith(f"tcuda {command}: {name} is {value!r}; ")


# tcuda demo


@pytest.mark.parametrize("devices", range(1, min(2, tcuda.device_count()) + 1))
def test_demo_json_is_one_object(devices: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--epochs", "2", "--seed", "5", "--devices", str(devices), "--json"]) == 0
    output = capsys.readouterr()
    result = json.loads(output.out)
    assert set(result) == {
        "runtime",
        "times",
        "config",
        "resumed_after",
        "accuracy",
        "epochs",
        "phases",
        "elapsed_milliseconds",
        "parameters_sha256",
        "devices",
    }
    assert result["runtime"] == os.environ["TCUDA_RUNTIME"]
    assert ("modelled" in result["times"]) == (result["runtime"] == "emulated")
    asked = {"epochs": 2, "seed": 5, "devices": devices, "overlap": True, "graph": False}
    assert result["config"].items() >= asked.items()
    assert 0.5 < result["accuracy"] <= 1
    assert [set(epoch) for epoch in result["epochs"]] == [{"number", "loss", "accuracy"}] * 2
    assert all(set(phase) == {"milliseconds", "share"} for phase in result["phases"].values())
    assert sum(phase["share"] for phase in result["phases"].values()) == pytest.approx(1)
    assert all(phase["milliseconds"] > 0 for phase in result["phases"].values())
    assert result["elapsed_milliseconds"] > 0
    assert len(result["parameters_sha256"]) == 64
    assert [set(device) for device in result["devices"]] == [{"index", "name", "used", "free"}] * devices
    assert len([line for line in output.err.splitlines() if line.startswith("epoch ")]) == 2


def test_demo_options_reach_the_training(capsys: pytest.CaptureFixture[str]) -> None:
    def result(*arguments: str) -> Any:
        assert main(["demo", "--epochs", "1", "--json", *arguments]) == 0
        return json.loads(capsys.readouterr().out)

    overlapping, in_a_row, captured, other = (
        result(*arguments) for arguments in ([], ["--no-overlap"], ["--graph"], ["--seed", "1"])
    )
    assert (overlapping["config"]["overlap"], in_a_row["config"]["overlap"]) == (True, False)
    assert (overlapping["config"]["graph"], captured["config"]["graph"]) == (False, True)
    assert list(captured["phases"]) == ["copy", "step"]
    assert overlapping["parameters_sha256"] == in_a_row["parameters_sha256"] != other["parameters_sha256"]
    assert overlapping["parameters_sha256"] == captured["parameters_sha256"]


@pytest.mark.parametrize(
    ("options", "phases"), [([], ["copy", "forward", "backward", "update"]), (["--graph"], ["copy", "step"])]
)
def test_demo_report_is_plain_text_where_there_is_no_terminal(
    options: list[str], phases: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--epochs", "2", *options]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    lines = output.out.splitlines()
    assert [line.split()[1] for line in lines[:2]] == ["1/2", "2/2"]
    assert lines[2].startswith("accuracy on digits that were held out: ")
    firsts = [line.split()[0] for line in lines if line]
    assert firsts[3 : firsts.index("device") - 1] == ["phase", *phases]
    assert any(tcuda.get_device_name(0) in line for line in lines)
    assert all(line.isascii() and line.isprintable() for line in lines)


@pytest.mark.parametrize("devices", range(1, min(2, tcuda.device_count()) + 1))
def test_demo_goes_on_in_another_process_to_the_same_bits(devices: int, tcuda_command: Any) -> None:
    here = {name: os.environ[name] for name in ("TCUDA_RUNTIME", "TCUDA_EMULATED_DEVICES")}

    def run(*arguments: str) -> tuple[Any, list[str]]:
        done = tcuda_command("demo", "--json", *arguments, **here)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), [line.split("  ")[0] for line in done.stderr.splitlines()]

    whole, said = run("--epochs", "3", "--seed", "7", "--devices", str(devices), "--save-at", "2")
    assert said == ["epoch 1/3", "epoch 2/3", "saved after epoch 2 to tcuda-demo.npz", "epoch 3/3"]
    resumed, said = run("--resume", "--no-overlap", "--graph")
    assert said == ["resumed after epoch 2 from tcuda-demo.npz", "epoch 3/3"]
    for key in ("parameters_sha256", "epochs", "accuracy"):
        assert resumed[key] == whole[key]
    assert (whole["resumed_after"], resumed["resumed_after"]) == (None, 2)
    assert resumed["config"] == {**whole["config"], "overlap": False, "graph": True, "save_at": None}


def test_demo_says_which_file_it_saves_to_and_resumes_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "file.npz")
    assert main(["demo", "--epochs", "1", "--save-at", "1", "--checkpoint", path]) == 0
    assert capsys.readouterr().out.splitlines()[1] == f"saved after epoch 1 to {path}"
    assert main(["demo", "--epochs", "2", "--resume", "--checkpoint", path]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == f"resumed after epoch 1 from {path}"
    assert second.startswith("epoch 2/2 ")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("demo") / "file.npz")
    assert main(["demo", "--epochs", "1", "--save-at", "1", "--checkpoint", path]) == 0
    return path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--epochs", "2", "--seed", "3"],
            "The checkpoint was made with seed 0, so that one cannot go on from it with se",
        ),
        (
            ["--epochs", "2", "--devices", "9"],
            "The checkpoint was made with devices 1, so that one cannot go on from it ",
        ),
        ([], "The checkpoint was made after epoch 1, and epochs is 1; ask for more."),
        (
            ["--epochs", "3", "--save-at", "1"],
            "The checkpoint was made after epoch 1, and save_at is 1; it must be 2 to 3.",
        ),
    ],
)
def test_demo_refuses_what_does_not_fit_its_checkpoint(
    options: list[str], message: str, checkpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--resume", "--checkpoint", checkpoint, *options]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith(f"tcuda demo: {message}")


def test_demo_says_which_file_is_no_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.npz"
    assert main(["demo", "--resume", "--checkpoint", str(path)]) == 1
    assert capsys.readouterr().err == f"tcuda demo: No such file or directory: {str(path)!r}\n"
    path.write_text("weights")
    assert main(["demo", "--resume", "--checkpoint", str(path)]) == 1
    error = capsys.readouterr().err
    assert error == f"tcuda demo: {str(path)!r} is no checkpoint of tcuda demo, or not a whole one.\n"


def test_demo_says_where_it_could_not_save(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "missing" / "file.npz"
    assert main(["demo", "--epochs", "1", "--save-at", "1", "--checkpoint", str(path)]) == 1
    assert capsys.readouterr().err == f"tcuda demo: No such file or directory: {str(path)!r}\n"


def test_demo_writes_a_page_of_its_memory_and_then_records_no_more(tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    assert main(["demo", "--epochs", "1", "--memory-viz", str(output)]) == 0
    page = output.read_text()
    assert "network.py" in page  # who allocated
    assert "http" not in page.replace("http-equiv", "")
    kept = tcuda.xp.ones(1000)
    traces = tcuda.memory._snapshot()["device_traces"]
    assert traces == [[]] * tcuda.device_count(), kept


def test_demo_says_where_it_could_not_write_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "missing" / "page.html"
    assert main(["demo", "--epochs", "1", "--memory-viz", str(output)]) == 1
    assert capsys.readouterr().err == f"tcuda demo: No such file or directory: {str(output)!r}\n"


def test_demo_with_too_many_devices_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--devices", str(tcuda.device_count() + 1)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith("tcuda demo: CUDA error: invalid device ordinal. ")


def test_demo_without_a_gpu_emulates_devices_and_says_so(tcuda_command: Any) -> None:
    done = tcuda_command("demo", "--epochs", "1", "--devices", "3", "--json", **NO_GPU)
    assert done.returncode == 0
    assert done.stderr.startswith("There is no GPU: using 3 emulated devices")
    result = json.loads(done.stdout)
    assert result["runtime"] == "emulated"
    assert len(result["devices"]) == 3


def test_demo_does_not_emulate_where_cuda_was_asked_for(tcuda_command: Any) -> None:
    done = tcuda_command("demo", TCUDA_RUNTIME="cuda", **NO_GPU)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("tcuda demo: ")
    assert "TCUDA_RUNTIME=emulated" in line


# Ctrl-C


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def test_interrupted_training_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = iter([train.train_step] * 3)

    def step(*arguments: Any) -> None:
        try:
            next(steps)(*arguments)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(train, "train_step", step)
    assert main(["demo"]) == 130
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "tcuda: interrupted\n")


def test_ctrl_c_ends_the_process_with_130(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WITH_CTRL_C, "demo", "--epochs", "1000000"],
        cwd=tmp_path,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any(line.startswith("epoch ") for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors == "tcuda: interrupted\n"


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_a_destructor_is_not_lost() -> None:
    class Interrupted:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), interruptible():  # noqa: PT012 - the first line must not raise
        Interrupted()
        assert threading.Event().wait(60), "the interrupt was lost"


def test_other_errors_in_destructors_are_reported_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    class Broken:
        def __del__(self) -> None:
            raise ZeroDivisionError

    with interruptible():
        Broken()
    assert [unraisable.exc_type for unraisable in reported] == [ZeroDivisionError]
    with contextlib.suppress(KeyboardInterrupt), interruptible():
        raise KeyboardInterrupt
    assert sys.unraisablehook == reported.append


# The signal comes at the n-th of something, so that the moments are the same in every run. It counts from the first
# module of tcuda on: an interrupt before that is Python's to report.
INTERRUPTED_AT = """
import signal, sys

moment, by, *arguments = sys.argv[1:]
sys.argv = [{program!r}, *arguments]
signal.signal(signal.SIGINT, signal.default_int_handler)
left = int(moment)

def count():
    global left
    if "tcuda._command" in sys.modules and hasattr(sys.modules["tcuda._command"], "ENDS_AT_CTRL_C"):
        left -= 1
        if left == 0:
            signal.raise_signal(signal.SIGINT)

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        count()

if by == "import":
    sys.meta_path.insert(0, Finder)
else:
    sys.setprofile(lambda frame, event, argument: count() if event == "call" else None)

from tcuda.cli import main

sys.exit(main())
"""


@pytest.mark.parametrize("program", ["/usr/bin/tcuda", "/somewhere/site-packages/tcuda/__main__.py"])
@pytest.mark.parametrize(
    ("by", "moments"),
    [
        ("import", (1, 2, 30, 80, 150, 300, 450, 600)),
        ("call", (1, 10, 1000, 10_000, 40_000, 100_000, 300_000, 500_000)),
    ],
)
def test_ctrl_c_at_any_moment_is_no_traceback(program: str, by: str, moments: tuple[int, ...], tmp_path: Path) -> None:
    ends = set()
    for moment in moments:
        done = subprocess.run(
            [sys.executable, "-c", INTERRUPTED_AT.format(program=program), str(moment), by, "demo", "--epochs", "1"],
            cwd=tmp_path,
            env=environment(TCUDA_RUNTIME="emulated", **NO_GPU),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stderr) in [(-signal.SIGINT, ""), (130, "tcuda: interrupted\n"), (0, "")], moment
        ends.add(done.returncode)
    assert -signal.SIGINT in ends


def test_ctrl_c_of_another_program_is_left_alone(tmp_path: Path) -> None:
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); import tcuda, tcuda.cli; "
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler; "
        "tcuda.cli.main(['info']); assert signal.getsignal(signal.SIGINT) is signal.default_int_handler; "
        "signal.signal(signal.SIGINT, signal.SIG_IGN); tcuda.cli.main(['info']); "
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN"
    )
    script = tmp_path / "train"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_ignored_ctrl_c_stays_ignored(tmp_path: Path) -> None:
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv = ['/usr/bin/tcuda', 'info']; "
        "from tcuda.cli import main; assert main() == 0; assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_that_became_another_error_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def step(*arguments: Any) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise TypeError("Error calling __set_name__") from interrupt

    monkeypatch.setattr(train, "train_step", step)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "tcuda: interrupted\n"
