"""``tcuda._sanitizer``: torch's switch for the whole process."""

from __future__ import annotations

import inspect
import pickle

import pytest

from support.made_races import race
from tcuda import _sanitizer
from tcuda._sanitizer import CUDASanitizer, CUDASanitizerErrors, cuda_sanitizer, enable_cuda_sanitizer
from tcuda.sanitizer import _detector, check

pytestmark = pytest.mark.emulated


def test_torchs_names_are_there() -> None:
    names = {
        "Access",
        "AccessType",
        "CUDASanitizer",
        "CUDASanitizerErrors",
        "SynchronizationError",
        "UnsynchronizedAccessError",
        "cuda_sanitizer",
        "enable_cuda_sanitizer",
    }
    assert names <= set(_sanitizer.__all__)
    assert isinstance(cuda_sanitizer, CUDASanitizer)
    parameters = list(inspect.signature(_sanitizer.UnsynchronizedAccessError).parameters)
    assert parameters[:4] == ["data_ptr", "allocation_stack_trace", "current_access", "previous_access"]


def test_the_switch_prints_and_raises_until_it_is_turned_off(capsys: pytest.CaptureFixture[str]) -> None:
    assert not cuda_sanitizer.enabled
    enable_cuda_sanitizer()
    enable_cuda_sanitizer()
    try:
        assert cuda_sanitizer.enabled
        with pytest.raises(CUDASanitizerErrors, match="^detected 1 errors$") as caught:
            race()
        assert len(cuda_sanitizer.report) == 1
    finally:
        cuda_sanitizer.disable()
    (error,) = caught.value.errors
    assert "CSAN detected a possible data race" in str(error)
    assert capsys.readouterr().err == f"{error}\n"
    assert str(pickle.loads(pickle.dumps(caught.value))) == "detected 1 errors"
    cuda_sanitizer.disable()
    assert not cuda_sanitizer.enabled
    assert _detector._started is None


def test_a_check_inside_gets_its_races() -> None:
    sanitizer = CUDASanitizer()
    sanitizer.enable()
    with check(mode="collect") as report:
        race()
    sanitizer.disable()
    assert (len(report), len(sanitizer.report)) == (1, 0)


def test_a_sanitizer_that_dies_is_turned_off() -> None:
    sanitizer = CUDASanitizer()
    sanitizer.enable()
    assert _detector._started is not None
    del sanitizer
    assert _detector._started is None


def test_a_new_start_has_a_new_report() -> None:
    sanitizer = CUDASanitizer()
    for _ in range(2):
        sanitizer.enable()
        with pytest.raises(CUDASanitizerErrors):
            race()
        sanitizer.disable()
        assert len(sanitizer.report) == 1


def test_a_refused_sanitizer_stays_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise RuntimeError("no races here")

    sanitizer = CUDASanitizer()
    monkeypatch.setattr(_detector, "_attach", refuse)
    with pytest.raises(RuntimeError, match="no races here"):
        sanitizer.enable()
    assert not sanitizer.enabled
    assert _detector._started is None
