"""The types of the core that ``tcuda/_core/__init__.pyi`` declares, against what the compiled core says of itself."""

from __future__ import annotations

import ast
import enum
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import tcuda._core as core
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

STUB = ast.parse((REPOSITORY / "tcuda" / "_core" / "__init__.pyi").read_text())

_OF_PYTHON = {"__module__", "__doc__", "__new__", "__repr__", "__vectorcalloffset__", "__nb_enum__", "__buffer__"}
"""Members that Python or nanobind adds to a class, in some versions. The stub may have them."""

OF_SUBCLASSES = {"EventFinalizer.cuda_event"}
"""Members that the stub declares for a subclass in Python."""

ANYTHING = {"object", "Any"}


def declared() -> dict[str, ast.stmt]:
    """Return the functions, the classes and the variables of the stub, without names that only types use."""
    return {name: node for name, node in _named(STUB.body) if not name.startswith("_")}


def _named(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) != "TypeAlias":
            yield ast.unparse(node.target), node


@cache
def aliases() -> dict[str, ast.expr]:
    """Return the type that an alias or a type variable of the stub stands for."""
    found: dict[str, ast.expr] = {}
    for node in STUB.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(keywords=bounds)):
                found[name] = bounds[0].value if bounds else ast.Name("Any")
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(ast.Name(name), annotation=ast.Name("TypeAlias"), value=ast.expr() as value):
                found[name] = value
    return found


# Types


def alternatives(kind: ast.expr) -> list[ast.expr]:
    """Return the types of a union, with the aliases of the stub replaced."""
    match kind:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return alternatives(left) + alternatives(right)
        case ast.Constant(value=str(text)):
            return alternatives(ast.parse(text, mode="eval").body)
        case ast.Name(id=name) if name in aliases():
            return alternatives(aliases()[name])
        case ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Tuple(elts=values)):
            return [ast.Name(type(ast.literal_eval(value)).__name__) for value in values[:1]]
    return [kind]


def head(kind: ast.expr) -> str:
    """Return the name of a type without its module and its arguments."""
    return ast.unparse(kind.value if isinstance(kind, ast.Subscript) else kind).rpartition(".")[2]


def arguments(kind: ast.expr) -> list[ast.expr] | None:
    """Return the arguments of a generic type; None without arguments."""
    if not isinstance(kind, ast.Subscript):
        return None
    return kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]


def agrees(known: ast.expr, written: ast.expr) -> bool:
    """Return whether the type of the stub is the core's type or says more, where the core knows no more.

    The core knows no more than ``object`` of an argument that C++ hands on, and no more than ``list`` of a list that
    C++ fills by hand.
    """
    ours, theirs = alternatives(written), alternatives(known)
    if any(head(kind) in ANYTHING for kind in theirs):
        return True
    return all(any(_agrees(one, kind) for one in theirs) for kind in ours) and all(
        any(_agrees(one, kind) for kind in ours) for one in theirs
    )


def _agrees(known: ast.expr, written: ast.expr) -> bool:
    if head(known) != head(written):
        return False
    theirs, ours = arguments(known), arguments(written)
    if theirs is None or ours is None:
        return theirs is None
    return len(theirs) == len(ours) and all(map(agrees, theirs, ours))


# Functions


def signature_of(function: Any) -> tuple[ast.FunctionDef, tuple[Any, ...]]:
    """Return what nanobind tells of a function, and the values of the defaults."""
    ((text, _, defaults),) = function.__nb_signature__
    text = re.sub(r"\\(\d+)", r"(\1,)", text).replace("def (", "def getter(")
    (parsed,) = ast.parse(f"{text}: ...").body
    assert isinstance(parsed, ast.FunctionDef)
    return parsed, tuple(defaults or ())


def differences(name: str, written: ast.FunctionDef, function: Any) -> list[str]:
    """Return how a function of the stub differs from the function of the core."""
    known, values = signature_of(function)
    ours, theirs = written.args, known.args
    if shape(ours) != shape(theirs):
        return [f"{name} has the parameters ({ast.unparse(theirs)}), and the stub ({ast.unparse(ours)})"]
    found = []
    for our, their in zip(_parameters(ours), _parameters(theirs), strict=True):
        if their.annotation is not None and not agrees(their.annotation, our.annotation or ast.Name("Any")):
            found.append(f"{name}({their.arg}) takes {kind_of(their)}, and in the stub {kind_of(our)}")
    for our_default, their_default in zip(_defaults(ours), _defaults(theirs), strict=True):
        value = values[ast.literal_eval(their_default)[0]]
        value = tuple(value) if isinstance(value, list) else value  # a stub writes no default that can change
        if ast.literal_eval(our_default) != value:
            found.append(f"{name} has the default {value!r}, and the stub {ast.unparse(our_default)}")
    if known.returns is not None and not agrees(known.returns, written.returns or ast.Name("Any")):
        result = "nothing" if written.returns is None else ast.unparse(written.returns)
        found.append(f"{name} returns {ast.unparse(known.returns)}, and in the stub {result}")
    return found


def shape(of: ast.arguments) -> tuple[object, ...]:
    """Return the names, the kinds and the places of parameters, and which of them have a default."""
    names = [parameter.arg for parameter in of.args]
    only_by_name = [parameter.arg for parameter in of.kwonlyargs]
    with_default = (len(of.defaults), [default is not None for default in of.kw_defaults])
    return len(of.posonlyargs), names, only_by_name, of.vararg is None, of.kwarg is None, with_default


def _parameters(of: ast.arguments) -> list[ast.arg]:
    return [*of.posonlyargs, *of.args, *of.kwonlyargs]


def _defaults(of: ast.arguments) -> list[ast.expr]:
    return [*of.defaults, *(default for default in of.kw_defaults if default is not None)]


def kind_of(parameter: ast.arg) -> str:
    return "anything" if parameter.annotation is None else ast.unparse(parameter.annotation)


# Classes


def class_of(name: str) -> type:
    """Return a class of the core. The class of forwarders is no name of the module."""
    return type(core.forwarder(print)) if name == "Forwarder" else getattr(core, name)


def members_of(of: type) -> dict[str, Any]:
    """Return the members of a class of the core that a stub declares."""
    if issubclass(of, enum.Enum):
        return dict(of.__members__)
    ours = {name: member for name, member in vars(of).items() if name not in _OF_PYTHON}
    if type(ours.get("__init__")).__name__ == "wrapper_descriptor":
        del ours["__init__"]  # raises: nobody but the core makes such objects
    return ours


def differences_of_class(name: str, written: ast.ClassDef) -> list[str]:
    """Return how a class of the stub differs from the class of the core."""
    of = class_of(name)
    found = []
    bases = [base.__name__ for base in of.__bases__ if base is not object]
    if bases != [head(base) for base in written.bases]:
        found.append(f"{name} has the bases {bases}")
    ours = {member: node for member, node in _members(written) if member not in _OF_PYTHON}
    theirs = members_of(of)
    for missing in sorted(ours.keys() - theirs.keys()):
        if f"{name}.{missing}" not in OF_SUBCLASSES:
            found.append(f"the core lacks {name}.{missing}")
    found += [f"the stub lacks {name}.{missing}" for missing in sorted(theirs.keys() - ours.keys())]
    for member in sorted(ours.keys() & theirs.keys()):
        found += differences_of_member(f"{name}.{member}", ours[member], theirs[member])
    return found


def _members(written: ast.ClassDef) -> Iterator[tuple[str, ast.stmt]]:
    for node in written.body:
        if isinstance(node, ast.Assign):
            yield ast.unparse(node.targets[0]), node
    yield from _named(written.body)


def differences_of_member(name: str, written: ast.stmt, member: Any) -> list[str]:
    is_property = isinstance(written, ast.FunctionDef) and "property" in map(ast.unparse, written.decorator_list)
    is_method = isinstance(written, ast.FunctionDef) and not is_property
    if is_method != callable(member):
        return [f"{name} is {'a method' if callable(member) else 'no method'}, and not in the stub"]
    if isinstance(member, property):
        found = []
        if is_property != (member.fset is None):
            found.append(f"{name} {'can' if member.fset else 'cannot'} be set, and in the stub the reverse is so")
        kind = written.returns if isinstance(written, ast.FunctionDef) else getattr(written, "annotation", None)
        known, _ = signature_of(member.fget)
        if kind is None or known.returns is None or not agrees(known.returns, kind):
            found.append(f"{name} is {known.returns and ast.unparse(known.returns)}, and in the stub another type")
        return found
    if hasattr(member, "__nb_signature__"):
        assert isinstance(written, ast.FunctionDef)
        return differences(name, written, member)
    return []  # a part of a class without nanobind tells its name only


# Tests


def test_the_stub_has_the_names_of_the_core() -> None:
    names = {name for name in vars(core) if not name.startswith("__")}
    names.discard("for_tests")  # only tests use the module, and nobody checks the types of tests
    assert names == declared().keys() - {"Forwarder"}


@pytest.mark.parametrize("name", [name for name, node in declared().items() if isinstance(node, ast.ClassDef)])
def test_a_class_has_the_members_of_the_stub(name: str) -> None:
    written = declared()[name]
    assert isinstance(written, ast.ClassDef)
    assert not differences_of_class(name, written)


def test_a_function_has_the_signature_of_the_stub() -> None:
    functions = {name: node for name, node in declared().items() if isinstance(node, ast.FunctionDef)}
    assert len(functions) > 30
    assert not [text for name, node in functions.items() for text in differences(name, node, getattr(core, name))]


def test_a_variable_has_the_type_of_the_stub() -> None:
    variables = {name: node for name, node in declared().items() if isinstance(node, ast.AnnAssign)}
    assert variables
    assert {name: type(getattr(core, name)).__name__ for name in variables} == {
        name: head(node.annotation) for name, node in variables.items()
    }
