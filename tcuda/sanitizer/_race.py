"""A finding in plain values: an access to memory that is wrong, or a race of two accesses that no order relates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcuda.sanitizer import _stacks, _words
from tcuda.sanitizer._access import Access, AccessType, torchs_text
from tcuda.sanitizer._elements import Region, elements
from tcuda.sanitizer._html import framed

if TYPE_CHECKING:
    import traceback

    from tcuda.sanitizer._elements import Elements
    from tcuda.sanitizer._missing import Missing
    from tcuda.sanitizer._stacks import Frame
    from tcuda.sanitizer._stream_names import StreamName


@dataclass(frozen=True)
class RaceAccess:
    """One of the two accesses of a race.

    Attributes:
        operation: The name of the operation, such as the name of a kernel.
        argument: The name of the argument; an empty text if the argument has no name.
        kind: ``"read"``, ``"write"`` or ``"read and write"``.
        device: The index of the device; -1 for the host.
        stream: The handle of the stream; 0 for the host.
        stream_name: The name that the program has for the stream, such as ``"side"``; ``"the stream 0x..."`` without a
            name, ``"the host"`` for the host.
        host: Whether the host makes the access.
        confidence: ``"exact"``, or ``"possible"`` if it is not known whether the operation really uses the memory.
        number: The number of the operation, counted from the start of the detector.
        shape: The shape of the view.
        itemsize: The size of an element of the view, in bytes.
        elements: The first and the last element that both accesses touch, counted in C order of the view; None if the
            elements are not known.
        stack: The frames of the program, innermost first; in a graph, those of the capture.
        launch_stack: The frames of the launch of a graph; None for an operation that is not in a graph.
        region: The address, the size of an element, the shape and the strides of the view, in bytes.

    Example:
        >>> side = tcuda.Stream()
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     x = xp.ones(1000)
        ...     with tcuda.stream(side):
        ...         y = x * 2  # side does not wait for the default stream
        >>> access = report.races[0].current
        >>> access.operation, access.kind, access.elements
        ('multiply', 'read', Elements(first=0, last=999))
        >>> access.stream == side.cuda_stream
        True
    """

    operation: str
    argument: str
    kind: str
    device: int
    stream: int
    stream_name: str
    host: bool
    confidence: str
    number: int
    shape: tuple[int, ...]
    itemsize: int
    elements: Elements | None
    stack: tuple[Frame, ...]
    launch_stack: tuple[Frame, ...] | None
    region: Region = field(repr=False)

    @property
    def place(self) -> Frame | None:
        """The innermost frame of the program: of the launch if the operation is in a graph, else of the operation."""
        return next(iter(self.launch_stack or self.stack), None)

    @property
    def where(self) -> str:
        """The elements in words, with the argument."""
        return _words.memory_of(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the access as plain data.

        Example:
            >>> data = access.as_dict()  # the access above
            >>> data["operation"], data["kind"], data["host"]
            ('multiply', 'read', False)
        """
        return {
            "operation": self.operation,
            "argument": self.argument,
            "kind": self.kind,
            "device": self.device,
            "stream": self.stream,
            "stream_name": self.stream_name,
            "host": self.host,
            "confidence": self.confidence,
            "number": self.number,
            "address": self.region.address,
            "shape": list(self.shape),
            "strides": list(self.region.strides),
            "itemsize": self.itemsize,
            "element_range": _listed(self.elements),
            "stack": _listed_frames(self.stack),
            "launch_stack": None if self.launch_stack is None else _listed_frames(self.launch_stack),
        }


@dataclass(frozen=True)
class RaceAllocation:
    """The allocation of memory that two accesses share.

    Attributes:
        address: The address of the memory.
        size: The size in bytes.
        device: The index of the device.
        stream: The handle of the stream that was current.
        stack: The frames of the program, innermost first; empty if the memory is older than the detector.
        freed_stack: The frames of the program that freed the memory; None if the memory is in use.

    Example:
        >>> side = tcuda.Stream()
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     x = xp.ones(1000)
        ...     with tcuda.stream(side):
        ...         y = x * 2  # side does not wait for the default stream
        >>> allocation = report.races[0].allocation
        >>> allocation.address == x.data.ptr, allocation.freed_stack
        (True, None)
    """

    address: int
    size: int
    device: int
    stream: int
    stack: tuple[Frame, ...]
    freed_stack: tuple[Frame, ...] | None

    def as_dict(self) -> dict[str, Any]:
        """Return the allocation as plain data.

        Example:
            >>> data = allocation.as_dict()  # the allocation above
            >>> data["address"] == x.data.ptr, data["size"]
            (True, 8000)
        """
        return {
            "address": self.address,
            "size": self.size,
            "device": self.device,
            "stream": self.stream,
            "stack": _listed_frames(self.stack),
            "freed_stack": None if self.freed_stack is None else _listed_frames(self.freed_stack),
        }


@dataclass(frozen=True)
class Finding:
    """What a check has found: a :class:`Race`, or an :class:`UnwrittenRead`.

    Attributes:
        kind: The kind of the finding in words.
        current: The access at which the mistake was found.
        overlap: The address of the first byte of which the finding tells, and the number of bytes up to the last one.
        allocation: The allocation of the memory; None if the memory is older than the detector.

    Example:
        >>> side = tcuda.Stream()
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     x = xp.ones(1000)
        ...     with tcuda.stream(side):
        ...         y = x * 2  # side does not wait for the default stream
        >>> for finding in report:
        ...     print(isinstance(finding, tcuda.sanitizer.Finding), finding.kind)
        True read after write
    """

    kind: str
    current: RaceAccess
    overlap: tuple[int, int]
    allocation: RaceAllocation | None

    @property
    def accesses(self) -> tuple[RaceAccess, ...]:
        """The accesses of the finding, in their order."""
        return (self.current,)

    @property
    def confidence(self) -> str:
        """``"exact"``, or ``"possible"`` if it is not known whether the finding is a mistake."""
        return "exact"

    @property
    def data_ptr(self) -> int:
        """The address of the array of the current access."""
        return self.current.region.address

    def _repr_html_(self) -> str:
        """Return the page of the finding for a notebook."""
        found = [{**self.as_dict(), "count": 1}]
        place = "unwritten_reads" if not isinstance(self, Race) else "races" if self.doubt is None else "possible"
        report = {
            **dict.fromkeys(("races", "unwritten_reads", "possible"), ()),
            place: found,
            "operations": self.current.number,
            "suppressed": 0,
            "syncs": [],
        }
        return framed(report, f"{self.kind} in {self.current.operation}")

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain data, which :mod:`json` can write.

        ``"words"`` has the words that all reports print.

        Example:
            >>> data = finding.as_dict()  # the finding above
            >>> data["kind"], data["current"]["operation"]
            ('read after write', 'multiply')
            >>> data["words"]["title"], data["words"]["shared"]
            ('read after write', 'both touch elements 0 to 999')
        """
        data = self._data()
        return {**data, "words": _words.words_of(data, says_more=self._advice_says_more)}

    @property
    def _advice_says_more(self) -> bool:
        """Whether the advice says more than the missing call and its line."""
        return True

    def _data(self) -> dict[str, Any]:
        """Return the plain data without the words."""
        return {
            "kind": self.kind,
            "confidence": self.confidence,
            "element_range": _listed(self.current.elements),
            "overlap": list(self.overlap),
            "allocation": None if self.allocation is None else self.allocation.as_dict(),
            "current": self.current.as_dict(),
        }


@dataclass(frozen=True)
class Race(Finding):
    """Two accesses to the same memory that no order relates, at least one of them a write.

    Attributes:
        kind: ``"read after write"``, ``"write after read"`` or ``"write after write"``.
        use_after_free: Whether the memory was freed after the previous access, and handed out again.
        current: The access at which the race was found.
        previous: The earlier access.
        overlap: The address of the first byte that both accesses touch, and the number of bytes up to the last one.
        allocation: The allocation of the memory; None if the memory is older than the detector.
        previous_allocation: The allocation that the previous access used, if the memory was freed since.
        missing: The order that is missing.
        doubt: Why the race is only possible, in a sentence for each access in doubt; None for a race that is exact.
        neighbours: The operations and waits before the race, oldest first, as the detector keeps them. On CUDA devices,
            a launch before the first allocation has no file and no line.
            ``own`` says that tcuda made an event for itself, such as a copy between devices.

    Example:
        >>> side = tcuda.Stream()
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     x = xp.ones(1000)
        ...     with tcuda.stream(side):
        ...         y = x * 2  # side does not wait for the default stream
        >>> race = report.races[0]
        >>> race.kind, race.confidence
        ('read after write', 'exact')
        >>> race.overlap == (x.data.ptr, x.nbytes)
        True
    """

    use_after_free: bool
    previous: RaceAccess
    previous_allocation: RaceAllocation | None
    missing: Missing
    doubt: str | None = None
    neighbours: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @property
    def accesses(self) -> tuple[RaceAccess, ...]:
        """The previous and the current access."""
        return self.previous, self.current

    @property
    def confidence(self) -> str:
        """``"exact"``, or ``"possible"`` if it is not known whether both operations use the same bytes."""
        return "exact" if self.doubt is None else "possible"

    @property
    def details(self) -> str:
        """The part of the text that torch does not have."""
        current, previous = self.current, self.previous
        _, size = self.overlap
        words = self.as_dict()["words"]
        first, second = words["sides"]
        kind = f"{words['title']}, {self.kind}" if self.use_after_free else words["title"]
        doubt = "" if words["doubt"] is None else f" {words['doubt']}"
        shared = (
            f"{size} {'byte' if size == 1 else 'bytes'}. The current access: {second['memory']}. "
            f"The previous access: {first['memory']}."
        )
        if current.host and current.operation in _words.TOUCHES and current.elements is not None:
            shared = f"{words['shared']}."
        lines = [
            f"Kind: {kind}. Confidence: {self.confidence}.{doubt}",
            f"Shared memory: {shared}",
            f"Streams: {current.stream_name} (current), {previous.stream_name} (previous).",
        ]
        for name, access in (("current", current), ("previous", previous)):
            if access.launch_stack is not None:
                lines += [f"The graph of the {name} access was launched with stack trace:"]
                lines += [_stacks.text(access.launch_stack).rstrip()]
        if self.previous_allocation is not None:
            lines += ["The memory of the previous access was allocated with stack trace:"]
            lines += [_stacks.text(self.previous_allocation.stack).rstrip() or "  (not known)"]
            if self.previous_allocation.freed_stack is not None:
                lines += ["The memory of the previous access was freed with stack trace:"]
                lines += [_stacks.text(self.previous_allocation.freed_stack).rstrip() or "  (not known)"]
        lines += [f"Missing order: {words['missing']['sentence']}"]
        return "\n".join(lines)

    @property
    def allocation_stack_trace(self) -> traceback.StackSummary | None:
        """The stack of the allocation, as torch has it; None if the memory is older than the detector."""
        stack = self.allocation.stack if self.allocation is not None else ()
        return _stacks.summary(stack) if stack else None

    @property
    def torchs_accesses(self) -> tuple[Access, Access]:
        """Both accesses as torch describes them, the current access first."""
        return _torchs(self.current), _torchs(self.previous)

    @property
    def _torchs_text(self) -> str:
        """The text of the race as torch has it, and then :attr:`details`."""
        torchs = torchs_text(self.data_ptr, self.allocation_stack_trace, *self.torchs_accesses)
        return f"{torchs.rstrip()}\n\n{self.details}"

    def __str__(self) -> str:
        return "\n".join(_words.lines_of(self.as_dict()))

    @property
    def _advice_says_more(self) -> bool:
        return self.missing.says_more

    def _data(self) -> dict[str, Any]:
        before = self.missing.before
        return {
            **super()._data(),
            "use_after_free": self.use_after_free,
            "doubt": self.doubt,
            "missing": self.missing.call,
            "advice": self.missing.sentence,
            "instead": self.missing.instead,
            "before": None if before is None else {"file": before.filename, "line": before.line},
            "previous_allocation": None if self.previous_allocation is None else self.previous_allocation.as_dict(),
            "previous": self.previous.as_dict(),
            "neighbours": list(self.neighbours),
        }


def access_of(access: Any, overlap: tuple[int, int], name: StreamName | None, other: Any = None) -> RaceAccess:
    """Return an access of the core in plain values.

    Args:
        access: The access.
        overlap: The bytes that both accesses touch.
        name: The name of the stream; None for the host.
        other: The other access, whose bytes the host has begun to use, if ``access`` is one of the host.
    """
    region = _region(access)
    if other is not None:  # only the first byte that the host touches is known
        used = _region(other)
        region = Region(used.address, 1, (used.itemsize * used.size,), (1,))
    launch = access.launch_stack
    return RaceAccess(
        operation=access.operation,
        argument=access.label,
        kind=access.kind,
        device=access.device,
        stream=access.stream,
        stream_name="the host" if name is None else name.text,
        host=access.host,
        confidence=access.confidence,
        number=access.number,
        shape=region.shape,
        itemsize=region.itemsize,
        elements=elements(region, overlap),
        stack=_stacks.users(_stacks.frames(access.stack)),
        launch_stack=None if launch is None else _stacks.users(_stacks.frames(launch)),
        region=region,
    )


def _region(access: Any) -> Region:
    address, itemsize, shape, strides = access.region
    return Region(address, itemsize, tuple(shape), tuple(strides))


def allocation_of(allocation: Any) -> RaceAllocation | None:
    """Return an allocation of the core in plain values."""
    if allocation is None:
        return None
    freed = getattr(allocation, "freed_stack", None)
    return RaceAllocation(
        address=allocation.address,
        size=allocation.size,
        device=allocation.device,
        stream=allocation.stream,
        stack=_stacks.users(_stacks.frames(allocation.stack)),
        freed_stack=None if freed is None else _stacks.users(_stacks.frames(freed)),
    )


def _torchs(access: RaceAccess) -> Access:
    """Return the access as torch describes it."""
    writes = not access.kind.endswith("read")
    return Access(
        type=AccessType.WRITE if writes else AccessType.READ,
        seq_num=access.number,
        stream=None if access.host else access.stream,
        operator=access.operation,
        aliases=[access.argument] if access.argument else [],
        is_output=writes and access.argument in ("", "out"),
        stack_trace=_stacks.summary(access.stack),
    )


def _listed_frames(stack: tuple[Frame, ...]) -> list[dict[str, Any]]:
    return [frame.as_dict() for frame in stack]


def _listed(found: Elements | None) -> list[int] | None:
    return None if found is None else list(found)
