"""The kernels of ``tests/data/ptx`` with what they do to memory."""

from __future__ import annotations

import re
from typing import NamedTuple

from support.folders import REPOSITORY

FOLDER = REPOSITORY / "tests" / "data" / "ptx"
VARIANTS = sorted(path.stem for path in FOLDER.glob("*.ptx"))


class Use(NamedTuple):
    """What a kernel does with the memory behind a pointer."""

    parameter: int
    inner: int
    kind: str
    possible: bool


class Kernel(NamedTuple):
    """A kernel, with the truth about it."""

    name: str
    uses: list[Use]
    complete: bool


def _use_of(text: str) -> Use:
    found = re.fullmatch(r"(\d+)(?:\+(\d+))? (none|read|write|both)(\??)", text.strip())
    assert found is not None, text
    return Use(int(found[1]), int(found[2] or 0), found[3], found[4] == "?")


def _kernel_of(name: str, facts: str) -> Kernel:
    uses, _, rest = facts.partition("|")
    return Kernel(name, [_use_of(use) for use in uses.split(",") if use.strip()], rest.strip() != "open")


KERNELS = [
    _kernel_of(name, facts)
    for name, facts in re.findall(r"^//// (\w+) \|(.*)$", (FOLDER / "kernels.cu").read_text(), flags=re.MULTILINE)
    if name != "NAME"
]


def texts(variant: str) -> dict[str, bytes]:
    """Return the PTX texts of a variant by the names of the kernels."""
    parts = re.split(r"^//// (\w+)\n", (FOLDER / f"{variant}.ptx").read_text(), flags=re.MULTILINE)
    return {name: text.encode() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
