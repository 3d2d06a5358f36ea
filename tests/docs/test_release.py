"""The workflows call what is in the repository, and a release is refused while its files disagree."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

yaml = pytest.importorskip("yaml")

GITHUB = REPOSITORY / ".github"
if not GITHUB.exists():
    pytest.skip("the source distribution has no workflows", allow_module_level=True)
WORKFLOWS = {path.name: path for path in sorted((GITHUB / "workflows").glob("*.yml"))}
_KEYS = {"name", True, "permissions", "concurrency", "jobs"}  # YAML reads the key `on` as a truth value


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def _jobs(name: str) -> dict[str, dict[str, Any]]:
    return dict(_read(WORKFLOWS[name])["jobs"])


def _commands(name: str) -> list[str]:
    steps = [step for job in _jobs(name).values() for step in job.get("steps", ())]
    return [line for step in steps for line in step.get("run", "").splitlines()]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_only_known_keys_and_needs_only_jobs_that_exist(name: str) -> None:
    workflow = _read(WORKFLOWS[name])
    assert set(workflow) <= _KEYS
    assert workflow["permissions"] == {"contents": "read"}  # a job that needs more says so itself
    for job in workflow["jobs"].values():
        needs = job.get("needs", [])
        assert set([needs] if isinstance(needs, str) else needs) <= set(workflow["jobs"])
        assert ("uses" in job) != ({"runs-on", "steps", "timeout-minutes"} <= set(job))
        for step in job.get("steps", ()):
            assert ("uses" in step) != ("run" in step)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_by_commits_whose_versions_are_written_beside(name: str) -> None:
    # A tag or a branch of another repository may be moved to other code.
    for line in re.findall(r"^[ -]*uses: *(.*)$", WORKFLOWS[name].read_text(), re.MULTILINE):
        assert line.startswith("./") or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_job_that_may_write_installs_nothing(name: str) -> None:
    for job in _jobs(name).values():
        if "write" in job.get("permissions", {}).values():
            assert "install" not in " ".join(step.get("run", "") for step in job.get("steps", ()))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_files_that_a_workflow_runs_exist(name: str) -> None:
    strategies = [job["strategy"] for job in _jobs(name).values() if "strategy" in job]
    matrix = [step for strategy in strategies for step in strategy["matrix"].get("step", ())]
    for command in _commands(name):
        for word in re.findall(r"(?<!\S)\.ci/\S+", command):
            assert (REPOSITORY / word).is_file(), command
            assert command.startswith("python ") or os.access(REPOSITORY / word, os.X_OK), command
        if command.startswith(".ci/run "):
            lists = re.findall(r"^\w+_steps=\((.*)\)$", (REPOSITORY / ".ci" / "run").read_text(), re.MULTILINE)
            named = command.replace("${{ matrix.step }}", " ".join(matrix))
            assert set(named.split()[1:]) <= set(" ".join(lists).split())
    for job in _jobs(name).values():
        if "uses" in job:
            called = _read(REPOSITORY / job["uses"])[True]["workflow_call"] or {}
            assert set(job.get("with", ())) <= set(called.get("inputs", ()))


def test_a_warning_of_the_site_fails_the_build() -> None:
    lines = [*(REPOSITORY / ".ci" / "run").read_text().splitlines(), *_commands("docs.yml")]
    builds = [line for line in lines if "mkdocs build" in line]
    assert len(builds) == 2
    for line in builds:
        assert "--strict" in line
        assert "--quiet" not in line, "MkDocs would hide the warnings from --strict"


@pytest.mark.parametrize("event", ["push", "pull_request"])
def test_wheels_are_built_after_changes_of_what_they_are_built_from(event: str) -> None:
    paths = _read(WORKFLOWS["wheels.yml"])[True][event]["paths"]
    assert {"tcuda/_core/**", "CMakeLists.txt", "pyproject.toml"} <= set(paths)
    for path in paths:
        assert (REPOSITORY / path.removesuffix("/**")).exists(), path


def test_only_tested_and_attested_files_are_published() -> None:
    jobs = _jobs("release.yml")
    assert jobs["build"] == {"needs": "check", "uses": "./.github/workflows/wheels.yml"}
    assert jobs["publish"]["needs"] == "build"
    used = [step["uses"].partition("@")[0] for step in jobs["publish"]["steps"]]
    assert used == ["actions/download-artifact", "actions/attest-build-provenance", "pypa/gh-action-pypi-publish"]
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    for job in _jobs("wheels.yml").values():
        steps = [step.get("run", step.get("uses", "")) for step in job["steps"]]
        assert any(step.startswith(".ci/test_installed ") for step in steps[:-1])
        assert steps[-1].startswith("actions/upload-artifact@")


@pytest.mark.parametrize("path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem)
def test_the_templates_for_issues_are_complete(path: Path) -> None:
    template = _read(path)
    if path.name == "config.yml":
        assert template == {"blank_issues_enabled": False}
        return
    assert set(template) == {"name", "description", "labels", "body"}
    ids = [field["id"] for field in template["body"]]
    assert len(set(ids)) == len(ids) > 0


# release.py


@pytest.fixture(scope="module")
def release() -> Any:
    return _script("release")


@pytest.fixture(scope="module")
def gpu_run() -> Any:
    return _script("gpu_run")


def _script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the files that name the version."""
    (tmp_path / "tcuda" / "_base").mkdir(parents=True)
    for name in ("tcuda/_base/version.py", "CITATION.cff", "CHANGELOG.md"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / "tests" / "data").mkdir(parents=True)
    _git(tmp_path, "init", "-q")
    commit = _commit(tmp_path)
    (tmp_path / "tests/data/last_gpu_run.json").write_text(json.dumps({"1": _run(commit, 1), "2": _run(commit, 2)}))
    return tmp_path


def _git(root: Path, *arguments: str) -> str:
    author = ["-c", "user.name=tests", "-c", "user.email=tests@example.invalid", "-c", "commit.gpgsign=false"]
    command = ["git", *author, *arguments]
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _commit(root: Path) -> str:
    _git(root, "add", "-A")
    _git(root, "commit", "-q", "-m", "a change")
    return _git(root, "rev-parse", "HEAD")


def _run(commit: str, gpus: int) -> dict[str, Any]:
    cards = ["a card"] * gpus
    return {"commit": commit, "cards": cards, "date": "2027-01-30", "passed": 9, "failed": 0, "skipped": 1}


def _gpu_problems(release: Any, root: Path) -> list[str]:
    return [problem for problem in release.problems("v9.8.7", root) if "last_gpu_run" in problem]


@pytest.mark.parametrize("name", ["docs/memory.md", "CHANGELOG.md", "tests/data/last_gpu_run.json"])
def test_pages_may_change_after_the_last_run_on_a_gpu(release: Any, root: Path, name: str) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    with (root / name).open("a") as file:
        file.write("\n")
    _commit(root)
    assert _gpu_problems(release, root) == []


@pytest.mark.parametrize("name", ["tcuda/memory.py", "tests/test_memory.py", "CMakeLists.txt", "docs/examples/loop.py"])
def test_code_that_changed_after_the_last_run_on_a_gpu_is_refused(release: Any, root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("")
    _commit(root)
    one, two = _gpu_problems(release, root)
    assert f"on 1 GPU(s) is of another commit; since then {name} has changed" in one
    assert f"on 2 GPU(s) is of another commit; since then {name} has changed" in two


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (None, "has no run on 2 GPUs. Run python .ci/gpu_run.py on a machine with 2 GPUs"),
        (_run("0" * 40, 2), "which this checkout does not have"),
        (_run("", 2) | {"failed": 3}, "3 tests failed and 9 passed on 2 GPU(s)"),
        (_run("", 2) | {"passed": 0}, "0 tests failed and 0 passed on 2 GPU(s)"),
    ],
)
def test_a_release_without_a_good_run_on_two_gpus_is_refused(release: Any, root: Path, run: Any, problem: str) -> None:
    file = root / "tests/data/last_gpu_run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"2": run}))
    [found] = _gpu_problems(release, root)
    assert problem in found


def test_a_run_on_a_gpu_is_written_into_the_entry_for_its_number_of_gpus(gpu_run: Any, root: Path) -> None:
    junit = '<testsuites><testsuite tests="9" failures="1" errors="1" skipped="2"/></testsuites>'
    before = json.loads((root / gpu_run.FILE).read_text())
    entry = gpu_run.write(root, "f" * 40, ["a card"], "2027-01-31", gpu_run.counts(junit))
    assert entry == _run("f" * 40, 1) | {"date": "2027-01-31", "passed": 5, "failed": 2, "skipped": 2}
    assert json.loads((root / gpu_run.FILE).read_text()) == {"1": entry, "2": before["2"]}
    with pytest.raises(SystemExit, match="There are 0 GPUs"):
        gpu_run.write(root, "f" * 40, [], "2027-01-31", {})


def test_a_version_with_notes_can_be_released(release: Any, root: Path) -> None:
    changelog = root / "CHANGELOG.md"
    dated = f"## [Unreleased]\n\n## [{tcuda.__version__}] - 2027-01-31\n"
    changelog.write_text(changelog.read_text().replace("## [Unreleased]\n", dated))
    assert release.problems(f"v{tcuda.__version__}", root) == []
    notes = release.notes(tcuda.__version__, changelog.read_text())
    assert notes.startswith("No version has been released yet.")
    assert "## [" not in notes


def test_a_tag_of_another_version_is_refused(release: Any, root: Path) -> None:
    assert release.problems("v9.8.7", root) == [
        "tcuda/_base/version.py has another version than 9.8.7.",
        "CITATION.cff has another version than 9.8.7.",
        "CHANGELOG.md has no notes under '## [9.8.7] - YYYY-MM-DD'.",
    ]


@pytest.mark.parametrize("tag", ["0.1.0", "v0.1", "v0.1.0rc1", "main"])
def test_a_tag_that_is_no_version_is_refused(release: Any, tag: str) -> None:
    with pytest.raises(SystemExit, match="a tag of a release is such as v0.1.0"):
        release.main(["check", tag])


def test_the_versions_of_one_minor_version_share_a_folder_of_the_site(
    release: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.main(["folder", "v0.12.3"]) == 0
    assert capsys.readouterr().out == "0.12\n"
