"""Telemetry: the readings of NVML for the given device."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from types import SimpleNamespace

import pynvml
import pytest

import tcuda
from tcuda._device import _nvml
from tcuda._process import devices

RANGES = [
    (_nvml.utilization, 0, 100),
    (_nvml.memory_usage, 0, 100),
    (_nvml.temperature, 5, 120),
    (_nvml.power_draw, 1_000, 2_000_000),
    (_nvml.total_energy, 0, 1 << 63),
    (_nvml.clock_rate, 50, 10_000),
    (_nvml.device_memory_used, 0, 1 << 42),
]
QUERIES = [query for query, _, _ in RANGES] + [_nvml.list_gpu_processes]
REFUSING = [*QUERIES, _nvml._get_pynvml_handler]
every_query_and_handle = pytest.mark.parametrize("query", REFUSING, ids=lambda query: query.__name__)
every_query = pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.__name__)


@pytest.mark.parametrize(("query", "least", "most"), RANGES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_reading_is_an_int_in_its_range(query, least, most):
    reading = query()
    assert type(reading) is int
    assert least <= reading <= most


def test_used_memory_counts_an_allocation(runtime):
    size = 64 << 20
    ptr = runtime.malloc(size)
    try:
        assert _nvml.device_memory_used() >= size
    finally:
        runtime.free(ptr)


def test_processes_are_listed_one_per_line():
    first, *others = _nvml.list_gpu_processes().splitlines()
    assert re.fullmatch(r"GPU:\d+", first)
    assert others == ["no processes are running"] or all(
        re.fullmatch(r"process [ \d]{10} uses ([ \d]+\.\d{3} MB|an unknown amount of) GPU memory", line)
        for line in others
    )


@every_query
@pytest.mark.parametrize("device", [None, 0, "cuda", "cuda:0", SimpleNamespace(type="cuda", index=0)])
def test_a_device_can_be_named_in_every_way(query, device):
    assert type(query(device)) is type(query())


@every_query_and_handle
@pytest.mark.parametrize("device", [99, -1, "cuda:99"])
def test_a_device_that_is_not_visible_is_refused(query, device, runtime, monkeypatch):
    index = 99 if device == "cuda:99" else device
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,7")  # CUDA has started, so only the message changes
    message = f"device {index} is not visible (CUDA_VISIBLE_DEVICES='0,7'); visible devices: {runtime.getDeviceCount()}"
    with pytest.raises(RuntimeError, match=f"^{re.escape(message)}$"):
        query(device)


@every_query_and_handle
def test_a_device_of_another_type_is_refused(query):
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        query("cpu")


class FakeNvml:
    """NVML with three GPUs and a MIG device, each with its own readings."""

    NVMLError = pynvml.NVMLError
    NVMLError_DriverNotLoaded = pynvml.NVMLError_DriverNotLoaded
    NVMLError_NotFound = pynvml.NVMLError_NotFound

    def __init__(self, handles):
        self.handles = handles
        self.processes = {}
        self.failing = {}
        self.calls = []

    def _enter(self, name):
        self.calls.append(name)
        if name in self.failing:
            raise self.NVMLError(self.failing[name])

    def nvmlInit(self):
        self._enter("nvmlInit")

    def nvmlDeviceGetHandleByUUID(self, name):
        self._enter("nvmlDeviceGetHandleByUUID")
        if name not in self.handles:
            raise self.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return self.handles[name]

    def nvmlDeviceGetIndex(self, handle):
        self._enter("nvmlDeviceGetIndex")
        return handle

    def nvmlDeviceGetUtilizationRates(self, handle):
        self._enter("nvmlDeviceGetUtilizationRates")
        return SimpleNamespace(gpu=10 + handle, memory=20 + handle)

    def nvmlDeviceGetMemoryInfo(self, handle):
        self._enter("nvmlDeviceGetMemoryInfo")
        return SimpleNamespace(total=900 + handle, used=30 + handle, free=870)

    def nvmlDeviceGetTemperature(self, handle, sensor):
        self._enter("nvmlDeviceGetTemperature")
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return 40 + handle

    def nvmlDeviceGetPowerUsage(self, handle):
        self._enter("nvmlDeviceGetPowerUsage")
        return 50 + handle

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        self._enter("nvmlDeviceGetTotalEnergyConsumption")
        return 80 + handle

    def nvmlDeviceGetClockInfo(self, handle, type):
        self._enter("nvmlDeviceGetClockInfo")
        assert type == pynvml.NVML_CLOCK_SM
        return 60 + handle

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        self._enter("nvmlDeviceGetComputeRunningProcesses")
        return self.processes.get(handle, [])


class FakeRuntime:
    """CUDA that shows some of NVML's devices in another order. The second device is current."""

    def __init__(self, nvml, uuids):
        self._nvml = nvml
        self._uuids = uuids

    def nvml(self):
        return self._nvml

    def getDevice(self):
        return 1

    def getDeviceCount(self):
        return len(self._uuids)

    def getDeviceProperties(self, device):
        return {"uuid": self._uuids[device].bytes}


@pytest.fixture
def nvml(monkeypatch):
    """NVML in which CUDA's devices 0, 1 and 2 are NVML's 2, 0 and a MIG device, with the handles 2, 0 and 7."""
    uuids = [uuid.UUID(int=number) for number in range(4)]
    names = {f"GPU-{uuids[0]}": 0, f"GPU-{uuids[1]}": 1, f"GPU-{uuids[2]}": 2, f"MIG-{uuids[3]}": 7}
    nvml = FakeNvml(names)
    runtime = FakeRuntime(nvml, [uuids[2], uuids[0], uuids[3]])
    monkeypatch.setattr(_nvml, "cuda", runtime)
    monkeypatch.setattr(devices, "cuda", runtime)
    monkeypatch.setattr(_nvml, "_sessions", {})
    return nvml


@pytest.mark.parametrize(("device", "handle"), [(0, 2), ("cuda:1", 0), (None, 0), (2, 7)])
def test_a_device_is_found_by_its_uuid(nvml, device, handle):
    readings = [query(device) for query in QUERIES]
    assert readings[:-1] == [tens + handle for tens in (10, 20, 40, 50, 80, 60, 30)]
    assert readings[-1] == f"GPU:{handle}\nno processes are running"
    assert _nvml._get_pynvml_handler(device) == handle


def test_a_handle_that_nvml_refuses_is_a_runtime_error(nvml):
    nvml.failing["nvmlDeviceGetHandleByUUID"] = pynvml.NVML_ERROR_NO_PERMISSION
    with pytest.raises(RuntimeError, match="nvmlDeviceGetHandleByUUID failed for device 0: NVML says 'Insufficient"):
        _nvml._get_pynvml_handler(0)


@pytest.mark.gpu
def test_pynvml_takes_the_handle():
    name = tcuda.get_device_properties(0).name
    assert pynvml.nvmlDeviceGetName(tcuda._get_pynvml_handler(0)) == name
    assert tcuda._HAS_PYNVML


def test_processes_are_listed_as_torch_does(nvml):
    nvml.processes[2] = [
        SimpleNamespace(pid=4711, usedGpuMemory=1_500_000_000),
        SimpleNamespace(pid=1234567890, usedGpuMemory=0),
        SimpleNamespace(pid=1, usedGpuMemory=None),
    ]
    assert _nvml.list_gpu_processes(0) == (
        "GPU:2\n"
        "process       4711 uses     1430.511 MB GPU memory\n"
        "process 1234567890 uses        0.000 MB GPU memory\n"
        "process          1 uses an unknown amount of GPU memory"
    )


def test_nvml_is_initialised_once_and_a_handle_is_looked_up_once(nvml):
    for _ in range(3):
        _nvml.temperature(0)
    assert nvml.calls == ["nvmlInit", "nvmlDeviceGetHandleByUUID", *["nvmlDeviceGetTemperature"] * 3]


def test_a_refused_device_does_not_affect_later_calls(nvml):
    with pytest.raises(RuntimeError, match="device 3 is not visible"):
        _nvml.temperature(3)
    assert _nvml.temperature(0) == 42


@every_query
def test_an_error_of_nvml_is_raised_with_nvmls_text(nvml, query):
    nvml.failing = {
        name: pynvml.NVML_ERROR_NO_PERMISSION
        for name in dir(nvml)
        if name.startswith("nvmlDeviceGet") and name != "nvmlDeviceGetHandleByUUID"
    }
    with pytest.raises(
        RuntimeError, match=r"^nvmlDeviceGet\w+ failed for device 2: NVML says 'Insufficient Permissions'\.$"
    ) as caught:
        query(2)
    assert isinstance(caught.value.__cause__, pynvml.NVMLError_NoPermission)


@pytest.mark.parametrize("status", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND])
def test_a_device_without_a_counter_of_energy_is_refused_with_the_reason(nvml, status):
    nvml.failing["nvmlDeviceGetTotalEnergyConsumption"] = status
    with pytest.raises(ValueError, match=r"device 2: NVML says '.*'\. Read tcuda\.power_draw\(\) at intervals"):
        _nvml.total_energy(2)


def test_a_device_that_nvml_does_not_know_is_an_error(nvml):
    nvml.handles.clear()
    with pytest.raises(RuntimeError, match="NVML says 'Not Found'"):
        _nvml.temperature(0)


def test_a_lost_gpu_is_not_searched_among_the_mig_devices(nvml):
    nvml.failing["nvmlDeviceGetHandleByUUID"] = pynvml.NVML_ERROR_GPU_IS_LOST
    with pytest.raises(RuntimeError, match="NVML says 'GPU is lost'"):
        _nvml.temperature(0)
    assert nvml.calls == ["nvmlInit", "nvmlDeviceGetHandleByUUID"]


@pytest.mark.parametrize("query", QUERIES[:-1], ids=lambda query: query.__name__)
def test_a_driver_that_is_not_loaded_is_an_error(nvml, query):
    nvml.failing["nvmlInit"] = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    with pytest.raises(RuntimeError, match=r"^cuda driver can't be loaded, is cuda enabled\?$"):
        query()


def test_the_list_of_processes_says_that_the_driver_is_not_loaded(nvml):
    nvml.failing["nvmlInit"] = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    assert _nvml.list_gpu_processes() == "cuda driver can't be loaded, is cuda enabled?"


def test_a_failed_initialisation_is_repeated(nvml):
    nvml.failing["nvmlInit"] = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    with pytest.raises(RuntimeError, match="nvmlInit failed: NVML says 'NVML Shared Library Not Found'"):
        _nvml.temperature(0)
    nvml.failing.clear()
    assert _nvml.temperature(0) == 42


FORK = """
import os, sys
from tcuda._device import _nvml
_nvml.temperature(0)
child = os.fork()
if child == 0:
    os._exit(1 if _nvml._sessions else 0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_does_not_keep_the_handles_of_its_parent(tmp_path):
    # The fork happens in a new process, because Python warns of forks in a process with threads.
    assert subprocess.run([sys.executable, "-c", FORK], cwd=tmp_path).returncode == 0
