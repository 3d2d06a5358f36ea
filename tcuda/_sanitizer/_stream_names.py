"""The names that a program has for its streams, for messages that quote a call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._process.lazy import backend, cuda
from tcuda._sanitizer._stacks import is_library, living_frames
from tcuda.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

_MOST_ITEMS = 64
"""The number of items of a list, a dict or an object that are looked at."""

_LEGACY = (0, 1)  # both handles mean the legacy default stream


class StreamName(NamedTuple):
    """The name of a stream.

    Attributes:
        text: The name, such as ``"side"`` or ``"tcuda.current_stream()"``; ``"the stream 0x..."`` without a name.
        is_code: Whether the name can be written in a program.
        is_tcudas: Whether the named object has the methods of :class:`tcuda.Stream`, and not only those of CuPy.
    """

    text: str
    is_code: bool = True
    is_tcudas: bool = True


def stream_name(device: int, handle: int, *, is_current: bool = False) -> StreamName:
    """Return the name that the running code has for a stream.

    The variables of all functions that run are looked up, the innermost function of this thread first.

    Args:
        device: The index of the device.
        handle: The handle of the stream.
        is_current: Whether the stream may be named as the current stream of this thread.
    """
    for variables in _scopes():
        found = _find(variables, device, handle)
        if found is not None:
            return found
    if handle in _LEGACY:
        return StreamName(f"tcuda.default_stream({'' if device == cuda.getDevice() else device})")
    if is_current and device == cuda.getDevice() and backend.current_stream().ptr == handle:
        return StreamName("tcuda.current_stream()")
    return StreamName(f"the stream {handle:#x}", is_code=False)


def _scopes() -> Iterator[Mapping[str, Any]]:
    """Yield the variables of the running functions, then those of their modules."""
    running = list(_user_frames())
    for frame in running:
        if frame.f_locals is not frame.f_globals:
            yield frame.f_locals
    seen = set()
    for frame in running:
        if id(frame.f_globals) not in seen:
            seen.add(id(frame.f_globals))
            yield frame.f_globals


def _user_frames() -> Iterator[FrameType]:
    for frame in living_frames():
        if not is_library(frame.f_code.co_filename):
            yield frame
    own = sys._getframe()
    for frame in sys._current_frames().values():
        innermost: FrameType | None = frame
        while innermost is not None and is_library(innermost.f_code.co_filename):
            innermost = innermost.f_back
        if innermost is not None and innermost.f_code is not own.f_code:
            yield innermost


def _find(variables: Mapping[str, Any], device: int, handle: int) -> StreamName | None:
    """Return the name of the stream among ``variables``, or in a list, a dict or an object among ``variables``."""
    named = [(name, value) for name, value in list(variables.items()) if name.isidentifier()]
    for name, value in named:
        if _is(value, device, handle):
            return StreamName(name, is_tcudas=_is_tcudas(type(value)))
    for name, value in named:
        for part, item in _parts(value):
            if _is(item, device, handle):
                return StreamName(f"{name}{part}", is_tcudas=_is_tcudas(type(item)))
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of ``value`` with their spelling; no code of the program runs."""
    kind = type(value)
    if kind is list or kind is tuple:
        yield from ((f"[{place}]", item) for place, item in enumerate(value[:_MOST_ITEMS]))
    elif kind is dict:
        if len(value) <= _MOST_ITEMS:
            yield from ((f"[{key!r}]", item) for key, item in list(value.items()) if isinstance(key, (str, int)))
    elif kind.__module__ != "builtins" and not isinstance(value, type):
        attributes = _attributes(value)
        if type(attributes) is dict and len(attributes) <= _MOST_ITEMS:
            yield from ((f".{name}", item) for name, item in list(attributes.items()))


def _attributes(value: Any) -> Any:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _is(value: Any, device: int, handle: int) -> bool:
    if _is_tcudas(type(value)):
        found, index = value.cuda_stream, value.device_index
    elif _is_cupys(type(value)):
        found, index = value.ptr, getattr(value, "device_id", -1)  # -1: a default stream, which has no device
    else:
        return False
    same = found == handle or (found in _LEGACY and handle in _LEGACY)
    return same and index in (device, -1)


def _is_tcudas(kind: type) -> bool:
    return issubclass(kind, Stream)  # isinstance() could run code of the program


def _is_cupys(kind: type) -> bool:
    return kind.__module__ == "cupy.cuda.stream" and "Stream" in kind.__name__
