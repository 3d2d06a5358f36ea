"""The workflows call what is in the repository, and a release is refused while its files disagree."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
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
    spec = importlib.util.spec_from_file_location("release", REPOSITORY / ".ci" / "release.py")
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
    return tmp_path


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
