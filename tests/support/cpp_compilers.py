"""The C++ compiler that compiles emulated kernels in the tests."""

from __future__ import annotations

import pytest

from tcuda._base.wings import has_wing, wing_module


def is_clang() -> bool:
    """Return whether emulated kernels are compiled by clang."""
    if not has_wing("emulation"):
        return False
    try:
        return bool(wing_module("emulation.rtc.compiler").find().is_clang)
    except RuntimeError:  # No kernel runs without a compiler.
        return False


needs_gcc = pytest.mark.skipif(is_clang(), reason="only gcc has this check")
"""The mark of a test of a check that clang does not have."""


def array_type(element: str, length: int) -> str:
    """Return the name of the type of an array in the messages of a kernel."""
    return f"{element}{'' if is_clang() else ' '}[{length}]"
