"""The page on tests in CI: its job and the action do the same, and each page says what its programs need."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

yaml = pytest.importorskip("yaml")
if not (REPOSITORY / ".ci").exists():
    pytest.skip("the source distribution has no workflows", allow_module_level=True)

PAGE = (REPOSITORY / "docs/testing-gpu-code-in-ci.md").read_text()
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
JOBS = [yaml.safe_load(text) for text in re.findall(r"^```yaml.*?\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)]
JOB = JOBS[1]["jobs"]["test"]["steps"]


def named(steps: list[dict[str, Any]], action: str) -> dict[str, Any]:
    """Return the step that uses an action."""
    (found,) = [step for step in steps if step.get("uses", "").startswith(f"{action}@")]
    return found


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """Return the script that runs the programs of the pages with what the pages install."""
    spec = importlib.util.spec_from_file_location("run_pages", REPOSITORY / ".ci/pages/run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_action_and_the_job_keep_the_kernels_under_the_same_key() -> None:
    assert named(STEPS, "actions/cache")["with"] == named(JOB, "actions/cache")["with"]


def test_the_kept_folder_is_the_one_in_which_tcuda_keeps_kernels() -> None:
    settings = (REPOSITORY / "docs/environment-variables.md").read_text()
    assert named(JOB, "actions/cache")["with"]["path"] == "~/.cache/tcuda"
    assert "`tcuda/kernels` in `XDG_CACHE_HOME`, or in `.cache` in `HOME`" in settings


def test_the_action_and_the_job_install_what_the_page_promises() -> None:
    (job,) = [step["run"] for step in JOB if "pip install" in step.get("run", "")]
    (action,) = [step["run"] for step in STEPS if "pip install" in step.get("run", "")]
    assert "tcuda[emulation]" in job
    assert "[emulation]" in action
    assert "cupyx.scipy" in PAGE
    assert " pytest " in job
    assert " pytest " in action


def test_the_table_of_the_page_has_every_input_with_its_default() -> None:
    rows = re.findall(r"^\| `([\w-]+)` +\| (?:`(.*?)`)? +\|", PAGE, re.MULTILINE)
    assert rows == [(name, found["default"]) for name, found in ACTION["inputs"].items()]


def test_the_steps_of_the_action_run_the_tests_in_each_order(tmp_path: Path) -> None:
    for name in ("pip", "pytest"):
        tool = tmp_path / name
        tool.write_text('#!/bin/bash\necho "${TCUDA_EMULATED_SCHEDULE:-eager} $(basename "$0") $*" >> "$LOG"\n')
        tool.chmod(0o755)
    given = {name.upper(): found["default"] for name, found in ACTION["inputs"].items()} | {"TESTS": "tests -q"}
    log = tmp_path / "log"
    for step in STEPS:
        if "run" not in step:
            continue
        wanted = {name: given[value.split(".")[1].split()[0].upper()] for name, value in step["env"].items()}
        tools = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log), "GITHUB_ACTION_PATH": "/action"}
        subprocess.run(["bash", "-e", "-c", step["run"]], env={**tools, **wanted}, cwd=tmp_path, check=True)
    run = "pytest --tcuda-cupy emulated --tcuda-devices 1 --tcuda-checks memory,padding"
    assert log.read_text().splitlines() == [
        "eager pip install pytest /action[emulation] .",
        f"eager {run} --tcuda-sanitize=raise --tcuda-html races.html tests -q",
        f"late:1 {run} tests -q",
        f"late:2 {run} tests -q",
    ]


def test_the_action_and_the_job_find_accesses_to_the_neighbour_array() -> None:
    runs = [step["run"] for step in JOB if "pytest --" in step.get("run", "")]
    assert len(runs) == 3
    assert all(f"--tcuda-checks {ACTION['inputs']['checks']['default']}" in run for run in runs)


def test_each_job_of_a_matrix_uploads_a_page_of_another_name() -> None:
    name = named(STEPS, "actions/upload-artifact")["with"]["name"]
    assert name.startswith("${{ inputs.artifact || format(")
    assert {"github.job", "strategy.job-index"} <= set(re.findall(r"[\w.-]+", name))


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("python3 -m venv .venv && .venv/bin/pip install -q -e . && .venv/bin/tcuda demo", ()),
        (".venv/bin/pip install -e '.[cuda12]'   # with CuPy", ()),
        (".venv/bin/pip install pytest PATH_OF_THE_CLONE_OF_TCUDA", ("pytest",)),
        ("install it: `pip install 'distributed>=2024.12'`. Then", ("distributed>=2024.12",)),
        (
            '      - run: pip install pytest "tcuda[emulation] @ git+https://HOST/PATH_OF_TCUDA.git" .\n',
            ("[emulation]", "pytest"),
        ),
    ],
)
def test_the_requirements_of_a_page_are_those_of_its_commands(
    text: str, requirements: tuple[str, ...], pages: ModuleType
) -> None:
    assert pages.requirements_of(text) == requirements
