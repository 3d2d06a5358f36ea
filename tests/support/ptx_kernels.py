"""The kernels of ``tests/data/ptx`` with what they do to memory."""

from __future__ import annotations

import lzma
import re
from typing import NamedTuple

from support.folders import REPOSITORY
from tcuda import _core

FOLDER = REPOSITORY / "tests" / "data" / "ptx"
COMPILED = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.ptx.xz"))

_BITS = {"none": 0, "read": 1, "write": 2, "both": 3}


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

    def mistakes(self, text: bytes) -> list[str]:
        """Return in what the analysis of the kernel differs from the truth."""
        ((parameters, pointers, complete),) = _core.uses_of_ptx(text).values()
        found = {offset: (kind, possible) for offset, kind, possible, _ in pointers}
        wrong = [] if complete == self.complete else [f"complete is {complete}"]
        for use in self.uses:
            offset = parameters[use.parameter][0] + use.inner
            kind, possible = found.pop(offset, ("none", False))
            if (kind, possible) != (use.kind, use.possible):
                wrong.append(f"{offset}: {kind}{'?' * possible} for {use.kind}{'?' * use.possible}")
        return wrong + [f"{offset}: {kind} of no pointer" for offset, (kind, _) in found.items() if kind != "none"]

    def missed(self, text: bytes) -> list[int]:
        """Return the parameters of which the analysis claims less than the truth."""
        ((parameters, pointers, _),) = _core.uses_of_ptx(text).values()
        found = {offset: kind for offset, kind, _, _ in pointers}
        return [
            use.parameter
            for use in self.uses
            if _BITS[use.kind] & ~_BITS[found.get(parameters[use.parameter][0] + use.inner, "none")]
        ]


def _use_of(text: str) -> Use:
    found = re.fullmatch(r"(\d+)(?:\+(\d+))? (none|read|write|both)(\??)", text.strip())
    assert found is not None, text
    return Use(int(found[1]), int(found[2] or 0), found[3], found[4] == "?")


def _kernel_of(name: str, facts: str) -> Kernel:
    uses, _, rest = facts.partition("|")
    return Kernel(name, [_use_of(use) for use in uses.split(",") if use.strip()], rest.strip() == "")


def _kernels(text: str) -> list[Kernel]:
    return [_kernel_of(name, facts) for name, facts in re.findall(r"^//// (\w+) \|(.*)$", text, flags=re.MULTILINE)]


def _texts(text: bytes) -> dict[str, bytes]:
    parts = re.split(rb"^//// (\w+).*\n", text, flags=re.MULTILINE)
    return {name.decode(): text for name, text in zip(parts[1::2], parts[2::2], strict=True)}


KERNELS = _kernels((FOLDER / "kernels.cu").read_text())
WRITTEN = _kernels((FOLDER / "written.ptx").read_text())
WRITTEN_TEXTS = _texts((FOLDER / "written.ptx").read_bytes())


def compiled(variant: str) -> dict[str, bytes]:
    """Return the PTX texts of a compiler by the names of the kernels."""
    return _texts(lzma.decompress((FOLDER / f"{variant}.ptx.xz").read_bytes()))
