"""The watch of the calls of the CUDA driver, without a GPU."""

from __future__ import annotations

import pytest

from tcuda import _core
from tcuda.sanitizer._cuda import cupti
from tcuda.sanitizer._cuda.watch import CudaWatch


def test_without_cupti_a_race_detector_gets_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti, "find", lambda version: None)
    with pytest.warns(RuntimeWarning, match=r"CUPTI is not installed: pip install 'nvidia-cuda-cupti>=13,<14'"):
        watch = CudaWatch(_core.RaceDetector(print), 13010)
    watch.end()
