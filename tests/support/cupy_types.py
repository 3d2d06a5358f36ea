"""The types of CuPy's names, for editors and type checkers: the stub files in ``tcuda/_backend/xp``.

``tests/support/cupy_tables.py`` writes the files.

The names, the parameters and the defaults come from the tables of CuPy's names and of CuPy's signatures. The second
table also tells which parameters take arrays, and what they take in place of arrays. The types of the other parameters
and of the results come from the stub files of the installed NumPy: a result that is a scalar in NumPy is an array in
CuPy. ``tests/data/cupy_types.pyi`` has the types that none of these sources tells, by hand.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from support.cupy_names import MISSING, find, ours, read

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[2]
FOLDER = _ROOT / "tcuda" / "_backend" / "xp"
BY_HAND = _ROOT / "tests" / "data" / "cupy_types.pyi"
_SIGNATURES = _ROOT / "tcuda" / "emulation" / "arrays" / "cupy_signatures.json"
_NUMPY = Path(np.__file__).parent

NUMPY_VERSION = ".".join(np.__version__.split(".")[:2])
"""The version of the installed NumPy, without its last number: other versions have other stub files."""

_HEAD = """# ruff: noqa
# fmt: off
# mypy: disable-error-code="misc, overload-overlap"
# CuPy {cupy}, NumPy {numpy}. tests/support/cupy_tables.py writes this file.
"""

_IMPORTS = """
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Literal, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Self, TypeVar
"""

_ALIASES = """
Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
DType: TypeAlias = npt.DTypeLike
Operand: TypeAlias = ndarray | np.generic | complex
Convertible: TypeAlias = ndarray | npt.ArrayLike | Sequence[ndarray] | Sequence[Sequence[ndarray]]

_ShapeType = TypeVar("_ShapeType", default=Any)
_DTypeType = TypeVar("_DTypeType", bound=np.dtype[Any], default=np.dtype[Any])
"""

_TYPING = """
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import DTypeLike as DTypeLike
from numpy.typing import NBitBase as NBitBase

_Scalar = TypeVar("_Scalar", bound=np.generic)
NDArray: TypeAlias = ndarray[Any, np.dtype[_Scalar]]
"""

_FROM_ARRAYS = "\nfrom tcuda._backend.xp._arrays import Convertible, DType, Operand, Shape, ndarray as ndarray\n"

_MODULES_BY_HAND = ("cuda", "linalg")
"""The classes in the file of the types by hand that stand for modules."""

_SHADOWED = re.compile(r"(?<=[:|>\[,] )(bool|bytes)\b(?! as)")
"""Types of Python in an annotation: CuPy has names that hide them."""

_OPERATORS = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow")
_OPERATORS += ("lshift", "rshift", "and", "or", "xor")
_COMPARISONS = ("lt", "le", "gt", "ge")

_OF_DEFAULTS = {type(None): "None", tuple: "tuple[int, ...]"}

_UFUNCS = {(1, 1): "ufunc_of_one", (2, 1): "ufunc_of_two", (1, 2): "ufunc_of_one_to_two", (2, 2): "ufunc_of_two_to_two"}

_BY_NAME = {
    "dtype": "DType | None",
    "out": "ndarray | None",
    "axis": "Shape | None",
    "shape": "Shape",
    "size": "Shape | None",
    "keepdims": "bool",
}
"""The types of parameters that NumPy's function does not have or does not tell, by the name of the parameter."""

_PAIR = "tuple[ndarray, ndarray]"
_RESULTS = {
    **dict.fromkeys(("array_repr", "array_str", "array2string", "base_repr", "binary_repr", "typename"), "str"),
    **dict.fromkeys(("format_float_positional", "format_float_scientific", "mintypecode"), "str"),
    **dict.fromkeys(("can_cast", "isscalar", "iscomplexobj", "isrealobj", "may_share_memory", "shares_memory"), "bool"),
    **dict.fromkeys(("issubdtype", "iterable", "isdtype", "isfortran"), "bool"),
    **dict.fromkeys(("result_type", "min_scalar_type", "promote_types"), "np.dtype[Any]"),
    **dict.fromkeys(("shape", "broadcast_shapes"), "tuple[int, ...]"),
    **dict.fromkeys(("ndim", "size"), "int"),
    **dict.fromkeys(("allclose", "array_equal", "array_equiv", "alltrue", "sometrue", "in1d"), "ndarray"),
    **dict.fromkeys(("concat", "cumproduct", "product", "msort", "permute_dims", "polymul", "trapz"), "ndarray"),
    **dict.fromkeys(
        ("empty", "ones", "zeros", "asfarray", "indices", "inner", "round", "round_", "row_stack"), "ndarray"
    ),
    **dict.fromkeys(
        ("max", "min", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean"), "ndarray"
    ),
    **dict.fromkeys(("nanmedian", "nanmin", "nanprod", "nanstd", "nansum", "nanvar"), "ndarray"),
    **dict.fromkeys(("tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from"), _PAIR),
    "histogram2d": "tuple[ndarray, ndarray, ndarray]",
    "ix_": "tuple[ndarray, ...]",
    **dict.fromkeys(("linalg.cond", "linalg.det", "linalg.matrix_rank", "linalg.matrix_transpose"), "ndarray"),
    **dict.fromkeys(("linalg.eig", "linalg.eigh", "linalg.slogdet"), _PAIR),
    "linalg.lstsq": "tuple[ndarray, ndarray, ndarray, ndarray]",
    **dict.fromkeys(("random.seed", "random.RandomState.seed", "random.reset_states"), "None"),
    **dict.fromkeys(("random.ranf", "random.sample", "ndarray.ptp"), "ndarray"),
    **dict.fromkeys(("random.bytes", "ndarray.dumps", "ndarray.tobytes"), "bytes"),
    "random.default_rng": "Generator",
    "random.get_random_state": "RandomState",
}
"""The results of functions whose types NumPy's stub files do not tell, or that are other values in CuPy."""


def written_with() -> str:
    """Return the version of NumPy with which the stub files were written."""
    return (FOLDER / "__init__.pyi").read_text(encoding="utf-8").partition(", NumPy ")[2].partition(". ")[0]


def stubs() -> dict[str, str]:
    """Return the text of every stub file, by its path in the folder."""
    table = read()
    names = {name: row for name, row in table["names"].items() if f"{name}.".startswith("cupy.")}
    modules = ["cupy", *(name for name, row in names.items() if row["kind"] == "module")]
    head = _HEAD.format(cupy=table["version"], numpy=NUMPY_VERSION)
    texts = {"_arrays.pyi": head + _IMPORTS + _arrays(names)}
    for module in modules:
        rows = {name.rpartition(".")[2]: row for name, row in names.items() if name.rpartition(".")[0] == module}
        inner = module.removeprefix("cupy").lstrip(".")
        is_package = any(other.startswith(f"{module}.") for other in modules)
        path = f"{inner.replace('.', '/')}/__init__" if is_package else inner.replace(".", "/")
        lines = [_TYPING] if module == "cupy.typing" else _module(inner, rows, names)
        body = _SHADOWED.sub(r"builtins.\1", "\n".join(lines))
        texts[f"{path.lstrip('/')}.pyi"] = head + _IMPORTS + _FROM_ARRAYS + body + "\n"
    return texts


def _arrays(names: dict[str, Any]) -> str:
    """Return the class of arrays and the class of functions on elements."""
    lines = [_ALIASES, _by_hand()["ndarray"]]
    for operator in _OPERATORS:
        lines += [f"    def __{operator}__(self, other: Operand, /) -> ndarray: ..."]
        lines += [f"    def __r{operator}__(self, other: Operand, /) -> ndarray: ..."]
        lines += [f"    def __i{operator}__(self, other: Operand, /) -> Self: ..."]
    lines += [f"    def __{operator}__(self, other: Operand, /) -> ndarray: ..." for operator in _COMPARISONS]
    written = {node.name for node in ast.walk(ast.parse(_by_hand()["ndarray"])) if isinstance(node, ast.FunctionDef)}
    for name, row in names.items():
        owner, _, method = name.rpartition(".")
        if owner == "cupy.ndarray" and method not in written:
            lines.append("    " + _function(f"ndarray.{method}", row))
    ufuncs = [_by_hand()[name] for name in ("ufunc", *_UFUNCS.values())]
    return "\n".join([*lines, "", *ufuncs]) + "\n"


def _module(inner: str, rows: dict[str, Any], names: dict[str, Any]) -> Iterator[str]:
    """Return the lines of a module: of the root of CuPy if ``inner`` is empty."""
    package = f"tcuda._backend.xp.{inner}".rstrip(".")
    prefix = f"{inner}." if inner else ""
    if not inner:
        yield f"from tcuda._backend.xp._arrays import ufunc as ufunc, {', '.join(_UFUNCS.values())}"
    elif "ufunc" in {row["kind"] for row in rows.values()} or "matmul" in rows:
        yield f"from tcuda._backend.xp._arrays import ufunc, {', '.join(_UFUNCS.values())}"
    for name, row in rows.items():
        whole = f"cupy.{prefix}{name}"
        if row["kind"] == "module":
            yield f"from {package} import {name} as {name}"
        elif not inner and name in ("ndarray", "ufunc"):
            continue
        elif f"{prefix}{name}" in _by_hand():
            yield _by_hand()[f"{prefix}{name}"] + _attributes(whole, names)
        elif row["kind"] == "ufunc" or name == "matmul":
            yield f"{name}: {_ufunc(whole)}"
        elif row["kind"] == "function":
            yield _function(f"{prefix}{name}", row)
        elif (home := _in_numpy(whole)) is not None:
            yield f"from {home} import {name} as {name}"
        elif isinstance(found := ours(whole), type) and issubclass(found, np.generic):  # an older name of NumPy
            yield f"{name}: TypeAlias = np.{found.__name__}"
        elif row["kind"] == "exception":
            yield f"class {name}(Exception): ..."
        elif row["kind"] == "class":
            yield _class(whole, row, names)
        else:
            yield f"{name}: {'float' if isinstance(ours(whole), float) else 'Any'}"


def _in_numpy(name: str) -> str | None:
    """Return the module of NumPy that has the very object which CuPy has under this name: scalars and exceptions."""
    own, last = ours(name), name.rpartition(".")[2]
    for module in (f"numpy{name.removeprefix('cupy').rpartition('.')[0]}", "numpy.exceptions"):
        found = find(f"{module}.{last}", {"numpy": "numpy"})
        if found is not MISSING and (own is MISSING or own is found):
            return module
    return None


def _ufunc(name: str) -> str:
    found = ours(name)
    counts = (getattr(found, "nin", 0), getattr(found, "nout", 0))
    return _UFUNCS.get(counts, "ufunc")


def _class(name: str, row: dict[str, Any], names: dict[str, Any]) -> str:
    """Return a class with the members that the table has, or with any members."""
    last = name.rpartition(".")[2]
    members = _attributes(name, names)
    lines = [f"class {last}:"]
    lines.append(
        f"    def __init__(self, {_typed(row['signature'])}) -> None: ..." if "signature" in row else _ANY_INIT
    )
    classes = [each for each in getattr(ours(name), "__mro__", ()) if each.__module__ != "builtins"]
    own = {method for each in classes for method in vars(each)}
    lines += [f"    def {method}{types}: ..." for method, types in _SPECIAL.items() if method in own]
    if not members or last == "poly1d":
        members += "\n    def __getattr__(self, name: str) -> Any: ..."
    return "\n".join(lines) + members


_SPECIAL = {
    "__enter__": "(self) -> Self",
    "__exit__": "(self, *args: object) -> None",
    "__call__": "(self, *args: Any, **kwargs: Any) -> Any",
    "__len__": "(self) -> int",
    "__iter__": "(self) -> Iterator[Any]",
    "__next__": "(self) -> Any",
    "__getitem__": "(self, key: Any, /) -> Any",
    "__setitem__": "(self, key: Any, value: Any, /) -> None",
    "__int__": "(self) -> int",
    "__lt__": "(self, other: Any, /) -> builtins.bool",
    **dict.fromkeys(("__neg__", "__pos__"), "(self) -> Any"),
    **{
        f"__{prefix}{operator}__": "(self, other: Any, /) -> Any"
        for operator in ("add", "sub", "mul", "truediv", "pow")
        for prefix in ("", "r")
    },
}
"""The types of the methods by which operators, loops and statements use objects of a class."""

_ANY_INIT = "    def __init__(self, *args: Any, **kwargs: Any) -> None: ..."


def _typed(signature: str) -> str:
    """Return the parameters of a signature that the table tells, with types by the defaults."""
    return _parameters(signature, {}, {}).removeprefix("self, ").removeprefix("self")


def _attributes(owner: str, names: dict[str, Any]) -> str:
    """Return the members of a class that the table has, and that are not written by hand."""
    source = _by_hand().get(owner.removeprefix("cupy."), "")
    written: set[str] = set()
    for node in ast.parse(source).body[0].body if source else []:
        if isinstance(node, ast.FunctionDef):
            written.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            written.add(ast.unparse(node.target))
    lines = []
    for name, row in names.items():
        own, _, member = name.rpartition(".")
        if own == owner and member not in written:
            method = row["kind"] == "method"
            line = _function(f"{owner}.{member}".removeprefix("cupy."), row) if method else f"{member}: Any"
            lines.append(f"\n    {line}")
    return "".join(lines)


def _function(name: str, row: dict[str, Any]) -> str:
    """Return the stub of a function or method, such as ``linalg.norm`` or ``ndarray.sum``."""
    last = name.rpartition(".")[2]
    entry = _signatures().get(name, {})
    signature = row.get("signature") or entry.get("signature")
    owner = name.rpartition(".")[0]
    is_method = owner.rpartition(".")[2][:1].isupper() or owner in (
        "ndarray",
        "ufunc",
        "poly1d",
        "flatiter",
        "broadcast",
    )
    of_numpy = _numpys().get(name, [])
    if signature is None:
        parameters = "self, *args: Any, **kwargs: Any" if is_method else "*args: Any, **kwargs: Any"
    else:
        parameters = _parameters(signature, entry.get("operands", {}), _types_of_parameters(of_numpy))
        if is_method and not parameters.startswith("self"):
            parameters = ", ".join(["self", parameters] if parameters else ["self"])
    if name in _RESULTS:
        result = _RESULTS[name]
    elif owner in ("", "linalg", "fft", "ndarray", "random", "random.Generator", "random.RandomState"):
        result = _result(of_numpy)
    else:
        result = "Any"
    return f"def {last}({parameters}) -> {result}: ..."


def _parameters(signature: str, operands: dict[str, str], of_numpy: dict[str, list[ast.expr]]) -> str:
    """Return the parameters of a signature with types."""
    try:
        tree = ast.parse(f"def function{signature}: ...").body[0]
    except SyntaxError:  # a default that is no expression, such as <object object>
        return "*args: Any, **kwargs: Any"
    assert isinstance(tree, ast.FunctionDef)
    arguments = tree.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    texts = []
    for place, (argument, default) in enumerate(zip(positional, [*defaults, *arguments.defaults], strict=True)):
        texts.append(_parameter(argument.arg, default, operands, of_numpy) if argument.arg != "self" else "self")
        if arguments.posonlyargs and place == len(arguments.posonlyargs) - 1:
            texts.append("/")
    if arguments.vararg is not None:
        name = arguments.vararg.arg
        texts.append(f"*{name}: {_operand(operands[f'*{name}']) if f'*{name}' in operands else 'Any'}")
    elif arguments.kwonlyargs:
        texts.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        texts.append(_parameter(argument.arg, default, operands, of_numpy))
    if arguments.kwarg is not None:
        texts.append(f"**{arguments.kwarg.arg}: Any")
    return ", ".join(texts)


def _parameter(
    name: str, default: ast.expr | None, operands: dict[str, str], of_numpy: dict[str, list[ast.expr]]
) -> str:
    value: Any = None
    plain = True
    if default is not None:
        try:
            value = ast.literal_eval(default)
        except ValueError:  # the name of an object
            plain = False
    if name in operands:
        type_ = _operand(operands[name])
    elif f"{name}[]" in operands:
        type_ = f"Sequence[{_operand(operands[f'{name}[]'])}] | ndarray"
    elif name in of_numpy and name not in ("out", "keepdims") and _union(of_numpy[name]) != "Any":
        type_ = _union(of_numpy[name])
    elif name in _BY_NAME:
        type_ = _BY_NAME[name]
    else:
        type_ = type(value).__name__ if isinstance(value, (bool, str)) else "Any"
    if isinstance(value, str) and "Literal" in type_ and repr(value) not in type_:
        type_ = "str"  # NumPy has another set of words for this parameter
    if default is not None and plain and type_ != "Any":
        type_ = _with(type_, _OF_DEFAULTS.get(type(value), type(value).__name__))
    shown = "" if default is None else f" = {ast.unparse(default)}" if plain else " = ..."
    return f"{name}: {type_}{shown}"


def _with(union: str, extra: str) -> str:
    parts = union.split(" | ")
    wider = {
        "int": {"SupportsIndex", "Shape", "Operand", "float", "complex", "Convertible"},
        "float": {"Operand", "complex", "Convertible"},
    }
    wider["bool"] = wider["int"] | {"int"}
    wider["complex"] = {"Operand", "Convertible"}
    wider["str"] = {"DType"}
    if (
        extra in parts
        or "Any" in parts
        or wider.get(extra, set()) & set(parts)
        or (extra == "str" and "Literal" in union)
    ):
        return union
    return f"{union} | {extra}"


def _operand(codes: str) -> str:
    """Return the type of a parameter from the entry that the table of operands has for it."""
    # An argument of which CuPy only calls the methods (m) is mostly a mistake.
    sequence, of_host, number, scalar = (not code.isupper() and code != "m" for code in codes[:4])
    if sequence and of_host:
        return "Convertible"
    if number and scalar:
        return "Operand"
    parts = ["ndarray"]
    parts += ["Sequence[Any]"] if sequence else []
    parts += ["npt.NDArray[Any]"] if of_host else []
    parts += ["complex"] if number else []
    parts += ["np.generic"] if scalar else []
    return " | ".join(parts)


@functools.cache
def _signatures() -> dict[str, dict[str, Any]]:
    functions: dict[str, dict[str, Any]] = json.loads(_SIGNATURES.read_text(encoding="utf-8"))["functions"]
    return functions


@functools.cache
def _by_hand() -> dict[str, str]:
    """Return the source of the functions and classes that are written by hand, by name; those of a module with it."""
    text = BY_HAND.read_text(encoding="utf-8")
    lines = text.splitlines()
    found: dict[str, list[str]] = {}
    for node in ast.parse(text).body:
        assert isinstance(node, (ast.ClassDef, ast.FunctionDef))
        in_module = isinstance(node, ast.ClassDef) and node.name in _MODULES_BY_HAND
        for entry in node.body if in_module else [node]:
            assert isinstance(entry, (ast.ClassDef, ast.FunctionDef))
            first = min([entry.lineno, *(decorator.lineno for decorator in entry.decorator_list)])
            source = textwrap.dedent("\n".join(lines[first - 1 : entry.end_lineno]))
            found.setdefault(f"{node.name}.{entry.name}" if in_module else entry.name, []).append(source)
    return {name: "\n".join(source) for name, source in found.items()}


# The stub files of NumPy


@functools.cache
def _numpys() -> dict[str, list[ast.FunctionDef]]:
    """Return the definitions that NumPy's stub files have of a function, by its name in CuPy."""
    found: dict[str, list[ast.FunctionDef]] = {}
    places = [("", _NUMPY / "_core"), ("", _NUMPY / "lib"), ("linalg.", _NUMPY / "linalg"), ("fft.", _NUMPY / "fft")]
    for prefix, folder in places:
        for path in sorted(folder.glob("*.pyi")):
            if not path.name.startswith(("_umath", "strings", "defchararray", "records")):
                for node in ast.parse(path.read_text(encoding="utf-8")).body:
                    if isinstance(node, ast.FunctionDef):
                        found.setdefault(prefix + node.name, []).append(node)
    classes = [
        ("ndarray.", _NUMPY / "__init__.pyi", ("_ArrayOrScalarCommon", "ndarray")),
        ("random.", _NUMPY / "random" / "mtrand.pyi", ("RandomState",)),
        ("random.RandomState.", _NUMPY / "random" / "mtrand.pyi", ("RandomState",)),
        ("random.Generator.", _NUMPY / "random" / "_generator.pyi", ("Generator",)),
    ]
    for prefix, path, owners in classes:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name in owners:
                for member in node.body:
                    if isinstance(member, ast.FunctionDef):
                        found.setdefault(prefix + member.name, []).append(member)
    return found


def _types_of_parameters(definitions: list[ast.FunctionDef]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for definition in definitions:
        arguments = definition.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation is not None:
                found.setdefault(argument.arg, []).append(argument.annotation)
    return found


def _union(annotations: list[ast.expr]) -> str:
    """Return the union of NumPy's types of a parameter, in the words of the stub files."""
    parts: list[str] = []
    for annotation in annotations:
        for part in _parts(annotation):
            word = _word(part)
            if word == "Any":
                return "Any"
            if word and word not in parts:
                parts.append(word)
    for narrow, wide in (("SupportsIndex", "Shape"), ("int", "SupportsIndex"), ("int", "Shape")):
        if narrow in parts and wide in parts:
            parts.remove(narrow)
    if "Convertible" in parts:
        parts = [part for part in parts if part in ("Convertible", "None")]
    literals = [part for part in parts if part.startswith("Literal[")]
    if "bool" in parts or {"Literal[True]", "Literal[False]"} <= {*literals}:
        parts = [part for part in parts if part not in ("Literal[True]", "Literal[False]", "bool")] + ["bool"]
    parts = [part for part in parts if part != "None"] + [part for part in parts if part == "None"]
    return " | ".join(parts) or "Any"


def _parts(annotation: ast.expr) -> Iterator[ast.expr]:
    if isinstance(annotation, ast.BinOp):
        yield from _parts(annotation.left)
        yield from _parts(annotation.right)
    else:
        yield annotation


_WORDS = {
    "None": "None",
    "SupportsIndex": "SupportsIndex",
    "bool": "bool",
    "str": "str",
    "int": "int",
    "float": "float",
    "_ShapeLike": "Shape",
    "_Shape": "Shape",
    "_AnyShape": "Shape",
    "DTypeLike": "DType",
    "dtype": "DType",
    "_OrderKACF": "Literal['K', 'A', 'C', 'F']",
    "_OrderACF": "Literal['A', 'C', 'F']",
    "_OrderCF": "Literal['C', 'F']",
    "_SortSide": "Literal['left', 'right']",
    "_ModeKind": "Literal['raise', 'wrap', 'clip']",
    "_CastingKind": "Literal['no', 'equiv', 'safe', 'same_kind', 'unsafe']",
    "_NoValueType": "",
}


def _word(part: ast.expr) -> str:
    """Return a type of NumPy's stub files in the words of the stub files of CuPy; "Any" for every other type."""
    text = ast.unparse(part).removeprefix("builtins.").removeprefix("py_")
    if text == "L['cpu']":
        return ""
    if isinstance(part, ast.Subscript) and ast.unparse(part.value) in ("L", "Literal"):
        return f"Literal[{ast.unparse(part.slice).strip('()')}]"
    name = ast.unparse(part.value) if isinstance(part, ast.Subscript) else text
    if name in _WORDS:
        return _WORDS[name]
    if name.startswith(("_DTypeLike", "_SupportsDType", "type")):
        return "DType"
    if name in ("ArrayLike", "NDArray", "ndarray") or name.startswith(("_ArrayLike", "_ToArray", "_Array")):
        return "Convertible"
    if text in ("Sequence[int]", "Sequence[SupportsIndex]", "tuple[int, ...]"):
        return "Shape"
    if name.endswith(("Like_co", "Like")):
        return "Operand"
    return "Any"


def _result(definitions: list[ast.FunctionDef]) -> str:
    """Return the type of a result in CuPy: an array where NumPy has an array or a scalar."""
    found: list[str] = []
    for definition in definitions:
        word = "Any" if definition.returns is None else _result_word(definition.returns)
        if word == "Any":
            continue
        if word not in found:
            found.append(word)
    return found[0] if len(found) == 1 else "Any"


_SCALARS = ("bool", "int", "float", "complex", "bool_", "intp", "int64", "float64", "floating", "complexfloating")
_SCALARS += ("integer", "inexact", "number", "signedinteger", "unsignedinteger", "long", "generic", "timedelta64")


def _result_word(returned: ast.expr) -> str:
    words = {_one_result(part) for part in _parts(returned)} - {""}
    return words.pop() if len(words) == 1 else "Any"


def _one_result(part: ast.expr) -> str:
    text = ast.unparse(part)
    name = ast.unparse(part.value) if isinstance(part, ast.Subscript) else text
    last = name.rpartition(".")[2]
    if text == "None":
        return "None"
    if last in ("tuple", "list") and isinstance(part, ast.Subscript):
        inner = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        words = ["..." if ast.unparse(entry) == "..." else _result_word(entry) for entry in inner]
        return f"{last}[{', '.join(words)}]" if not {"Any", "None"} & {*words} else "Any"
    if last in ("NDArray", "ndarray", "Self", *_SCALARS) or last.startswith(
        ("_Array", "_Scalar", "_Numeric", "_Inexact")
    ):
        return "ndarray"
    return "ndarray" if last in ("_SCT", "_T", "_ShapeT") or last.endswith("ResultT") else "Any"
