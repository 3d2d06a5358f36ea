"""The public names of CuPy, and for each name whether emulated devices have it.

``tests/data/cupy_names.json`` is the table. ``tests/support/cupy_tables.py`` writes the states of the names into the
table, and keeps the reasons, which are written by hand.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import re
import textwrap
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

TABLE = Path(__file__).parents[1] / "data" / "cupy_names.json"
ABSENT_NAMES = Path(__file__).parents[2] / "tcuda" / "emulation" / "names" / "absent_names.json"

HERE, BY_NUMPY, ABSENT = "here", "numpy", "absent"
"""The states of a name: tcuda has the name; tcuda has the name, and NumPy or SciPy compute; tcuda lacks the name."""

MISSING = object()


def words(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


CLASSES = words("""
cupy.ElementwiseKernel cupy.RawKernel cupy.RawModule cupy.ReductionKernel cupy.broadcast cupy.cuda.Device
cupy.cuda.Event cupy.cuda.ExternalStream cupy.cuda.Graph cupy.cuda.MemoryPointer cupy.cuda.MemoryPool
cupy.cuda.PinnedMemoryPool cupy.cuda.PinnedMemoryPointer cupy.cuda.Stream cupy.flatiter cupy.ndarray cupy.poly1d
cupy.random.Generator cupy.random.RandomState cupy.ufunc cupy.vectorize
""")
"""The classes whose members are names of the table too."""

_OUR_HOMES = {"cupy": "tcuda.emulation.xp", "cupyx": "tcuda.emulation.cupyx"}
_HOST_HOMES = {"cupy": "numpy", "cupyx.scipy": "scipy"}
_OWN = ("cupy.random.*", "cupy.cuda.*", "cupy.testing.*", "cupy.show_config", "cupy.typing.*")
"""Names that NumPy has too, but in which tcuda's own code computes."""


def read() -> dict[str, Any]:
    """Return the table, with the names that the file lists together."""
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    for line in table.pop("listed"):
        described, _, names = line.partition(": ")
        kind, state, owner = described.split(" ")
        for name in words(names):
            table["names"][f"{owner}.{name}".lstrip(".")] = {"kind": kind, "state": state}
    table["names"] = dict(sorted(table["names"].items()))
    return table


def as_text(table: Mapping[str, Any]) -> str:
    """Return the table as JSON: a line for each name with a signature, and lists of the other names."""
    listed: dict[str, list[str]] = {}
    rows = []
    for name, row in sorted(table["names"].items()):
        owner, _, last = name.rpartition(".")
        if "signature" in row:
            rows.append(f"    {json.dumps(name)}: {json.dumps(row)}")
        else:
            listed.setdefault(f"{row['kind']} {row['state']} {owner}: ", []).append(last)
    lines = [key + part for key in sorted(listed) for part in textwrap.wrap(" ".join(listed[key]), 110 - len(key))]
    head = {**{key: value for key, value in table.items() if key != "names"}, "listed": lines}
    return json.dumps(head, indent=2)[:-2] + ',\n  "names": {\n' + ",\n".join(rows) + "\n  }\n}\n"


def find(name: str, homes: Mapping[str, str]) -> Any:
    """Return the object under one of CuPy's names in another library, or ``MISSING``.

    Args:
        name: The whole name, such as ``cupy.linalg.norm``.
        homes: The module of the other library for each package of CuPy.
    """
    home = max((home for home in homes if f"{name}.".startswith(f"{home}.")), key=len, default=None)
    if home is None:
        return MISSING
    found = _module(homes[home])
    for part in name.removeprefix(home).split(".")[1:]:
        inside = getattr(found, part, MISSING)
        if inside is MISSING and hasattr(found, "__path__"):
            inside = _module(f"{found.__name__}.{part}")
        found = inside
    return found


def ours(name: str) -> Any:
    """Return the object that a program on emulated devices gets under one of CuPy's names, or ``MISSING``."""
    found = find(name, _OUR_HOMES)
    owner, _, member = name.rpartition(".")
    return _of_instances(find(owner, _OUR_HOMES), member) if found is MISSING and owner in CLASSES else found


def _of_instances(owner: Any, name: str) -> Any:
    """Return ``name`` if the methods of a class, such as ``__init__``, give the attribute to the instances."""
    for base in inspect.getmro(owner) if inspect.isclass(owner) else ():
        if re.search(rf"\bself\.{name}\b[^=\n]*=[^=]", _source(base)):
            return name
    return MISSING


@functools.cache
def _source(owner: type) -> str:
    """Return the source of the methods of a class; none if the class is not written in Python.

    The source of the class itself is not found if the class has the module where users find it as ``__module__``.
    """
    source = ""
    for member in filter(inspect.isfunction, vars(owner).values()):
        with contextlib.suppress(OSError):  # a method may be made without a file
            source += inspect.getsource(member)
    return source


def on_the_host(name: str) -> Any:
    """Return the object that NumPy or SciPy has under one of CuPy's names, or ``MISSING``."""
    return find(name, _HOST_HOMES)


@functools.cache
def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return MISSING


def state(name: str) -> str:
    """Return the state of a name, from what is there."""
    if ours(name) is MISSING:
        return ABSENT
    if any(fnmatchcase(name, pattern) for pattern in _OWN) or on_the_host(name) is MISSING:
        return HERE
    return HERE if isinstance(ours(name), ModuleType) else BY_NUMPY


def complaints(table: Mapping[str, Any]) -> list[str]:
    """Return where the table is wrong about the names that are there, and which of its rows are missing or stale.

    Which names NumPy and SciPy have, and so compute, depends on their versions. A name is not missing where the
    installed version lacks the function that computes.
    """
    names, rows = table["names"], table["rows"]
    said = []
    for name, row in names.items():
        found = state(name)
        lacking = row["state"] == BY_NUMPY and on_the_host(name) is MISSING
        if (found == ABSENT) != (row["state"] == ABSENT) and not lacking:
            said.append(f"{name} is said to be {row['state']}, and is {found}")
    missing = [name for name, row in names.items() if row["state"] == ABSENT]
    said += [f"{name} is missing, and no row says why" for name in missing if reason(name, rows) is None]
    needed = needed_patterns(missing, rows)
    said += [f"{name}: the row is stale" for row in rows for name in row["names"] if name not in needed]
    others = other_signatures(names)
    said += [
        f"{name} takes {taken}, CuPy's takes {names[name]['signature']}, and no row says why"
        for name, taken in others.items()
        if reason(name, table["signatures"]) is None
    ]
    needed = needed_patterns(others, table["signatures"])
    stale = [name for row in table["signatures"] for name in row["names"] if name not in needed]
    return said + [f"{name}: the row on the signature is stale" for name in stale]


def reason(name: str, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the reason that the first row with a pattern for a name tells; None without such a row."""
    return next((row["reason"] for row, _ in _matches(name, rows)), None)


def _matches(name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], str]]:
    return ((row, pattern) for row in rows for pattern in row["names"] if fnmatchcase(name, pattern))


def needed_patterns(names: Iterable[str], rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the patterns that give some name of ``names`` its reason."""
    return {pattern for name in names for _, pattern in [next(_matches(name, rows), (None, ""))] if pattern}


def write_states(table: dict[str, Any]) -> None:
    """Write the states into the table, and remove the patterns that no name needs."""
    for name, row in table["names"].items():
        row["state"] = state(name)
    missing = [name for name, row in table["names"].items() if row["state"] == ABSENT]
    needed = needed_patterns(missing, table["rows"])
    kept = [{**row, "names": [name for name in row["names"] if name in needed]} for row in table["rows"]]
    table["rows"] = [row for row in kept if row["names"]]
    needed = needed_patterns(other_signatures(table["names"]), table["signatures"])
    kept = [{**row, "names": [name for name in row["names"] if name in needed]} for row in table["signatures"]]
    table["signatures"] = [row for row in kept if row["names"]]


def absent_names(table: Mapping[str, Any], modules: Mapping[str, str]) -> str:
    """Return the file from which emulated devices tell why a name is missing.

    Args:
        table: The table of names.
        modules: More modules that are missing, with the reasons.
    """
    reasons: dict[str, dict[str, list[str]]] = {}
    for name, row in sorted(table["names"].items()):
        if row["state"] == ABSENT:
            why = reason(name, table["rows"]) or ""
            reasons.setdefault(why, {}).setdefault(row["kind"], []).append(name)
    for name, why in modules.items():
        reasons.setdefault(why, {}).setdefault("module", []).append(name)
    rows = [
        {"reason": why, "names": {kind: " ".join(names) for kind, names in kinds.items()}}
        for why, kinds in reasons.items()
    ]
    about = "The names of CuPy that emulated devices lack. tests/support/cupy_tables.py writes this file."
    return json.dumps({"about": about, "rows": rows}, indent=1) + "\n"


def other_signatures(names: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the parameters of each function that takes others than CuPy's function."""
    others = {}
    for name, row in names.items():
        if "signature" not in row or row["state"] == ABSENT:
            continue
        found = ours(name)
        taken = None if found is MISSING or found is on_the_host(name) else parameters(found)
        if taken is not None and taken != row["signature"]:
            others[name] = taken
    return others


def parameters(function: Any) -> str | None:
    """Return the parameters of a function as a text without annotations; None if nobody can inspect the function."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    plain = [parameter.replace(annotation=parameter.empty) for parameter in found]
    text = re.sub(r"<class '(?:[\w.]+\.)?(\w+)'>", r"\1", str(inspect.Signature(plain)))
    text = re.sub(r"<module '([\w.]+)'[^>]*>", r"\1", text)
    text = re.sub(r"<(?:[\w.]+ )*([\w.]+) at 0x\w+>", r"<\1>", text)
    return re.sub(r"\b\w+(?:\.\w+)*\.(?=ndarray\b|\w+ at\b)", "", text)
