"""``tcuda info``: the description of the devices, and the messages without a device."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.environments import NO_GPU
from tcuda.cli import info, main

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_CUPY = "import sys; sys.modules['cupy'] = None; from tcuda.cli import main; sys.exit(main())"


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


def test_info_is_plain_text_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["tcuda", tcuda.__version__]
    for index in range(tcuda.device_count()):
        properties = tcuda.get_device_properties(index)
        (line,) = (line for line in lines if str(properties.uuid) in line)  # a long line is not wrapped
        assert properties.name in line
    assert all(line.isascii() and line.isprintable() for line in lines)


def test_info_has_a_row_for_scipy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.startswith("SciPy"))
    assert rows == {"SciPy": importlib.metadata.version("scipy")}
    monkeypatch.setattr(info, "_version_of", lambda name: None)
    assert main(["info"]) == 0
    assert "SciPy          not installed; emulated devices need SciPy for cupyx.scipy" in capsys.readouterr().out


def test_info_prints_no_control_characters(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TCUDA_OF_A_TEST", "\x1b[31mred\x07\r")
    assert main(["info"]) == 0
    output = capsys.readouterr().out
    assert r"TCUDA_OF_A_TEST=\x1b[31mred\x07" in output
    assert output.replace("\n", "").isprintable()


@pytest.mark.wings
def test_info_on_emulated_devices(tcuda_command: Any) -> None:
    done = tcuda_command(
        "info", "--json", TCUDA_RUNTIME="emulated", TCUDA_EMULATED_DEVICES="3", CUDA_VISIBLE_DEVICES="2,0,1"
    )
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert (facts["runtime"], facts["chosen_by"], len(facts["devices"])) == ("emulated", "environment", 3)
    assert (
        facts["environment"].items()
        >= {
            "CUDA_VISIBLE_DEVICES": "2,0,1",
            "TCUDA_EMULATED_DEVICES": "3",
            "TCUDA_RUNTIME": "emulated",
        }.items()
    )


def test_info_names_the_tools_and_libraries(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("TCUDA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CXX", "c++")
    folder = tmp_path / f"tcuda-kernels-{os.geteuid()}"
    folder.mkdir()
    (folder / "kernel.so").write_bytes(bytes(3000))
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["kernel_cache"] == {"folder": str(folder), "bytes": 3000}
    assert facts["compiler"].startswith(f"{shutil.which('c++')}: ")
    assert facts["environment"]["CXX"] == "c++"
    installed = {each.name: each.version for each in importlib.metadata.distributions()}
    for library in ("scipy", "distributed", "mpi4py"):
        assert facts[library] == installed.get(library)
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert f"kernel cache   {folder}, 2.9 KiB" in text
    assert f"mpi4py {facts['mpi4py']}" in text


def test_info_without_a_compiler(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert main(["info"]) == 0
    assert "C++ compiler   not found" in capsys.readouterr().out


@pytest.mark.wings
def test_info_names_what_import_cupy_imports(tcuda_command: Any, tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text("raise RuntimeError('info must not import this module')")
    facts = json.loads(tcuda_command("info", "--json", TCUDA_RUNTIME="emulated", PYTHONPATH=str(tmp_path)).stdout)
    assert facts["cupy_imported"] == str(tmp_path / "cupy.py")
    code = "import tcuda.emulation as e, tcuda.cli; e.enable(); e.install_as_cupy(); import cupy; tcuda.cli.main()"
    facts = json.loads(tcuda_command("info", "--json", code=code).stdout)
    assert facts["cupy_imported"].endswith("tcuda/emulation/xp.py")


def test_info_names_the_commit_of_a_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
        command = ["git", *identity, "-C", str(tmp_path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(tcuda, "__file__", str(tmp_path / "tcuda" / "__init__.py"))
    assert info._commit() is None
    git("init", "-q")
    (tmp_path / "file").write_text("first")
    git("add", "file")
    git("commit", "-qm", "First")
    assert info._commit() == git("rev-parse", "--short=12", "HEAD")
    (tmp_path / "file").write_text("second")
    assert info._commit() == git("rev-parse", "--short=12", "HEAD") + "-dirty"


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


@pytest.mark.wings
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
