"""The names of ``torch.cuda`` and ``torch.accelerator``, read off the sources in a wheel of torch.

``python tests/support/torch_names.py torch-2.15.0-....whl`` writes ``torch_cuda_api.json`` and
``torch_accelerator_api.json`` in ``tests/data``. torch need not be installed, and the wheel may be for any platform:
the Python files are the same. Names whose value is in torch's C library have their row in ``_BY_HAND`` below.
"""

from __future__ import annotations

import ast
import json
import sys
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Row: TypeAlias = dict[str, Any]

DATA = Path(__file__).parents[1] / "data"

_SIGNATURES = "Signatures are without annotations. Rows from 'stub' are those of torch's C library, read off its .pyi."
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_FILES = ("torch/cuda/*.py", "torch/accelerator/*.py", "torch/nn/parallel/comm.py")

_MODULES = {
    "torch.cuda": (
        "_gpu_trace _memory_viz _utils amp comm gds graph_annotations graphs green_contexts jiterator memory nccl nvtx "
        "profiler random sparse streams tunable"
    ),
    "torch.accelerator": "graphs memory random",
}
"""The modules of each package; the table has the members of those modules that :data:`_ONLY_NAMES` lacks."""

_ONLY_NAMES = {"_gpu_trace", "_memory_viz", "_utils", "amp", "gds", "green_contexts", "sparse", "tunable"}
"""Modules that tcuda lacks, so that the table has only their names."""

_PRIVATE = {
    "torch.cuda": (
        "AcceleratorError OutOfMemoryError _HAS_PYNVML _compile_kernel _get_device _get_pynvml_handler "
        "_get_rng_state_offset _lazy_call _lazy_init _set_rng_state_offset _sleep"
    ),
    "torch.cuda.jiterator": "_create_jit_fn _create_multi_output_jit_fn",
    "torch.cuda.memory": (
        "_annotate_tensor _dump_snapshot _get_current_allocator _get_memory_metadata _memory_metadata_supported "
        "_record_memory_history _save_memory_usage _save_segment_usage _set_allocator_settings _set_memory_metadata "
        "_snapshot"
    ),
    "torch.cuda.nccl": "init_rank is_available unique_id version",
    "torch.cuda.streams": "Event ExternalStream Stream",
}
"""Names of use that are not in the ``__all__`` of their module."""

_BY_HAND: dict[str, Row] = {
    "*Storage": {"kind": "array type"},
    "*Tensor": {"kind": "array type"},
    "AcceleratorError": {"kind": "exception", "bases": ["RuntimeError", "Exception", "BaseException"]},
    "_HAS_PYNVML": {"kind": "bool"},
    "OutOfMemoryError": {"kind": "exception", "bases": ["RuntimeError", "Exception", "BaseException"]},
    "default_generators": {"kind": "tuple"},
    "has_half": {"kind": "bool"},
    "has_magma": {"kind": "bool"},
}
"""Rows of names whose value is not in the sources."""

_EXCEPTIONS = {
    "Exception": ["Exception", "BaseException"],
    "RuntimeError": ["RuntimeError", "Exception", "BaseException"],
}


class Sources:
    """The syntax trees of the Python files in a wheel of torch.

    Attributes:
        version: The version of torch.
    """

    def __init__(self, wheel: Path) -> None:
        with zipfile.ZipFile(wheel) as files:
            read = [name for name in files.namelist() if any(fnmatchcase(name, pattern) for pattern in _FILES)]
            self._trees = {
                name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): ast.parse(files.read(name))
                for name in read
            }
            self._stub = ast.parse(files.read("torch/_C/__init__.pyi"))
            version = ast.parse(files.read("torch/version.py"))
        self.version = str(next(_assigned(version, "__version__")))

    def has(self, module: str) -> bool:
        """Return whether torch has a module."""
        return module in self._trees

    def public(self, module: str) -> list[str]:
        """Return the names in the ``__all__`` of a module, and those private ones that are of use."""
        return [*self.listed(module), *_PRIVATE.get(module, "").split()]

    def definition(self, module: str, name: str) -> tuple[str, ast.stmt] | None:
        """Return the statement that defines ``name``, and its module; None if torch's C library defines the name."""
        tree = self._trees.get(module)
        if tree is None:
            return None
        for node in _statements(tree):
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) and node.name == name:
                return module, node
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                if isinstance(node.value, ast.Call):  # name = deprecated(...)(function)
                    function = node.value.args[0]
                    if isinstance(node.value.func, ast.Call) and isinstance(function, ast.Name):
                        return self.definition(module, function.id)
                return module, node
        for node in _statements(tree):
            if isinstance(node, ast.ImportFrom):
                source = self._absolute(module, node)
                for alias in node.names:
                    if alias.name == "*" and name in self.listed(source):
                        return self.definition(source, name)
                    if (alias.asname or alias.name) == name:
                        return self.definition(source, alias.name)
        return None

    def listed(self, module: str) -> list[str]:
        """Return the ``__all__`` of a module; an empty list if torch lacks the module."""
        return next(_assigned(self._trees[module], "__all__"), []) if module in self._trees else []

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return str(node.module)
        is_package = any(name.startswith(f"{module}.") for name in self._trees)
        parent = module if is_package else module.rpartition(".")[0]
        return f"{parent}.{node.module}" if node.module else parent

    def statements(self, module: str) -> list[ast.stmt]:
        """Return the statements of a module, also those under ``if``, ``try`` and ``with``."""
        return list(_statements(self._trees[module]))

    def constant(self, module: str, node: ast.expr) -> str:
        """Return the text of a default value."""
        if ast.unparse(node) == "sys.maxsize":
            return repr(sys.maxsize)
        if isinstance(node, ast.Name):
            return repr(next(_assigned(self._trees[module], node.id)))
        return repr(ast.literal_eval(node)) if not isinstance(node, ast.Attribute) else ast.unparse(node)

    def class_of_stub(self, name: str) -> ast.ClassDef | None:
        """Return the class of torch's C library that ``name``, such as ``torch._C._CUDAGraph``, names."""
        bare = name.rpartition(".")[2]
        return next((n for n in self._stub.body if isinstance(n, ast.ClassDef) and n.name == bare), None)


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a module or class, also those under ``if``, ``try`` and ``with``."""
    for node in getattr(tree, "body", ()):
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from _statements(node)
            yield from (*getattr(node, "orelse", ()), *getattr(node, "finalbody", ()))


def _assigned(tree: ast.Module, name: str) -> Iterator[Any]:
    for node in _statements(tree):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            yield ast.literal_eval(node.value)


def _is_overload(node: ast.AST) -> bool:
    return any(ast.unparse(decorator).endswith("overload") for decorator in getattr(node, "decorator_list", ()))


def _decorators(node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def _is_function(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, _FUNCTIONS) and not _is_overload(node)


class Table:
    """The rows of a package, such as ``torch.cuda``."""

    def __init__(self, sources: Sources, package: str) -> None:
        self._sources = sources
        self._package = package
        self.rows: dict[str, Row] = {}
        modules = _MODULES[package].split()
        for name in sources.public(package):
            if name not in modules:
                self._add(package, name, "")
        for module in modules:
            if not sources.has(f"{package}.{module}"):
                continue  # an older torch lacks the module
            self.rows[module] = {"kind": "module"}
            if module not in _ONLY_NAMES:
                for name in sources.public(f"{package}.{module}"):
                    self._add(f"{package}.{module}", name, f"{module}.")

    def _add(self, module: str, name: str, prefix: str) -> None:
        found = self._sources.definition(module, name)
        by_hand = next((row for pattern, row in _BY_HAND.items() if fnmatchcase(name, pattern)), None)
        if by_hand is not None:
            self.rows[prefix + name] = by_hand
        elif found is None or isinstance(found[1], ast.Assign):
            if name in self._sources.listed(module):  # an older torch may lack a private name
                raise LookupError(f"{module} says nothing of {name}: add a row to _BY_HAND.")
        elif isinstance(found[1], ast.ClassDef):
            self._add_class(found[0], found[1], prefix + name)
        elif isinstance(found[1], ast.FunctionDef):
            self.rows[prefix + name] = {"kind": "function", "signature": self._signature(*self._last(found))}

    def _last(self, found: tuple[str, ast.stmt]) -> tuple[str, ast.FunctionDef]:
        """Return the definition that says the parameters, and its module: no overload, and no wrapper."""
        module, first = found
        assert isinstance(first, ast.FunctionDef)
        nodes = self._sources.statements(module)
        name = first.name
        for node in nodes:  # name.__signature__ = signature(other)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == f"{name}.__signature__":
                assert isinstance(node.value, ast.Call)
                name = ast.unparse(node.value.args[0])
        return module, next(n for n in nodes if _is_function(n) and n.name == name)

    def _add_class(self, module: str, node: ast.ClassDef, name: str) -> None:
        bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        members = self._members(module, node)
        exceptions = [line for base in bases for line in _EXCEPTIONS.get(base, ())]
        row: Row = {"kind": "exception" if exceptions else "class"}
        maker = members.pop("__new__", None)
        initialiser = members.pop("__init__", None) or maker
        if initialiser is not None and initialiser[1] is not None:
            row["signature"] = (
                self._signature(initialiser[0], initialiser[1])
                .replace("(self, ", "(", 1)
                .replace("(cls, ", "(", 1)
                .replace("(self)", "()", 1)
            )
        elif not exceptions:
            row["signature"] = "()"
        if exceptions or bases:
            row["bases"] = exceptions or [*bases, *self._bases_of(module, bases)]
        self.rows[name] = row
        for member, (home, definition) in sorted(members.items()):
            self.rows[f"{name}.{member}"] = self._member(home, definition)

    def _bases_of(self, module: str, bases: list[str]) -> list[str]:
        found = [self._sources.definition(module, base) for base in bases]
        nodes = [f[1] for f in found if f is not None and isinstance(f[1], ast.ClassDef)]
        return [ast.unparse(base).rpartition(".")[2] for node in nodes for base in node.bases]

    def _members(self, module: str, node: ast.ClassDef) -> dict[str, tuple[str, Any]]:
        """Return the members of a class and of its bases, each with the module of its definition."""
        found: dict[str, tuple[str, Any]] = {}
        for base in node.bases:
            name = ast.unparse(base)
            here = self._sources.definition(module, name.rpartition(".")[2])
            stub = self._sources.class_of_stub(name)
            if here is not None and isinstance(here[1], ast.ClassDef):
                found.update(self._members(here[0], here[1]))
            elif stub is not None:
                found.update({k: v for k, v in self._members("stub", stub).items() if k not in ("__new__", "__init__")})
        for child in _statements(node):
            if _is_function(child):
                found[child.name] = (module, child)
            elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
                if child.value is None and module != "stub":
                    continue  # only the objects have the attribute
                found[child.target.id] = (module, None)
            elif isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
                found[child.targets[0].id] = (module, None)
        return {name: value for name, value in found.items() if _is_shown(name)}

    def _member(self, module: str, node: ast.FunctionDef | None) -> Row:
        row: Row = {"kind": "attribute"}
        if node is not None and "property" not in _decorators(node):
            kinds = [kind for kind in ("staticmethod", "classmethod") if kind in _decorators(node)]
            signature = self._signature(module, node)
            row = {
                "kind": kinds[0] if kinds else "method",
                "signature": signature.replace("(cls, ", "(", 1) if kinds else signature,
            }
        return row | ({"from": "stub"} if module == "stub" else {})

    def _signature(self, module: str, node: ast.FunctionDef) -> str:
        """Return the parameters of a function in the spelling of :mod:`inspect`, without annotations."""
        arguments = node.args
        plain = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
        texts = [self._parameter(module, *pair) for pair in zip(plain, [*defaults, *arguments.defaults], strict=True)]
        if arguments.posonlyargs:
            texts.insert(len(arguments.posonlyargs), "/")
        if arguments.vararg:
            texts.append(f"*{arguments.vararg.arg}")
        elif arguments.kwonlyargs:
            texts.append("*")
        keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        texts += [self._parameter(module, *pair) for pair in keyword]
        if arguments.kwarg:
            texts.append(f"**{arguments.kwarg.arg}")
        return f"({', '.join(texts)})"

    def _parameter(self, module: str, argument: ast.arg, default: ast.expr | None) -> str:
        return argument.arg if default is None else f"{argument.arg}={self._sources.constant(module, default)}"


_PROTOCOLS = ("__cuda_stream__", "__enter__", "__exit__", "__eq__", "__hash__", "__repr__", "__new__", "__init__")


def _is_shown(member: str) -> bool:
    return not member.startswith("_") or member in (*_PROTOCOLS, "_as_parameter_")


def table(sources: Sources, package: str) -> Mapping[str, Any]:
    """Return the table of a package, such as ``torch.cuda``."""
    return {
        "package": package,
        "version": sources.version,
        "source": f"Read off the sources of torch {sources.version}. {_SIGNATURES}",
        "names": dict(sorted(Table(sources, package).rows.items())),
    }


def text(table: Mapping[str, Any]) -> str:
    """Return a table as JSON with a line for each name."""
    *head, (_, names) = table.items()
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head]
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in names.items())
    return "{\n" + ",\n".join([*lines, f'  "names": {{\n{rows}\n  }}']) + "\n}\n"


def main(wheel: str) -> None:
    """Write both tables."""
    sources = Sources(Path(wheel))
    for package in _MODULES:
        path = DATA / f"{package.replace('.', '_')}_api.json"
        path.write_text(text(table(sources, package)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
