"""The names of kernels."""

from __future__ import annotations

import re

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


def require_name(name: str) -> None:
    """Refuse a name that a kernel cannot have.

    Raises:
        ValueError: ``name`` is not an identifier of C++.
    """
    if not _IDENTIFIER.match(name):
        raise ValueError(f'Invalid kernel name: "{name}"; a name has letters, digits and underscores')
