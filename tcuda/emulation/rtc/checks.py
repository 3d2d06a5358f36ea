"""The checks of memory accesses that the compiler adds to kernels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLE = "TCUDA_EMULATED_CHECKS"
_GCC = (
    "-fsanitize=kernel-address",
    "--param=asan-instrumentation-with-call-threshold=0",
    "--param=asan-stack=0",
    "--param=asan-globals=0",
    "-fsanitize=bounds",
    "-fsanitize=integer-divide-by-zero",
    # The quotient of the least integer and -1 ends the process on x86. -fwrapv keeps sums and products unchecked.
    "-fsanitize=signed-integer-overflow",
)
_CLANG = (
    "-fsanitize=kernel-address",
    *(
        word
        for setting in ("-asan-instrumentation-with-call-threshold=0", "-asan-stack=0", "-asan-globals=0")
        for word in ("-mllvm", setting)
    ),
)


def enabled(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether kernels are compiled with checks: unless ``TCUDA_EMULATED_CHECKS`` is 0.

    Raises:
        ValueError: The variable is neither 0 nor 1.
    """
    value = environ.get(_VARIABLE, "1")
    if value not in ("0", "1"):
        raise ValueError(f"{_VARIABLE} is {value!r}; write 1 to check the accesses of kernels, or 0 not to.")
    return value == "1"


def flags(*, clang: bool) -> tuple[str, ...]:
    """Return the flags that add the checks."""
    return _CLANG if clang else _GCC
