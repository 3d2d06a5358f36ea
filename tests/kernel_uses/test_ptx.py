"""What PTX texts say that kernels do with the memory behind their parameters."""

from __future__ import annotations

import pytest

from support.ptx_kernels import KERNELS, VARIANTS, Kernel, texts
from tcuda import _core

_BITS = {"none": 0, "read": 1, "write": 2, "both": 3}


def mistakes(kernel: Kernel, text: bytes) -> list[str]:
    """Return in what the analysis of a kernel differs from the truth."""
    ((name, (parameters, pointers, complete)),) = _core.uses_of_ptx(text).items()
    found = {offset: (kind, possible) for offset, kind, possible, _ in pointers}
    wrong = [] if complete == kernel.complete else [f"{name}: complete is {complete}"]
    for use in kernel.uses:
        offset = parameters[use.parameter][0] + use.inner
        kind, possible = found.pop(offset, ("none", False))
        if (kind, possible) != (use.kind, use.possible):
            wrong.append(f"{offset}: {kind}{'?' if possible else ''} for {use.kind}{'?' if use.possible else ''}")
    wrong += [f"{offset}: {kind} of no pointer" for offset, (kind, _) in found.items() if kind != "none"]
    return wrong


def missed(kernel: Kernel, text: bytes) -> list[int]:
    """Return the parameters of which the analysis claims less than the truth."""
    ((parameters, pointers, complete),) = _core.uses_of_ptx(text).values()
    found = {offset: kind for offset, kind, _, _ in pointers}
    return [
        use.parameter
        for use in kernel.uses
        if _BITS[use.kind] & ~_BITS[found.get(parameters[use.parameter][0] + use.inner, "none")]
        and (complete or parameters[use.parameter][0] + use.inner in found)
    ]


@pytest.mark.parametrize("variant", VARIANTS)
def test_at_least_95_of_100_kernels_are_right(variant: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = texts(variant)
    wrong = {kernel.name: found for kernel in KERNELS if (found := mistakes(kernel, text[kernel.name]))}
    with capsys.disabled():
        print(f"\n{variant}: {len(KERNELS) - len(wrong)} of {len(KERNELS)} kernels are right; wrong: {wrong}")
    assert len(wrong) <= 0.05 * len(KERNELS)


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_access_is_missed(variant: str) -> None:
    text = texts(variant)
    assert {kernel.name: found for kernel in KERNELS if (found := missed(kernel, text[kernel.name]))} == {}


def test_there_are_enough_kernels() -> None:
    assert len(KERNELS) >= 60
    assert len(VARIANTS) >= 2
    assert all(set(texts(variant)) == {kernel.name for kernel in KERNELS} for variant in VARIANTS)
