"""Every module of CuPy can be imported where ``import cupy`` gives emulated devices, or its import tells the reason."""

from __future__ import annotations

import importlib.util
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import cupy_modules
from support.environments import environment

pytestmark = pytest.mark.emulated

THERE, LACKING, REFUSED = cupy_modules.named("there"), cupy_modules.named("lacking"), cupy_modules.refused()

PROGRAM = """
import importlib, json, sys
told = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        told[name] = ""
    except ImportError as error:
        told[name] = str(error)
print(json.dumps(told))
"""


def imported(names: list[str]) -> dict[str, str]:
    """Return what the import of each module says; nothing for a module that is there."""
    command = [sys.executable, "-W", "ignore", "-m", "tcuda.emulation", "-c", PROGRAM, *names]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=True)
    told: dict[str, str] = json.loads(done.stdout)
    return told


def test_modules_are_there_or_are_refused_with_a_reason() -> None:
    told = imported([*THERE, *LACKING, *REFUSED])
    assert {name: told[name] for name in THERE if told[name]} == {}
    for name in LACKING:
        assert " is a module of CuPy that emulated devices lack. " in told[name], name
    for name, reason in REFUSED.items():
        what = f"No module named '{name}'. {name} is a module of CuPy that emulated devices lack. {reason}"
        package = name.rpartition(".")[0]
        assert told[name] == what or REFUSED.get(package, "no reason") in told[name], name


def test_every_module_has_one_state() -> None:
    every = [*THERE, *LACKING, *REFUSED]
    assert len(set(every)) == len(every)
    assert all(reason.endswith(".") for reason in REFUSED.values())


def test_the_table_has_the_modules_of_the_installed_cupy() -> None:
    found = importlib.util.find_spec("cupy")
    if found is None or found.origin is None or not Path(found.origin).with_name("_version.py").exists():
        pytest.skip("CuPy is not installed")
    version = Path(found.origin).with_name("_version.py").read_text(encoding="utf-8")
    if repr(cupy_modules.TABLE["version"]) not in version:
        pytest.skip(f"the table has the modules of CuPy {cupy_modules.TABLE['version']}")
    folder = Path(found.origin).parents[1]
    names = set()
    for package in ("cupy", "cupyx", "cupy_backends"):
        names.add(package)
        names |= _walked(folder / package, f"{package}.")
    assert names == {*THERE, *LACKING, *REFUSED}


def _walked(folder: Path, prefix: str) -> set[str]:
    """Return the modules in a package, which is not imported."""
    names = set()
    for module in pkgutil.iter_modules([str(folder)], prefix):
        names.add(module.name)
        if module.ispkg:
            names |= _walked(folder / module.name.rpartition(".")[2], f"{module.name}.")
    return names
