"""The checks of kernels: which of them the user wants, and the flags by which the compiler adds them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLE = "TCUDA_EMULATED_CHECKS"
_ALL = ("memory", "barriers")
_GCC = (
    "-fsanitize=kernel-address",
    "--param=asan-instrumentation-with-call-threshold=0",
    "--param=asan-stack=0",
    "--param=asan-globals=0",
    "-fsanitize=bounds",
    "-fsanitize=integer-divide-by-zero",
    # The quotient of the least integer and -1 ends the process on x86. -fwrapv keeps sums and products unchecked.
    "-fsanitize=signed-integer-overflow",
    "-fno-sanitize-recover=bounds,integer-divide-by-zero,signed-integer-overflow",
)
_CLANG = (
    "-fsanitize=kernel-address",
    *(
        word
        for setting in ("-asan-instrumentation-with-call-threshold=0", "-asan-stack=0", "-asan-globals=0")
        for word in ("-mllvm", setting)
    ),
)


@dataclass(frozen=True)
class Checks:
    """The checks that the user wants.

    Attributes:
        memory: Whether the compiler adds a check to each access to memory.
        barriers: Whether all threads of a block must reach each barrier of the block.
    """

    memory: bool
    barriers: bool


def chosen(environ: Mapping[str, str] = os.environ) -> Checks:
    """Return the checks in the variable ``TCUDA_EMULATED_CHECKS``, or else all checks.

    Raises:
        ValueError: The variable is neither 0 nor 1, nor a list of checks.
    """
    value = environ.get(_VARIABLE, "1")
    whole: dict[str, list[str]] = {"0": [], "1": [*_ALL]}
    words = whole[value] if value in whole else [word.strip() for word in value.split(",")]
    for word in words:
        if word not in _ALL:
            raise ValueError(
                f"{_VARIABLE} is {value!r}; write 1 for all checks of kernels, 0 for none, or the names of checks with "
                f"commas between them: {', '.join(_ALL)}."
            )
    return Checks("memory" in words, "barriers" in words)


def flags(*, clang: bool) -> tuple[str, ...]:
    """Return the flags that add the checks of memory."""
    return _CLANG if clang else _GCC
