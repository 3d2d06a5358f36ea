"""The public names of CuPy, and for each name whether emulated devices have it.

``tests/data/cupy_names.json`` is the table. Two commands write the table, and keep the reasons in it::

    python tests/support/cupy_names.py          writes the state of each name, from the names that emulated devices have
    python tests/support/cupy_names.py --read   first reads the names from the installed CuPy; no GPU is needed

The second command also writes ``tcuda/emulation/names/cupy_identity.json``, which says what each object of CuPy calls
itself.
Both commands write ``tcuda/emulation/names/absent_names.json``, from which emulated devices tell why a name is missing.

Run the first command after a change of the names. The command ends with the status 1 if a missing name has no reason:
then add a row with the reason to the table by hand. The command removes patterns that no missing name needs any more.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import inspect
import json
import re
import sys
import textwrap
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

TABLE = Path(__file__).parents[1] / "data" / "cupy_names.json"
IDENTITY = Path(__file__).parents[2] / "tcuda" / "emulation" / "names" / "cupy_identity.json"
ABSENT_NAMES = IDENTITY.with_name("absent_names.json")

HERE, BY_NUMPY, ABSENT = "here", "numpy", "absent"
"""The states of a name: tcuda has the name; tcuda has the name, and NumPy or SciPy compute; tcuda lacks the name."""

MISSING = object()


def _words(text: str) -> list[str]:
    return text.split()


MODULES = _words("""
cupy cupy.cuda cupy.cuda.compiler cupy.cuda.cub cupy.cuda.device cupy.cuda.driver cupy.cuda.function cupy.cuda.graph
cupy.cuda.memory cupy.cuda.memory_hook cupy.cuda.memory_hooks cupy.cuda.nccl cupy.cuda.nvrtc cupy.cuda.nvtx
cupy.cuda.pinned_memory cupy.cuda.profiler cupy.cuda.runtime cupy.cuda.stream cupy.cuda.texture cupy.cuda.thrust
cupy.exceptions cupy.fft cupy.lib cupy.lib.stride_tricks cupy.linalg cupy.polynomial cupy.polynomial.polynomial
cupy.polynomial.polyutils cupy.random cupy.testing cupy.typing cupyx cupyx.cusolver cupyx.cusparse cupyx.cutensor
cupyx.distributed cupyx.jit cupyx.jit.cg cupyx.jit.cub cupyx.jit.thrust cupyx.lapack cupyx.linalg cupyx.optimizing
cupyx.profiler cupyx.scipy cupyx.scipy.fft cupyx.scipy.fftpack cupyx.scipy.interpolate cupyx.scipy.linalg
cupyx.scipy.ndimage cupyx.scipy.signal cupyx.scipy.signal.windows cupyx.scipy.sparse cupyx.scipy.sparse.csgraph
cupyx.scipy.sparse.linalg cupyx.scipy.spatial cupyx.scipy.spatial.distance cupyx.scipy.special cupyx.scipy.stats
cupyx.signal cupyx.time cupyx.tools
""")
"""CuPy's modules with public names."""

CLASSES = _words("""
cupy.ElementwiseKernel cupy.RawKernel cupy.RawModule cupy.ReductionKernel cupy.broadcast cupy.cuda.Device
cupy.cuda.Event cupy.cuda.ExternalStream cupy.cuda.Graph cupy.cuda.MemoryPointer cupy.cuda.MemoryPool
cupy.cuda.PinnedMemoryPool cupy.cuda.PinnedMemoryPointer cupy.cuda.Stream cupy.flatiter cupy.ndarray cupy.poly1d
cupy.random.Generator cupy.random.RandomState cupy.ufunc cupy.vectorize
""")
"""The classes whose members are names of the table too."""

_OTHERS = {
    "cupy.cuda": {"nccl": "module"},
    "cupy.cuda.nccl": {
        "NcclCommunicator": "class",
        "NcclConfig": "class",
        "NcclError": "exception",
        "get_build_version": "function",
        "get_unique_id": "function",
        "get_version": "function",
        "groupEnd": "function",
        "groupStart": "function",
    },
    "cupy.cuda.profiler": {"start": "function", "stop": "function"},
    "cupy.random": {"Generator": "class"},
}
"""Names that inspection does not find, and their kinds: CuPy imports them late, or only with a library of CUDA."""

_OUR_HOMES = {"cupy": "tcuda.emulation.xp", "cupyx": "tcuda.emulation.cupyx"}
"""The modules of emulated devices under other names; ``tcuda.emulation.as_cupy.import_hook`` may know more."""

_HOST_HOMES = {"cupy": "numpy", "cupyx.scipy": "scipy"}
_OWN = ("cupy.random.*", "cupy.cuda.*", "cupy.testing.*", "cupy.show_config", "cupy.typing.*")
"""Names that NumPy has too, but in which tcuda's own code computes."""


def read() -> dict[str, Any]:
    """Return the table, with the names that the file lists together."""
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    for line in table.pop("listed"):
        described, _, names = line.partition(": ")
        kind, state, owner = described.split(" ")
        for name in _words(names):
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
    homes = {**_OUR_HOMES, **getattr(_module("tcuda.emulation.as_cupy.import_hook"), "_MODULES", {})}
    found = find(name, homes)
    owner, _, member = name.rpartition(".")
    return _of_instances(find(owner, homes), member) if found is MISSING and owner in CLASSES else found


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


def absent_names(table: Mapping[str, Any]) -> str:
    """Return the file from which emulated devices tell why a name is missing."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for name, row in sorted(table["names"].items()):
        if row["state"] == ABSENT:
            why = reason(name, table["rows"]) or ""
            reasons.setdefault(why, {}).setdefault(row["kind"], []).append(name)
    rows = [
        {"reason": why, "names": {kind: " ".join(names) for kind, names in kinds.items()}}
        for why, kinds in reasons.items()
    ]
    about = "The names of CuPy that emulated devices lack. tests/support/cupy_names.py makes this file."
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


# The rest of the module reads the names from CuPy.


def of_cupy() -> dict[str, dict[str, Any]]:
    """Return the public names of the installed CuPy, each with its kind and, if CuPy tells it, its signature."""
    names: dict[str, dict[str, Any]] = {}
    _stand_in_for_libraries()
    for path in MODULES:
        names[path] = {"kind": "module"}
        try:
            module = importlib.import_module(path)
        except ImportError:  # cupy.cuda.runtime and others are modules under another name
            module = _attribute(path)
        for name in _public(module):
            names.setdefault(f"{path}.{name}", _described(getattr(module, name, None)))
    for path, kinds in _OTHERS.items():
        names |= {f"{path}.{name}": {"kind": kind} for name, kind in kinds.items()}
    for path in CLASSES:
        owner = _attribute(path)
        if owner is None:
            names[path] = {"kind": "class"}
            continue
        for name in dir(owner):
            if not name.startswith("_"):
                names[f"{path}.{name}"] = _described(inspect.getattr_static(owner, name), member=True)
    return names


class _StandIn(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> int:
        if name.startswith("__"):
            raise AttributeError(name)
        return 0


_LIBRARIES = _words("""
cupy_backends.cuda.libs.cublas cupy_backends.cuda.libs.cusolver cupy_backends.cuda.libs.cusparse
cupy_backends.cuda.libs.cutensor cupy.cuda.cufft cupyx._cusolver cupyx._cutensor
""")


def _stand_in_for_libraries() -> None:
    """Let CuPy's modules be imported without CUDA's libraries, and without a library of MPI."""
    sys.modules.setdefault("mpi4py", None)  # type: ignore[arg-type]
    importlib.import_module("cupyx")
    for name in _LIBRARIES:
        try:
            importlib.import_module(name)
        except (ImportError, AttributeError):  # an AttributeError comes from another stand-in
            package, _, last = name.rpartition(".")
            sys.modules[name] = _StandIn(name)
            setattr(sys.modules[package], last, sys.modules[name])


def _attribute(path: str) -> Any:
    found: Any = importlib.import_module("cupy")
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def _public(module: Any) -> list[str]:
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return listed
    return [name for name in dir(module) if not name.startswith("_") and _belongs(getattr(module, name), module, name)]


def _belongs(found: Any, module: Any, name: str) -> bool:
    """Return whether a name of a module without ``__all__`` is the module's own, and not only imported there."""
    if name in ("annotations", "TYPE_CHECKING"):
        return False
    package = hasattr(module, "__path__")  # A package has names of its modules.
    if isinstance(found, ModuleType):
        return package and found.__name__.startswith("cupy") and found.__name__ not in ("cupy", "cupyx")
    home = getattr(found, "__module__", None)
    if not isinstance(home, str):
        return True
    if package:
        return home.partition(".")[0] in ("builtins", "cupy", "cupy_backends", "cupyx", "numpy", "scipy")
    shim_of = f"{module.__name__.rpartition('.')[0]}._{_last(module.__name__)}"  # such as cupyx._cusolver
    backend = home.startswith("cupy_backends.") and home.endswith(_last(module.__name__))
    return home in (module.__name__, shim_of) or backend


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _described(found: Any, member: bool = False) -> dict[str, Any]:
    kind = _kind(found, member)
    told = parameters(found) if kind in ("function", "method", "class") else None
    if told is None or "*args, **kwargs" in told:  # Such a signature tells nothing.
        return {"kind": kind}
    return {"kind": kind, "signature": told}


def _kind(found: Any, member: bool) -> str:
    if isinstance(found, ModuleType):
        return "module"
    if inspect.isclass(found):
        return "exception" if issubclass(found, BaseException) else "class"
    if type(found).__name__ == "ufunc":
        return "ufunc"
    if isinstance(found, (staticmethod, classmethod)):
        return "method"
    if inspect.isroutine(found) or type(found).__name__ in ("cython_function_or_method", "fused_cython_function"):
        return "method" if member else "function"
    return "attribute" if member else "constant"


def identity_of_cupy(names: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the installed CuPy's modules, classes and functions call themselves.

    Args:
        names: The public names of CuPy.
    """
    _stand_in_for_libraries()
    modules: dict[str, str] = {}
    homes: dict[str, dict[str, list[str]]] = {}
    public: dict[int, str] = {}
    for name, row in names.items():
        found = find(name, {"cupy": "cupy", "cupyx": "cupyx"})
        owner, _, last = name.rpartition(".")
        if isinstance(found, ModuleType):
            modules[name] = found.__name__ if found.__name__.startswith("cupy") else name
        elif row["kind"] in ("class", "exception", "function", "ufunc") and owner not in CLASSES:
            home = getattr(found, "__module__", None) or ""
            own = getattr(found, "__qualname__", None) or getattr(found, "__name__", None)
            if row["kind"] == "ufunc" or (home.startswith("cupy") and own):
                homes.setdefault(owner, {}).setdefault(home, []).append(
                    last if own in (None, last) else f"{last}={own}"
                )
                public.setdefault(id(found), name)
    private: dict[str, list[str]] = {}
    for path, module in sorted(sys.modules.items()):
        if path.partition(".")[0] not in ("cupy", "cupyx") or path in names or not isinstance(module, ModuleType):
            continue
        for name, value in vars(module).items():
            known = public.get(id(value))
            if known is not None and not (f"{path}.{name}" == known or getattr(value, "__module__", None) == path):
                private.setdefault(path, []).append(f"{name}={known}")
    return {
        "modules": dict(sorted(modules.items())),
        "homes": {owner: {home: " ".join(members) for home, members in rows.items()} for owner, rows in homes.items()},
        "private": {path: " ".join(members) for path, members in private.items()},
    }


_ABOUT_IDENTITY = (
    "What the objects of CuPy call themselves. 'modules': the names of the public modules by their paths. "
    "'homes': for each public module, the module that the objects of this module name as their own, with the names of "
    "the objects; 'min=amin' says that the object min is called amin, and the home '' that objects name no module. "
    "'private': the public objects that private modules have under their names. tests/support/cupy_names.py --read "
    "writes this file."
)


def main() -> int:
    """Write the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--read", action="store_true", help="read the names from the installed CuPy first")
    options = parser.parse_args()
    table = read()
    if options.read:
        import cupy

        table["version"] = cupy.__version__
        table["names"] = of_cupy()
        head = {"about": _ABOUT_IDENTITY} | {key: table[key] for key in ("package", "version", "source", "licence")}
        identity = {**head, **identity_of_cupy(table["names"])}
        IDENTITY.write_text(json.dumps(identity, indent=1) + "\n", encoding="utf-8")
    write_states(table)
    TABLE.write_text(as_text(table), encoding="utf-8")
    ABSENT_NAMES.write_text(absent_names(table), encoding="utf-8")
    counts = Counter(row["state"] for row in table["names"].values())
    print(", ".join(f"{state}: {count}" for state, count in counts.items()))
    said = complaints(table)
    print("".join(f"{complaint}\n" for complaint in said), end="", file=sys.stderr)
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main())
