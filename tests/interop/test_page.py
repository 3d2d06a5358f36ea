"""The programs of the page about other libraries, each of which needs a library that tcuda does not need."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

import pytest

from support.folders import DATA, REPOSITORY
from support.numba import why_numba_compiles_nothing

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

PAGE = (REPOSITORY / "docs" / "interop.md").read_text()
_PROGRAM = re.compile(r"^<!-- needs: (\S+) -->\n\n```py\n(.*?)^```$", re.DOTALL | re.MULTILINE)

# Numba warns of small grids, and the libraries warn of each other. Tests turn warnings into errors otherwise.
_QUIET = "import warnings\nwarnings.simplefilter('default')\n"


class Program(NamedTuple):
    """A program of the page.

    Attributes:
        library: The module that the program needs.
        code: The program.
        place: The library, and the number of the line of the page, for the name of the test.
    """

    library: str
    code: str
    place: str


def programs() -> list[Program]:
    """Return the programs of the page that need a library."""
    return [
        Program(match[1], match[2], f"{match[1]}:{PAGE.count(chr(10), 0, match.start()) + 1}")
        for match in _PROGRAM.finditer(PAGE)
    ]


def missing(library: str) -> str | None:
    """Return why no program can use ``library`` on this machine; None if a program can."""
    # The CPU's JAX knows no GPU. A module of JAX's package for CUDA shows that the GPU's JAX is installed.
    modules = {"jax": ["jax_cuda13_plugin", "jax_cuda12_plugin"]}.get(library, [library])
    if not any(map(_exists, modules)):
        return f"needs {library}, which tcuda does not need"
    return why_numba_compiles_nothing() if library == "numba.cuda" else None


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package of a submodule is not there
        return False


@pytest.mark.gpu
@pytest.mark.parametrize("program", programs(), ids=lambda program: program.place)
def test_a_program_of_the_page_runs(program: Program, output_of: OutputOf) -> None:
    reason = missing(program.library)
    if reason is not None:
        pytest.skip(reason)
    assert output_of(_QUIET + program.code) == ""


def test_the_page_has_a_program_for_each_library() -> None:
    libraries = [program.library for program in programs()]
    assert sorted(set(libraries)) == ["cuda.core", "jax", "numba.cuda", "rmm", "torch"]
    assert libraries.count("cuda.core") == 4
    assert len(libraries) == PAGE.count("\n```py\n")
    assert PAGE.count("\n```python\n") == 2  # tests/docs/test_examples.py runs these
    for program in programs():
        assert "assert " in program.code
        compile(program.code, program.place, "exec")


def test_the_library_of_rmm_is_where_the_page_looks_and_has_the_two_functions() -> None:
    librmm = pytest.importorskip("rmm.librmm", reason="tcuda does not need RMM")
    library = ctypes.CDLL(str(Path(librmm.__file__).with_name("_torch_allocator.so")))
    assert library.allocate
    assert library.deallocate


@pytest.fixture
def folder_with_rmm(tmp_path: Path) -> Path:
    """A folder with a package ``rmm`` that has only the library for torch's pluggable allocator."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler, and there is no cc")
    package = tmp_path / "with_rmm" / "rmm" / "librmm"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package.parent / "__init__.py").touch()
    library = package / "_torch_allocator.so"
    command = [compiler, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, DATA / "rmm_allocator.c"]
    subprocess.run([*command, "-ldl"], check=True)
    return tmp_path / "with_rmm"


def test_a_library_with_the_functions_of_rmm_is_the_source_of_all_memory(
    folder_with_rmm: Path, output_of: OutputOf
) -> None:
    (program,) = [program for program in programs() if program.library == "rmm"]
    checks = """
        import ctypes

        def seen():
            numbers = (ctypes.c_longlong * 4)()
            ctypes.CDLL(str(library)).seen(numbers)
            return list(numbers)

        print(*seen()[:3], tcuda.memory_allocated())
        stream = tcuda.Stream()
        with tcuda.stream(stream):
            y = xp.full(1 << 20, 7, dtype="uint8")
        stream.synchronize()
        print(seen()[0], seen()[2], seen()[3] == stream.cuda_stream, int(y.min()))
        before = seen()[1]
        del y
        tcuda.synchronize()
        print(seen()[1] - before, tcuda.memory_allocated())
    """
    printed = output_of(program.code + dedent(checks), PYTHONPATH=str(folder_with_rmm))
    first, second, third = printed.splitlines()
    assert first == "1 0 8000 8000"
    assert second.split()[1:] == [str(1 << 20), "True", "7"]
    assert third == "1 8000"
