"""Parts of pages that are made from the repository when the site is built, so that they are never out of date.

A page requests a part by a comment on a line of its own::

    <!-- coverage: counts -->               a part from tests/data: counts, present, later, absent or extra
    <!-- source: tcuda/demo/train.py f -->  the function or class f (C.f for a method) of this file; the file without f
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ROOT = Path(__file__).parents[2]
_LANGUAGES = {".py": "python", ".cu": "cpp"}
_MARKER = re.compile(r"^<!-- (coverage|source): (.*) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Insert the parts that the page requests (an event of MkDocs)."""
    make = {"coverage": lambda what: Coverage().part(what), "source": lambda what: source(*what.split())}
    return _MARKER.sub(lambda marker: make[marker[1]](marker[2]), markdown)


class Coverage:
    """The part of ``torch.cuda`` that tcuda has, from the tables that ``tests/surface/test_api_table.py`` checks."""

    def __init__(self) -> None:
        data = _ROOT / "tests" / "data"
        self._api: dict[str, dict[str, Any]] = json.loads((data / "torch_cuda_api.json").read_text())["names"]
        self._rows: list[dict[str, Any]] = json.loads((data / "differences.json").read_text())["rows"]

    def part(self, name: str) -> str:
        """Return one part of the page, in Markdown."""
        if name == "counts":
            return self._counts()
        if name == "present":
            return self._present()
        rows = [row for row in self._rows if row["kind"] == name]
        return _table(("names", "why"), ((", ".join(map(_code, row["names"])), row["reason"]) for row in rows))

    def _counts(self) -> str:
        present, names = self._present_names(), self._names()
        return f"{len(present)} of {len(names)} names are there, members of classes not counted."

    def _present(self) -> str:
        rows = []
        for name in self._present_names():
            members = [member for member in self._api if member.startswith(f"{name}.")]
            notes = [
                (f"{_code(member.removeprefix(name))}: " if member != name else "") + reason
                for member in (name, *(members if self._api[name]["kind"] != "module" else ()))
                for reason in self._reasons(member)
            ]
            rows.append((_code(name + self._api[name].get("signature", "")), " ".join(notes)))
        return _table(("name", "what differs"), rows)

    def _reasons(self, name: str) -> list[str]:
        kinds = ("signature", "behaviour")
        return [row["reason"] for row in self._rows if row["kind"] in kinds and _matches(name, row)]

    def _names(self) -> list[str]:
        classes = {name for name, row in self._api.items() if row["kind"] in ("class", "exception")}
        return [name for name in self._api if name.rpartition(".")[0] not in classes]

    def _present_names(self) -> list[str]:
        lacking = [row for row in self._rows if row["kind"] in ("later", "absent")]
        return [name for name in self._names() if not any(_matches(name, row) for row in lacking)]


def _matches(name: str, row: dict[str, Any]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in row["names"])


def _code(text: str) -> str:
    return f"`{text}`"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def source(path: str, name: str = "") -> str:
    """Return a file of the repository, or a function or class of it, as a block of code.

    Raises:
        LookupError: The file has no function or class ``name``.
    """
    code = (_ROOT / path).read_text()
    if name:
        first, last = _lines(ast.parse(code), name.split("."))
        code = textwrap.dedent("\n".join(code.splitlines()[first - 1 : last]))
    return f'```{_LANGUAGES[Path(path).suffix]} title="{path}"\n{code.rstrip()}\n```'


def _lines(scope: ast.AST, names: list[str]) -> tuple[int, int | None]:
    """Return the first and the last line of the object with the path ``names``, including its decorators."""
    name, *rest = names
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and child.name == name:
            if rest:
                return _lines(child, rest)
            return min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)]), child.end_lineno
    raise LookupError(f"A page shows the source of {name}, which does not exist any more.")
