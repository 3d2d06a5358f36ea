"""``tcuda stubs``: the types of CuPy's names for ``import cupy``, in the folder where type checkers look for types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.files import write_file
from tcuda._base.outputs import Kind, check_output

if TYPE_CHECKING:
    import argparse

_TYPES = Path(__file__).parents[1] / "_backend" / "xp"
_SHARED = "_arrays.pyi"
"""The file with what the other files import. CuPy has no such module."""

_BEGIN = "# Written by tcuda stubs. The types are those of tcuda.xp, in the installed tcuda.\n"
_STUB = Kind("file of types", _BEGIN.encode(), _BEGIN.encode())
_ANY = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"

_PRIVATE = ("cupy._core",)
"""A private package that programs import. Beside the types of cupy, mypy does not see the installed one."""

_UNTYPED = (
    *("cupy_backends", "cupy_backends.cuda", "cupy_backends.cuda.api", "cupy_backends.cuda.libs"),
    *("cupyx", "cupyx.cusolver", "cupyx.cusparse", "cupyx.cutensor", "cupyx.distributed", "cupyx.jit"),
    *("cupyx.jit.cg", "cupyx.jit.cub", "cupyx.jit.thrust", "cupyx.lapack", "cupyx.linalg"),
    *("cupyx.optimizing", "cupyx.profiler", "cupyx.signal", "cupyx.time", "cupyx.tools"),
    *("cupyx.scipy", "cupyx.scipy.fft", "cupyx.scipy.fftpack", "cupyx.scipy.interpolate", "cupyx.scipy.linalg"),
    *("cupyx.scipy.ndimage", "cupyx.scipy.signal", "cupyx.scipy.signal.windows", "cupyx.scipy.sparse"),
    *("cupyx.scipy.sparse.csgraph", "cupyx.scipy.sparse.linalg", "cupyx.scipy.spatial"),
    *("cupyx.scipy.spatial.distance", "cupyx.scipy.special", "cupyx.scipy.stats"),
)
"""CuPy's other packages and public modules, whose names have no types."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "stubs",
        help="write the types of CuPy, with which editors and type checkers check `import cupy`",
        description="Write the types of CuPy's names. pyright and Pylance find the types in the folder typings of a "
        'project without a setting; mypy finds them with mypy_path = "typings".',
    )
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, nargs="?", default=Path("typings"), help="the folder (typings)"
    )
    parser.add_argument(
        "--cupyx",
        action="store_true",
        help="also write cupyx and cupy_backends, where every name is allowed, for machines without CuPy",
    )
    parser.set_defaults(run=run, usage_error=parser.error)


def run(options: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        OSError: A file cannot be written.
    """
    texts = {options.folder / path: text for path, text in _texts(cupyx=options.cupyx).items()}
    for path in texts:
        if path.exists():
            check_output(options, path, _STUB)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, (_BEGIN + text).encode())
    written = "cupy, cupyx and cupy_backends" if options.cupyx else "cupy"
    print(f"{options.folder}: the types of {written}, in {len(texts)} files")


def _texts(*, cupyx: bool) -> dict[Path, str]:
    """Return the text of each file, by its path in the folder."""
    texts = {}
    for path in sorted(_TYPES.rglob("*.pyi")):
        inside = path.relative_to(_TYPES)
        if inside.name != _SHARED:
            module = ".".join(("tcuda._backend.xp", *inside.with_suffix("").parts)).removesuffix(".__init__")
            texts[Path("cupy") / inside] = f"from {module} import *\n"
    for module in (*_PRIVATE, *(_UNTYPED if cupyx else ())):
        texts[Path(*module.split("."), "__init__.pyi")] = _ANY
    return texts


__all__ = ["add_to", "run"]
