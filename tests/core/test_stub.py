"""The types of the core in ``tcuda/_core/__init__.pyi``, against the compiled core and the bindings."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

import tcuda._core as core
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

STUB = (REPOSITORY / "tcuda" / "_core" / "__init__.pyi").read_text()
PATTERNS = (REPOSITORY / "tcuda" / "_core" / "stub.pat").read_text()
BINDINGS = sorted(path for path in (REPOSITORY / "tcuda").rglob("*.cpp") if "bindings" in path.parts)

_CALL = re.compile(r'\bdef(?:_ro|_rw|_prop_ro|_prop_rw)?\(\s*(?:"(\w+)"|nb::init)')
_ARGUMENT = re.compile(r'nb::arg\("(\w+)"\)(?:\.none\(\))?(?:\s*=\s*([^,]+))?')
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OF_PYTHON = {"__module__", "__doc__", "__new__", "__repr__", "__vectorcalloffset__", "__buffer__", "__init__"}
"""Members that Python adds to a class, in some versions."""

OF_SUBCLASSES = {"cuda_event"}
"""Members that the stub declares for a subclass in Python."""


# The file


def normal(text: str) -> str:
    """Return the declarations in a text, whatever their format and the order of the imports."""
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = inspect.cleandoc(node.value)
    return ast.unparse(tree)


def test_the_file_is_what_stubgen_writes() -> None:
    if not core.has_wings:
        pytest.skip("the file has the wings too, which this core lacks")
    nanobind = pytest.importorskip("nanobind")
    if f" with nanobind {nanobind.__version__}. " not in STUB:
        pytest.skip(
            f"nanobind {nanobind.__version__} may word types in another way than the version that wrote the file"
        )
    place = REPOSITORY / "docs" / "_tools" / "write_core_stub.py"
    spec = importlib.util.spec_from_file_location("write_core_stub", place)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert normal(STUB) == normal(tool.generated()), f"run {place.relative_to(REPOSITORY)}"


# Signatures that bindings write by hand


def end_of(text: str, begin: int) -> int:
    """Return the place behind the parenthesis that closes the one at ``begin``, in C++."""
    depth = 0
    for found in re.compile(r'R"\(.*?\)"|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|//[^\n]*|[()]', re.DOTALL).finditer(
        text, begin
    ):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    raise ValueError(f"no parenthesis closes {text[begin : begin + 50]}")


def written_by_hand() -> Iterator[tuple[ast.FunctionDef, str | None, list[tuple[str, str]]]]:
    """Yield each signature in ``nb::sig``, the name of the binding, and its arguments with their defaults in C++."""
    for path in BINDINGS:
        text = path.read_text()
        for call in _CALL.finditer(text):
            inside = text[call.start() : end_of(text, text.index("(", call.start()))]
            begin = inside.find("nb::sig(")
            if begin >= 0:
                signature = inside[begin : end_of(inside, begin + len("nb::sig"))]
                words = "".join(_STRING.findall(signature)).replace('\\"', '"')
                (parsed,) = ast.parse(f"{words}: ...").body
                assert isinstance(parsed, ast.FunctionDef)
                yield parsed, call[1], _ARGUMENT.findall(inside.replace(signature, ""))


def same_default(written: ast.expr | None, known: str) -> bool:
    """Return whether a default of a signature is that of the binding, as far as its C++ is a literal."""
    known = known.strip().rstrip(")") if known.count("(") < known.count(")") else known.strip()
    if written is None or not known:
        return written is None and not known
    literals = {"nb::none()": "None", "nb::none(": "None", "true": "True", "false": "False"}
    text = literals.get(known, known)
    return ast.unparse(written) == text or not re.fullmatch(r"None|True|False|[\d.]+|\"\w*\"", text)


def test_a_signature_by_hand_has_the_arguments_of_its_binding() -> None:
    found = list(written_by_hand())
    assert len(found) > 100
    wrong = []
    for parsed, name, known in found:
        arguments = parsed.args
        ours = [*arguments.args, *arguments.kwonlyargs]
        ours = [each for each in ours if each.arg not in ("self", "cls")]
        defaults: list[ast.expr | None] = [*arguments.defaults]
        defaults = [None] * (len(arguments.args) - len(defaults)) + defaults + arguments.kw_defaults
        defaults = defaults[-len(ours) :] if ours else []
        names = [each.arg for each in ours]
        if parsed.name != (name or "__init__") or names != [name for name, _ in known]:
            wrong.append(f"{parsed.name}({', '.join(names)}), and the binding has {name} with {known}")
        elif not all(map(same_default, defaults, (default for _, default in known))):
            wrong.append(f"{ast.unparse(parsed.args)}, and the binding has the defaults {known}")
    assert wrong == []


# Classes that the core makes without nanobind


def classes_of_patterns() -> dict[str, ast.ClassDef]:
    body = re.sub(r"^(?:\S.*|    \\.*)$", "", PATTERNS, flags=re.MULTILINE)
    nodes = ast.parse(inspect.cleandoc("\n" + body)).body
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}


@pytest.mark.parametrize("name", classes_of_patterns())
def test_a_class_of_the_patterns_has_the_members_of_the_core(name: str) -> None:
    of: Any = type(core.forwarder(print)) if name == "Forwarder" else getattr(core, name, None)
    if of is None:
        pytest.skip(f"this core was built without the wing of {name}")
    declared = set()
    for node in classes_of_patterns()[name].body:
        if isinstance(node, ast.FunctionDef):
            declared.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            declared.add(ast.unparse(node.target))
    assert declared - _OF_PYTHON - OF_SUBCLASSES == vars(of).keys() - _OF_PYTHON
