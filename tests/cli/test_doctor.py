"""``tcuda doctor``: the checks of each device, and what is printed about those that fail."""

from __future__ import annotations

import importlib.metadata
import json
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.environments import NO_GPU
from tcuda.cli import doctor, main

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKS = ["copy", "arrays", "kernel", "capture"]


def test_every_check_of_every_device_passes(capsys: pytest.CaptureFixture[str]) -> None:
    before = tcuda.current_device()
    assert main(["doctor", "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [(each["device"], each["check"]) for each in checks] == [
        (device, check) for device in range(tcuda.device_count()) for check in CHECKS
    ]
    assert {each["problem"] for each in checks} == {None}
    assert all(each["seconds"] > 0 for each in checks)
    assert tcuda.current_device() == before


def test_the_report_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["device", "check", "result", "time"]
    assert [line.split()[1:3] for line in lines[1:5]] == [[check, "ok"] for check in CHECKS]
    assert lines[-1].startswith("All checks passed.")


def test_a_missing_scipy_is_named_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_SCIPY", "a-package-that-nobody-has")
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "a-package-that-nobody-has  missing" in printed
    assert "pip install scipy, or install tcuda[emulation]." in printed
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["a-package-that-nobody-has"] is None


def test_the_report_has_the_version_of_scipy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    version = json.loads(capsys.readouterr().out)["scipy"]
    assert version == importlib.metadata.version("scipy")
    assert main(["doctor"]) == 0
    assert ["scipy", version] in [line.split() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("wrong", ["raises", "computes"])
def test_a_check_that_fails_is_named_and_the_others_still_run(
    wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check() -> None:
        if wrong == "raises":
            raise OSError("the\nkernel is gone")
        doctor._require([1.0, 2.0], [1.0, 3.0])

    checks: dict[str, Callable[[], None]] = {**doctor._CHECKS, "kernel": check}
    monkeypatch.setattr(doctor, "_CHECKS", checks)
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    problem = {
        "raises": "OSError: the kernel is gone",
        "computes": "RuntimeError: The device computed 1 of 2 numbers wrong; the first is 1.",
    }[wrong]
    assert f"The kernel on device 0 failed. {problem}" in text
    rows = [line.split()[1:3] for line in text.splitlines()[1:5]]
    assert rows == [["copy", "ok"], ["arrays", "ok"], ["kernel", "failed"], ["capture", "ok"]]


@pytest.mark.emulated
def test_a_missing_compiler_is_named(tcuda_command: Any, tmp_path: Any) -> None:
    done = tcuda_command("doctor", TCUDA_RUNTIME="emulated", CXX=f"{tmp_path}/absent")
    assert done.returncode == 1
    assert (
        f"The kernel on device 0 failed. RuntimeError: The environment variable CXX is '{tmp_path}/absent'"
        in done.stdout
    )


def test_without_a_device_the_command_says_what_to_do(tcuda_command: Any) -> None:
    done = tcuda_command("doctor", **NO_GPU)
    assert done.returncode == 1
    assert done.stderr.startswith("tcuda doctor: ")
    assert "TCUDA_RUNTIME=emulated" in done.stderr
    assert "A program that says 'import cupy' runs by: tcuda run PROGRAM" in done.stderr


def test_without_a_device_the_report_still_has_the_version_of_scipy(tcuda_command: Any) -> None:
    version = importlib.metadata.version("scipy")
    lines = tcuda_command("doctor", **NO_GPU).stdout.splitlines()
    assert [line.split() for line in lines[1:]] == [["scipy", version]]
    assert json.loads(tcuda_command("doctor", "--json", **NO_GPU).stdout)["scipy"] == version


def test_without_a_device_the_json_has_the_problem(tcuda_command: Any) -> None:
    done = tcuda_command("doctor", "--json", **NO_GPU)
    assert (done.returncode, done.stderr) == (1, "")
    report = json.loads(done.stdout)
    assert report["checks"] == []
    assert "TCUDA_RUNTIME=emulated" in report["problem"]
