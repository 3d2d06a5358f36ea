"""What a test must leave as found: device memory, the current device, the current stream, and no capture."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING, NamedTuple

from tcuda._device import device_count
from tcuda._process import lazy
from tcuda._process.captures import captures
from tcuda.memory import memory_allocated
from tcuda.memory._alive import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._backend.streams import CurrentStream
    from tcuda._process.captures import Capture


_MOST_SITES = 10


class State(NamedTuple):
    """The state of the devices that a test must leave as found."""

    device: int
    stream: CurrentStream
    open: list[Capture]


class Memory:
    """The memory of the devices at the start of a block, and the lines that allocate in the block."""

    def __init__(self) -> None:
        self._allocated = _allocated() if lazy.is_initialized() else []
        self._watch = Watch()

    def end(self) -> None:
        """Record no more lines."""
        self._watch.end()

    def leaks(self, before_collecting: Callable[[], object] = lambda: None) -> list[str]:
        """Return a sentence for each device on which more memory is allocated than at the start.

        Args:
            before_collecting: A function that drops references to arrays. The function is called before the garbage
                collector, and only if more memory is allocated.
        """
        if not lazy.is_initialized():
            return []
        then = self._allocated or [0] * device_count()
        if not _more(then):
            return []
        before_collecting()
        gc.collect()
        return [
            f"{more} bytes of memory of device {device} are still allocated: something keeps an array alive, such as a "
            f"global variable, a cache or an exception.{self._lines(device)}"
            for device, more in _more(then)
        ]

    def _lines(self, device: int) -> str:
        sites = [site for site in self._watch.alive() if site.device == device]
        shown = "".join(f"\n    {site}" for site in sites[:_MOST_SITES])
        rest = sites[_MOST_SITES:]
        if not rest:
            return shown
        return f"{shown}\n    {sum(site.bytes for site in rest)} bytes at {len(rest)} more lines"


@contextlib.contextmanager
def check_state(*, memory: bool = True) -> Iterator[None]:
    """Require that a block of code leaves the devices as found.

    The block must not

    * keep device memory that the block allocated, as :func:`tcuda.memory_allocated` counts: the message has the lines
      of the program that allocated the memory,
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
    measured = Memory() if memory else None
    try:
        try:
            yield
        except BaseException:
            restore(before)
            raise
        wrong = restore(before)
        if measured is not None:
            wrong += measured.leaks()
    finally:
        if measured is not None:
            measured.end()
    if wrong:
        raise AssertionError(" ".join(wrong))


def state() -> State | None:
    """Return the present state; None before tcuda is initialised."""
    if not lazy.is_initialized():
        return None
    return State(lazy.cuda.getDevice(), lazy.backend.current_stream(), list(captures))


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
        graph = capture.graph
        if graph is not None:
            graph._abandon_capture()
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


def _initial() -> State:
    """Return the state of a process that has just initialised tcuda."""
    return State(0, lazy.backend.default_stream, [])


def _allocated() -> list[int]:
    return [memory_allocated(device) for device in range(device_count())]


def _more(before: list[int]) -> list[tuple[int, int]]:
    """Return the devices on which more memory is allocated than before, each with the number of bytes."""
    # Less memory may be in use than before, because the garbage of earlier tests may have been collected.
    grown = [now - then for now, then in zip(_allocated(), before, strict=True)]
    return [(device, more) for device, more in enumerate(grown) if more > 0]
