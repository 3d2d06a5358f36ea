"""A race inside a kernel in plain values: two threads of one launch that use the same memory, and no order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda.sanitizer import _words
from tcuda.sanitizer._race import Finding, Race, RaceAccess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcuda.sanitizer._stacks import Frame

KIND, BENIGN = "race in a kernel", "benign race in a kernel"

_VERBS = {
    "read": "reads",
    "write": "writes",
    "atomic": "updates by an atomic function",
    "volatile read": "reads through volatile",
    "volatile write": "writes through volatile",
}


class SourceLine(NamedTuple):
    """A line of the source of a kernel.

    Attributes:
        number: The number of the line.
        text: The text.
    """

    number: int
    text: str


@dataclass(frozen=True, kw_only=True)
class KernelRaceAccess(RaceAccess):
    """One of the two accesses of a race inside a kernel.

    The attributes of :class:`RaceAccess` hold for the launch: ``operation`` is the name of the kernel, ``argument`` the
    name of the parameter or of the variable, and ``stack`` has the frames of the launch. The kind can also be
    ``"atomic"``, ``"volatile read"`` and ``"volatile write"``.

    Attributes:
        thread: The indices of the thread in its block.
        block: The indices of the block.
        line: The function, the file and the line of the source of the kernel; None if the line is not known.
        excerpt: The lines of the source around that line, as far as they are known.

    Example:
        >>> import tcuda.emulation
        >>> tcuda.emulation.enable(checks="memory,races")
        >>> xp = tcuda.emulation.xp
        >>> code = 'extern "C" __global__ void last(int* out) { out[0] = threadIdx.x; }'
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     xp.RawKernel(code, "last")((1,), (2,), (xp.zeros(1, "i"),))
        >>> access = report.races[0].current
        >>> access.thread, access.block, access.line.line
        ((1, 0, 0), (0, 0, 0), 1)
    """

    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    line: Frame | None
    excerpt: tuple[SourceLine, ...] = field(default=(), repr=False)

    @property
    def place(self) -> Frame | None:
        """The line of the kernel, or else the line of the launch."""
        return self.line or super().place

    @property
    def source(self) -> str:
        """The text of the line; an empty text if the text is not known."""
        number = None if self.line is None else self.line.line
        return next((line.text.strip() for line in self.excerpt if line.number == number), "")

    @property
    def words(self) -> str:
        """The access in words: the thread, the block, and what the thread does."""
        return f"thread {self.thread} of block {self.block} {_VERBS[self.kind]}"

    @property
    def text(self) -> str:
        """The access in words, with its line."""
        return _side_text(_words.side_of(self.as_dict()))

    def as_dict(self) -> dict[str, Any]:
        """Return the access as plain data.

        Example:
            >>> data = access.as_dict()  # the access above
            >>> data["thread"], data["line"]
            ([1, 0, 0], {'file': 'kernel.cu', 'line': 1})
        """
        return {
            **super().as_dict(),
            "thread": list(self.thread),
            "block": list(self.block),
            "words": self.words,
            "line": None if self.line is None else {"file": self.line.filename, "line": self.line.line},
            "source": self.source,
            "excerpt": [list(line) for line in self.excerpt],
        }


@dataclass(frozen=True)
class KernelMemory:
    """The memory of a race inside a kernel.

    Attributes:
        space: ``"global"`` or ``"shared"``.
        name: The name of the parameter that has the array, or of the variable; an empty text if no name is known.
        index: The indices of the element; None if the element is not known.
        dtype: The type of the elements; an empty text if the type is not known.
        shape: The shape of the array; None if the shape is not known.

    Example:
        >>> import tcuda.emulation
        >>> tcuda.emulation.enable(checks="memory,races")
        >>> xp = tcuda.emulation.xp
        >>> code = 'extern "C" __global__ void last(int* out) { out[0] = threadIdx.x; }'
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     xp.RawKernel(code, "last")((1,), (2,), (xp.zeros(1, "i"),))
        >>> report.races[0].memory
        KernelMemory(space='global', name='out', index=(0,), dtype='int32', shape=(1,))
    """

    space: str
    name: str
    index: tuple[int, ...] | None
    dtype: str
    shape: tuple[int, ...] | None

    @property
    def expression(self) -> str:
        """The element as a kernel may write it, such as ``"out[0]"`` or ``"tile[3][4]"``."""
        name = self.name or "x"
        if self.index is None:
            return name
        if self.space == "shared" or self.shape is None:
            return name + "".join(f"[{index}]" for index in self.index)
        flat = 0
        for index, length in zip(self.index, self.shape, strict=True):
            flat = flat * length + index
        return f"{name}[{flat}]"

    @property
    def text(self) -> str:
        """The element in words."""
        whole = f"`{self.name}`" if self.name else "memory without a known name"
        if self.space == "shared":
            whole = f"{whole} in shared memory" if self.name else "shared memory"
        parts = [self.dtype] if self.dtype else []
        if self.shape:
            parts.append(f"shape {self.shape}")
        kind = f" ({', '.join(parts)})" if parts else ""
        if not self.index:
            return f"{whole}{kind}"
        index = str(self.index[0] if len(self.index) == 1 else list(self.index))
        return f"element {index} of {whole}{kind}"


@dataclass(frozen=True, kw_only=True)
class KernelFinding(Finding):
    """What races inside a kernel and reads of unwritten memory in a kernel have in common."""

    current: KernelRaceAccess
    kernel: str
    memory: KernelMemory

    @property
    def accesses(self) -> tuple[KernelRaceAccess, ...]:
        """The accesses of the finding, in their order."""
        return (self.current,)

    @property
    def heading(self) -> str:
        """The kind of the finding, with the kernel."""
        return _capital(self.as_dict()["words"]["title"])

    def _lines(self, words: Mapping[str, Any], *advice: str) -> str:
        """Return the words below the heading, with ``advice`` before the line of the launch."""
        places = {place["what"]: _words.place_text(place, "") for place in words["places"]}
        allocated = f", allocated at {places['allocated at']}" if "allocated at" in places else ""
        sides = [f"    {_side_text(side)}" for side in words["sides"]]
        launched = [f"  Launched at {places['launched at']}"] if "launched at" in places else []
        return "\n".join([f"  Memory: {self.memory.text}{allocated}", *sides, *advice, *launched])

    @property
    def _first_line(self) -> str:
        return f"{self.heading}: {self.as_dict()['words']['sentence']}"

    def _data(self) -> dict[str, Any]:
        memory = self.memory
        return {
            **super()._data(),
            "kernel": self.kernel,
            "memory": {
                "space": memory.space,
                "name": memory.name,
                "index": None if memory.index is None else list(memory.index),
                "dtype": memory.dtype,
                "shape": None if memory.shape is None else list(memory.shape),
                "text": memory.text,
            },
        }


@dataclass(frozen=True, kw_only=True)
class KernelRace(KernelFinding, Race):
    """A race inside a kernel: two threads of one launch use the same memory, one of them writes, without order.

    The attributes of :class:`Race` are there too. ``kind`` is ``"race in a kernel"``, or ``"benign race in a kernel"``
    if both threads write the same value. ``previous`` and ``current`` are in the order in which the emulated threads
    ran. On a GPU, they can run in either order, or at the same time.

    Attributes:
        kernel: The name of the kernel.
        memory: The memory that both threads use.
        order: The order of the blocks and threads in which the emulated kernel ran, in words such as ``"in reverse
            order"``; an empty text for the usual order.

    Example:
        >>> import tcuda.emulation
        >>> tcuda.emulation.enable(checks="memory,races")
        >>> xp = tcuda.emulation.xp
        >>> code = 'extern "C" __global__ void total(int* out) { out[0] += threadIdx.x; }'
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     xp.RawKernel(code, "total")((1,), (2,), (xp.zeros(1, "i"),))
        >>> race = report.races[0]
        >>> race.kernel, race.kind, race.memory.expression
        ('total', 'race in a kernel', 'out[0]')
        >>> print(race.missing.call)
        atomicAdd(&out[0], ...)
    """

    previous: KernelRaceAccess
    order: str = ""

    @property
    def accesses(self) -> tuple[KernelRaceAccess, ...]:
        """The previous and the current access."""
        return self.previous, self.current

    @property
    def benign(self) -> bool:
        """Whether both threads write the same value, so that no number depends on their order."""
        return self.kind == BENIGN

    @property
    def details(self) -> str:
        """The race in words, without the heading."""
        words = self.as_dict()["words"]
        return self._lines(words, f"  Missing: {words['missing']['sentence']}")

    @property
    def _torchs_text(self) -> str:
        return str(self)  # torch has no text of such a race

    def __str__(self) -> str:
        return f"{self._first_line}\n{self.details}"

    def _data(self) -> dict[str, Any]:
        return {**super()._data(), "benign": self.benign, "order": self.order}


def _side_text(side: Mapping[str, Any]) -> str:
    source = f"\n        {side['source']}" if side["source"] else ""
    return f"{_words.place_text(side['place'], '')}: {side['text']}{source}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
