"""The runtime over CuPy, as far as it can be shown without a GPU and without CuPy."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import tcuda
from tcuda._runtime import cuda, visible_devices


class FailureError(RuntimeError):
    """As CuPy's CUDARuntimeError."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


def runtime_with(*, driver: int = 13000, runtime: int = 13020, devices: int | None = None) -> cuda.CudaRuntime:
    """Return a runtime over a CUDA of these versions, which fails to count its devices if ``devices`` is None."""

    def count() -> int:
        if devices is None:
            raise FailureError(100)
        return devices

    made = object.__new__(cuda.CudaRuntime)
    made._runtime = SimpleNamespace(
        driverGetVersion=lambda: driver,
        runtimeGetVersion=lambda: runtime,
        getDeviceCount=count,
        CUDARuntimeError=FailureError,
    )
    return made


@pytest.fixture
def nvml_sees(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(visible_devices, "count", lambda: 2)
    return monkeypatch


@pytest.mark.usefixtures("nvml_sees")
@pytest.mark.parametrize(
    ("driver", "runtime", "devices"),
    [(13000, 13020, 2), (13020, 12090, 2), (12090, 13020, 0), (0, 13020, 0)],
)
def test_devices_count_if_the_driver_is_of_the_major_version_at_least(driver: int, runtime: int, devices: int) -> None:
    assert runtime_with(driver=driver, runtime=runtime).visibleDeviceCount() == devices


def test_cuda_is_asked_where_nvml_cannot_say(nvml_sees: pytest.MonkeyPatch) -> None:
    nvml_sees.setattr(visible_devices, "count", lambda: None)
    assert runtime_with(devices=3).visibleDeviceCount() == 3
    assert runtime_with().visibleDeviceCount() == 0


def test_an_error_of_cupy_is_raised_with_the_call_and_its_arguments() -> None:
    def refuse(*args: int) -> None:
        raise FailureError(400)

    with pytest.raises(tcuda.AcceleratorError) as caught:
        cuda._translating(FailureError, "eventRecord", refuse)(7, 8)
    assert caught.value.error_code == 400
    assert "cudaEventRecord(7, 8) failed with cudaErrorInvalidResourceHandle (400)" in str(caught.value)
    assert isinstance(caught.value.__cause__, FailureError)
