"""The checks of kernels: the choice of the user, and the flags with which the compiler adds the checks."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "TCUDA_EMULATED_CHECKS"
"""The variable with the choice."""

_MEMORY, _WITHOUT_NEIGHBOURS = "memory", "memory:neighbours=off"
_NAMES = (_MEMORY, _WITHOUT_NEIGHBOURS, "padding", "barriers", "types", "races", "init")
_BENIGN = {"races": True, "races:benign=on": True, "races:benign=off": False}
"""The words that ask for races in kernels, and whether each asks for writes of the same value too."""

_ORDERS = re.compile(r"races:orders=([1-9]\d?)")
"""The word that asks for races in kernels, and says in how many orders a launch may run."""

_INIT = {"init": True, "init:shared=on": True, "init:shared=off": False}
"""The words that ask for uses of unwritten memory, and whether each asks for those of shared memory too."""
OF_OPERATORS = (
    "-fsanitize=shift-exponent,float-cast-overflow",
    "-fno-sanitize-recover=shift-exponent,float-cast-overflow",
)
"""The flags for a source whose shifts and casts are those of the processor."""
_VOLATILE = re.compile(r"\bvolatile\b")
# The type of a pointer says which addresses are possible, also where the compiler reads an object in parts. Programs
# with classes get slower by this check. Types without parts need no such check: see checks.h.
_ALIGNMENT = ("-fsanitize=alignment", "-fno-sanitize-recover=alignment")
_WITH_PARTS = re.compile(
    r"\b(?:(?:u?(?:char|short|int|long|longlong)|float|double)[24](?:_\w+)?|(?:__)?(?:half|nv_bfloat16)2"
    r"|\w*[cC]omplex\w*(?!\.)|__align__|__builtin_align__|alignas|aligned)\b"
)


def _settings(*settings: str) -> tuple[str, ...]:
    return tuple(word for setting in settings for word in ("-mllvm", f"-{setting}"))


class _Flags(NamedTuple):
    """The flags of one compiler.

    Attributes:
        accesses: A check of each access to memory that no check of the same memory precedes.
        each: A function call for each access to memory, and another function for an access to a volatile variable. The
            functions of the headers take the place of the library of this sanitizer, which would replace functions of
            the whole process.
        indices: The checks of indices, divisions and the stack.
        races: The flags that tell a launch where each access is. Hoisting, sinking and merging of code would make one
            access of two equal accesses on different ways through the kernel, and so lose a line. A read whose value
            nothing uses and a write that is overwritten are races too, so no pass may leave them out before the checks
            are added.
        lines: The flags that give a library the lines of its source. Reports need no other debug information.
    """

    accesses: tuple[str, ...]
    each: tuple[str, ...]
    indices: tuple[str, ...]
    races: tuple[str, ...]
    lines: tuple[str, ...] = ("-g1",)


# The compiler adds no checks to the copies that take the place of calls of these functions.
_CALLED = ("-fno-builtin-memcpy", "-fno-builtin-memmove", "-fno-builtin-memset", "-fno-builtin-memcmp")
_STACK = "-fstack-protector-strong"
"""The flag that finds writes beyond a local array through a pointer."""
_RETURNS = "-fno-optimize-sibling-calls"
"""The flag with which a check finds the line of the call of an atomic function. A jump has no address to return to."""
_GCC = _Flags(
    accesses=(
        "-fsanitize=kernel-address",
        "--param=asan-instrumentation-with-call-threshold=0",
        "--param=asan-stack=0",
        "--param=asan-globals=0",
    ),
    each=("-fsanitize=thread", "--param=tsan-distinguish-volatile=1"),
    indices=(
        "-fsanitize=bounds",
        "-fsanitize=integer-divide-by-zero",
        # On x86, the division of the least integer by -1 ends the process. -fwrapv keeps sums and products unchecked.
        "-fsanitize=signed-integer-overflow",
        # Where the compiler sees from which local, shared or constant array a pointer comes, an access through the
        # pointer must stay inside of this array. No memory lies between such arrays that would tell of a wrong access.
        "-fsanitize=object-size",
        "-fno-sanitize-recover=bounds,integer-divide-by-zero,signed-integer-overflow,object-size",
        _STACK,
    ),
    races=(
        *("-fno-code-hoisting", "-fno-tree-sink", "-fno-tree-tail-merge", "-fno-crossjumping"),
        *("-fno-tree-dce", "-fno-tree-dse"),
    ),
)
_CLANG = _Flags(
    accesses=(
        "-fsanitize=kernel-address",
        *_settings("asan-instrumentation-with-call-threshold=0", "asan-stack=0", "asan-globals=0"),
        _RETURNS,
    ),
    each=(
        "-fsanitize=thread",
        *_settings(
            "tsan-distinguish-volatile=1", "tsan-instrument-read-before-write=1", "tsan-instrument-func-entry-exit=0"
        ),
        _RETURNS,
    ),
    indices=(
        # From clang 19, the check of signed-integer-overflow would check sums and products in spite of -fwrapv. The
        # check of object-size looks at constant indices only.
        "-fsanitize=array-bounds,integer-divide-by-zero",
        "-fno-sanitize-recover=array-bounds,integer-divide-by-zero",
        _STACK,
    ),
    races=(
        "-fno-unroll-loops",  # The copies of a loop would be several places of one line.
        *_settings("hoist-common-insts=false", "sink-common-insts=false", "enable-tail-merge=false"),
    ),
    # The addr2line of GNU does not find functions that lie in several parts of their callers in DWARF 5 from clang.
    lines=("-g1", "-gdwarf-4"),
)


@dataclass(frozen=True)
class Checks:
    """The checks that the user wants.

    Attributes:
        memory: Whether the compiler adds a check to each access to memory.
        neighbours: Whether the check of memory refuses an array to which no pointer of the launch leads.
        padding: Whether the allocator leaves unused memory behind each array, so that the check of memory finds an
            access right behind an array that fills its block.
        barriers: The consequence if not all threads of a block reach a barrier: ``"error"``, ``"warning"`` or
            ``"nothing"``.
        types: The consequence if an array has other elements than the kernel reads, likewise.
        races: Whether each launch looks for races between its threads.
        benign: Whether several threads that write the same value to the same place are such a race.
        orders: In how many orders of its blocks and threads a launch may run, to find such races.
        init: Whether a use of memory that nothing has written is an error.
        shared: Whether the same holds for a read of shared memory.
    """

    memory: bool
    neighbours: bool
    padding: bool
    barriers: Literal["error", "warning", "nothing"]
    types: Literal["error", "warning", "nothing"]
    races: bool = False
    benign: bool = True
    orders: int = 2
    init: bool = False
    shared: bool = False


def chosen(environ: Mapping[str, str] = os.environ) -> Checks:
    """Return the checks in the variable ``TCUDA_EMULATED_CHECKS``, or else the usual checks.

    The usual checks only warn about a barrier that not all threads reach. A GPU does not wait for threads that have
    returned, and many programs rely on this behaviour. The usual checks only warn about elements of another type, too.

    Raises:
        ValueError: The variable is neither 0 nor 1, nor a list of checks.
    """
    return parsed(environ.get(VARIABLE) or "1", VARIABLE)


def parsed(value: str, name: str) -> Checks:
    """Return the checks that a text asks for.

    Args:
        value: The text, such as ``"memory,races"``.
        name: The name of the variable or of the argument, for the message.

    Raises:
        ValueError: The text is neither 0 nor 1, nor a list of checks.
    """
    if value in ("0", "1"):
        consequence: Literal["warning", "nothing"] = "warning" if value == "1" else "nothing"
        return Checks(
            memory=value == "1", neighbours=value == "1", padding=False, barriers=consequence, types=consequence
        )
    words = [word.strip() for word in value.split(",")]
    for word in words:
        if word not in (*_NAMES, *_BENIGN, *_INIT) and _ORDERS.fullmatch(word) is None:
            raise ValueError(
                f"{name} is {value!r}; write 1 for the usual checks of kernels, 0 for none, or names of checks "
                f"with commas between them: {', '.join(_NAMES)}. padding leaves unused bytes behind each array, so "
                "that memory finds an access to the next array. races:benign=off is races without writes of the same "
                "value by several threads, races:orders=3 is races in three orders of the threads (1 to 99), and "
                "init:shared=off is init without shared memory."
            )
    races = [word for word in words if word in _BENIGN]
    orders = [int(found[1]) for found in map(_ORDERS.fullmatch, words) if found is not None]
    init = [word for word in words if word in _INIT]
    return Checks(
        memory=bool(races) or bool(orders) or bool(init) or _MEMORY in words or _WITHOUT_NEIGHBOURS in words,
        neighbours=_WITHOUT_NEIGHBOURS not in words,
        padding="padding" in words,
        barriers="error" if "barriers" in words else "nothing",
        types="error" if "types" in words else "nothing",
        races=bool(races) or bool(orders),
        benign=all(_BENIGN[word] for word in races),
        orders=orders[-1] if orders else Checks.orders,
        init=bool(init),
        shared=bool(init) and all(_INIT[word] for word in init),
    )


def flags(code: str, *, memory: bool, clang: bool, recorded: bool = False, races: bool = False) -> tuple[str, ...]:
    """Return the flags that add the checks, and the steps of volatile accesses.

    Args:
        code: The source. The flags depend on the types that the source names.
        memory: Whether accesses to memory are checked.
        clang: Whether the compiler is clang, and not gcc.
        recorded: Whether every access has a check, so that a launch can note what the kernel reads and writes. The
            usual flags leave out the check of an access after a check of the same memory.
        races: Whether every access tells its place in the source, so that a launch can find races. Such flags check
            accesses to memory too.
    """
    own = _CLANG if clang else _GCC
    memory = memory or races
    used: tuple[str, ...] = ()
    if races or _VOLATILE.search(code) or (recorded and memory):
        used = (*own.each, *_CALLED) if memory else (*own.each, "-DTCUDA_UNCHECKED=1")
    elif memory:
        used = own.accesses
    if not memory:
        return used
    if races:
        used = (*used, "-DTCUDA_RACES=1", *own.races)
    return (*used, *own.indices, *own.lines, *(_ALIGNMENT if _WITH_PARTS.search(code) else ()))
