"""Reading and checking of snapshots in files that may come from any source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tcuda._base.files import read_regular_file
from tcuda._viz.memory import pickles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The schema is torch's, and depends on the version of torch or tcuda that wrote the snapshot.
Snapshot: TypeAlias = dict[str, Any]

_WHAT_TO_DO = "Write one with tcuda.memory._dump_snapshot() or torch.cuda.memory._dump_snapshot()."

_TO_TAKE = "Take one with tcuda.memory._snapshot() or torch.cuda.memory._snapshot()."

_LARGEST_FILE = 1 << 30
_MOST_DEVICES = 1024
_LARGEST_NUMBER = 64  # The most bits of a number.
_LONGEST_WORD = 100  # The most characters of an action, a state or a kind.

_SIZES = range(1 << 63)
_ADDRESSES = range(1 << 64)
_SIGNED = range(-(1 << 63), 1 << 63)
_NUMBERS = {
    "address": _ADDRESSES,
    "addr": _ADDRESSES,
    "size": _SIZES,
    "total_size": _SIZES,
    "requested_size": _SIZES,
    "device_free": _SIGNED,
    "device": range(_MOST_DEVICES),
    "stream": range(_SIGNED.start, _ADDRESSES.stop),  # torch may write a handle as a signed number.
    "time_us": _SIGNED,
}


def read_snapshot(path: str | Path) -> Snapshot:
    """Return the snapshot in the file at ``path``.

    The file may come from anywhere: nothing that the file names is imported or called. A file that was made to take
    long may take long.

    Args:
        path: A file that ``_dump_snapshot()`` wrote, or a pickle of the result of ``_snapshot()`` or
            ``memory_snapshot()``.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a snapshot, or is too large.
    """
    try:
        return _Check().snapshot(pickles.load(read_regular_file(path, _LARGEST_FILE)))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} holds no allocator snapshot: {error}. {_WHAT_TO_DO}") from error


def checked(content: object) -> Snapshot:
    """Return a snapshot of this process with all entries that the page needs; the argument stays as it is.

    Args:
        content: The result of ``_snapshot()`` or of ``memory_snapshot()``.

    Raises:
        ValueError: ``content`` is not a snapshot.
    """
    try:
        return _Check().snapshot(dict(content) if isinstance(content, dict) else content)
    except ValueError as error:
        raise ValueError(f"The argument is no allocator snapshot: {error}. {_TO_TAKE}") from error


class _Check:
    """The check of the types and sizes of all values that the page uses. Entries of some versions only may be absent.

    A pickle can name one object in many places. Stacks and frames are shared in this way, and are checked once. A
    segment, a block or an event in two places is refused, because a small file could otherwise demand an unlimited
    amount of work.
    """

    def __init__(self) -> None:
        # The sets have the results of id(), which stay valid because the content stays alive.
        self._good_frames: set[int] = set()
        self._good_stacks: set[int] = set()
        self._seen: set[int] = set()

    def snapshot(self, content: object) -> Snapshot:
        if isinstance(content, list):  # The result of memory_snapshot() is a list of segments.
            content = {"segments": content}
        if not isinstance(content, dict):
            raise ValueError(f"it is a {type(content).__name__}, not a dict")
        for place, segment in self._dicts(content.get("segments"), "segments"):
            _numbers(segment, place, required=(), optional=("device",))
            self._segment(segment, place)
        traces = content.setdefault("device_traces", [])
        if not isinstance(traces, list):
            raise ValueError("device_traces is not a list")
        if len(traces) > _MOST_DEVICES:
            raise ValueError(f"device_traces has {len(traces):,} devices; at most {_MOST_DEVICES:,} are read")
        for device, trace in enumerate(traces):
            for place, event in self._dicts(trace, f"device_traces[{device}]"):
                self._event(event, place)
        for place, segment in self._dicts(content.get("host_segments", []), "host_segments"):
            self._segment(segment, place)
        for place, event in self._dicts(content.get("host_trace", []), "host_trace"):
            self._event(event, place)
        return content

    def _segment(self, segment: dict[str, Any], where: str) -> None:
        _numbers(segment, where, required=("address", "total_size"), optional=("stream",))
        _word(segment, "segment_type", where, default="")
        pool = segment.get("segment_pool_id", (0, 0))
        if not (isinstance(pool, list | tuple) and len(pool) == 2 and all(_is_number(part, _SIGNED) for part in pool)):
            raise ValueError(f"{where}['segment_pool_id'] is {_short(pool)}, not a pair of numbers")
        self._frames(segment, where)
        size = free = segment["total_size"]
        for place, block in self._dicts(segment.get("blocks"), f"{where}['blocks']"):
            _numbers(block, place, required=("size",), optional=("address", "requested_size"))
            _word(block, "state", place)
            _texts(block, place, ("scope",))
            self._frames(block, place)
            free -= block["size"]
        if free < 0:
            raise ValueError(f"{where} has {size:,} bytes, and blocks of {size - free:,}")

    def _event(self, event: dict[str, Any], where: str) -> None:
        _word(event, "action", where)
        required = ("size",) if event["action"] == "oom" else ("addr", "size")
        _numbers(event, where, required, optional=("stream", "time_us", "device_free"))
        _texts(event, where, ("user_metadata", "compile_context", "scope"))
        self._frames(event, where)

    def _frames(self, owner: dict[str, Any], where: str) -> None:
        frames = owner.get("frames", ())
        if id(frames) in self._good_stacks:
            return
        if not isinstance(frames, list | tuple):
            raise ValueError(f"{where}['frames'] is {_short(frames)}, not a list")
        for frame in frames:
            if id(frame) not in self._good_frames:
                self._frame(frame, where)
                self._good_frames.add(id(frame))
        self._good_stacks.add(id(frames))

    def _frame(self, frame: object, where: str) -> None:
        if not isinstance(frame, dict):
            raise ValueError(f"{where} has a frame that is {_short(frame)}, not a dict")
        for name in ("name", "filename"):
            if not isinstance(frame.get(name), str):
                raise ValueError(f"{where} has a frame whose {name} is {_short(frame.get(name))}, not a text")
        if not _is_number(frame.get("line"), _SIGNED):
            raise ValueError(f"{where} has a frame whose line is {_short(frame.get('line'))}, not a whole number")

    def _dicts(self, values: object, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
        if not isinstance(values, list):
            raise ValueError(f"{where} is missing or not a list")
        for index, value in enumerate(values):
            if not isinstance(value, dict):
                raise ValueError(f"{where}[{index}] is a {type(value).__name__}, not a dict")
            if id(value) in self._seen:
                raise ValueError(f"{where}[{index}] is also in another place")
            self._seen.add(id(value))
            yield f"{where}[{index}]", value


def _numbers(owner: dict[str, Any], where: str, required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    for name in (*required, *(name for name in optional if name in owner)):
        allowed = _NUMBERS[name]
        if not _is_number(owner.get(name), allowed):
            raise ValueError(
                f"{where}[{name!r}] is {_short(owner.get(name))}, not a whole number of {allowed[0]} to {allowed[-1]}"
            )


def _is_number(value: object, allowed: range) -> bool:
    return type(value) is int and value in allowed


def _word(owner: dict[str, Any], name: str, where: str, default: str | None = None) -> None:
    value = owner.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"{where}[{name!r}] is {_short(value)}, not a text")
    if len(value) > _LONGEST_WORD:
        raise ValueError(f"{where}[{name!r}] has {len(value):,} characters; at most {_LONGEST_WORD} are read")


def _texts(owner: dict[str, Any], where: str, names: tuple[str, ...]) -> None:
    for name in names:
        if not isinstance(owner.get(name), str | type(None)):
            raise ValueError(f"{where}[{name!r}] is {_short(owner[name])}, not a text")


def _short(value: object) -> str:
    """Return a short text for ``value`` in a message: a list could contain itself, and a text could fill the screen."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST_WORD else f"a text of {len(value):,} characters"
    if isinstance(value, int) and value.bit_length() > _LARGEST_NUMBER:
        return f"a number of {value.bit_length():,} bits"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a {type(value).__name__}"


__all__ = ["Snapshot", "checked", "read_snapshot"]
