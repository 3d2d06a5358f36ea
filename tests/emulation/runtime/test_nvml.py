"""NVML of emulated devices: exact readings that follow from the emulated clock and memory."""

from __future__ import annotations

import os

import pytest

from tcuda import _runtime
from tcuda._device import _nvml
from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = pytest.mark.emulated

SECOND = 1_000_000_000
CALL = 1_000  # ns that a launch takes on the host; the first operation starts at this time


@pytest.fixture
def emulated():
    """A runtime with the clock at 0."""
    return EmulatedRuntime(2, 1 << 20)


@pytest.fixture
def nvml(emulated):
    nvml = emulated.nvml()
    nvml.nvmlInit()
    return nvml


@pytest.fixture
def handle(emulated, nvml):
    return nvml.nvmlDeviceGetHandleByUUID(f"GPU-{emulated.devices[0].uuid}")


def readings(nvml, handle):
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    return (
        rates.gpu,
        rates.memory,
        nvml.nvmlDeviceGetTemperature(handle, 0),
        nvml.nvmlDeviceGetPowerUsage(handle),
        nvml.nvmlDeviceGetClockInfo(handle, 1),
    )


IDLE = (0, 0, 30, 70_000, 300)


def test_a_device_is_idle_before_time_has_passed(emulated, nvml, handle):
    assert emulated.clock.now() == 0
    assert readings(nvml, handle) == IDLE


def test_readings_rise_with_utilisation(emulated, nvml, handle):
    emulated.sleep(SECOND // 2, 0)
    emulated.clock.wait_until(SECOND + CALL)
    assert readings(nvml, handle) == (50, 50, 55, 385_000, 650)


def test_readings_of_a_device_that_is_always_busy(emulated, nvml, handle):
    emulated.sleep(2 * SECOND, 0)
    emulated.clock.wait_until(SECOND + CALL)
    assert readings(nvml, handle) == (100, 100, 80, 700_000, 1000)


def test_utilisation_in_the_first_second_covers_the_time_since_the_start(emulated, nvml, handle):
    emulated.sleep(3 * CALL, 0)  # from 1 to 4 microseconds
    emulated.clock.wait_until(10 * CALL)
    assert nvml.nvmlDeviceGetUtilizationRates(handle).gpu == 30


def test_utilisation_does_not_count_future_work(emulated, nvml, handle):
    emulated.sleep(SECOND, 0)
    emulated.clock.wait_until(2 * CALL)
    assert nvml.nvmlDeviceGetUtilizationRates(handle).gpu == 50


def test_utilisation_does_not_count_work_from_before_the_last_second(emulated, nvml, handle):
    emulated.sleep(SECOND, 0)
    end = SECOND + CALL
    emulated.clock.wait_until(end)
    assert nvml.nvmlDeviceGetUtilizationRates(handle).gpu == 100
    emulated.clock.advance(SECOND // 4)
    assert nvml.nvmlDeviceGetUtilizationRates(handle).gpu == 75
    emulated.clock.advance(SECOND)
    assert readings(nvml, handle) == IDLE


def test_utilisation_counts_overlapping_work_once(emulated, nvml, handle):
    for _ in range(4):
        emulated.sleep(SECOND // 4, emulated.streamCreateWithPriority(1, 0))
    emulated.clock.wait_until(SECOND + CALL)
    assert nvml.nvmlDeviceGetUtilizationRates(handle).gpu == 25


def test_utilisation_counts_one_device_only(emulated, nvml, handle):
    emulated.setDevice(1)
    emulated.sleep(SECOND, 0)
    emulated.deviceSynchronize()
    other = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{emulated.devices[1].uuid}")
    assert nvml.nvmlDeviceGetUtilizationRates(other).gpu == 100
    assert nvml.nvmlDeviceGetUtilizationRates(handle).gpu == 0


def test_energy_is_the_power_over_the_time(emulated, nvml, handle):
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(handle) == 0
    emulated.sleep(SECOND, 0)
    emulated.clock.wait_until(SECOND // 2 + CALL)  # in the middle of the work
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(handle) == 350_000  # millijoules: 700 W for half a second
    emulated.clock.advance(SECOND // 2 + SECOND)  # the work ends, and a second without work passes
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(handle) == 770_000


def test_energy_counts_one_device_only(emulated, nvml, handle):
    emulated.setDevice(1)
    emulated.sleep(SECOND, 0)
    emulated.deviceSynchronize()
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(handle) == 70_000


def test_memory_belongs_to_the_device(emulated, nvml, handle):
    before = nvml.nvmlDeviceGetMemoryInfo(handle)
    assert (before.total, before.free, before.used) == (1 << 20, 1 << 20, 0)
    emulated.malloc(4096)
    after = nvml.nvmlDeviceGetMemoryInfo(handle)
    assert (after.total, after.free, after.used) == (1 << 20, (1 << 20) - 4096, 4096)


def test_this_process_is_listed_while_it_has_memory(emulated, nvml, handle):
    assert nvml.nvmlDeviceGetComputeRunningProcesses(handle) == []
    ptr = emulated.malloc(4096)
    (process,) = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    assert (process.pid, process.usedGpuMemory) == (os.getpid(), 4096)
    emulated.free(ptr)
    assert nvml.nvmlDeviceGetComputeRunningProcesses(handle) == []


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("convert", [str, str.encode], ids=["str", "bytes"])
def test_a_device_is_found_by_its_uuid(emulated, nvml, index, convert):
    handle = nvml.nvmlDeviceGetHandleByUUID(convert(f"GPU-{emulated.devices[index].uuid}"))
    assert nvml.nvmlDeviceGetIndex(handle) == index


@pytest.mark.parametrize("name", ["GPU-00000000-0000-0000-0000-000000000000", "{uuid}", "MIG-{uuid}", "GPU-", ""])
def test_an_unknown_uuid_is_not_found(emulated, nvml, name):
    with pytest.raises(nvml.NVMLError, match=r"^Not Found$") as caught:
        nvml.nvmlDeviceGetHandleByUUID(name.format(uuid=emulated.devices[0].uuid))
    assert type(caught.value) is nvml.NVMLError_NotFound
    assert type(caught.value).__name__ == "NVMLError_NotFound"
    assert caught.value.value == 6


def test_errors_equal_pynvmls(nvml):
    import pynvml

    for name in [name for name in dir(nvml) if name.startswith("NVMLError_")]:
        ours, theirs = getattr(nvml, name)(), getattr(pynvml, name)()
        assert isinstance(ours, nvml.NVMLError)
        assert (type(ours).__name__, ours.value, str(ours)) == (type(theirs).__name__, theirs.value, str(theirs))


def test_every_function_has_a_counterpart_in_pynvml(nvml):
    import pynvml

    answers = [name for name in dir(nvml) if name.startswith("nvml")]
    assert len(answers) >= 9
    assert all(hasattr(pynvml, name) for name in answers)


def test_an_unknown_sensor_or_clock_is_an_invalid_argument(nvml, handle):
    with pytest.raises(nvml.NVMLError_InvalidArgument, match="Invalid Argument"):
        nvml.nvmlDeviceGetTemperature(handle, 1)
    with pytest.raises(nvml.NVMLError_InvalidArgument, match="Invalid Argument"):
        nvml.nvmlDeviceGetClockInfo(handle, 0)


def test_a_handle_of_another_runtime_is_an_invalid_argument(nvml):
    stranger = EmulatedRuntime(1, 1 << 20).devices[0]
    with pytest.raises(nvml.NVMLError_InvalidArgument):
        nvml.nvmlDeviceGetPowerUsage(stranger)


def test_calls_before_init_and_after_the_last_shutdown_fail(emulated, handle):
    nvml = emulated.nvml()
    with pytest.raises(nvml.NVMLError_Uninitialized, match="Uninitialized"):
        nvml.nvmlDeviceGetHandleByUUID(f"GPU-{emulated.devices[0].uuid}")
    nvml.nvmlInit()
    nvml.nvmlInit()
    nvml.nvmlShutdown()
    assert nvml.nvmlDeviceGetPowerUsage(handle) == 70_000
    nvml.nvmlShutdown()
    with pytest.raises(nvml.NVMLError_Uninitialized):
        nvml.nvmlDeviceGetPowerUsage(handle)
    with pytest.raises(nvml.NVMLError_Uninitialized):
        nvml.nvmlShutdown()


def test_the_surface_shows_the_work_of_the_devices_in_use(runtime):
    assert runtime is _runtime.runtime()
    runtime.deviceSynchronize()
    runtime.clock.advance(SECOND)
    idle = (_nvml.utilization(), _nvml.memory_usage(), _nvml.temperature(), _nvml.power_draw(), _nvml.clock_rate())
    assert idle == IDLE
    runtime.sleep(SECOND, 0)
    runtime.deviceSynchronize()
    busy = (_nvml.utilization(), _nvml.memory_usage(), _nvml.temperature(), _nvml.power_draw(), _nvml.clock_rate())
    assert busy == (100, 100, 80, 700_000, 1000)


def test_the_surface_lists_this_process_and_its_memory(runtime):
    before = _nvml.device_memory_used()
    ptr = runtime.malloc(1 << 20)
    try:
        used = _nvml.device_memory_used()
        assert used - before == 1 << 20
        assert _nvml.list_gpu_processes() == (
            f"GPU:0\nprocess {os.getpid():>10d} uses {used / 1024**2:>12.3f} MB GPU memory"
        )
    finally:
        runtime.free(ptr)
