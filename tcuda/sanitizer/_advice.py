"""The call that makes the order that is missing between two accesses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tcuda._base.cells import line_in
from tcuda.sanitizer._array_names import use_of
from tcuda.sanitizer._missing import Missing

if TYPE_CHECKING:
    from tcuda.sanitizer._race import RaceAccess, RaceAllocation
    from tcuda.sanitizer._stacks import Frame
    from tcuda.sanitizer._stream_names import StreamName, StreamNames


def missing_order(
    current: RaceAccess,
    previous: RaceAccess,
    names: StreamNames,
    freed: RaceAllocation | None,
) -> Missing:
    """Return the order that is missing between two accesses.

    Args:
        current: The access that found the race.
        previous: The earlier access.
        names: The names of both streams.
        freed: The allocation that the previous access used, if the memory was freed since.
    """
    before = names.place if names.place in (current.launch_stack or current.stack) else current.place
    if freed is not None and names.previous is not None:
        return _kept_memory(previous, names.previous, names.current, freed)
    if previous.host:  # a request of MPI
        return _completed_request(before, previous)
    if names.current is None or names.previous is None:
        return _synchronization(before, names.current or names.previous)
    if _is_one_launch(current, previous):
        return _inside_graph(current, previous)
    if (current.device, current.stream) == (previous.device, previous.stream):
        return _other_thread(before, previous, names.current)
    return _wait(before, names.current, names.previous, is_launch=current.launch_stack is not None)


def wait_of(waiting: StreamName, other: StreamName) -> str:
    """Return the call that lets a stream wait for the work of another stream."""
    if waiting.is_tcudas:
        return f"{_code(waiting)}.wait_stream({_code(other)})"
    return f"{_code(waiting)}.wait_event({_code(other)}.record())"


def _is_one_launch(current: RaceAccess, previous: RaceAccess) -> bool:
    """Return whether both accesses are nodes of one launch; launches of one stream are ordered anyway."""
    in_graphs = current.launch_stack is not None and previous.launch_stack is not None
    return in_graphs and (current.device, current.stream) == (previous.device, previous.stream)


def _wait(before: Frame | None, waiting: StreamName, other: StreamName, *, is_launch: bool) -> Missing:
    where = f"the launch in {line_of(before)}" if is_launch else line_of(before)
    call = wait_of(waiting, other)
    if waiting.is_code and other.is_code:
        return Missing(call, before, f"`{call}` before {where} orders them.", before is None)
    return Missing(call, before, f"A wait of {_word(waiting)} for {_word(other)} before {where} orders them.")


def _synchronization(before: Frame | None, stream: StreamName | None) -> Missing:
    if stream is None:
        call = "tcuda.synchronize()"
        return Missing(call, before, f"`{call}` before {line_of(before)} orders them.", before is None)
    call = f"{_code(stream)}.synchronize()"
    if stream.is_code:
        return Missing(call, before, f"`{call}` before {line_of(before)} orders them.", before is None)
    return Missing(call, before, f"A synchronization of {stream.text} before {line_of(before)} orders them.")


def _completed_request(before: Frame | None, previous: RaceAccess) -> Missing:
    return Missing(
        "request.Wait()",
        before,
        f"A wait for the request of {line_of(previous.place)}, such as `request.Wait()`, before {line_of(before)} "
        "orders them.",
    )


def _kept_memory(previous: RaceAccess, stream: StreamName, other: StreamName | None, freed: RaceAllocation) -> Missing:
    """Return the call that keeps the memory, at the last use of the array.

    The line that frees the memory is no such place: the line may be that of the next array with the same name, or any
    line at which Python collects garbage.
    """
    used = use_of(freed.stack, previous.launch_stack or previous.stack, writes=previous.kind != "read")
    if used is None:
        call, before, where = _recording("array", stream), None, "before the array is freed"
    else:
        call, before = _recording(used.name or "array", stream), used.place
        where = f"before {line_of(before)}, which uses the array last,"
        if used.makes_array:
            where = f"after {line_of(before)}, which makes the array and uses it last,"
            before = None  # the array does not exist before the line
    instead = "" if stream.is_tcudas else _wait_after_use(stream, other)
    more = f" In place of the call, {instead}." if instead else ""
    if stream.is_code:
        return Missing(call, before, f"`{call}` {where} orders them.{more}", instead=instead)
    text = f"A call of tcuda.memory.record_stream() for {stream.text} {where} orders them.{more}"
    return Missing(call, before, text, instead=instead)


def _wait_after_use(stream: StreamName, other: StreamName | None) -> str:
    """Return how a program that uses CuPy only lets the stream of the next array wait."""
    call = f": {wait_of(other, stream)}" if other is not None and other.is_code and stream.is_code else ""
    return f"let the stream of the free wait for {_word(stream)} between the last use and the free{call}"


def _recording(array: str, stream: StreamName) -> str:
    return f"tcuda.memory.record_stream({array}, {_code(stream)})"


def _other_thread(before: Frame | None, previous: RaceAccess, name: StreamName) -> Missing:
    """Return the order between per-thread default streams, which have one handle, and which only their thread names."""
    call = f"{'tcuda.current_stream()' if name.is_tcudas else name.text}.synchronize()"
    after = line_of(previous.place)
    return Missing(call, before, f"`{call}` in the other thread, after {after}, orders them.")


def _inside_graph(current: RaceAccess, previous: RaceAccess) -> Missing:
    before, after = next(iter(current.stack), None), next(iter(previous.stack), None)
    return Missing(
        "wait_stream() in the capture",
        before,
        f"In the capture, a wait of the stream of {line_of(before)} for the stream of {line_of(after)}, before "
        f"{line_of(before)}, orders them.",
    )


def line_of(frame: Frame | None) -> str:
    """Return the line of a frame in words."""
    if frame is None:
        return "the operation"
    cell = line_in(frame.filename, frame.line)
    return cell or f"line {frame.line} of {os.path.basename(frame.filename)}"  # noqa: PTH119  # may be no path, as "<stdin>"


def _code(name: StreamName) -> str:
    return name.text if name.is_code else f"<{name.text}>"


def _word(name: StreamName) -> str:
    return f"`{name.text}`" if name.is_code else name.text
