"""The checks of kernels: the choice of the user, and the flags with which the compiler adds the checks."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VARIABLE = "TCUDA_EMULATED_CHECKS"
_NAMES = ("memory", "padding", "barriers", "types", "init")
_INIT = {"init": True, "init:shared=on": True, "init:shared=off": False}
"""The words that ask for uses of unwritten memory, and whether each asks for those of shared memory too."""
_GCC = (
    "-fsanitize=kernel-address",
    "--param=asan-instrumentation-with-call-threshold=0",
    "--param=asan-stack=0",
    "--param=asan-globals=0",
    "-fsanitize=bounds",
    "-fsanitize=integer-divide-by-zero",
    # On x86, the division of the least integer by -1 ends the process. -fwrapv keeps sums and products unchecked.
    "-fsanitize=signed-integer-overflow",
    "-fno-sanitize-recover=bounds,integer-divide-by-zero,signed-integer-overflow",
    "-fstack-protector-strong",  # finds writes beyond a local array through a pointer
)
OF_OPERATORS = (
    "-fsanitize=shift-exponent,float-cast-overflow",
    "-fno-sanitize-recover=shift-exponent,float-cast-overflow",
)
"""The flags for a source whose shifts and casts are those of the processor."""
_WITHOUT_LIBRARIES = "-nodefaultlibs"
# Each access to memory calls a function, and an access to a volatile variable calls another function. The functions of
# the headers take the place of the library of this sanitizer, which would replace functions of the whole process.
_EACH = ("-fsanitize=thread", "--param=tsan-distinguish-volatile=1", _WITHOUT_LIBRARIES)
_GCC_EACH = (
    *_EACH,
    # The compiler adds no checks to the copies that take the place of calls of these functions.
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
    "-fno-builtin-memset",
    "-fno-builtin-memcmp",
    *_GCC[4:],
)
_GCC_STEPS = (*_EACH, "-DTCUDA_UNCHECKED=1")
_VOLATILE = re.compile(r"\bvolatile\b")
# The type of a pointer says which addresses are possible, also where the compiler reads an object in parts. Programs
# with classes get slower by this check. Types without parts need no such check: see checks.h.
_ALIGNMENT = ("-fsanitize=alignment", "-fno-sanitize-recover=alignment")
_WITH_PARTS = re.compile(
    r"\b(?:(?:u?(?:char|short|int|long|longlong)|float|double)[24](?:_\w+)?|(?:__)?(?:half|nv_bfloat16)2"
    r"|\w*[cC]omplex\w*(?!\.)|__align__|__builtin_align__|alignas|aligned)\b"
)
_CLANG = (
    "-fsanitize=kernel-address",
    *(
        word
        for setting in ("-asan-instrumentation-with-call-threshold=0", "-asan-stack=0", "-asan-globals=0")
        for word in ("-mllvm", setting)
    ),
)
_CLANG_RECORDED = (
    *_CLANG,
    *(word for setting in ("-asan-opt-same-temp=0", "-asan-opt-globals=0") for word in ("-mllvm", setting)),
)
_DEFAULT_LIBRARIES = ("-lstdc++", "-lm", "-lc", "-lgcc")


@dataclass(frozen=True)
class Checks:
    """The checks that the user wants.

    Attributes:
        memory: Whether the compiler adds a check to each access to memory.
        padding: Whether the allocator leaves unused memory behind each array, so that the check of memory finds an
            access right behind an array that fills its block.
        barriers: The consequence if not all threads of a block reach a barrier: ``"error"``, ``"warning"`` or
            ``"nothing"``.
        types: The consequence if an array has other elements than the kernel reads, likewise.
        init: Whether a use of memory that nothing has written is an error.
        shared: Whether the same holds for a read of shared memory.
    """

    memory: bool
    padding: bool
    barriers: Literal["error", "warning", "nothing"]
    types: Literal["error", "warning", "nothing"]
    init: bool = False
    shared: bool = False


def chosen(environ: Mapping[str, str] = os.environ) -> Checks:
    """Return the checks in the variable ``TCUDA_EMULATED_CHECKS``, or else the usual checks.

    The usual checks only warn about a barrier that not all threads reach. A GPU does not wait for threads that have
    returned, and many programs rely on this behaviour. The usual checks only warn about elements of another type, too.

    Raises:
        ValueError: The variable is neither 0 nor 1, nor a list of checks.
    """
    value = environ.get(_VARIABLE) or "1"
    if value in ("0", "1"):
        consequence: Literal["warning", "nothing"] = "warning" if value == "1" else "nothing"
        return Checks(memory=value == "1", padding=False, barriers=consequence, types=consequence)
    words = [word.strip() for word in value.split(",")]
    for word in words:
        if word not in _NAMES and word not in _INIT:
            raise ValueError(
                f"{_VARIABLE} is {value!r}; write 1 for the usual checks of kernels, 0 for none, or names of checks "
                f"with commas between them: {', '.join(_NAMES)}. init:shared=off is init without shared memory."
            )
    init = [word for word in words if word in _INIT]
    return Checks(
        memory="memory" in words or bool(init),
        padding="padding" in words,
        barriers="error" if "barriers" in words else "nothing",
        types="error" if "types" in words else "nothing",
        init=bool(init),
        shared=bool(init) and all(_INIT[word] for word in init),
    )


def flags(code: str, *, memory: bool, clang: bool, recorded: bool = False) -> tuple[str, ...]:
    """Return the flags that add the checks, and the steps of volatile accesses.

    Args:
        code: The source. The flags depend on the types that the source names.
        memory: Whether accesses to memory are checked.
        clang: Whether the compiler is clang, and not gcc.
        recorded: Whether every access has a check, so that a launch can note what the kernel reads and writes. The
            usual flags leave out the check of an access after a check of the same memory.
    """
    if clang:
        used = (_CLANG_RECORDED if recorded else _CLANG) if memory else ()
    elif _VOLATILE.search(code) or (recorded and memory):
        used = _GCC_EACH if memory else _GCC_STEPS
    else:
        used = _GCC if memory else ()
    return (*used, *_ALIGNMENT) if memory and _WITH_PARTS.search(code) else used


def libraries(flags: Sequence[str]) -> tuple[str, ...]:
    """Return the flags that name the libraries which ``flags`` leave out."""
    return _DEFAULT_LIBRARIES if _WITHOUT_LIBRARIES in flags else ()
