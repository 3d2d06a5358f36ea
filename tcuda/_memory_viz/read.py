"""Reading snapshots that nobody vouches for."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The schema is torch's: what is in a snapshot depends on the version that wrote it.
Snapshot: TypeAlias = dict[str, Any]

_WHAT_TO_DO = "Write one with tcuda.memory._dump_snapshot() or torch.cuda.memory._dump_snapshot()."


def read_snapshot(path: str | Path) -> Snapshot:
    """Return the snapshot in the file at ``path``.

    The file may come from anywhere: nothing in it is imported or called.

    Args:
        path: A file that ``_dump_snapshot()`` wrote, or a pickle of what ``_snapshot()`` or ``memory_snapshot()``
            returned.

    Raises:
        OSError: The file cannot be read.
        ValueError: It holds no snapshot.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the path may be a text
            return _Check().snapshot(_Unpickler(file).load())
    except OSError:
        raise
    except Exception as error:  # a file that is no pickle can fail in any way
        reason = str(error) or type(error).__name__
        raise ValueError(f"{str(path)!r} holds no allocator snapshot: {reason}. {_WHAT_TO_DO}") from error


class _Unpickler(pickle.Unpickler):
    """Unpickles containers, texts and numbers, which is all that a snapshot has; other pickles can run code."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(
            f"it asks for {module}.{name}, and a snapshot has only dicts, lists, tuples, texts and numbers"
        )


class _Check:
    """That what the page is made of has the right types. What only some versions write may be absent."""

    def __init__(self) -> None:
        self._good_frames: set[int] = set()  # by id(), because thousands of stacks share them

    def snapshot(self, content: object) -> Snapshot:
        if isinstance(content, list):  # what memory_snapshot() returns
            content = {"segments": content}
        if not isinstance(content, dict):
            raise ValueError(f"it is a {type(content).__name__}, not a dict")
        for place, segment in _dicts(content.get("segments"), "segments"):
            self._segment(segment, place)
        traces = content.setdefault("device_traces", [])
        if not isinstance(traces, list):
            raise ValueError("device_traces is no list")
        for device, trace in enumerate(traces):
            for place, event in _dicts(trace, f"device_traces[{device}]"):
                self._event(event, place)
        return content

    def _segment(self, segment: dict[str, Any], where: str) -> None:
        _numbers(segment, where, required=("address", "total_size"), optional=("device", "stream"))
        pool = segment.get("segment_pool_id", (0, 0))
        if not (isinstance(pool, list | tuple) and all(isinstance(part, int) for part in pool)):
            raise ValueError(f"{where}['segment_pool_id'] is {pool!r}, not a pair of numbers")
        self._frames(segment, where)
        for place, block in _dicts(segment.get("blocks"), f"{where}['blocks']"):
            _numbers(block, place, required=("size",), optional=("address", "requested_size"))
            _text(block, "state", place)
            self._frames(block, place)

    def _event(self, event: dict[str, Any], where: str) -> None:
        _text(event, "action", where)
        required = ("size",) if event["action"] == "oom" else ("addr", "size")
        _numbers(event, where, required, optional=("stream", "time_us", "device_free"))
        self._frames(event, where)

    def _frames(self, owner: dict[str, Any], where: str) -> None:
        for frame in owner.get("frames", ()):
            if id(frame) in self._good_frames:
                continue
            types = {"name": str, "filename": str, "line": int}
            if not (isinstance(frame, dict) and all(isinstance(frame.get(key), types[key]) for key in types)):
                raise ValueError(f"{where} has a frame that is no name, filename and line: {frame!r}")
            self._good_frames.add(id(frame))


def _dicts(values: object, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(values, list):
        raise ValueError(f"{where} is absent or no list")
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise ValueError(f"{where}[{index}] is a {type(value).__name__}, not a dict")
        yield f"{where}[{index}]", value


def _numbers(owner: dict[str, Any], where: str, required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    for name in (*required, *(name for name in optional if name in owner)):
        if not isinstance(owner.get(name), int):
            raise ValueError(f"{where}[{name!r}] is {owner.get(name)!r}, not a whole number")


def _text(owner: dict[str, Any], name: str, where: str) -> None:
    if not isinstance(owner.get(name), str):
        raise ValueError(f"{where}[{name!r}] is {owner.get(name)!r}, not a text")


__all__ = ["Snapshot", "read_snapshot"]
