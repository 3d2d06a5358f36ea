"""Measurements of the memory of a part of a program, which do not change other measurements."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tcuda._base.arguments import flag
from tcuda._base.arguments import function as callable_
from tcuda._base.copying import refusing
from tcuda._core import Tracker, cleanup_on_error, finalizing
from tcuda._process.device_rules import OF_MEMORY, resolve
from tcuda._process.lazy import is_initialized
from tcuda._process.ledger import ledger
from tcuda.memory._alive import HOST, Watch

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tcuda._core import Ledger
    from tcuda._process.devices import DeviceArgument
    from tcuda.memory._alive import AliveSite

F = TypeVar("F", bound="Callable[..., Any]")
_ON_DEVICE = 5  # the first figures of a Usage; the other figures are those of page-locked memory


class Usage(NamedTuple):
    """The memory that a part of a program used on a device, and page-locked memory of the host.

    The sizes are in bytes. The sizes on the device count as in :func:`tcuda.memory_allocated`, and those of page-locked
    memory as ``active_bytes`` in :func:`tcuda.host_memory_stats`. The text of the object has the figures of page-locked
    memory only if the part used such memory.

    Attributes:
        current: The bytes that the part allocated, minus the bytes that the part freed. The number is negative if the
            part freed more than it allocated.
        peak: The highest value of ``current``.
        allocated: The sum of all allocations, in bytes.
        freed: The sum of all frees, in bytes. Frees of memory from before the part are included.
        allocations: The number of allocations.
        host_current: As ``current``, for page-locked memory, which all devices share.
        host_peak: The highest value of ``host_current``.
        host_allocated: The sum of all allocations of page-locked memory, in bytes.
        host_freed: The sum of all frees of page-locked memory, in bytes.
        host_allocations: The number of allocations of page-locked memory.

    Example:
        >>> with tcuda.memory.track() as measured:
        ...     x = xp.zeros(1000, dtype="float32")
        >>> measured.usage
        Usage(current=4096, peak=4096, allocated=4096, freed=0, allocations=1)
        >>> with tcuda.memory.track() as measured:
        ...     staging = tcuda.memory.empty_pinned(1000, "uint8")
        >>> measured.usage.host_peak
        1024
    """

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0
    allocations: int = 0
    host_current: int = 0
    host_peak: int = 0
    host_allocated: int = 0
    host_freed: int = 0
    host_allocations: int = 0

    def __repr__(self) -> str:
        return f"Usage({_text(self)})"


def _text(usage: Usage) -> str:
    """Return the names and values of the figures; without those of page-locked memory if all of them are 0."""
    figures = usage._asdict()
    shown = figures if any(usage[_ON_DEVICE:]) else dict(list(figures.items())[:_ON_DEVICE])
    return ", ".join(f"{name}={value}" for name, value in shown.items())


class track:
    """Context manager and decorator that measures the memory of a block of code, or of the calls of a function.

    The measurement has the memory of one device, and the page-locked memory of the host.

    Measurements may nest and overlap, and do not change the peaks of :func:`tcuda.memory_stats`.

    Inside the block, the attributes have their present values. After the block, the attributes keep their values from
    the end of the block. torch has no such function: a program must reset the peaks of the whole process.

    Args:
        device: The device; the device that is current at the start of the block if None.
        thread: Whether to count only the allocations and frees of the thread that enters the block.
        report: A function that is called with a :class:`Usage` at the end of every block or call.
        sites: Whether to find the lines of the program whose memory is still allocated, for :attr:`alive`. The stack of
            each allocation is then recorded, and the memory that is allocated at the start and at the end is listed.

    Attributes:
        usage: The :class:`Usage` so far, or the :class:`Usage` of the last block.
        alive: A list of :class:`AliveSite`, the largest first: the memory that the block has allocated and not freed.

    Raises:
        RuntimeError: ``device`` does not exist, or the block was entered again before its end.
        TypeError: ``thread`` or ``sites`` is not True or False, or ``report`` cannot be called.
        ValueError: ``device`` is not a CUDA device, or both ``thread`` and ``sites`` are true: sites are those of all
            threads.

    Example:
        >>> with tcuda.memory.track() as usage:
        ...     x = xp.zeros(1000, dtype="float32")
        ...     y = x + 1
        ...     del x
        >>> usage.peak, usage.current  # bytes
        (8192, 4096)
        >>> with tcuda.memory.track() as usage:
        ...     staging = tcuda.memory.empty_pinned(1000, "uint8")
        ...     del staging
        >>> usage.host_peak, usage.host_current  # bytes
        (1024, 0)
        >>> @tcuda.memory.track(report=print)
        ... def step(n):
        ...     return xp.ones(n, dtype="float32").sum().item()
        >>> total = step(1000)
        Usage(current=0, peak=...
        >>> cache = []
        >>> with tcuda.memory.track(sites=True) as measured:
        ...     for _ in range(3):
        ...         cache.append(xp.zeros(1000, dtype="float32"))
        >>> print(measured.alive[0])  # a leak, and its line
        12288 bytes in 3 allocations at ...:3 in <module>
    """

    _active: tuple[Ledger, int, Tracker, Tracker] | None = None
    _entering = False

    def __init__(
        self,
        device: DeviceArgument = None,
        *,
        thread: bool = False,
        report: Callable[[Usage], object] | None = None,
        sites: bool = False,
    ) -> None:
        self._device = device
        self._thread = flag(thread, "thread")
        self._sites = flag(sites, "sites")
        if thread and sites:
            raise ValueError("track() takes thread or sites, and not both: the sites are those of all threads.")
        self._watch: Watch | None = None
        self._alive: list[AliveSite] = []
        self._report = None if report is None else callable_(report, "report")
        self._last = Usage()

    __reduce__ = refusing(
        "copy or pickle",
        "a measurement counts for one block at a time. Make another tcuda.memory.track() with the same arguments, or "
        "keep the usage of this measurement.",
    )

    @property
    def usage(self) -> Usage:
        """The :class:`Usage` so far, or the :class:`Usage` of the last block."""
        if self._active is None:
            return self._last
        _, device, tracker, of_host = self._active
        in_use = ledger()  # raises in a forked child
        return Usage(*in_use.read(device, tracker), *in_use.read_host(of_host))

    @property
    def alive(self) -> list[AliveSite]:
        """The memory that the block has allocated and not freed, by the stack of the allocation, largest first.

        Raises:
            RuntimeError: The measurement was made without ``sites=True``.
        """
        if not self._sites:
            raise RuntimeError("This measurement has no sites: make it with tcuda.memory.track(sites=True).")
        return self._alive if self._active is None or self._watch is None else self._alive_now(self._active[1])

    def _alive_now(self, device: int) -> list[AliveSite]:
        assert self._watch is not None
        return [site for site in self._watch.alive() if site.device in (device, HOST)]

    def __repr__(self) -> str:
        active = self._active is not None and is_initialized()  # tcuda is not initialised in a forked child
        return f"<tcuda.memory.track: {_text(self.usage if active else self._last)}>"

    @property
    def current(self) -> int:
        """The allocated bytes minus the freed bytes."""
        return self.usage.current

    @property
    def peak(self) -> int:
        """The highest value of :attr:`current`, in bytes."""
        return self.usage.peak

    @property
    def allocated(self) -> int:
        """The sum of all allocations, in bytes."""
        return self.usage.allocated

    @property
    def freed(self) -> int:
        """The sum of all frees, in bytes."""
        return self.usage.freed

    @property
    def allocations(self) -> int:
        """The number of allocations."""
        return self.usage.allocations

    @property
    def host_current(self) -> int:
        """The allocated bytes of page-locked memory minus the freed bytes."""
        return self.usage.host_current

    @property
    def host_peak(self) -> int:
        """The highest value of :attr:`host_current`, in bytes."""
        return self.usage.host_peak

    @property
    def host_allocated(self) -> int:
        """The sum of all allocations of page-locked memory, in bytes."""
        return self.usage.host_allocated

    @property
    def host_freed(self) -> int:
        """The sum of all frees of page-locked memory, in bytes."""
        return self.usage.host_freed

    @property
    def host_allocations(self) -> int:
        """The number of allocations of page-locked memory."""
        return self.usage.host_allocations

    def _enter(self) -> track:
        if self._active is not None:
            raise RuntimeError("This measurement is already active; make a tcuda.memory.track() for every block.")
        in_use, device = ledger(), resolve(self._device, OF_MEMORY)
        tracker, of_host = Tracker(self._thread), Tracker(self._thread)
        self._entering = True
        self._active = in_use, device, tracker, of_host
        in_use.attach(device, tracker)
        in_use.attach_to_host(of_host)
        if self._sites:
            self._watch = Watch()
        self._entering = False
        return self

    def _undo_enter(self) -> None:
        if self._entering:
            self._detach()
            self._entering = False

    def _exit(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()
        if self._report is not None:
            self._report(self._last)

    def _end(self) -> None:
        if self._active is not None:
            self._last = self.usage
            if self._watch is not None:
                self._alive = self._alive_now(self._active[1])
            self._detach()

    __enter__ = cleanup_on_error(_enter, _undo_enter)
    __exit__ = cleanup_on_error(_exit, _end)

    def __call__(self, function: F) -> F:
        """Return a function that calls ``function`` and measures every call.

        Calls may nest, and may run in several threads.

        Raises:
            TypeError: ``function`` cannot be called.
        """
        callable_(function, "the decorated function")

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            def finish(usage: Usage) -> None:
                self._last, self._alive = usage, call._alive
                if self._report is not None:
                    self._report(usage)

            with track(self._device, thread=self._thread, report=finish, sites=self._sites) as call:
                return function(*args, **kwargs)

        return measured  # type: ignore[return-value]

    # The ledger knows the tracker by its address, so a tracker must be detached before it is deleted. A block may never
    # be left, such as the block of an ExitStack that is never closed. `_initialized` is a default argument of
    # `_detach`, because the names of this module may be gone when the interpreter exits.
    @finalizing
    def __del__(self) -> None:
        self._detach()

    def _detach(self, _initialized: Callable[[], bool] = is_initialized) -> None:
        active = self._active
        if active is not None and _initialized():  # tcuda is not initialised in a forked child
            in_use, device, tracker, of_host = active
            in_use.detach(device, tracker)
            in_use.detach_from_host(of_host)
            if self._watch is not None:
                self._watch.end()
        self._active = self._watch = None
