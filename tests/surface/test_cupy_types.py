"""The stub files of CuPy's names are current, have every name, and tell the types of the results truly."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.cupy_names import read
from support.cupy_types import FOLDER, NUMPY_VERSION, stubs, written_with

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = {str(path.relative_to(FOLDER)): path.read_text(encoding="utf-8") for path in sorted(FOLDER.rglob("*.pyi"))}


@pytest.mark.skipif(written_with() != NUMPY_VERSION, reason=f"the files were written with NumPy {written_with()}")
def test_the_files_are_current() -> None:
    assert stubs() == FILES, "run python tests/support/cupy_tables.py"


def _names(path: str) -> set[str]:
    names = set()
    for node in ast.parse(FILES[path]).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname}
    return {name for name in names if not name.startswith("_")} - {"Shape", "DType", "Operand", "Convertible"}


@pytest.mark.parametrize("path", sorted(set(FILES) - {"_arrays.pyi"}))
def test_a_file_has_the_names_of_its_module_and_no_others(path: str) -> None:
    module = ".".join(["cupy", *path.removesuffix(".pyi").removesuffix("__init__").strip("/").split("/")]).rstrip(".")
    known = {name.rpartition(".")[2] for name in read()["names"] if name.rpartition(".")[0] == module}
    assert _names(path) - {"np", "npt"} == known | ({"ndarray"} if module != "cupy" else set())


ARRAY = "ndarray"
RESULTS = {
    ARRAY: lambda found, xp: isinstance(found, xp.ndarray),
    "int": lambda found, xp: isinstance(found, int),
    "bool": lambda found, xp: isinstance(found, bool),
    "builtins.bool": lambda found, xp: isinstance(found, bool),
    "str": lambda found, xp: isinstance(found, str),
    "bytes": lambda found, xp: isinstance(found, bytes),
    "npt.NDArray[Any]": lambda found, xp: isinstance(found, np.ndarray),
    "tuple[ndarray, tuple[ndarray, ...]]": lambda found, xp: _are_arrays((found[0], *found[1]), xp),
    "None": lambda found, xp: found is None,
    "list[ndarray]": lambda found, xp: isinstance(found, list) and isinstance(found[0], xp.ndarray),
    "tuple[int, ...]": lambda found, xp: isinstance(found, tuple) and isinstance(found[0], int),
    "np.dtype[Any]": lambda found, xp: str(found) == "float64" and not isinstance(found, (xp.ndarray, str)),
}
RESULTS |= {f"tuple[{', '.join([ARRAY] * count)}]": lambda found, xp: _are_arrays(found, xp) for count in (2, 3)}
RESULTS["tuple[ndarray, ...]"] = RESULTS["tuple[ndarray, ndarray]"]


def _are_arrays(found: Any, xp: Any) -> bool:
    return isinstance(found, tuple) and all(isinstance(each, xp.ndarray) for each in found)


def _functions_of_one_array() -> Iterator[tuple[str, str]]:
    """Yield the functions and methods that need no further arguments: name and type of the result."""
    for owner, path in (
        ("", "__init__.pyi"),
        ("linalg.", "linalg.pyi"),
        ("fft.", "fft.pyi"),
        ("ndarray.", "_arrays.pyi"),
    ):
        body = ast.parse(FILES[path]).body
        if owner == "ndarray.":
            body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == "ndarray")
        for node in body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not node.decorator_list:
                result = ast.unparse(node.returns) if node.returns else "Any"
                first = node.args.args[:1]
                takes = owner == "ndarray." or (
                    first and "ndarray" in ast.unparse(first[0].annotation or ast.Constant(""))
                )
                required = len(node.args.args) - len(node.args.defaults)
                if result != "Any" and takes and required == 1 and owner + node.name not in WITHOUT_EXAMPLE:
                    yield owner + node.name, result


def _array(name: str, xp: Any) -> Any:
    """Return an array that the function takes."""
    if name in ("bincount", "packbits", "unpackbits"):
        return xp.asarray([1, 0, 1], dtype=xp.uint8)
    if name == "linalg.tensorinv":
        return xp.eye(4).reshape(2, 2, 2, 2)
    square = xp.asarray([[2.0, 1.0], [1.0, 3.0]])
    return square[0] if name in ("trim_zeros", "vander", "roots", "poly") else square


WITHOUT_EXAMPLE = {"ndarray.reshape", "ndarray.dump", "ndarray.tofile"}
"""Methods that need an argument."""


@pytest.mark.parametrize(("name", "result"), list(_functions_of_one_array()))
def test_a_function_returns_what_the_files_tell(name: str, result: str, xp: Any) -> None:
    owner, _, last = name.rpartition(".")
    array = _array(name, xp)
    home = {"": xp, "linalg": xp.linalg, "fft": xp.fft, "ndarray": array}[owner]
    if not hasattr(home, last):
        pytest.skip("emulated devices lack the name")
    found = getattr(home, last)() if owner == "ndarray" else getattr(home, last)(array)
    assert RESULTS[result](found, xp), f"{name} returned a {type(found).__name__}, and the files say {result}"
