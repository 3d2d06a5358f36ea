"""The sources of the modules that CuPy has loaded.

CuPy loads a kernel once, and a race detector may begin later. So tcuda keeps the source of every module that CuPy
loads: a reference to the text, which is not read before a detector begins.
"""

from __future__ import annotations

import functools
import gc
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcuda._process.fork import call_in_child

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class LoadedSource:
    """The source of a module, and how CuPy has compiled the source.

    Attributes:
        text: The source; empty for a module that was loaded from a file.
        options: The options of the compiler.
        backend: ``"nvrtc"`` or ``"nvcc"``.
        arch: The compute capability that the caller asked for; None if CuPy chose the capability.
        name_expressions: The names of kernels with template arguments.
        jitify: Whether Jitify has prepared the source.
        path: The file; None for a module that has a source.
        by_core: Whether the core launches the kernels, so that no call of CuPy prepares them.
    """

    text: str
    options: tuple[str, ...] = ()
    backend: str = "nvrtc"
    arch: str | None = None
    name_expressions: tuple[str, ...] = ()
    jitify: bool = False
    path: str | None = None
    by_core: bool = False


_lock = threading.RLock()
_sources: dict[int, LoadedSource] = {}
_listener: Callable[[int, LoadedSource], object] | None = None


def follow(cupy: Any) -> None:
    """Keep the sources of the modules that ``cupy`` loads from now on; a second call does nothing.

    CuPy's compiled code looks the replaced functions up by name for every call.
    """
    with _lock:
        compiler = getattr(cupy.cuda, "compiler", None)
        raw = getattr(getattr(cupy, "_core", None), "raw", None)
        _replace(compiler, "_compile_module_with_cache", _noting_sources)
        _replace(raw, "_get_raw_module", _noting_files)


def _replace(owner: Any, name: str, noting: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    found = getattr(owner, name, None)  # private functions of CuPy, which another version may not have
    if found is not None and not hasattr(found, "_tcuda_notes"):
        made = noting(found)
        made._tcuda_notes = True  # type: ignore[attr-defined]
        setattr(owner, name, made)


def launched_by_core(function: Any) -> None:
    """Remember that the core launches ``function``, a ``cupy.cuda.Function``, so that no call of CuPy prepares it."""
    module = function.module.ptr
    source = _sources.get(module)
    if source is not None and not source.by_core:
        note(module, replace(source, by_core=True))


def listen(listener: Callable[[int, LoadedSource], object] | None) -> None:
    """Call ``listener`` with the handle and the source of every module that CuPy loads; None ends the calls."""
    global _listener
    with _lock:
        _listener = listener


def source_of(module: int) -> LoadedSource | None:
    """Return the source of a module by its handle; None if the source is unknown."""
    return _sources.get(module)


def living(module_type: type[Any]) -> dict[int, LoadedSource]:
    """Return the sources of the modules that exist, by handle, and forget the sources of all other modules.

    Args:
        module_type: ``cupy.cuda.function.Module``. The type has no weak references, so the garbage collector is asked
            for the objects.
    """
    handles = {module.ptr for module in gc.get_objects() if type(module) is module_type}
    with _lock:
        for gone in [handle for handle in list(_sources) if handle not in handles]:
            del _sources[gone]
        return dict(_sources)


def note(module: int, source: LoadedSource) -> None:
    """Keep the source of a module that was just loaded, and tell the listener."""
    if not module:
        return
    _sources[module] = source
    listener = _listener
    if listener is not None:
        listener(module, source)


def _forget_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # another thread of the parent may have held the lock
    listen(None)


call_in_child(_forget_in_child)


def _noting_sources(compile_module: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compile_module)
    def compile_and_note(*args: Any, **kwargs: Any) -> Any:
        module = compile_module(*args, **kwargs)
        handle = getattr(module, "ptr", None)
        if isinstance(handle, int):  # an image for the linker is no module
            given = {**dict(zip(("source", "options"), args, strict=False)), **kwargs}
            note(
                handle,
                LoadedSource(
                    given.get("source", ""),
                    tuple(given.get("options", ())),
                    given.get("backend", "nvrtc"),
                    given.get("arch"),
                    tuple(given.get("name_expressions") or ()),
                    bool(given.get("jitify")),
                ),
            )
        return module

    return compile_and_note


def _noting_files(get_module: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(get_module)
    def get_and_note(code: str | None, path: str | None, *rest: Any) -> Any:
        module = get_module(code, path, *rest)
        if path is not None and _sources.get(module.ptr, _NO_SOURCE).path != path:
            note(module.ptr, LoadedSource("", backend="nvcc", path=path))
        return module

    return get_and_note


_NO_SOURCE = LoadedSource("")
