"""The names that a program has for its streams, for messages that quote a call."""

from __future__ import annotations

import itertools
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base.user_code import is_library
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import STREAM_PER_THREAD
from tcuda.sanitizer._stacks import frame_of, living_frames
from tcuda.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

    from tcuda.sanitizer._stacks import Frame

_MOST_ITEMS = 64
"""The number of items of a list, a dict or an object that are looked at."""

_MOST_INNER = 1000
"""The number of items of items that are looked at, so that a race in a deep stack is told soon."""

_FUNCTION = 1
"""The flag CO_OPTIMIZED of code whose variables are not those of a module or a class."""

_CUPYS_MODULES = ("cupy.cuda.stream", "tcuda.emulation.cuda")
"""The modules of CuPy's classes; the second one has the classes of a program that uses ``tcuda.xp``."""

_CURRENT = "tcuda.current_stream()"
_DEFAULT = "tcuda.default_stream("

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


class StreamNames(NamedTuple):
    """The names of the two streams of a race.

    Attributes:
        current: The name of the stream of the current access; None for the host.
        previous: The name of the stream of the previous access; None for the host.
        place: The frame in which both names are known; None without such a frame.
    """

    current: StreamName | None
    previous: StreamName | None
    place: Frame | None


def stream_names(current: tuple[int, int] | None, previous: tuple[int, int] | None) -> StreamNames:
    """Return the names that the running code has for two streams.

    The names are those of the innermost function of this thread that knows both streams. If no function knows both, the
    variables of all functions that run are looked up, and then functions of tcuda name the streams.

    Args:
        current: The device and the handle of the stream of this thread's operation; None for the host.
        previous: The device and the handle of the other stream; None for the host.
    """
    if current == previous and current is not None and current[1] == STREAM_PER_THREAD:
        alone = stream_names(current, None)
        return alone._replace(
            previous=StreamName(f"the stream {STREAM_PER_THREAD:#x} of another thread", is_code=False)
        )
    for frame in _frames_of_this_thread():
        known = [_known(frame, stream) for stream in (current, previous) if stream is not None]
        if None not in known:
            found = iter(_alike(known, frame.f_globals))
            return StreamNames(
                None if current is None else next(found),
                None if previous is None else next(found),
                frame_of(frame),
            )
    wanted = [_anywhere(stream, is_current=stream is current) for stream in (current, previous) if stream is not None]
    program = next(_frames_of_this_thread(), None)
    names = iter(_alike(wanted, {} if program is None else program.f_globals))
    return StreamNames(
        None if current is None else next(names),
        None if previous is None else next(names),
        None,
    )


def _alike(names: Sequence[StreamName | None], variables: Mapping[str, Any]) -> list[StreamName | None]:
    """Return the names, with CuPy's functions in the place of tcuda's functions in a program with streams of CuPy.

    Args:
        names: The names.
        variables: The variables of the module of the program.
    """
    cupy = _cupy_of(names, variables)
    return [name if name is None or cupy is None else _in_cupys_words(name, cupy) for name in names]


def _cupy_of(names: Sequence[StreamName | None], variables: Mapping[str, Any]) -> str | None:
    """Return what a program with streams of CuPy calls CuPy; None for a program with streams of tcuda."""
    modules = {
        ModuleType.__getattribute__(value, "__name__"): name
        for name, value in dict(variables).items()
        if issubclass(type(value), ModuleType) and name.isidentifier()
    }
    named = [name for name in names if name is not None and name.is_code]
    if not all(name.is_tcudas for name in named):
        return modules.get("cupy", "cupy")
    if "tcuda" in modules or any(name.text != _CURRENT and not name.text.startswith(_DEFAULT) for name in named):
        return None
    return modules.get("cupy")


def _in_cupys_words(name: StreamName, cupy: str) -> StreamName:
    if name.text == _CURRENT:
        return StreamName(f"{cupy}.cuda.get_current_stream()", is_tcudas=False)
    if not name.text.startswith(_DEFAULT):
        return name
    device = name.text.removeprefix(_DEFAULT).removesuffix(")")
    if device:  # CuPy has no name for the default stream of another device
        return StreamName(f"the default stream of device {device}", is_code=False, is_tcudas=False)
    return StreamName(f"{cupy}.cuda.Stream.null", is_tcudas=False)


def _known(frame: FrameType, stream: tuple[int, int]) -> StreamName | None:
    """Return the name that a function has for a stream."""
    return _find(_variables(frame), *stream) or _find(frame.f_globals, *stream) or _default(*stream)


def _variables(frame: FrameType) -> Mapping[str, Any]:
    """Return the variables of a function that runs, without keeping them alive in the frame."""
    variables = frame.f_locals
    # Before Python 3.13 a frame keeps the dict that it returns, so that a `del x` of the program would free no array. A
    # debugger writes that dict back into the variables of the function, and then the dict must stay as it is.
    if not frame.f_code.co_flags & _FUNCTION or sys.version_info >= (3, 13) or sys.gettrace() or threading.gettrace():
        return variables
    found = dict(variables)
    variables.clear()
    return found


def _default(device: int, handle: int) -> StreamName | None:
    if handle not in _LEGACY:
        return None
    return StreamName(f"{_DEFAULT}{'' if device == cuda.getDevice() else device})")


def _anywhere(stream: tuple[int, int], *, is_current: bool) -> StreamName:
    """Return a name for a stream from any function that runs, or from tcuda."""
    for frame in (*_frames_of_this_thread(), *_frames_of_threads()):
        found = _known(frame, stream)
        if found is not None:
            return found
    device, handle = stream
    if is_current and device == cuda.getDevice() and backend.current_stream().ptr == handle:
        return StreamName(_CURRENT)
    return _default(device, handle) or StreamName(f"the stream {handle:#x}", is_code=False)


def _frames_of_this_thread() -> Iterator[FrameType]:
    return (frame for frame in living_frames() if not is_library(frame.f_code.co_filename))


def _frames_of_threads() -> Iterator[FrameType]:
    """Yield the innermost frame of the program in each other thread."""
    running = sys._current_frames()
    del running[threading.get_ident()]  # a reference of this frame to itself would keep all variables alive
    for innermost in running.values():
        frame: FrameType | None = innermost
        while frame is not None and is_library(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is not None:
            yield frame


def _find(variables: Mapping[str, Any], device: int, handle: int) -> StreamName | None:
    """Return the name of the stream among ``variables``, or in lists, dicts and objects two levels below."""
    named = [(name, value) for name, value in dict(variables).items() if name.isidentifier()]
    named.sort(key=lambda each: each[0].startswith("_"))  # `_` of a notebook may be a stream that has a better name
    parts = ((f"{name}{part}", item) for name, value in named for part, item in _parts(value))
    inner = (
        (f"{name}{part}{inner_part}", inner_item)
        for name, value in named
        for part, item in _parts(value)
        for inner_part, inner_item in _parts(item)
    )
    for text, value in itertools.chain(named, parts, itertools.islice(inner, _MOST_INNER)):
        if _is(value, device, handle):
            return StreamName(text, is_tcudas=_is_tcudas(type(value)))
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of ``value`` with their spelling; no code of the program runs."""
    kind = type(value)
    if kind is list or kind is tuple:
        yield from ((f"[{place}]", item) for place, item in enumerate(value[:_MOST_ITEMS]))
    elif kind is dict:
        if len(value) <= _MOST_ITEMS:
            yield from ((f"[{key!r}]", item) for key, item in dict(value).items() if isinstance(key, (str, int)))
    elif kind.__module__ != "builtins" and not isinstance(value, type):
        attributes = _attributes(value)
        if type(attributes) is dict and len(attributes) <= _MOST_ITEMS:
            yield from ((f".{name}", item) for name, item in dict(attributes).items())


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
    return kind.__module__ in _CUPYS_MODULES and "Stream" in kind.__name__
