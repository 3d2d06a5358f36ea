"""The changelog has its form, the site shows it, and the files that name the version agree."""

from __future__ import annotations

import json
import re

import tcuda
from support.folders import DATA, REPOSITORY

_VERSION = re.compile(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}")
_KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def _read(name: str) -> str:
    return (REPOSITORY / name).read_text()


def test_the_changelog_has_unreleased_changes_first_and_then_the_versions_in_order() -> None:
    first, *released = re.findall(r"^## (.*)$", _read("CHANGELOG.md"), re.MULTILINE)
    assert first == "[Unreleased]"
    matches = [_VERSION.fullmatch(heading) for heading in released]
    assert all(matches), released
    versions = [tuple(map(int, match[1].split("."))) for match in matches if match]
    assert versions == sorted(versions, reverse=True)


def test_the_changelog_sorts_changes_by_their_kinds() -> None:
    kinds = re.findall(r"^### (.*)$", _read("CHANGELOG.md"), re.MULTILINE)
    assert kinds
    assert set(kinds) <= _KINDS


def test_the_site_shows_the_changelog_itself() -> None:
    assert "\n<!-- page: CHANGELOG.md -->\n" in _read("docs/release-notes.md")
    assert "release-notes.md" in _read("mkdocs.yml")


def test_the_changelog_and_the_coverage_name_the_version_of_torch_of_the_table() -> None:
    version = json.loads((DATA / "torch_cuda_api.json").read_text())["version"]
    assert f"torch.cuda` {version.rpartition('.')[0]} " in _read("CHANGELOG.md")
    assert f"torch.cuda` {version}" in _read("docs/coverage.md")


def test_the_citation_names_the_version_of_the_package() -> None:
    assert f"\nversion: {tcuda.__version__}\n" in _read("CITATION.cff")
