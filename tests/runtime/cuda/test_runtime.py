"""The runtime over CuPy: the parts that need neither a GPU nor CuPy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda._runtime import cuda
from tcuda._runtime.cuda import visible_devices
from tcuda._runtime.cuda.translation import translating

if TYPE_CHECKING:
    from collections.abc import Callable


class FailureError(RuntimeError):
    """A stand-in for CuPy's CUDARuntimeError."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


def runtime_with(*, devices: int | None = None) -> cuda.CudaRuntime:
    """Return a runtime over CUDA 13 with ``devices`` devices; CUDA cannot count the devices if ``devices`` is None."""

    def count() -> int:
        if devices is None:
            raise FailureError(100)
        return devices

    made = object.__new__(cuda.CudaRuntime)
    made._cuda_major = 13
    made.driverGetVersion = lambda: 13010
    made._runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=FailureError)
    return made


@pytest.mark.parametrize(("nvml", "devices", "counted"), [(2, 3, 2), (0, 3, 0), (None, 3, 3), (None, None, 0)])
def test_cuda_counts_the_devices_only_if_nvml_cannot(
    monkeypatch: pytest.MonkeyPatch, nvml: int | None, devices: int | None, counted: int
) -> None:
    asked_for: list[int] = []

    def count(cuda_major: int) -> int | None:
        asked_for.append(cuda_major)
        return nvml

    monkeypatch.setattr(visible_devices, "count", count)
    assert runtime_with(devices=devices).visibleDeviceCount() == counted
    assert asked_for == [13]


def test_an_error_of_cupy_is_raised_with_the_call_and_its_arguments() -> None:
    def refuse(*args: int) -> None:
        raise FailureError(400)

    with pytest.raises(tcuda.AcceleratorError) as caught:
        translating(FailureError, "eventRecord", refuse)(7, 8)
    assert caught.value.error_code == 400
    assert "cudaEventRecord(7, 8) failed with cudaErrorInvalidResourceHandle (400)" in str(caught.value)
    assert isinstance(caught.value.__cause__, FailureError)


def test_an_index_beyond_a_c_int_is_an_invalid_device() -> None:
    def overflow(device: int) -> None:
        raise OverflowError("value too large to convert to int")  # CuPy's functions raise this error

    translated = translating((FailureError, OverflowError), "setDevice", overflow, 101)
    with pytest.raises(tcuda.AcceleratorError, match=r"cudaSetDevice\(2147483648\) failed") as caught:
        translated(2**31)
    assert caught.value.error_code == 101


@pytest.mark.parametrize(
    ("version", "call", "text"),
    [
        (12070, lambda r: r.greenCtxCreate(0, 8, -1, 0), "Green contexts need a driver of CUDA 12.8 or later"),
        (13000, lambda r: r.greenCtxCreate(0, 8, 1, 0), "Work queues need a driver of CUDA 13.1 or later"),
        (13000, lambda r: r.deviceGetWorkQueueConcurrency(0), "Work queues need a driver of CUDA 13.1 or later"),
    ],
)
def test_a_driver_without_green_contexts_is_an_error_that_names_its_version(
    version: int, call: Callable[[cuda.CudaRuntime], object], text: str
) -> None:
    runtime = runtime_with()
    runtime.driverGetVersion = lambda: version
    found = f"{version // 1000}.{version % 1000 // 10}"
    with pytest.raises(RuntimeError) as caught:
        call(runtime)
    assert str(caught.value) == f"{text}; the driver here is of CUDA {found}. Install a newer driver from NVIDIA."


def test_the_status_of_a_call_for_green_contexts_is_an_error_with_the_call() -> None:
    runtime = runtime_with()
    freed: list[int] = []
    runtime._runtime.free = freed.append
    answers: Any = SimpleNamespace(
        create=lambda *_: (2, 0, 0),
        destroy=lambda *_: 719,
        create_stream=lambda *_: (400, 0),
        work_queue_concurrency=lambda device: (801, 0),
    )
    vars(runtime)["_green_contexts"] = answers
    for call, status, text in (
        (lambda: runtime.greenCtxCreate(1, 8, -1, 0), 2, "cuGreenCtxCreate(1, 8, -1, 0)"),
        (lambda: runtime.greenCtxDestroy(5), 719, "cuGreenCtxDestroy(0x5)"),
        (lambda: runtime.greenCtxStreamCreate(5, 1, -1), 400, "cuGreenCtxStreamCreate(0x5, 1, -1)"),
        (lambda: runtime.deviceGetWorkQueueConcurrency(3), 801, "cuDeviceGetDevResource(3)"),
    ):
        with pytest.raises(tcuda.AcceleratorError) as caught:
            call()  # type: ignore[no-untyped-call]
        assert (caught.value.error_code, caught.value.call) == (status, text)
    assert freed == [0]  # the primary context is made first
    answers.create, answers.create_stream = lambda *_: (0, 5, 16), lambda *_: (0, 6)
    assert runtime.greenCtxCreate(1, 8, -1, 0) == (5, 16)
    assert runtime.greenCtxStreamCreate(5, 1, 0) == 6


def test_numbers_among_the_arguments_of_a_kernel_are_no_memory() -> None:
    class Attributes:
        def __init__(self, address: int) -> None:
            assert address < 1 << 56  # CuPy's function raises an OverflowError for more than 63 bits
            self.type, self.device = (2 if address in (0x7000_0000, 0x7000_1000) else 0), 0

    runtime = runtime_with()
    runtime._runtime = SimpleNamespace(pointerGetAttributes=Attributes, memoryTypeDevice=2, memoryTypeManaged=3)
    two, minus_two, minus_eight = 0x4000_0000_0000_0000, 0xC000_0000_0000_0000, (1 << 64) - 8
    arguments = [0x7000_0000, minus_eight, minus_two, two, 0x7000_1000, minus_eight]
    answers: Any = SimpleNamespace(addresses=lambda _: (0, arguments))
    nodes: Any = SimpleNamespace(read=lambda _: (0, [(0, 0, b"cupy_multiply", 0, [])]))
    lines: Any = SimpleNamespace(of=lambda *_: [None])
    vars(runtime).update(_lone_nodes=answers, _nodes=nodes, _lines=lines)
    assert runtime.graphWrites(1) == ([(0x7000_1000, 0x7000_1001)], [(0x7000_0000, 0x7000_0001)])
