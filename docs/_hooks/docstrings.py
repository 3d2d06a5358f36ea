"""Docstrings for the reference: Sphinx's roles become links, and ``__new__`` gives a class its parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import griffe

if TYPE_CHECKING:
    from griffe import Class, Object

_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`(~?)([\w.]+)`")
_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Prepares the docstrings of tcuda for the site."""

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Give a class the parameters of ``__new__``, unless it has an ``__init__`` that names its parameters."""
        new, init = cls.members.get("__new__"), cls.members.get("__init__")
        names = isinstance(init, griffe.Function) and any(
            parameter.name not in ("self", "args", "kwargs") for parameter in init.parameters
        )
        if isinstance(new, griffe.Function) and not names:
            cls.set_member("__init__", griffe.Function("__init__", parameters=new.parameters))

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Turn ``:func:`name``` into a link to the object that ``name`` means there, or into code without a page."""
        if obj.docstring is not None:
            text = _ROLE.sub(lambda role: _link(obj, role[2], short=bool(role[1])), obj.docstring.value)
            text = _EXAMPLE.sub("Examples:", text)  # mkdocstrings shows code in sections that are called "Examples"
            obj.docstring.value = re.sub(r"(?<=\S)::(?=\n\n)", ":", text.replace("\n::\n", "\n"))


def _link(obj: Object, name: str, *, short: bool) -> str:
    shown = name.rpartition(".")[2] if short else name
    return f'<autoref identifier="{_meaning(obj, name)}" optional><code>{shown}</code></autoref>'


def _meaning(obj: Object, name: str) -> str:
    """Return the full name of the object that ``name`` means in the docstring of ``obj``."""
    scope: Object | None = obj
    while scope is not None and not name.startswith("tcuda."):
        try:
            return scope.resolve(name)
        except griffe.NameResolutionError:
            scope = scope.parent
    return name
