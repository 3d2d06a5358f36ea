"""Writes the generated parts of the pages under ``docs/``, so that every page reads whole as plain Markdown.

    python docs/_tools/write_parts.py           writes the parts
    python docs/_tools/write_parts.py --check   fails if a part is out of date

A page requests a part by a comment on a line of its own. The part follows, up to the line ``<!-- end -->``::

    <!-- coverage: counts -->               a part from tests/data: counts, present, later, absent or extra
    <!-- coverage: accelerator counts -->   the same part for torch.accelerator
    <!-- cupy: counts -->                   a part from tests/data/cupy_names.json: counts, names or signatures
    <!-- source: tcuda/demo/train.py f -->  the function or class f (C.f for a method) of this file; the file without f
    <!-- program: overlap -->               docs/examples/overlap.py, and what the program prints
    <!-- page: CONTRIBUTING.md -->          a page from outside of docs/, with its links adapted
    <!-- reference: tcuda.Stream -->        the entry of a public name; the site has a richer one in its place
    <!-- modules: core -->              the modules of core, emulation or sanitizer, by their docstrings, and the C++
    <!-- figures: event.record(); f() -->   the rows of these calls in the table of docs/benchmarks.md
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ROOT = Path(__file__).parents[2]
_DOCS = _ROOT / "docs"
_LANGUAGES = {".py": "py", ".cu": "cpp"}  # the tests run blocks fenced as "python", and no blocks fenced as "py"
_KINDS = "coverage|cupy|source|program|page|figures|reference|modules"
_FOLDER = re.compile(r"^\| `([\w/]+/)` \| ([^|]+?) \|", re.MULTILINE)  # the first two cells in the tables of DESIGN.md
_ENTRY = re.compile(r"^(?:::: |<!-- reference: )tcuda\.(\S+)", re.MULTILINE)
REQUEST = re.compile(rf"^<!-- ({_KINDS}): (.*) -->\n", re.MULTILINE)
_PART = re.compile(rf"{REQUEST.pattern}(?:(?:(?!<!-- (?:{_KINDS}): ).*\n)*?<!-- end -->\n)?", re.MULTILINE)


def pages() -> list[Path]:
    """Return the pages that may request parts."""
    return sorted(_DOCS.rglob("*.md"))


def with_parts(markdown: str) -> str:
    """Return the text of a page with all parts that it requests."""
    return _PART.sub(_written, markdown)


def _written(request: re.Match[str]) -> str:
    kind, what = request.groups()
    return f"<!-- {kind}: {what} -->\n\n{_part(kind, what)}\n\n<!-- end -->\n"


def _part(kind: str, what: str) -> str:
    if kind == "coverage":
        module, _, name = what.rpartition(" ")
        return Coverage(module).part(name)
    if kind == "cupy":
        from cupy_coverage import part

        return part(what)
    if kind == "source":
        return source(*what.split())
    if kind == "program":
        return program(what)
    if kind == "reference":
        from reference import entry  # needs griffe

        return entry(what)
    if kind == "modules":
        return modules(what)
    if kind == "figures":
        return figures(what.split("; "))
    return page(what)


class Coverage:
    """The part of torch's names that tcuda has, from the tables that ``tests/surface/test_api_table.py`` checks.

    Args:
        module: ``"accelerator"`` for the names of ``torch.accelerator``; empty for those of ``torch.cuda``.
    """

    def __init__(self, module: str = "") -> None:
        data = _ROOT / "tests" / "data"
        api = data / f"torch_{module or 'cuda'}_api.json"
        rows = data / (f"{module}_differences.json" if module else "differences.json")
        self._api: dict[str, dict[str, Any]] = json.loads(api.read_text())["names"]
        self._rows: list[dict[str, Any]] = json.loads(rows.read_text())["rows"]
        self._prefix = f"{module}." if module else ""
        self._entries = {
            name: page.name for page in (_DOCS / "api").glob("*.md") for name in _ENTRY.findall(page.read_text())
        }

    def part(self, name: str) -> str:
        """Return one part of the page, in Markdown."""
        if name == "counts":
            return self._counts()
        if name == "present":
            return self._present()
        rows = [row for row in self._rows if row["kind"] == name]
        if not rows:
            return "There is no such name."
        return _table(("names", "why"), ((", ".join(map(self._link, row["names"])), row["reason"]) for row in rows))

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
            rows.append((self._link(name), " ".join(notes)))
        return _table(("name", "what differs"), rows)

    def _link(self, name: str) -> str:
        """Return the name as code, with a link to its entry in the reference if there is one."""
        full = self._prefix + name
        page = self._entries.get(full)
        return f"[{_code(name)}](api/{page}#tcuda.{full})" if page else _code(name)

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
    return _fence(_LANGUAGES[Path(path).suffix], code, path)


def _lines(scope: ast.AST, names: list[str]) -> tuple[int, int | None]:
    """Return the first and the last line of the object with the path ``names``, including its decorators."""
    name, *rest = names
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and child.name == name:
            if rest:
                return _lines(child, rest)
            return min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)]), child.end_lineno
    raise LookupError(f"A page shows the source of {name}, which does not exist any more.")


def program(name: str) -> str:
    """Return a program of ``docs/examples`` and its output on two emulated devices, as blocks of code."""
    path = _DOCS / "examples" / f"{name}.py"
    return f"{_fence('python', path.read_text(), path.name)}\n\nOutput:\n\n{_fence('text', output(path))}"


def output(path: Path) -> str:
    """Return what a program prints on two emulated devices."""
    ours = ("TCUDA_", "CUDA_VISIBLE_DEVICES")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    chosen = {"TCUDA_RUNTIME": "emulated", "TCUDA_EMULATED_DEVICES": "2"}
    command = [sys.executable, path.name]
    env = inherited | chosen
    return subprocess.run(command, cwd=path.parent, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def page(path: str) -> str:
    """Return a page of the root of the repository without its title, with links as seen from ``docs/``."""
    _, _, text = (_ROOT / path).read_text().partition("\n")
    return text.replace("](docs/", "](").strip()


def modules(part: str) -> str:
    """Return tables of the modules of the core or of a wing, a table for each room, and one of the folders of C++."""
    package = _ROOT / "tcuda"
    wings = ("emulation", "sanitizer")
    top = package if part == "core" else package / part
    rooms: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(top.rglob("*.py")):
        inside = path.relative_to(top)
        if "assets" in inside.parts or (part == "core" and inside.parts[0] in wings):
            continue
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        first = " ".join(docstring.partition("\n\n")[0].split()).replace("|", "\\|")
        room = inside.parts[0] if len(inside.parts) > 1 else "."
        name = str(inside) if room == "." else str(inside.relative_to(room))
        if first:
            rooms.setdefault(room, []).append((_code(name), first))
    tables = []
    for room, rows in rooms.items():
        title = f"`{top.relative_to(_ROOT)}/{'' if room == '.' else room + '/'}`"
        tables.append(f"**{title}**\n\n{_table(('module', 'contents'), rows)}")
    page = (top / ("_core/DESIGN.md" if part == "core" else "DESIGN.md")).read_text()
    rows = [(f"`{folder}`", noun) for folder, noun in _FOLDER.findall(page)]
    return "\n\n".join([*tables, f"**The C++**\n\n{_table(('folder', 'contents'), rows)}"])


def figures(calls: Iterable[str]) -> str:
    """Return the measured times of some calls, in a table.

    Raises:
        LookupError: The page on benchmarks has no figures of a call.
    """
    rows = []
    for line in (_DOCS / "benchmarks.md").read_text().splitlines():
        call, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        if len(cells) == 7:
            rows.append((call, cells[0], cells[2], cells[1]))
    measured = {row[0]: row for row in reversed(rows)}
    missing = [call for call in calls if call not in measured]
    if missing:
        raise LookupError(f"docs/benchmarks.md has no figures of {', '.join(missing)}.")
    head = ("nanoseconds per call", "tcuda", "torch.cuda", "CuPy or CUDA beneath")
    return _table(head, ((_code(call), *measured[call][1:]) for call in calls))


def _fence(language: str, code: str, title: str = "") -> str:
    suffix = f' title="{title}"' if title else ""
    return f"```{language}{suffix}\n{code.rstrip()}\n```"


def main(arguments: Sequence[str]) -> int:
    """Write or check the parts of all pages, and return the exit status."""
    stale = []
    for path in pages():
        text = path.read_text()
        new = with_parts(text)
        if new != text:
            stale.append(path)
            if "--check" not in arguments:
                path.write_text(new)
    if not stale or "--check" not in arguments:
        return 0
    names = ", ".join(str(path.relative_to(_ROOT)) for path in stale)
    print(
        f"Generated parts are out of date in {names}. Run python {Path(__file__).relative_to(_ROOT)}.", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
