"""Programs that import CuPy and start other processes: emulated devices are there in all of these processes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.environments import environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.emulated

PROGRAM = """
import concurrent.futures
import multiprocessing
import os
import subprocess
import sys

CODE = "import sys; import cupyx, cupy; print(cupy.ones(3).sum(), cupy.cuda.runtime.getDeviceCount(), cupy.__file__)"


def told(variables=None, arguments=()):
    done = subprocess.run(
        [sys.executable, *arguments, "-c", CODE],
        cwd="/", env={**os.environ, **(variables or {})}, capture_output=True, text=True,
    )
    return done.stdout.split()[:2] or done.stderr.strip().splitlines()[-1]


def work(_):
    import cupy

    return float(cupy.ones(3).sum()), cupy.cuda.runtime.getDeviceCount()


def works_and_starts(_):
    return work(0), told()


def by_pool(method, function=works_and_starts):
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.map(function, [0])[0]


def spawn():
    return by_pool("spawn")


def forkserver():
    return by_pool("forkserver")


def fork():
    return by_pool("fork")


def futures():
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return list(executor.map(works_and_starts, [0]))[0]


def ignored_environment():
    return work(0), told(arguments=["-E"])


def dask():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        return client.submit(works_and_starts, 0).result()


def joblib():
    import joblib

    return joblib.Parallel(2)(joblib.delayed(works_and_starts)(n) for n in range(2))[0]


if __name__ == "__main__":
    PREPARE
    print(globals()[sys.argv[1]]())
"""
BOTH = "((3.0, 2), ['3.0', '2'])\n"
"""The output where the child, and a child of the child, has two emulated devices."""


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in ``folder``. An installed CuPy, which only says that it is installed, is in the path of imports."""
    for name in ("cupy", "cupyx"):
        (folder / "installed" / name).mkdir(parents=True, exist_ok=True)
        (folder / "installed" / name / "__init__.py").write_text("raise AssertionError('CuPy itself')")
    path = os.pathsep.join(filter(None, [str(folder / "installed"), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(**{"PYTHONPATH": path, "TCUDA_EMULATED_DEVICES": "2", **variables}),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM.replace("PREPARE", "pass"))
    return tmp_path


@pytest.mark.parametrize("way", ["spawn", "forkserver", "fork", "futures"])
def test_children_have_emulated_devices_and_so_have_their_children(way: str, program: Path) -> None:
    done = run(program, "-m", "tcuda.emulation", "program.py", way)
    assert (done.stdout, done.stderr) == (BOTH, "")


def test_workers_of_dask_with_nannies_have_emulated_devices(program: Path) -> None:
    pytest.importorskip("distributed")
    done = run(program, "-m", "tcuda.emulation", "program.py", "dask")
    assert done.stdout == BOTH, done.stderr


def test_workers_of_joblib_have_emulated_devices(program: Path) -> None:
    pytest.importorskip("joblib")
    done = run(program, "-m", "tcuda.emulation", "program.py", "joblib")
    assert done.stdout == BOTH, done.stderr


def test_a_spawned_child_that_ignores_the_environment_has_emulated_arrays(program: Path) -> None:
    """multiprocessing passes -E on to its children, and gives them ``sys.path``."""
    code = "import program; print(program.by_pool('spawn', program.work)[0])"
    (program / "main.py").write_text(f"if __name__ == '__main__':\n    {code}")
    editable = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if editable:
        pytest.skip("tcuda itself is found by PYTHONPATH")
    assert run(program, "-E", "-m", "tcuda.emulation", "main.py").stdout == "3.0\n"


def test_tests_in_the_processes_of_xdist_have_emulated_devices(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_one.py").write_text(
        "import os, cupy\ndef test_one():\n    assert cupy.ones(3).sum() == 3 and os.environ['PYTEST_XDIST_WORKER']\n"
    )
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:tcuda", "-n", "1"]
    done = run(tmp_path, "-m", "tcuda.emulation", "-m", "pytest", *options, "test_one.py")
    assert "1 passed" in done.stdout, done.stdout


def test_install_as_cupy_holds_in_children(tmp_path: Path) -> None:
    prepared = PROGRAM.replace(
        "PREPARE", "import tcuda.emulation as e; e.enable(devices=2); e.install_as_cupy(); e.install_as_cupy()"
    )
    (tmp_path / "program.py").write_text(prepared)
    done = run(tmp_path, "program.py", "spawn", TCUDA_EMULATED_DEVICES="")
    assert (done.stdout, done.stderr) == (BOTH, "")


def test_devices_that_enable_chooses_are_there_in_children(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import multiprocessing, sys\nimport tcuda\n"
        "def told(_): return tcuda.device_count(), tcuda.mem_get_info()[1] >> 20, tcuda.xp.__file__[-22:]\n"
        "if __name__ == '__main__':\n"
        "    tcuda.emulation.enable(devices=3, memory='64MiB')\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(told, [0]))\n"
    )
    done = run(tmp_path, "program.py", CUDA_VISIBLE_DEVICES="")
    assert (done.stdout, done.stderr) == ("[(3, 64, '/tcuda/emulation/xp.py')]\n", "")


@pytest.mark.parametrize("variables", ["{'TCUDA_RUNTIME': 'cuda'}", "{'TCUDA_RUNTIME': ''}"])
def test_a_child_whose_environment_ends_the_emulation_imports_the_installed_cupy(variables: str, program: Path) -> None:
    code = f"import program; print(program.told({variables}))"
    assert run(program, "-m", "tcuda.emulation", "-c", code).stdout == "AssertionError: CuPy itself\n"


def test_a_child_imports_no_private_package_of_an_installed_cupy(program: Path) -> None:
    (program / "installed" / "cupy_backends").mkdir(parents=True)
    (program / "installed" / "cupy_backends" / "__init__.py").write_text("installed = True")
    code = "import cupy_backends; print(hasattr(cupy_backends, 'installed'))"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    done = run(program, "-m", "tcuda.emulation", "-c", parent)
    assert done.stdout.split() == ["False"], done.stderr


@pytest.mark.parametrize(
    ("before", "variables", "message"),
    [
        ("import types, sys; sys.modules['cupy'] = types.ModuleType('cupy')", {}, "CuPy has been imported already"),
        ("", {"TCUDA_RUNTIME": "cuda"}, "TCUDA_RUNTIME is 'cuda'"),
    ],
)
def test_install_as_cupy_refuses_what_it_cannot_do_and_changes_nothing(
    before: str, variables: dict[str, str], message: str, tmp_path: Path
) -> None:
    code = (
        f"import os, sys, tcuda.emulation; {before}\nthen = dict(os.environ), sys.path[:]\n"
        "try: tcuda.emulation.install_as_cupy()\n"
        "except RuntimeError as error: print(error)\n"
        "print(then == (dict(os.environ), sys.path))"
    )
    done = run(tmp_path, "-c", code, **variables)
    assert message in done.stdout
    assert done.stdout.endswith("\nTrue\n")


def test_a_conftest_can_put_emulated_devices_in_the_place_of_cupy(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import tcuda.emulation\ntcuda.emulation.install_as_cupy()\n")
    (tmp_path / "test_one.py").write_text("import cupy\ndef test_one(): assert cupy.ones(3).sum() == 3\n")
    done = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_one.py")
    assert "1 passed" in done.stdout, done.stdout
