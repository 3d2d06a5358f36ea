"""What a test must leave as found: device memory, the current device, the current stream, and no capture."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING, NamedTuple

from tcuda._device import device_count
from tcuda._process import lazy
from tcuda._process.captures import captures
from tcuda.memory import memory_allocated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._backend.streams import CurrentStream
    from tcuda._process.captures import Capture


class State(NamedTuple):
    """The state of the devices that a test must leave as found."""

    device: int
    stream: CurrentStream
    allocated: list[int]
    open: list[Capture]


@contextlib.contextmanager
def check_state(*, memory: bool = True) -> Iterator[None]:
    """Require that a block of code leaves the devices as found.

    The block must not

    * keep device memory that the block allocated, as :func:`tcuda.memory_allocated` counts,
    * change the current device or the current stream,
    * leave the capture of a graph open.

    At the end of a block that fails such a check, the open captures end without a graph, and the device and the stream
    of before become current again. So the next block starts from the same state.

    The context manager initialises nothing. If the block itself initialises tcuda, the block must leave device 0 and
    its default stream current, and no allocated memory.

    Args:
        memory: Whether to check the memory.

    Raises:
        AssertionError: The block left the devices in another state. The message has one sentence for each difference. A
            block that raises an error of its own is cleaned up after, and its own error is raised.

    Example:
        >>> with tcuda.testing.check_state():
        ...     total = float(tcuda.xp.ones(1000).sum())
    """
    __tracebackhide__ = True
    before = state()
    try:
        yield
    except BaseException:
        restore(before)
        raise
    wrong = restore(before)
    if memory:
        wrong += leaks(before)
    if wrong:
        raise AssertionError(" ".join(wrong))


def state() -> State | None:
    """Return the present state; None before tcuda is initialised."""
    if not lazy.is_initialized():
        return None
    return State(lazy.cuda.getDevice(), lazy.backend.current_stream(), _allocated(), list(captures))


def restore(before: State | None) -> list[str]:
    """Restore the current device, its current stream and the captures.

    Returns:
        A sentence for each difference from the state ``before``.
    """
    if not lazy.is_initialized():
        return []
    before = before or _initial()
    wrong = []
    device, stream = lazy.cuda.getDevice(), lazy.backend.current_stream()
    for capture in [capture for capture in captures if capture not in before.open]:
        wrong.append(
            f"The capture of a graph on stream {capture.stream:#x} of device {capture.device} is still open: call "
            "capture_end(), or capture in a block of tcuda.graph()."
        )
        capture.graph._abandon_capture()
    if device != before.device:
        wrong.append(
            f"Device {device} is current, and device {before.device} was current before: use a block of tcuda.device()."
        )
        lazy.cuda.setDevice(before.device)
    after = lazy.backend.current_stream()
    if after != before.stream:
        shown = stream if device == before.device else after
        wrong.append(
            f"{shown!r} is the current stream of device {before.device}, and {before.stream!r} was current before: use "
            "a block of tcuda.stream()."
        )
        lazy.backend.use_stream(before.stream)
    return wrong


def leaks(before: State | None, before_collecting: Callable[[], object] = lambda: None) -> list[str]:
    """Return a sentence for each device on which more memory is allocated than before.

    Args:
        before: The state of before.
        before_collecting: A function that drops references to arrays. The function is called before the garbage
            collector, and only if more memory is allocated.
    """
    if not lazy.is_initialized():
        return []
    then = (before or _initial()).allocated
    if not _more(then):
        return []
    before_collecting()
    gc.collect()
    return [
        f"{more} bytes of memory of device {device} are still allocated: something keeps an array alive, such as a "
        "global variable, a cache or an exception."
        for device, more in _more(then)
    ]


def _initial() -> State:
    """Return the state of a process that has just initialised tcuda."""
    return State(0, lazy.backend.default_stream, [0] * device_count(), [])


def _allocated() -> list[int]:
    return [memory_allocated(device) for device in range(device_count())]


def _more(before: list[int]) -> list[tuple[int, int]]:
    """Return the devices on which more memory is allocated than before, each with the number of bytes."""
    # Less memory may be in use than before, because the garbage of earlier tests may have been collected.
    grown = [now - then for now, then in zip(_allocated(), before, strict=True)]
    return [(device, more) for device, more in enumerate(grown) if more > 0]
