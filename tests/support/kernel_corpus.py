"""The kernels of two corpora. Each right kernel has one other line, with which the kernel is wrong.

The wrong kernels of :data:`RACES` have races. Those of :data:`ERRORS` use wrong or unwritten memory, or barriers in
a wrong way. A module of a corpus is a topic. A function of the module is a program: :func:`program` gives it the source
of a kernel, and the function returns the launch with the numbers that the right kernel gives. ``README.md`` of each
folder describes the comments of a source.
"""

from __future__ import annotations

import functools
import re
import runpy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from support.folders import TESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

RACES = TESTS / "emulation" / "kernel_races" / "corpus"
ERRORS = TESTS / "emulation" / "kernel_errors" / "corpus"

WORDS = ("barrier", "warp barrier", "atomic", "fence", "scope")
"""What can be missing in a wrong kernel."""

_KERNEL = "__global__ void KERNEL("
_HEADERS = {
    "cooperative_groups;": "cooperative_groups.h",
    "cg::reduce": "cooperative_groups/reduce.h",
    "__pipeline_": "cuda_pipeline_primitives.h",
    "cg::memcpy_async": "cooperative_groups/memcpy_async.h",
    "cuda::": "cuda/atomic",
    "cuda::barrier": "cuda/barrier",
    "cuda::make_pipeline": "cuda/pipeline",
}
"""The headers by a name for which a source needs the header."""
_NAMES_OF_COMPILERS = [
    "#ifndef __TCUDA_EMULATED__",  # NVRTC lacks names that nvcc knows.
    "#define __builtin_memcpy memcpy",
    "#define __builtin_memset memset",
    "#endif",
]
_CHANGE = re.compile(
    r"(?P<marks>.*?)\b(?:missing (?P<missing>[a-z ]+?)|instead)(?: \((?P<label>\w+)\))?: ?(?P<code>.*)"
)
_MARK = re.compile(r"([AB]|at|same)(?:\((\w+)\))?")


class Empty:
    """An array of which only the first elements have been written, or none.

    Attributes:
        size: The number of elements.
        known: The first elements.
    """

    def __init__(self, size: int, known: Any = (), dtype: Any = np.int32) -> None:
        self.size = size
        self.known = np.asarray(known, dtype)

    def array(self, xp: Any) -> Any:
        """Return the array of ``xp``."""
        array = xp.empty(self.size, self.known.dtype)
        if self.known.size:
            array[: self.known.size] = xp.asarray(self.known)
        return array


class Out:
    """An array that a kernel writes.

    Attributes:
        expected: The elements after the right kernel; of ``int32`` where NumPy would choose ``int64``.
        initial: The elements before the launch, or an instance of :class:`Empty`; zeros if the program names none.
        of: Is applied to the elements before they are compared, such as ``numpy.sort`` where the order is free.
    """

    def __init__(
        self, expected: Any, initial: Any = None, of: Callable[[np.ndarray[Any, Any]], Any] = np.asarray
    ) -> None:
        self.expected = _narrow(np.asarray(expected))
        self.initial: np.ndarray[Any, Any] | Empty
        if isinstance(initial, Empty):
            self.initial = initial
        else:
            self.initial = np.zeros_like(self.expected) if initial is None else _narrow(np.asarray(initial))
        self.of = of


def _narrow(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.int32) if array.dtype == np.int64 else array


class Launch:
    """A launch, whose arguments are arrays of NumPy, instances of :class:`Out` and :class:`Empty`, and numbers.

    A plain array may change. A Python ``int`` is passed as ``int``, and a Python ``float`` as ``float`` of the kernel.
    """

    def __init__(
        self, grid: int | tuple[int, ...], block: int | tuple[int, ...], *arguments: Any, shared: int = 0
    ) -> None:
        self.grid = (grid,) if isinstance(grid, int) else grid
        self.block = (block,) if isinstance(block, int) else block
        self.arguments = arguments
        self.shared = shared


class Wrong(NamedTuple):
    """A wrong kernel.

    Attributes:
        name: The name of the kernel.
        program: The program whose right kernel differs in one line.
        missing: The word of :data:`WORDS`; None where the kernel accesses wrong places, and no word says the cure.
        lines: The lines of the two accesses that race, or the line of the error, from 0 in the source of the program.
        same_value: Whether both accesses always write the same value.
        code: The lines of the wrong kernel.
    """

    name: str
    program: Program
    missing: str | None
    lines: frozenset[int]
    same_value: bool
    code: tuple[str, ...]

    @property
    def launch(self) -> Launch:
        return self.program.launch


class Program:
    """A program of the corpus.

    Attributes:
        name: The name of the function, and of the right kernel.
        topic: The name of the module.
        code: The lines of the right kernel.
        wrongs: The wrong kernels.
    """

    def __init__(self, name: str, topic: str, source: str, launch: Callable[[], Launch]) -> None:
        self.name, self.topic, self._launch = name, topic, launch
        code: list[str] = []
        changes: dict[str | None, tuple[int, re.Match[str]]] = {}
        places: dict[tuple[str, str | None], int] = {}
        for number, line in enumerate(source.splitlines()):
            before, _, comment = line.partition("//")
            code.append(before.rstrip())
            change = _CHANGE.fullmatch(comment.strip())
            if change:
                changed = max(at for at, text in enumerate(code) if text)  # a comment may stand below its line
                assert change["label"] not in changes, f"{name} changes two lines for {change['label']}"
                changes[change["label"]] = changed, change
            words = (change["marks"] if change else comment).split()
            marks = [_MARK.fullmatch(word) for word in words]
            for mark in marks if change or None not in marks else ():  # else a comment for the reader
                assert mark is not None, f"{name} has an unknown mark: {words}"
                assert places.setdefault((mark[1], mark[2]), number) == number, f"{name} has {mark[0]} twice"
        self.code = tuple(code)
        self.wrongs = [self._wrong(label, *change, places) for label, change in changes.items()]

    def _wrong(
        self, label: str | None, number: int, change: re.Match[str], places: dict[tuple[str, str | None], int]
    ) -> Wrong:
        code = list(self.code)
        indent = code[number][: -len(code[number].lstrip())]
        code[number] = indent + change["code"]
        assert change["missing"] in (None, *WORDS), change["missing"]
        marks = ["at"] if ("at", label) in places or ("at", None) in places else ["A", "B"]
        lines = frozenset(places[mark, label if (mark, label) in places else None] for mark in marks)
        name = f"{self.name}__{label or 'wrong'}"
        return Wrong(name, self, change["missing"], lines, ("same", label) in places, tuple(code))

    @functools.cached_property
    def launch(self) -> Launch:
        return self._launch()


class Source:
    """The source of several kernels.

    Attributes:
        kernels: The kernels, by their names.
        text: The source.
    """

    def __init__(self, kernels: Iterable[Program | Wrong]) -> None:
        self.kernels = {one.name: one for one in kernels}
        code = "\n".join(line for one in self.kernels.values() for line in one.code)
        lines = [f"#include <{header}>" for name, header in _HEADERS.items() if name in code]
        lines += _NAMES_OF_COMPILERS if "__builtin_mem" in code else []
        self._first_lines: dict[str, int] = {}
        for name, one in self.kernels.items():
            self._first_lines[name] = len(lines) + 1
            lines += [line.replace(_KERNEL, f'extern "C" {_KERNEL}').replace("KERNEL", name) for line in one.code]
        self.text = "\n".join([*lines, ""])

    def marked(self, wrong: Wrong) -> frozenset[int]:
        """Return the lines of the two accesses or of the error of a wrong kernel, from 1."""
        return frozenset(self._first_lines[wrong.name] + line for line in wrong.lines)


def numbers(count: int, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    """Return numbers from 0 to 100 in no order, whose sums are exact."""
    return ((np.arange(count) * 7919) % 101).astype(dtype)


def program(source: str) -> Callable[[Callable[[], Launch]], Program]:
    """Make a program of a source and of a function that returns the launch."""

    def made(launch: Callable[[], Launch]) -> Program:
        return Program(launch.__name__, launch.__globals__["__name__"], source.strip("\n"), launch)

    return made


@functools.cache
def topics(*folders: Path) -> dict[str, list[Program]]:
    """Return the programs of each module of the folders: of all corpora if no folder is named."""
    found = {}
    for path in sorted(path for folder in folders or (RACES, ERRORS) for path in folder.glob("*.py")):
        names = runpy.run_path(str(path), run_name=path.stem)
        assert path.stem not in found, f"two modules are named {path.stem}"
        found[path.stem] = [value for value in names.values() if isinstance(value, Program)]
    return found


@functools.cache
def right_source(topic: str) -> Source:
    """Return the source of the right kernels of a topic."""
    return Source(topics()[topic])


@functools.cache
def wrong_source(topic: str) -> Source:
    """Return the source of the wrong kernels of a topic."""
    return Source(wrong for one in topics()[topic] for wrong in one.wrongs)


def compiled(xp: Any, source: Source, *options: str) -> Any:
    """Return the module of a source."""
    return xp.RawModule(code=source.text, options=options, enable_cooperative_groups="this_grid" in source.text)


def run(xp: Any, module: Any, name: str, launch: Launch) -> list[tuple[Out, np.ndarray[Any, Any]]]:
    """Launch a kernel, and return each :class:`Out` with what the kernel has written."""
    arguments: list[Any] = []
    outs = []
    for argument in launch.arguments:
        if isinstance(argument, (Empty, Out, np.ndarray)):
            initial = argument.initial if isinstance(argument, Out) else argument
            array = initial.array(xp) if isinstance(initial, Empty) else xp.array(initial, order="C")
            if isinstance(argument, Out):
                outs.append((argument, array))
            arguments.append(array)
        else:
            arguments.append({int: np.int32, float: np.float32}.get(type(argument), lambda same: same)(argument))
    module.get_function(name)(launch.grid, launch.block, tuple(arguments), shared_mem=launch.shared)
    return [(out, array.get()) for out, array in outs]
