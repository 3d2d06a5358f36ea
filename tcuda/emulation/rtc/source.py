"""The kernels of a source, and the preparation of the source for the C++ compiler."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcuda.emulation.rtc import directives, launch_bounds
from tcuda.emulation.rtc.dynamic_arrays import rewritten
from tcuda.emulation.rtc.shared_variables import without_static
from tcuda.emulation.rtc.tokens import Token, closing, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_KERNEL = "__global__"
WITH_ARGUMENTS = frozenset(
    ["__launch_bounds__", "__attribute__", "__cluster_dims__", "__block_size__", "__align__", "alignas", "__maxnreg__"]
)
"""The words in the declaration of a kernel behind which brackets have no parameters."""

_LAST_COMMA = re.compile(r",\s*>")
_TYPES = frozenset(["class", "struct", "union", "enum"])


@dataclass(frozen=True)
class Kernel:
    """A kernel of a source.

    Attributes:
        name: The qualified name, such as ``"ns::f"``, with the arguments of an instantiation of a template.
        template: Whether the kernel is a template, which has no address.
        c_linkage: Whether the kernel is declared ``extern "C"``, so that the name in the library is the name in the
            source.
        threads: The largest number of threads of a block, from ``__launch_bounds__``; None if the source has no number.
    """

    name: str
    template: bool
    c_linkage: bool
    threads: int | None = None

    @property
    def listed(self) -> str:
        """The name in the list of the module.

        The name of a kernel without C linkage begins with ``::``, because a program cannot find such a kernel by the
        name in the source on CUDA.
        """
        return self.name.rpartition("::")[2] if self.c_linkage else f"::{self.name}"


@dataclass
class Scope:
    """The braces around a token of a source.

    Attributes:
        kinds: For each brace, ``"namespace"``, ``"C"`` for a block ``extern "C"``, ``"type"`` or ``"block"``.
        names: For each brace, the name of the namespace or ``""``.
    """

    kinds: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @property
    def outside(self) -> bool:
        """Whether the token is in no function and in no class."""
        return all(kind in ("namespace", "C") for kind in self.kinds)

    def enter(self, statement: Sequence[Token]) -> None:
        """Add an opening brace after ``statement``, the tokens since the last semicolon or brace."""
        texts = [token.text for token in statement]
        name = ""
        if "namespace" in texts:
            kind = "namespace"
            name = "".join(text for text in texts[texts.index("namespace") + 1 :] if text not in ("inline",))
        elif texts[:1] == ["extern"] and len(texts) == 2 and texts[1].startswith('"'):
            kind = "C" if texts[1] == '"C"' else "namespace"
        elif _TYPES.intersection(texts) and "(" not in texts:
            kind = "type"
        else:
            kind = "block"
        self.kinds.append(kind)
        self.names.append(name)

    def leave(self) -> None:
        """Remove the innermost brace."""
        if self.kinds:
            self.kinds.pop()
            self.names.pop()

    def qualified(self, name: str) -> str:
        """Return ``name`` with the namespaces around it."""
        return "::".join([*filter(None, self.names), name])


def scoped(found: Sequence[Token]) -> Iterator[tuple[int, Scope, int]]:
    """Yield for each token its index, the braces around it, and the index of the first token of its statement."""
    scope, start = Scope(), 0
    for index, token in enumerate(found):
        yield index, scope, start
        if token.kind == "directive":
            start = index + 1 if start == index else start
        elif token.text == "{" and token.kind == "sign":
            scope.enter([part for part in found[start:index] if part.kind != "directive"])
            start = index + 1
        elif token.text == "}" and token.kind == "sign":
            scope.leave()
            start = index + 1
        elif token.text == ";" and token.kind == "sign":
            start = index + 1


def kernels(source: str) -> list[Kernel]:
    """Return the kernels that ``source`` defines or instantiates, with every conditional part of the source."""
    found = list(tokens(source))
    macros = launch_bounds.macros(found)
    kernels: dict[str, Kernel] = {}
    overloaded: set[str] = set()
    for index, scope, start in scoped(found):
        token = found[index]
        if token.text != _KERNEL or token.kind != "name" or not scope.outside:
            continue
        kernel = _kernel(found, index, start, scope, macros)
        if kernel is None:
            continue
        if kernel.name in kernels and not kernel.template:
            overloaded.add(kernel.name)
        kernels.setdefault(kernel.name, kernel)
    # The name of an overloaded kernel has several meanings, so the name is no expression for one kernel.
    return [kernel for name, kernel in kernels.items() if name not in overloaded]


def _kernel(found: Sequence[Token], index: int, start: int, scope: Scope, macros: Mapping[str, str]) -> Kernel | None:
    """Return the kernel that the statement from ``start`` defines or instantiates; None for a plain declaration."""
    before = [token.text for token in found[start:index]]
    place = index + 1
    name_from = name_to = -1
    while place < len(found) and found[place].text not in (";", "{"):
        text = found[place].text
        if text in WITH_ARGUMENTS and place + 1 < len(found) and found[place + 1].text == "(":
            place = closing(found, place + 1) + 1
        elif text == "[[":
            place = closing(found, place) + 1
        elif text == "(":
            name_to = place
            break
        elif text == "<" and name_from >= 0:
            place = _closing_angle(found, place) + 1
        else:
            if found[place].kind == "name" and not (name_from >= 0 and found[place - 1].text == "::"):
                name_from = place
            place += 1
    if name_to < 0 or name_from < 0:
        return None
    end = closing(found, name_to) + 1
    while end < len(found) and found[end].text not in (";", "{"):
        end += 1
    defined = end < len(found) and found[end].text == "{"
    template = "template" in before and before[before.index("template") + 1 : before.index("template") + 2] == ["<"]
    specialized = "template" in before and not _parameters_of_template(before)
    instantiated = "template" in before and not template
    if not defined and not instantiated:
        return None
    name = " ".join(token.text for token in found[name_from:name_to]).replace(" :: ", "::")
    c_linkage = "C" in scope.kinds or any(a == "extern" and b == '"C"' for a, b in itertools.pairwise(before))
    threads = launch_bounds.threads(found[start:name_to], macros)
    return Kernel(scope.qualified(name), template and not specialized, c_linkage and not template, threads)


def _parameters_of_template(before: Sequence[str]) -> bool:
    place = before.index("template")
    return [*before[place + 1 : place + 3]] != ["<", ">"] and before[place + 1 : place + 2] == ["<"]


def _closing_angle(found: Sequence[Token], place: int) -> int:
    depth = 0
    for index in range(place, len(found)):
        text = found[index].text
        depth += (text == "<") - (text == ">") - 3 * (text == ">>>")
        if depth <= 0:
            return index
    return len(found) - 1


def depends_on_preprocessor(source: str) -> bool:
    """Return whether a macro, a condition or an included file may make a kernel of ``source``.

    Only the preprocessor can then tell the kernels.
    """
    conditions = directives.Conditions([])
    for token in tokens(source):
        if token.kind == "directive":
            conditions.pass_over(token)
            name, rest = directives.parts(token)
            if name == "define" and _KERNEL in rest:
                return True
            if name == "include" and rest.startswith('"'):
                return True
        elif token.text == _KERNEL and conditions.unknown:
            return True
    return False


def _without_last_commas(source: str) -> str:
    """Return ``source`` without commas after the last argument of a template, which NVRTC takes, too."""
    found = list(tokens(source))
    for token, after in itertools.pairwise(found):
        if token.kind == after.kind == "sign" and token.text == "," and after.text == ">":
            source = f"{source[: token.start]} {source[token.end :]}"
    return source


def prepared(source: str) -> str:
    """Return ``source`` in the form for the C++ compiler, with the same lines."""
    if _LAST_COMMA.search(source):
        source = _without_last_commas(source)
    source = without_static(source, list(tokens(source)))
    found = list(tokens(source))
    outside = {index: scope.outside for index, scope, _ in scoped(found) if found[index].text == "extern"}
    return rewritten(source, found, outside)
