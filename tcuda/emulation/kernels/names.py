"""The names of kernels."""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def is_valid_kernel_name(name: str) -> bool:
    """Return whether ``name`` can be the name of a kernel."""
    return _IDENTIFIER.fullmatch(name) is not None


def require_name(name: str) -> None:
    """Refuse a name that a kernel cannot have.

    Raises:
        ValueError: ``name`` is not an identifier of C++.
    """
    if not is_valid_kernel_name(name):
        raise ValueError(f'Invalid kernel name: "{name}"; a name has letters, digits and underscores')
