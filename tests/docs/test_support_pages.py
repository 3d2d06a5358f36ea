"""The pages on environment variables and on the installation name what the package reads and requires."""

from __future__ import annotations

import ast
import re
from importlib import metadata

from support.folders import REPOSITORY

_NAME = re.compile(r"(?!CUDA_ERROR_)(?:GITHUB|TCUDA|TORCH|PYTORCH|CUPY|CUDA|NCCL|XDG)_[A-Z_]+|CXX|PATH|HOME|TERM")


def _variables_of_python() -> set[str]:
    """Return the names of variables in the code, and the names that are read in other ways."""
    names = set()
    for path in (REPOSITORY / "tcuda").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value):
                names.add(node.value)
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("environ.get"):
                (name, *_) = node.args
                if isinstance(name, ast.Constant):
                    names.add(name.value)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.path.expanduser":
                names.add("HOME")
    return names


def test_the_page_has_the_variables_that_the_package_reads_and_no_others() -> None:
    page = (REPOSITORY / "docs" / "environment-variables.md").read_text()
    shown = {name for name in re.findall(r"`(\w+)`", page) if _NAME.fullmatch(name)}
    assert shown == _variables_of_python()


def test_the_search_for_variables_finds_those_of_python() -> None:
    assert {"TCUDA_RUNTIME", "TCUDA_CACHE_DIR", "CUPY_SEED"} <= _variables_of_python()


def test_the_core_reads_no_variables() -> None:
    sources = [path for path in (REPOSITORY / "tcuda" / "_core").rglob("*.?pp") if "getenv" in path.read_text()]
    assert sources == []


def test_the_page_on_the_installation_has_every_extra_with_its_package() -> None:
    page = (REPOSITORY / "docs" / "installation.md").read_text()
    about = metadata.metadata("tcuda")
    for extra in about.get_all("Provides-Extra") or ():
        assert f"`{extra}`" in page
    for line in metadata.requires("tcuda") or ():
        package, extra = re.match(r"([\w.-]+)", line), re.search(r"extra == ['\"](\w+)['\"]", line)
        assert package is not None
        if extra is not None and extra[1] not in ("test", "lint", "docs"):
            assert f"`{package[1]}`" in page


def test_the_page_on_the_installation_names_the_oldest_versions() -> None:
    page = (REPOSITORY / "docs" / "installation.md").read_text()
    oldest = {
        match[1].lower(): match[2]
        for line in metadata.requires("tcuda") or ()
        if (match := re.match(r"([\w.-]+?)\s*(?:<[\d.]+,)?>=([\d.]+)", line))
    }
    assert f"| NumPy           | {oldest['numpy']} or later " in page
    assert f"{oldest['cupy-cuda12x']} or later for CUDA 12" in page
    assert f"{oldest['cupy-cuda13x']} or later for CUDA 13" in page
    assert f"| Python          | {metadata.metadata('tcuda')['Requires-Python'].removeprefix('>=')} or later" in page


def test_every_page_compares_an_earlier_snapshot_with_a_later_one() -> None:
    pages = "\n".join(page.read_text() for page in (REPOSITORY / "docs").glob("*.md"))
    compared = re.findall(r"tcuda memory-viz (\S+)\.pickle --compare (\w+)\.pickle", pages)
    assert len(compared) >= 2
    assert set(compared) == {("before", "after")}
