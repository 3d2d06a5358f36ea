"""Writes all tables of CuPy's names::

    python tests/support/cupy_tables.py          writes all files, from the tables and from what emulated devices have
    python tests/support/cupy_tables.py --read   first reads the tables from the installed CuPy; no GPU is needed

Two tables have what CuPy has, and what a person has added. ``tests/data/cupy_names.json`` has the public names, their
states, and the reasons of the names that are missing. ``tcuda/emulation/arrays/cupy_signatures.json`` has the
parameters of the functions and methods that emulated arrays have; its entries ``operands`` were read from CuPy's
sources. A third table, ``tests/data/cupy_modules.json``, is written by hand. Of these tables the command makes the
other files: those that :func:`files` lists, and the stub files in ``tcuda/_backend/xp``. A NumPy that is older than the
one of the stub files leaves the stub files as they are.

Run the first command after a change of the names. The command ends with the status 1 if a missing name has no reason:
then add a row with the reason to the table by hand. The command removes patterns that no missing name needs any more.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support import absent_names, cupy_modules, cupy_names, cupy_types

if TYPE_CHECKING:
    from collections.abc import Mapping

SIGNATURES = Path(__file__).parents[2] / "tcuda" / "emulation" / "arrays" / "cupy_signatures.json"
IDENTITY = cupy_names.ABSENT_NAMES.with_name("cupy_identity.json")

_ABOUT_IDENTITY = (
    "What the objects of CuPy call themselves. 'modules': the names of the public modules by their paths. "
    "'homes': for each public module, the module that the objects of this module name as their own, with the names of "
    "the objects; 'min=amin' says that the object min is called amin, and the home '' that objects name no module. "
    "'private': the public objects that private modules have under their names. tests/support/cupy_tables.py --read "
    "writes this file."
)


def files(names: Mapping[str, Any], signatures: Mapping[str, Any]) -> dict[Path, str]:
    """Return the text of each file that is made of the tables, and of the tables themselves.

    Args:
        names: The table of CuPy's names.
        signatures: The table of CuPy's parameters.
    """
    return {
        cupy_names.TABLE: cupy_names.as_text(names),
        SIGNATURES: signatures_text(signatures),
        cupy_names.ABSENT_NAMES: cupy_names.absent_names(names, cupy_modules.refused()),
        absent_names.TABLE: json.dumps(absent_names.absent(), indent=2) + "\n",
        absent_names.ARRAY_NAMES: json.dumps(absent_names.array_names(names["names"]), indent=0) + "\n",
    }


def signatures_text(table: Mapping[str, Any]) -> str:
    """Return the table of CuPy's parameters as JSON with one line for each function."""
    head = {key: value for key, value in table.items() if key != "functions"}
    rows = [f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(table["functions"].items())]
    return json.dumps(head, indent=2)[:-2] + ',\n  "functions": {\n' + ",\n".join(rows) + "\n  }\n}\n"


def _read(names: dict[str, Any], signatures: dict[str, Any]) -> None:
    """Read the names and the parameters from the installed CuPy, and write what its objects call themselves."""
    import cupy

    from support import installed_cupy

    names["version"] = signatures["version"] = cupy.__version__
    names["names"] = installed_cupy.of_cupy()
    for name, row in signatures["functions"].items():
        row["signature"] = installed_cupy.signature(name) or row["signature"]
    head = {"about": _ABOUT_IDENTITY} | {key: names[key] for key in ("package", "version", "source", "licence")}
    identity = {**head, **installed_cupy.identity_of_cupy(names["names"])}
    IDENTITY.write_text(json.dumps(identity, indent=1) + "\n", encoding="utf-8")


def _write_types() -> None:
    """Write the stub files of CuPy's names in place of those that are there."""
    if _numbers(cupy_types.NUMPY_VERSION) < _numbers(cupy_types.written_with()):
        print(f"The stub files stay as NumPy {cupy_types.written_with()} has made them.")
        return
    texts = cupy_types.stubs()
    shutil.rmtree(cupy_types.FOLDER, ignore_errors=True)
    for path, text in texts.items():
        target = cupy_types.FOLDER / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def main() -> int:
    """Write the files, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("::")[0] + ".")
    parser.add_argument("--read", action="store_true", help="read the tables from the installed CuPy first")
    options = parser.parse_args()
    names, signatures = cupy_names.read(), json.loads(SIGNATURES.read_text(encoding="utf-8"))
    if options.read:
        _read(names, signatures)
    cupy_names.write_states(names)
    for path, text in files(names, signatures).items():
        path.write_text(text, encoding="utf-8")
    _write_types()
    counts = Counter(row["state"] for row in names["names"].values())
    print(", ".join(f"{state}: {count}" for state, count in counts.items()))
    said = cupy_names.complaints(names)
    print("".join(f"{complaint}\n" for complaint in said), end="", file=sys.stderr)
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main())
