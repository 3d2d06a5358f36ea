"""The public surface against torch's, name by name.

``data/torch_cuda_api.json`` has every name of ``torch.cuda`` with its parameters. ``data/differences.json`` explains
each difference. ``torch_accelerator_api.json`` and ``accelerator_differences.json`` do the same for
``torch.accelerator``. A difference without an explanation is an error, and so is an explanation without a difference.
"""

from __future__ import annotations

import importlib
import inspect
import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import DATA
from tcuda._base.cupy_names import CupyName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_MISSING = object()


@dataclass(frozen=True)
class Row:
    """A row of the table of differences.

    Attributes:
        names: The dotted names below ``torch.cuda`` that the row explains. ``*`` stands for any text.
        kind: "later" or "absent" for names that tcuda lacks, "signature" for names with other parameters, "extra" for
            names that torch lacks, "behaviour" for names that behave differently.
        reason: The reason of the difference, for a reader.
    """

    names: list[str]
    kind: str
    reason: str


TABLES = {
    "tcuda": ("torch_cuda_api.json", "differences.json"),
    "tcuda.accelerator": ("torch_accelerator_api.json", "accelerator_differences.json"),
}
"""For each package, the table of torch's names and the table of differences."""


def read_api(package: str) -> dict[str, dict[str, Any]]:
    return dict(json.loads((DATA / TABLES[package][0]).read_text())["names"])


def read_rows(package: str) -> list[Row]:
    return [Row(**row) for row in json.loads((DATA / TABLES[package][1]).read_text())["rows"]]


def find(package: Any, name: str) -> Any:
    """Return the object that ``package`` has under a dotted name, or ``_MISSING``."""
    found = package
    for part in name.split("."):
        found = getattr(found, part, _MISSING)
    return found


def parameters(function: Any) -> str:
    """Return the parameters and their defaults in the spelling of the table, without annotations."""
    signature = inspect.signature(function)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return text.replace("(self, /", "(self", 1)  # methods of the core have a positional-only self


def kind_of(package: Any, name: str) -> str:
    """Return the kind of object that a name stands for, in the words of the table."""
    found = find(package, name)
    owner, _, member = name.rpartition(".")
    if owner and inspect.isclass(find(package, owner)):
        static = inspect.getattr_static(find(package, owner), member)
        if isinstance(static, (staticmethod, classmethod)):
            return type(static).__name__
        # inspect does not count methods of the core as functions.
        return "method" if callable(static) and not inspect.isclass(static) else "attribute"
    if inspect.isclass(found):
        return "exception" if issubclass(found, BaseException) else "class"
    if inspect.isroutine(found):
        return "function"
    return "module" if inspect.ismodule(found) else type(found).__name__


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def difference(package: Any, name: str, torchs: Mapping[str, Any]) -> str | None:
    """Return how a name of ``package`` differs from torch's name; None if both are equal."""
    kind = kind_of(package, name)
    if kind != torchs["kind"]:
        return f"is {_a(kind)}, torch's is {_a(torchs['kind'])}"
    found = find(package, name)
    if "signature" in torchs and parameters(found) != torchs["signature"]:
        return f"takes {parameters(found)}, torch's takes {torchs['signature']}"
    if inspect.isclass(found):
        bases = {base.__name__ for base in found.__mro__}
        for base in torchs.get("bases", ()):
            if base not in bases and not base.startswith("_"):
                return f"is no {base}, torch's is one"
    return None


def extra_names(package: Any, api: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names that torch lacks, from the package and from the modules and classes that torch has too."""
    yield from (name for name in package.__all__ if name not in api)
    for owner, torchs in api.items():
        found = find(package, owner)
        members: Sequence[str] = ()
        if inspect.isclass(found):
            # A base class that is not public has a part of the surface of the class.
            hidden = [base for base in found.__mro__[1:] if base.__module__.startswith("tcuda.graphs.")]
            members = [
                member
                for each in (found, *hidden)
                for member, value in vars(each).items()
                if not member.startswith("_") and not isinstance(value, CupyName)
            ]
        elif found is not _MISSING and torchs["kind"] == "module":
            members = found.__all__
        yield from (f"{owner}.{member}" for member in members if f"{owner}.{member}" not in api)


def complaints(package: Any, api: Mapping[str, Mapping[str, Any]], rows: Sequence[Row]) -> list[str]:
    """Return the differences that no row of the table explains, and the rows that explain no difference."""
    has = {name for name in api if find(package, name) is not _MISSING}
    what = {name: "is missing" for name in api if name not in has}
    lacking = set(what)
    what |= {name: text for name in has if (text := difference(package, name, api[name]))}
    changed = set(what) - lacking
    what |= dict.fromkeys(extra_names(package, api), "is not torch's")
    extra = set(what) - lacking - changed

    said: list[str] = []
    for row in rows:
        for pattern in row.names:
            if row.kind == "behaviour" or (row.kind == "extra" and pattern not in extra and "*" not in pattern):
                # Signatures do not show behaviour. Names that are looked up late, such as xp, are in no list.
                needed = find(package, pattern) is not _MISSING and (pattern in api) == (row.kind == "behaviour")
                explained = set()
            else:
                real, candidates = {
                    "later": (lacking, set(api)),
                    "absent": (lacking, set(api)),
                    "signature": (changed, set(api)),
                    "extra": (extra, extra),
                }[row.kind]
                explained = {name for name in candidates if fnmatchcase(name, pattern)}
                needed = bool(explained) and explained <= real
            if not needed:
                said.append(f"{pattern} ({row.kind}): the row is stale")
            for name in explained:
                what.pop(name, None)
    return said + [f"{name} {text}, and no row says why" for name, text in sorted(what.items())]


@pytest.mark.parametrize("package", TABLES)
def test_the_table_explains_every_difference_from_torch_and_nothing_else(package: str) -> None:
    assert complaints(importlib.import_module(package), read_api(package), read_rows(package)) == []


@pytest.mark.parametrize("package", TABLES)
def test_every_row_gives_a_reason(package: str) -> None:
    assert all(row.names and row.reason.endswith(".") for row in read_rows(package))


def test_both_tables_are_of_one_version_of_torch() -> None:
    assert len({json.loads((DATA / api).read_text())["version"] for api, _ in TABLES.values()}) == 1


# These tests check the comparison itself, with a small package that has one difference at a time.

SMALL_API: dict[str, dict[str, Any]] = {
    "launch": {"kind": "function", "signature": "(kernel, size=1)"},
    "Stream": {"kind": "class", "signature": "(device=None)"},
    "Stream.wait": {"kind": "method", "signature": "(self, event=None)"},
    "Stream.handle": {"kind": "attribute"},
    "Error": {"kind": "exception", "bases": ["RuntimeError"]},
    "graphs": {"kind": "module"},
    "graphs.capture": {"kind": "function", "signature": "()"},
}
SMALL_ROWS = [Row(["graphs", "graphs.*"], "later", "Comes later."), Row(["launch"], "behaviour", "Is slower.")]


class Stream:
    handle = 0

    def __init__(self, device: object = None) -> None: ...
    def wait(self, event: object = None) -> None: ...


class RenamedParameter(Stream):
    def wait(self, mark: object = None) -> None: ...


class LostMember:
    def __init__(self, device: object = None) -> None: ...
    def wait(self, event: object = None) -> None: ...


class ExtraMember(Stream):
    def use(self) -> None: ...


class StaticMethod(Stream):
    wait = staticmethod(lambda self, event=None: None)  # type: ignore[assignment]


def launch(kernel: object, size: int = 1) -> None: ...


def changed_default(kernel: object, size: int = 2) -> None: ...


def changed_kind(kernel: object, *, size: int = 1) -> None: ...


def changed_order(size: object, kernel: object = 1) -> None: ...


def more_parameters(kernel: object, size: int = 1, color: str = "red") -> None: ...


def small_package(**changes: Any) -> SimpleNamespace:
    names = {"launch": launch, "Stream": Stream, "Error": type("Error", (RuntimeError,), {}), **changes}
    return SimpleNamespace(__all__=list(names), **names)


def test_a_package_that_matches_the_table_passes() -> None:
    assert complaints(small_package(), SMALL_API, SMALL_ROWS) == []


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"launch": changed_default}, "launch takes (kernel, size=2), torch's takes (kernel, size=1)"),
        ({"launch": changed_kind}, "launch takes (kernel, *, size=1), torch's takes (kernel, size=1)"),
        ({"launch": changed_order}, "launch takes (size, kernel=1), torch's takes (kernel, size=1)"),
        ({"launch": more_parameters}, "launch takes (kernel, size=1, color='red'), torch's takes (kernel, size=1)"),
        ({"launch": type("launch", (), {})}, "launch is a class, torch's is a function"),
        ({"Stream": RenamedParameter}, "Stream.wait takes (self, mark=None), torch's takes (self, event=None)"),
        ({"Stream": StaticMethod}, "Stream.wait is a staticmethod, torch's is a method"),
        ({"Stream": LostMember}, "Stream.handle is missing"),
        ({"Stream": ExtraMember}, "Stream.use is not torch's"),
        ({"Error": type("Error", (ValueError,), {})}, "Error is no RuntimeError, torch's is one"),
        ({"Error": type("Error", (), {})}, "Error is a class, torch's is an exception"),
        ({"xp": SimpleNamespace()}, "xp is not torch's"),
    ],
)
def test_a_difference_without_a_row_is_reported(changes: dict[str, Any], complaint: str) -> None:
    assert complaints(small_package(**changes), SMALL_API, SMALL_ROWS) == [f"{complaint}, and no row says why"]


def test_a_missing_name_is_reported() -> None:
    package = small_package()
    del package.launch
    package.__all__.remove("launch")
    assert complaints(package, SMALL_API, SMALL_ROWS) == [
        "launch (behaviour): the row is stale",
        "launch is missing, and no row says why",
    ]


@pytest.mark.parametrize(
    "row",
    [
        Row(["launch"], "later", "It is there."),
        Row(["launch"], "absent", "It is there."),
        Row(["Stream*"], "absent", "No matching name is absent."),
        Row(["*"], "later", "Most matching names exist."),
        Row(["nowhere*"], "later", "torch has no such name."),
        Row(["launch"], "signature", "It is torch's."),
        Row(["launch"], "extra", "torch has it."),
        Row(["xp"], "extra", "The package lacks the name."),
        Row(["Stream.*"], "extra", "All matching names are torch's."),
        Row(["warp"], "behaviour", "Nobody has it."),
    ],
)
def test_a_row_that_explains_nothing_is_reported(row: Row) -> None:
    complaint = f"{row.names[0]} ({row.kind}): the row is stale"
    assert complaint in complaints(small_package(), SMALL_API, [*SMALL_ROWS, row])


@pytest.mark.parametrize(
    ("row", "package"),
    [
        (Row(["launch"], "signature", "One parameter more."), lambda: small_package(launch=more_parameters)),
        (Row(["Stream.u*"], "extra", "CuPy's."), lambda: small_package(Stream=ExtraMember)),
        (Row(["xp"], "extra", "Arrays."), lambda: small_package(xp=SimpleNamespace())),
    ],
)
def test_a_row_explains_a_difference(row: Row, package: Callable[[], Any]) -> None:
    assert complaints(package(), SMALL_API, [*SMALL_ROWS, row]) == []
