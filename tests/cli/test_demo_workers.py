"""``tcuda demo --workers`` and ``--scheduler``."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.environments import NO_GPU
from tcuda.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distributed import LocalCluster

needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs Dask's distributed")

WORKERS = min(2, tcuda.device_count())
HERE = {name: os.environ[name] for name in ("TCUDA_RUNTIME", "TCUDA_EMULATED_DEVICES")}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    from tcuda.dask import local_cluster
    from tcuda.demo.workers.cluster import quiet

    with quiet(), local_cluster(WORKERS, dashboard_address=":0") as cluster:
        yield cluster


def parameters_of(*arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["demo", "--epochs", "1", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)["parameters_sha256"]


# Usage


@needs_dask
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "3"], "--workers is 3; it must divide the batch of 32 digits"),
        (["--workers", "0"], "--workers is 0; it must divide the batch of 32 digits"),
        (["--workers", "64"], "--workers is 64; it must divide the batch of 32 digits"),
        (["--workers", "two"], "argument --workers: 'two' is not a whole number"),
        (["--workers", "2", "--devices", "2"], "--devices is for one process; with --workers or --scheduler, "),
        (["--scheduler", "tcp://host:1", "--graph"], "--graph does not fit --workers and --scheduler: "),
        (["--workers", "2", "--kernel", "raw"], "--kernel raw does not fit --workers and --scheduler: "),
        (["--workers", "2", "--kernel", "array"], "--kernel array does not fit --workers and --scheduler: "),
        (["--workers", "2", "--memory-viz", "page.html"], "--memory-viz shows this process, and --workers and "),
    ],
)
def test_options_that_do_not_fit_are_bad_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["demo", *arguments])
    assert ended.value.code == 2
    assert f"tcuda demo: error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--workers", "2"], ["--scheduler", "tcp://host:1"]])
def test_without_dask_one_line_says_what_to_install(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "distributed" else find(name))
    assert main(["demo", *arguments]) == 1
    # The hint names no extra of tcuda: a package index may have no tcuda.
    (required,) = (line for line in metadata.requires("tcuda") or () if "extra == 'dask'" in line.replace('"', "'"))
    message = f"--workers and --scheduler need Dask; install it by: pip install '{required.partition(';')[0].strip()}'"
    assert capsys.readouterr().err == f"tcuda demo: {message}\n"


def test_other_trainings_do_not_import_dask(tcuda_command: Any) -> None:
    code = "import sys; from tcuda.cli import main; main(sys.argv[1:]); assert 'distributed' not in sys.modules"
    done = tcuda_command("demo", "--epochs", "1", code=code, **HERE)
    assert (done.returncode, done.stderr) == (0, "")


@needs_dask
def test_more_workers_than_devices_are_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--workers", "32"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith("tcuda demo: CUDA error: invalid device ordinal. Each of the 32 workers needs a device, ")


@needs_dask
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nothing://here", "tcp://127.0.0.1:port"])
def test_a_wrong_scheduler_is_one_line_on_stderr(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tcuda.demo.workers import cluster

    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    assert main(["demo", "--scheduler", address]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith(f"tcuda demo: The scheduler at {address!r} cannot be reached: ")


# Training


@pytest.mark.long
@needs_dask
def test_workers_of_this_machine_give_the_bits_of_one_process(
    tcuda_command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    done = tcuda_command("demo", "--workers", str(WORKERS), "--epochs", "1", "--json", **HERE)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("epoch 1/1  loss ")
    result = json.loads(done.stdout)
    assert result["parameters_sha256"] == parameters_of("--kernel", "exact", capsys=capsys)
    assert result["runtime"] == HERE["TCUDA_RUNTIME"]
    assert result["config"].items() >= {"kernel": "exact", "devices": 1, "graph": False}.items()
    assert set(result["cluster"]) == {"runtime", "workers", "losses"}
    assert [worker["rank"] for worker in result["cluster"]["workers"]] == list(range(WORKERS))
    assert sorted(device["index"] for device in result["devices"]) == list(range(WORKERS))
    assert result["cluster"]["losses"] == []
    assert result["accuracy"] > 0.8


@pytest.mark.long
@needs_dask
def test_workers_of_a_running_cluster(
    cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = cluster.scheduler_address
    path = str(tmp_path / "file.npz")
    arguments = ["demo", "--epochs", "2", "--save-at", "1", "--checkpoint", path, "--scheduler", address]
    assert main(arguments) == 0
    output = capsys.readouterr()
    assert output.err == ""
    lines = output.out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["epoch", "saved", "epoch"]
    (head,) = (index for index, line in enumerate(lines) if line.startswith("worker  address"))
    assert [line.split()[0] for line in lines[head + 1 :]] == [str(rank) for rank in range(WORKERS)]
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert len(cluster.scheduler.workers) == WORKERS
    resumed = ["--resume", "--checkpoint", path, "--epochs", "2"]
    on_cluster = parameters_of(*resumed, "--scheduler", address, "--workers", "1", capsys=capsys)
    assert on_cluster == parameters_of(*resumed, capsys=capsys)


@pytest.mark.long
@needs_dask
@pytest.mark.emulated
def test_the_program_needs_no_device_for_workers_of_a_running_cluster(
    cluster: LocalCluster, tcuda_command: Any
) -> None:
    without_devices = {"TCUDA_RUNTIME": "cuda", **NO_GPU}
    arguments = ["--scheduler", cluster.scheduler_address, "--epochs", "1", "--json"]
    done = tcuda_command("demo", *arguments, **without_devices)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["runtime"] == "emulated"
    assert "modelled" in result["times"]


@pytest.mark.long
@needs_dask
@pytest.mark.emulated
def test_workers_without_a_gpu_are_emulated_and_the_demo_says_so(tcuda_command: Any) -> None:
    done = tcuda_command("demo", "--workers", "1", "--epochs", "1", **NO_GPU)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("There is no GPU: using 2 emulated devices")


@pytest.mark.long
@needs_dask
def test_ctrl_c_ends_the_workers_too(tmp_path: Path) -> None:
    """Send the signal to all processes, as a terminal does."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from tcuda.cli import main; sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--epochs", "1000000", "--workers", str(WORKERS)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert any(line.startswith("epoch ") for line in process.stdout)
        os.killpg(process.pid, signal.SIGINT)
        # The workers share the pipes, so this call returns when the workers have ended too.
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "tcuda: interrupted\n"
