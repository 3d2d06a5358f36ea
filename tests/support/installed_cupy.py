"""The reader of the installed CuPy: its public names, their parameters, and what its objects call themselves.

The reader needs no GPU and no library of CUDA. ``tests/support/cupy_tables.py --read`` writes what the reader finds.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from support.cupy_names import CLASSES, find, parameters, words

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULES = words("""
cupy cupy.cuda cupy.cuda.compiler cupy.cuda.cub cupy.cuda.device cupy.cuda.driver cupy.cuda.function cupy.cuda.graph
cupy.cuda.memory cupy.cuda.memory_hook cupy.cuda.memory_hooks cupy.cuda.nccl cupy.cuda.nvrtc cupy.cuda.nvtx
cupy.cuda.pinned_memory cupy.cuda.profiler cupy.cuda.runtime cupy.cuda.stream cupy.cuda.texture cupy.cuda.thrust
cupy.exceptions cupy.fft cupy.lib cupy.lib.stride_tricks cupy.linalg cupy.polynomial cupy.polynomial.polynomial
cupy.polynomial.polyutils cupy.random cupy.testing cupy.typing cupyx cupyx.cusolver cupyx.cusparse cupyx.cutensor
cupyx.distributed cupyx.jit cupyx.jit.cg cupyx.jit.cub cupyx.jit.thrust cupyx.lapack cupyx.linalg cupyx.optimizing
cupyx.profiler cupyx.scipy cupyx.scipy.fft cupyx.scipy.fftpack cupyx.scipy.interpolate cupyx.scipy.linalg
cupyx.scipy.ndimage cupyx.scipy.signal cupyx.scipy.signal.windows cupyx.scipy.sparse cupyx.scipy.sparse.csgraph
cupyx.scipy.sparse.linalg cupyx.scipy.spatial cupyx.scipy.spatial.distance cupyx.scipy.special cupyx.scipy.stats
cupyx.signal cupyx.time cupyx.tools
""")
"""CuPy's modules with public names."""

_OTHERS = {
    "cupy.cuda": {"nccl": "module"},
    "cupy.cuda.nccl": {
        "NcclCommunicator": "class",
        "NcclConfig": "class",
        "NcclError": "exception",
        "get_build_version": "function",
        "get_unique_id": "function",
        "get_version": "function",
        "groupEnd": "function",
        "groupStart": "function",
    },
    "cupy.cuda.profiler": {"start": "function", "stop": "function"},
    "cupy.random": {"Generator": "class"},
}
"""Names that inspection does not find, and their kinds: CuPy imports them late, or only with a library of CUDA."""


def of_cupy() -> dict[str, dict[str, Any]]:
    """Return the public names of the installed CuPy, each with its kind and, if CuPy tells it, its signature."""
    names: dict[str, dict[str, Any]] = {}
    _stand_in_for_libraries()
    for path in MODULES:
        names[path] = {"kind": "module"}
        try:
            module = importlib.import_module(path)
        except ImportError:  # cupy.cuda.runtime and others are modules under another name
            module = _attribute(path)
        for name in _public(module):
            names.setdefault(f"{path}.{name}", _described(getattr(module, name, None)))
    for path, kinds in _OTHERS.items():
        names |= {f"{path}.{name}": {"kind": kind} for name, kind in kinds.items()}
    for path in CLASSES:
        owner = _attribute(path)
        if owner is None:
            names[path] = {"kind": "class"}
            continue
        for name in dir(owner):
            if not name.startswith("_"):
                names[f"{path}.{name}"] = _described(inspect.getattr_static(owner, name), member=True)
    return names


class _StandIn(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> int:
        if name.startswith("__"):
            raise AttributeError(name)
        return 0


_LIBRARIES = words("""
cupy_backends.cuda.libs.cublas cupy_backends.cuda.libs.cusolver cupy_backends.cuda.libs.cusparse
cupy_backends.cuda.libs.cutensor cupy.cuda.cufft cupyx._cusolver cupyx._cutensor
""")


def _stand_in_for_libraries() -> None:
    """Let CuPy's modules be imported without CUDA's libraries, and without a library of MPI."""
    sys.modules.setdefault("mpi4py", None)  # type: ignore[arg-type]
    importlib.import_module("cupyx")
    for name in _LIBRARIES:
        try:
            importlib.import_module(name)
        except (ImportError, AttributeError):  # an AttributeError comes from another stand-in
            package, _, last = name.rpartition(".")
            sys.modules[name] = _StandIn(name)
            setattr(sys.modules[package], last, sys.modules[name])


def _attribute(path: str) -> Any:
    found: Any = importlib.import_module("cupy")
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def _public(module: Any) -> list[str]:
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return listed
    return [name for name in dir(module) if not name.startswith("_") and _belongs(getattr(module, name), module, name)]


def _belongs(found: Any, module: Any, name: str) -> bool:
    """Return whether a name of a module without ``__all__`` is the module's own, and not only imported there."""
    if name in ("annotations", "TYPE_CHECKING"):
        return False
    package = hasattr(module, "__path__")  # A package has names of its modules.
    if isinstance(found, ModuleType):
        return package and found.__name__.startswith("cupy") and found.__name__ not in ("cupy", "cupyx")
    home = getattr(found, "__module__", None)
    if not isinstance(home, str):
        return True
    if package:
        return home.partition(".")[0] in ("builtins", "cupy", "cupy_backends", "cupyx", "numpy", "scipy")
    shim_of = f"{module.__name__.rpartition('.')[0]}._{_last(module.__name__)}"  # such as cupyx._cusolver
    backend = home.startswith("cupy_backends.") and home.endswith(_last(module.__name__))
    return home in (module.__name__, shim_of) or backend


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _described(found: Any, member: bool = False) -> dict[str, Any]:
    kind = _kind(found, member)
    told = parameters(found) if kind in ("function", "method", "class") else None
    if told is None or "*args, **kwargs" in told:  # Such a signature tells nothing.
        return {"kind": kind}
    return {"kind": kind, "signature": told}


def _kind(found: Any, member: bool) -> str:
    if isinstance(found, ModuleType):
        return "module"
    if inspect.isclass(found):
        return "exception" if issubclass(found, BaseException) else "class"
    if type(found).__name__ == "ufunc":
        return "ufunc"
    if isinstance(found, (staticmethod, classmethod)):
        return "method"
    if inspect.isroutine(found) or type(found).__name__ in ("cython_function_or_method", "fused_cython_function"):
        return "method" if member else "function"
    return "attribute" if member else "constant"


def identity_of_cupy(names: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the installed CuPy's modules, classes and functions call themselves.

    Args:
        names: The public names of CuPy.
    """
    _stand_in_for_libraries()
    modules: dict[str, str] = {}
    homes: dict[str, dict[str, list[str]]] = {}
    public: dict[int, str] = {}
    for name, row in names.items():
        found = find(name, {"cupy": "cupy", "cupyx": "cupyx"})
        owner, _, last = name.rpartition(".")
        if isinstance(found, ModuleType):
            modules[name] = found.__name__ if found.__name__.startswith("cupy") else name
        elif row["kind"] in ("class", "exception", "function", "ufunc") and owner not in CLASSES:
            home = getattr(found, "__module__", None) or ""
            own = getattr(found, "__qualname__", None) or getattr(found, "__name__", None)
            if row["kind"] == "ufunc" or (home.startswith("cupy") and own):
                homes.setdefault(owner, {}).setdefault(home, []).append(
                    last if own in (None, last) else f"{last}={own}"
                )
                public.setdefault(id(found), name)
    private: dict[str, list[str]] = {}
    for path, module in sorted(sys.modules.items()):
        if path.partition(".")[0] not in ("cupy", "cupyx") or path in names or not isinstance(module, ModuleType):
            continue
        for name, value in vars(module).items():
            known = public.get(id(value))
            if known is not None and not (f"{path}.{name}" == known or getattr(value, "__module__", None) == path):
                private.setdefault(path, []).append(f"{name}={known}")
    return {
        "modules": dict(sorted(modules.items())),
        "homes": {owner: {home: " ".join(members) for home, members in rows.items()} for owner, rows in homes.items()},
        "private": {path: " ".join(members) for path, members in private.items()},
    }


_C_TYPES = re.compile(r"\b(?:Py_ssize_t|int|bint|_ndarray_base|str|tuple|object) (?=\w)")


def signature(name: str) -> str | None:
    """Return the parameters of a function or a method as a text; None if CuPy does not tell them.

    Args:
        name: The name in the module ``cupy``, such as ``sum``, ``linalg.norm`` or ``ndarray.take``.
    """
    function = _attribute(f"cupy.{name}")
    if type(function).__name__ == "ufunc":
        inputs = ", ".join(f"x{place}" for place in range(1, function.nin + 1))
        return f"({inputs}, /, out=None, *, dtype=None, casting='same_kind')"
    return parameters(function) or _documented(function)


def _documented(function: Any) -> str | None:
    """Return the parameters in the first line of the docstring of a compiled function."""
    told = re.match(r"[\w.]+(\(.*?\))(?: ->.*)?$", (function.__doc__ or "").split("\n")[0])
    return None if told is None else _C_TYPES.sub("", told[1])
