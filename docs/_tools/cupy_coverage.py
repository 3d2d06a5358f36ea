"""The parts of the page on CuPy's names, from the table that ``tests/surface/test_cupy_names.py`` checks."""

from __future__ import annotations

import runpy
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

_NAMES = Path(__file__).parents[2] / "tests" / "support" / "cupy_names.py"
_STATES = {"here": "here", "numpy": "by NumPy or SciPy", "absent": "not"}


def part(name: str) -> str:
    """Return a part of the page in Markdown: ``counts``, ``names``, or ``signatures``."""
    table: dict[str, Any] = runpy.run_path(str(_NAMES))["read"]()
    groups = _grouped(table["names"])
    if name == "counts":
        return _counts(groups, table["names"])
    if name == "signatures":
        rows = [
            f"| {', '.join(f'`{name}`' for name in row['names'])} | {row['reason']} |" for row in table["signatures"]
        ]
        return "\n".join(["| names | why |", "| --- | --- |", *rows])
    return "\n\n".join(_section(group, names, table) for group, names in groups.items())


def _grouped(names: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Return the names by the module or class that has them; a module with names is a group, and no name of a group."""
    owners = {name.rpartition(".")[0] for name in names}
    groups: dict[str, list[str]] = {}
    for name, row in sorted(names.items()):
        if row["kind"] != "module" or name not in owners:
            groups.setdefault(name.rpartition(".")[0], []).append(name)
    return dict(sorted(groups.items()))


def _counts(groups: dict[str, list[str]], names: dict[str, dict[str, Any]]) -> str:
    lines = [f"| names of | {' | '.join(_STATES.values())} |", "| --- | --: | --: | --: |"]
    everything = [name for members in groups.values() for name in members]
    for title, members in [*((f"`{group}`", groups[group]) for group in groups), ("all", everything)]:
        counts = [sum(names[name]["state"] == state for name in members) for state in _STATES]
        lines.append(f"| {title} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def _section(group: str, names: list[str], table: dict[str, Any]) -> str:
    by_state: dict[str, list[str]] = {}
    reasons: dict[str, list[str]] = {}
    for name in names:
        by_state.setdefault(table["names"][name]["state"], []).append(name)
    for name in by_state.pop("absent", []):
        reasons.setdefault(_reason(name, table["rows"]), []).append(name)
    titles = {state: f"{title[0].upper()}{title[1:]}" for state, title in _STATES.items()}
    lines = [f"* {titles[state]}: {_listed(by_state[state], group)}." for state in _STATES if state in by_state]
    lines += [f"* {titles['absent']}: {_listed(missing, group)}. {reason}" for reason, missing in reasons.items()]
    return f"### `{group}`\n\n" + "\n".join(lines)


def _reason(name: str, rows: list[dict[str, Any]]) -> str:
    reason: str = next(row["reason"] for row in rows for pattern in row["names"] if fnmatchcase(name, pattern))
    return reason


def _listed(names: list[str], group: str) -> str:
    return ", ".join(f"`{name.removeprefix(f'{group}.')}`" for name in names)
