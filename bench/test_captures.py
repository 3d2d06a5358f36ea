"""What tcuda adds to CuPy's own captures, and the time of a capture beside torch's."""

from __future__ import annotations

import pytest
from captures import WORKS, measure
from chosen_runtime import ON_CUDA
from targets import CAPTURES_OF_CUPY, CAPTURES_OF_TORCH


@pytest.mark.parametrize("work", WORKS)
def test_a_capture_takes_about_as_long_as_cupys(work: str) -> None:
    measured = measure(WORKS[work])
    if not ON_CUDA:  # the kernels of an emulated capture take nearly all of the time
        assert measured["tcuda"].ratio < 2
        return
    assert measured["tcuda"].ratio <= CAPTURES_OF_CUPY[work]
    if "torch" in measured:
        assert measured["tcuda"].whole <= CAPTURES_OF_TORCH[work] * measured["torch"].whole
