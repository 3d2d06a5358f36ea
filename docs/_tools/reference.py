"""Entries of the reference in plain Markdown, read from the sources of tcuda."""

from __future__ import annotations

import functools
import logging
import re
import textwrap
from pathlib import Path
from typing import Any

import griffe

_ROOT = Path(__file__).parents[2]
_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`~?([\w.]+)`")
_WITH_INHERITED = ("tcuda.CUDAGraph",)  # classes whose surface has parts in classes that are not public
_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)  # griffe reads code in sections that are called "Examples"


def entry(name: str) -> str:
    """Return the entry of a public name: a heading, the signature, the docstring and the members."""
    parent, _, own = name.removeprefix("tcuda.").rpartition(".")
    scope = _package()[parent] if parent else _package()
    return "\n\n".join(_described(_target(_target(scope).members[own]), name, "##"))


@functools.cache
def _package() -> Any:
    logging.getLogger("griffe").setLevel(logging.ERROR)
    extensions = griffe.load_extensions(f"{_ROOT}/docs/_hooks/emulated_arrays.py")
    return griffe.load("tcuda", search_paths=[str(_ROOT)], extensions=extensions, resolve_aliases=True)


def _target(found: Any) -> Any:
    return found.final_target if found.is_alias else found


def _described(found: Any, name: str, heading: str) -> list[str]:
    parts = [f'<a id="{name}"></a>', f"{heading} `{name}`", f"```py\n{_signature(found, name)}\n```"]
    if found.docstring is not None:
        text = griffe.Docstring(_EXAMPLE.sub("Examples:", found.docstring.value), parent=found)
        for section in text.parse("google", warnings=False, returns_multiple_items=False):
            parts += _section(section)
    if found.is_class:
        for own, member in _members(found, name).items():
            if member.docstring is not None:
                parts += _described(member, f"{name}.{own}", heading + "#")
    return parts


def _members(found: Any, name: str) -> dict[str, Any]:
    """Return the public members of a class; those of CuPy's kernels with the launch and with inherited members."""
    kernel = name.startswith("tcuda.emulation.xp.")
    inherits = kernel or name in _WITH_INHERITED
    members = {**found.inherited_members, **found.members} if inherits else found.members
    return {
        own: _target(member)
        for own, member in members.items()
        if (not own.startswith("_") or (kernel and own == "__call__")) and (inherits or not member.is_alias)
    }


def _signature(found: Any, name: str) -> str:
    own = name.rpartition(".")[2]
    if found.is_attribute and str(found.annotation) == "TypeAlias":
        meaning = str(found.value).strip("'\"")
        return f"{own} = {meaning}"
    if found.is_attribute:
        return f"{own}: {found.annotation}" if found.annotation else own
    if found.is_module:
        return own
    called = found
    if found.is_class:
        made = [found.members[method] for method in ("__init__", "__new__") if method in found.members]
        called = next((method for method in map(_target, made) if method.is_function), None)
        if called is None:
            return own
    parameters = _parameters(called.parameters)
    result = f" -> {called.returns}" if found.is_function and called.returns else ""
    line = f"{own}({', '.join(parameters)}){result}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{own}(", *(f"    {parameter}," for parameter in parameters), f"){result}"])


def _parameters(parameters: Any) -> list[str]:
    shown, before = [], None
    for parameter in parameters:
        kind = parameter.kind.value if parameter.kind else ""
        if parameter.name in ("self", "cls") and not shown:
            before = kind
            continue
        if before == "positional-only" and kind != before and shown:
            shown.append("/")
        if kind == "keyword-only" and before not in ("keyword-only", "variadic positional"):
            shown.append("*")
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        text = f"{stars}{parameter.name}" + (f": {parameter.annotation}" if parameter.annotation else "")
        if parameter.default is not None and not stars:
            text += f" = {parameter.default}" if parameter.annotation else f"={parameter.default}"
        shown.append(text)
        before = kind
    return shown


def _section(section: Any) -> list[str]:
    kind = section.kind.value
    if kind == "text":
        return [_plain(section.value)]
    if kind == "examples":
        code = [_plain(text) if part.value == "text" else f"```pycon\n{text}\n```" for part, text in section.value]
        return ["**Example**", *code]
    if kind == "admonition":
        return [f"**{section.title}**", _plain(section.value.description)]
    if isinstance(section.value, list):
        return [f"**{kind.title()}**", "\n".join(map(_item, section.value))]
    return []


def _item(item: Any) -> str:
    name = getattr(item, "name", "") or str(item.annotation or "")
    text = textwrap.indent(_plain(item.description), "  ").strip()
    return f"* `{name}`: {text}" if name else f"* {text}"


def _plain(text: str) -> str:
    """Return the text of a docstring with roles as code, and with literal blocks as blocks of code."""
    text = _ROLE.sub(r"`\1`", text)
    text = re.sub(r"(^|\n)::(?=\n)", "", text)
    text = re.sub(r"(?<=\S)::(?=\n\n)", ":", text)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip()
