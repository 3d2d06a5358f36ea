"""Random kernels in PTX: what they use when they run against what their text says."""

from __future__ import annotations

import random

import pytest

from support.ptx_programs import Run, random_program
from tcuda import _core

_BITS = {"none": 0, "read": 1, "write": 2, "both": 3}


@pytest.mark.parametrize("seed", range(20))
def test_no_use_of_a_random_kernel_is_missed(seed: int) -> None:
    numbers = random.Random(seed)
    used = 0
    for _ in range(100):
        program = random_program(numbers)
        text = program.text()
        ((_, pointers, _),) = _core.uses_of_ptx(text).values()
        claimed = {offset // 8: _BITS[kind] for offset, kind, _, _ in pointers}
        for _ in range(8):
            run = Run(program, numbers)
            for pointer, seen in enumerate(run.uses if run.is_valid else []):
                used += seen != 0
                assert seen & ~claimed.get(pointer, 0) == 0, f"{pointer} {seen} {pointers}\n{text.decode()}"
    assert used > 200


def test_most_random_kernels_are_followed() -> None:
    numbers = random.Random(15)
    found = [_core.uses_of_ptx(random_program(numbers).text())["k"] for _ in range(400)]
    assert sum(complete for _, _, complete in found) > 40
