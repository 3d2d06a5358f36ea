"""Suppressions: races that a program makes on purpose, and that no check reports."""

from __future__ import annotations

import fnmatch
import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tcuda._base.arguments import a_kind, integer
from tcuda._base.strides import byte_bounds
from tcuda._process.fork import call_in_child
from tcuda.sanitizer import _detector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, TracebackType

    from typing_extensions import Self

    from tcuda.sanitizer._stacks import Frame

F = TypeVar("F", bound="Callable[..., Any]")

VARIABLE = "TCUDA_SANITIZER_SUPPRESSIONS"
_KEYS = ("file", "line", "function")
_MOST_LINES = 1 << 31
_MOST_BYTES = 1 << 24

_lock = threading.RLock()
_in_force: tuple[suppress, ...] = ()
_of_functions: dict[CodeType, _Condition] = {}
_of_file: dict[str, tuple[_Condition, ...]] = {}
"""The conditions of each file that the environment variable has named."""


class _Condition(NamedTuple):
    """What a race must have to be suppressed; None for parts that do not matter.

    Attributes:
        file: The pattern of the file's name.
        lines: The first and the last line.
        function: The pattern of the function's name.
        memory: The first address and the end of the memory.
    """

    file: str | None = None
    lines: tuple[int, int] | None = None
    function: str | None = None
    memory: tuple[int, int] | None = None

    def holds(self, stacks: Sequence[Sequence[Frame]], overlap: tuple[int, int]) -> bool:
        """Return whether a race with ``stacks`` and the common bytes ``overlap`` is suppressed."""
        if self.memory is not None:
            begin, end = self.memory
            if not (begin < overlap[0] + overlap[1] and overlap[0] < end):
                return False
        if self.file is None and self.function is None:
            return True
        return any(self._fits(frame) for stack in stacks for frame in stack)

    def _fits(self, frame: Frame) -> bool:
        if self.function is not None and not fnmatch.fnmatchcase(frame.name, self.function):
            return False
        if self.lines is not None and not self.lines[0] <= frame.line <= self.lines[1]:
            return False
        return self.file is None or _is_file(frame.filename, self.file)


class suppress:
    """Keep races that are made on purpose out of all reports.

    A race is suppressed if a stack of one of its accesses has a frame with the given file, line and function, and if
    the memory is that of the given array. The suppression holds from the call on, in all threads, until
    :meth:`remove` or the end of the ``with`` statement.

    Reports count the suppressed races.

    Args:
        file: The file, as a name (``"train.py"``), the end of a path (``"project/train.py"``), or a pattern with
            ``*`` and ``?``.
        line: The number of a line of ``file``.
        function: The name of a function, a pattern with ``*`` and ``?``, or the function itself.
        array: An array of ``tcuda.xp``. The suppression keeps the array alive.

    Raises:
        TypeError: ``file`` is not a text, ``line`` is not an integer, ``function`` is neither a text nor a function, or
            ``array`` is not an array on a device.
        ValueError: No argument is given, ``line`` is given without ``file``, or ``line`` is less than 1.

    Example:
        >>> side, scratch = tcuda.Stream(), xp.zeros(1000)
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     with tcuda.sanitizer.suppress(array=scratch):
        ...         scratch += 1
        ...         with tcuda.stream(side):
        ...             scratch += 1  # a race, which is on purpose
        >>> len(report)
        0
        >>> warm_up = tcuda.sanitizer.suppress(file="train.py", function="warm_*")
        >>> warm_up.remove()
    """

    def __init__(
        self,
        *,
        file: str | os.PathLike[str] | None = None,
        line: int | None = None,
        function: str | Callable[..., Any] | None = None,
        array: Any = None,
    ) -> None:
        """Suppress races from now on."""
        global _in_force
        if file is None and line is None and function is None and array is None:
            raise ValueError("suppress() needs a file, a function or an array; got none of them.")
        condition = _of_code(function) if callable(function) else _Condition(function=_pattern(function, "function"))
        if file is not None:
            condition = condition._replace(file=_pattern(file, "file"))
        if line is not None:
            if file is None:
                raise ValueError(f"suppress() needs the file of line {line!r}; give file=... too.")
            number = integer(line, "line", 1, _MOST_LINES)
            condition = condition._replace(lines=(number, number))
        if array is not None:
            condition = condition._replace(memory=_memory(array))
        self._condition = condition
        self._array = array  # keeps the memory
        with _lock:
            _in_force = (*_in_force, self)
        _detector.forget()

    def remove(self) -> None:
        """End the suppression. A second call does nothing.

        Example:
            >>> side, x = tcuda.Stream(), xp.zeros(1000)
            >>> known = tcuda.sanitizer.suppress(array=x)
            >>> known.remove()
            >>> with tcuda.sanitizer.check(mode="collect") as report:
            ...     x += 1
            ...     with tcuda.stream(side):
            ...         x += 1  # a race again
            >>> len(report)
            1
        """
        global _in_force
        with _lock:
            _in_force = tuple(other for other in _in_force if other is not self)
        _detector.forget()
        self._array = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        named = {"file": self._condition.file, "function": self._condition.function}
        if self._condition.lines is not None:
            named["line"] = "-".join(str(line) for line in sorted(set(self._condition.lines)))
        if self._condition.memory is not None:
            named["array"] = f"at {self._condition.memory[0]:#x}"
        text = ", ".join(f"{name}={value}" for name, value in named.items() if value is not None)
        state = "" if self in _in_force else " (removed)"
        return f"<tcuda.sanitizer.suppress {text}{state}>"


def suppressed(function: F) -> F:
    """Suppress all races of a function and of the functions that it calls: a decorator.

    The decorator returns the function itself, so calls cost nothing more.

    Args:
        function: The function.

    Raises:
        TypeError: ``function`` is not a Python function.

    Example:
        >>> side, scratch = tcuda.Stream(), xp.zeros(1000)
        >>> @tcuda.sanitizer.suppressed
        ... def on_purpose():
        ...     with tcuda.stream(side):
        ...         scratch.fill(1)
        >>> with tcuda.sanitizer.check(mode="collect") as report:
        ...     scratch += 1
        ...     on_purpose()
        >>> len(report)
        0
    """
    condition = _of_code(function)
    with _lock:
        _of_functions[_code(function)] = condition
    return function


def is_suppressed(stacks: Sequence[Sequence[Frame]], overlap: tuple[int, int]) -> bool:
    """Return whether a race is suppressed.

    Args:
        stacks: The whole stacks of both accesses, with those of launches.
        overlap: The address of the first common byte, and the number of bytes.
    """
    if not _in_force and not _of_functions and not _of_file:
        return False
    with _lock:
        conditions = [suppression._condition for suppression in _in_force]
        conditions += _of_functions.values()
        for read in _of_file.values():
            conditions += read
    return any(condition.holds(stacks, overlap) for condition in conditions)


def read_suppressions(environment: Any = os.environ) -> None:
    """Read the file that ``TCUDA_SANITIZER_SUPPRESSIONS`` names, unless it was read before.

    Each line has conditions such as ``file=train.py line=14`` or ``function=warm_*``. ``#`` begins a comment.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is a pipe or a device, or too large, or a line of the file has no condition, or a condition
            that is not known.
    """
    path = environment.get(VARIABLE)
    if not path or path in _of_file:
        return
    from tcuda._base.files import read_regular_file  # here, because the import takes long

    try:
        lines = read_regular_file(path, _MOST_BYTES).decode().splitlines()
    except OSError as error:
        raise type(error)(error.errno, f"{VARIABLE} names a file that cannot be read: {error.strerror}", path) from None
    except ValueError as error:
        raise ValueError(f"{VARIABLE} names a file of which no suppressions are read, {path!r}: {error}.") from None
    read = []
    for number, line in enumerate(lines, 1):
        condition = _condition_of(line, f"{path}:{number}")
        if condition is not None:
            read.append(condition)
    with _lock:
        _of_file[path] = tuple(read)


def _condition_of(line: str, where: str) -> _Condition | None:
    import shlex  # here, because the import takes long

    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise ValueError(f"{where}: {error}.") from None
    if not words:
        return None
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in _KEYS or not value:
            raise ValueError(
                f"{where}: {word!r} is not a condition. A condition is file=..., line=... or function=...."
            )
        if key in found:
            raise ValueError(f"{where}: {key}= is given twice.")
        found[key] = value
    lines = None
    if "line" in found:
        number = found["line"]
        if "file" not in found:
            raise ValueError(f"{where}: line= needs file=.")
        if not number.isdecimal() or int(number) < 1:
            raise ValueError(f"{where}: line= must be an integer from 1 on; got {number!r}.")
        lines = (int(number), int(number))
    return _Condition(found.get("file"), lines, found.get("function"))


def _is_file(filename: str, pattern: str) -> bool:
    """Return whether a file has the name, the end of the path, or the pattern."""
    return fnmatch.fnmatchcase(filename, pattern) or fnmatch.fnmatchcase(filename, f"*{os.sep}{pattern}")


def _pattern(value: Any, name: str) -> str | None:
    if value is None:
        return None
    try:
        text = os.fspath(value)
    except TypeError:
        text = None
    if not isinstance(text, str):
        kinds = "a str or a path" if name == "file" else "a str or a function"
        raise TypeError(f"{name} must be {kinds}; got {a_kind(value)}.")
    if not text:
        raise ValueError(f"{name} must not be empty.")
    return text


def _code(function: Any) -> CodeType:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        raise TypeError(f"function must be a Python function; got {a_kind(function)}.")
    return code  # type: ignore[no-any-return]


def _of_code(function: Callable[..., Any]) -> _Condition:
    """Return the condition that the function runs, which its name, its file and its lines tell."""
    code = _code(function)
    lines = [line for _, _, line in code.co_lines() if line is not None]
    return _Condition(_escaped(code.co_filename), (code.co_firstlineno, max(lines)), _escaped(code.co_name))


def _escaped(text: str) -> str:
    """Return a pattern that only ``text`` fits."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in text)


def _memory(array: Any) -> tuple[int, int]:
    """Return the first address and the end of the memory of an array."""
    pointer = getattr(array, "data", None)
    address, strides = getattr(pointer, "ptr", None), getattr(array, "strides", None)
    if not isinstance(address, int) or strides is None:
        raise TypeError(f"array must be an array of tcuda.xp; got {a_kind(array)}.")
    return byte_bounds(address, array.itemsize, array.shape, strides)


def _forget_lock_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # another thread of the parent may have held it


call_in_child(_forget_lock_in_child)
