"""``tcuda demo``: its options, its report and its checkpoints."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import tcuda
from support.environments import NO_GPU
from tcuda.cli import main


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

    overlapping, in_a_row, captured, other, as_arrays = (
        result(*arguments) for arguments in ([], ["--no-overlap"], ["--graph"], ["--seed", "1"], ["--kernel", "array"])
    )
    assert (overlapping["config"]["overlap"], in_a_row["config"]["overlap"]) == (True, False)
    assert (overlapping["config"]["graph"], captured["config"]["graph"]) == (False, True)
    assert list(captured["phases"]) == ["copy", "step"]
    assert overlapping["parameters_sha256"] == in_a_row["parameters_sha256"] != other["parameters_sha256"]
    assert overlapping["parameters_sha256"] == captured["parameters_sha256"] == as_arrays["parameters_sha256"]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("devices", range(1, min(2, tcuda.device_count()) + 1))
def test_demo_with_raw_kernels_is_saved_and_resumed(
    devices: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "file.npz")

    def result(*arguments: str) -> Any:
        assert main(["demo", "--json", "--checkpoint", path, *arguments]) == 0
        return json.loads(capsys.readouterr().out)

    whole = result("--epochs", "2", "--save-at", "1", "--kernel", "raw", "--devices", str(devices))
    resumed = result("--resume", "--graph")
    assert (whole["config"]["kernel"], resumed["config"]["kernel"]) == ("raw", "raw")
    assert resumed["parameters_sha256"] == whole["parameters_sha256"]
    assert resumed["accuracy"] == whole["accuracy"] > 0.8
    assert main(["demo", "--checkpoint", path, "--resume", "--kernel", "array"]) == 1
    message = "The checkpoint was made with kernel raw; a run with kernel array cannot go on from it."
    assert capsys.readouterr().err == f"tcuda demo: {message}\n"


@pytest.mark.wings
def test_demo_with_raw_kernels_and_without_a_compiler_is_one_line_on_stderr(tcuda_command: Any) -> None:
    done = tcuda_command("demo", "--kernel", "raw", TCUDA_RUNTIME="emulated", PATH="", CXX="")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("tcuda demo: Emulated devices compile kernels with the C++ compiler of the machine, ")


@pytest.mark.parametrize(
    ("options", "phases"), [([], ["copy", "forward", "backward", "update"]), (["--graph"], ["copy", "step"])]
)
def test_demo_report_is_plain_text_without_a_terminal(
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


@pytest.mark.long
@pytest.mark.parametrize("devices", range(1, min(2, tcuda.device_count()) + 1))
def test_demo_resumed_in_another_process_gives_the_same_bits(devices: int, tcuda_command: Any) -> None:
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
            "The checkpoint was made with seed 0; a run with seed 3 cannot go on from it.",
        ),
        (
            ["--epochs", "2", "--devices", "9"],
            "The checkpoint was made with devices 1; a run with devices 9 cannot go on from it.",
        ),
        ([], "The checkpoint was made after epoch 1, and epochs is 1; ask for more."),
        (
            ["--epochs", "3", "--save-at", "1"],
            "The checkpoint was made after epoch 1, and save_at is 1; it must be 2 to 3.",
        ),
    ],
)
def test_demo_refuses_options_that_do_not_fit_its_checkpoint(
    options: list[str], message: str, checkpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--resume", "--checkpoint", checkpoint, *options]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith(f"tcuda demo: {message}")


def test_demo_names_a_file_that_is_no_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.npz"
    assert main(["demo", "--resume", "--checkpoint", str(path)]) == 1
    assert capsys.readouterr().err == f"tcuda demo: No such file or directory: {str(path)!r}\n"
    path.write_text("weights")
    assert main(["demo", "--resume", "--checkpoint", str(path)]) == 1
    error = capsys.readouterr().err
    assert error == f"tcuda demo: {str(path)!r} is not a checkpoint of tcuda demo, or a part of it is missing.\n"


def test_demo_says_where_it_could_not_save(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "missing" / "file.npz"
    assert main(["demo", "--epochs", "1", "--save-at", "1", "--checkpoint", str(path)]) == 1
    assert capsys.readouterr().err == f"tcuda demo: No such file or directory: {str(path)!r}\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_demo_says_that_the_page_was_written(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--epochs", "1", "--memory-viz", "page.html", *["--json"] * as_json]) == 0
    output = capsys.readouterr()
    said = output.err if as_json else output.out
    assert said.splitlines()[-1] == "page of the memory written to page.html"


def test_demo_writes_a_page_of_its_memory_and_stops_recording(tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    assert main(["demo", "--epochs", "1", "--memory-viz", str(output)]) == 0
    page = output.read_text()
    assert "network.py" in page  # the file that allocated
    assert "http" not in page.replace("http-equiv", "")
    kept = tcuda.xp.ones(1000)
    traces = tcuda.memory._snapshot()["device_traces"]
    assert traces == [[]] * tcuda.device_count(), kept


def test_the_page_of_an_installed_demo_names_the_lines_that_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = "/usr/lib/python3.12/site-packages/tcuda"
    demo = str(Path(tcuda.__file__).parent)
    snapshot = tcuda.memory._snapshot

    def moved(*arguments: Any, **more: Any) -> Any:
        found = snapshot(*arguments, **more)
        for trace in found["device_traces"]:
            for event in trace:
                for frame in event["frames"]:
                    if frame["filename"].startswith(demo):
                        frame["filename"] = installed + frame["filename"][len(demo) :]
        return found

    monkeypatch.setattr(tcuda.memory, "_snapshot", moved)
    output = tmp_path / "page.html"
    assert main(["demo", "--epochs", "1", "--memory-viz", str(output)]) == 0
    data = json.loads(output.read_text().partition('id="data">')[2].partition("</script>")[0])
    sites = [site for device in data["devices"] for site in device["sites"] if site[0] is not None]
    files = {data["texts"][data["frames"][site[0]][1]].rpartition("/")[2] for site in sites}
    assert {"network.py", "optimizer.py"} <= files
    assert len(sites) > 10


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


@pytest.mark.wings
def test_demo_without_a_gpu_emulates_devices_and_says_so(tcuda_command: Any) -> None:
    done = tcuda_command("demo", "--epochs", "1", "--devices", "3", "--json", **NO_GPU)
    assert done.returncode == 0
    assert done.stderr.startswith("There is no GPU: using 3 emulated devices")
    result = json.loads(done.stdout)
    assert result["runtime"] == "emulated"
    assert len(result["devices"]) == 3


def test_demo_does_not_emulate_if_cuda_is_chosen(tcuda_command: Any) -> None:
    done = tcuda_command("demo", TCUDA_RUNTIME="cuda", **NO_GPU)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("tcuda demo: ")
    assert "TCUDA_RUNTIME=emulated" in line
