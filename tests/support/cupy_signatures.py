"""The parameters of the functions and methods of the installed CuPy.

``tcuda/emulation/arrays/cupy_signatures.json`` has the parameters for the emulated devices. To update the file for
another CuPy, run ``python tests/support/cupy_signatures.py`` where CuPy is installed; no GPU is needed. The entries
``operands`` of the file were read from CuPy's sources, and the script leaves them as they are.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[2] / "tcuda" / "emulation" / "arrays" / "cupy_signatures.json"
_PREFIXES = ("", "linalg.", "fft.", "random.", "ndarray.", "ufunc.")
_C_TYPES = re.compile(r"\b(?:Py_ssize_t|int|bint|_ndarray_base|str|tuple|object) (?=\w)")


def names() -> list[str]:
    """Return the names of the table, such as ``sum``, ``linalg.norm`` and ``ndarray.take``."""
    return list(json.loads(TABLE.read_text())["functions"])


def signature(name: str) -> str | None:
    """Return the parameters of CuPy's function ``name`` as a text; None if CuPy does not document the parameters."""
    import cupy

    function: Any = cupy
    for part in name.split("."):
        function = getattr(function, part)
    if isinstance(function, cupy.ufunc):
        inputs = ", ".join(f"x{place}" for place in range(1, function.nin + 1))
        return f"({inputs}, /, out=None, *, dtype=None, casting='same_kind')"
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return _documented(function)
    plain = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
    return str(inspect.Signature(plain)).replace("<class 'float'>", "float").replace("<class 'int'>", "int")


def _documented(function: Any) -> str | None:
    """Return the parameters in the first line of the docstring of a compiled function."""
    told = re.match(r"[\w.]+(\(.*?\))(?: ->.*)?$", (function.__doc__ or "").split("\n")[0])
    return None if told is None else _C_TYPES.sub("", told[1])


def as_text(table: dict[str, Any]) -> str:
    """Return the table as JSON with one line for each function."""
    head = {key: value for key, value in table.items() if key != "functions"}
    rows = [f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(table["functions"].items())]
    return json.dumps(head, indent=2)[:-2] + ',\n  "functions": {\n' + ",\n".join(rows) + "\n  }\n}\n"


def main() -> None:
    """Write the parameters of the installed CuPy to the table."""
    import cupy

    table = json.loads(TABLE.read_text())
    table["version"] = cupy.__version__
    for name, row in table["functions"].items():
        row["signature"] = signature(name) or row["signature"]
    TABLE.write_text(as_text(table))


if __name__ == "__main__":
    main()
