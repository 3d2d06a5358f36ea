"""The pages of the memory of this process."""

from __future__ import annotations

from pathlib import Path


def is_protected(address: int) -> bool:
    """Return whether neither reads nor writes of the page at ``address`` are allowed."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, *_ = line.split()
        begin, end = (int(bound, 16) for bound in span.split("-"))
        if begin <= address < end:
            return rights.startswith("--")
    raise ValueError(f"There is no memory at {address:#x}.")
