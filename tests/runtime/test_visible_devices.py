"""The number of visible devices, by CUDA's rules for CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pynvml
import pytest

from support.environments import NO_GPU
from tcuda._runtime.cuda import visible_devices

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

UUIDS = (
    "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
    "GPU-8932ffff-d72c-4106-c12f-20bd9faed9f6",
    "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763",
)
MIG_DEVICES = ("MIG-a6e9ac7a-bf4b-5b4d-b0e4-3a6d5e0a6c34", f"MIG-{UUIDS[2]}/7/0")

RULES = [
    # Not set, and empty
    (None, 3),
    ("", 0),
    # Indices
    ("0", 1),
    ("2,0", 2),
    ("0,1,2", 3),
    ("0,2,-1,1", 2),
    ("-1", 0),
    ("3", 0),
    ("0,3,1", 1),
    ("0,,1", 1),
    (",0", 0),
    ("0,1,", 2),
    # Indices as strtoul reads them
    ("1gpu2,2ampere", 2),
    (" 1, 2", 2),
    ("+1,2", 2),
    ("-0", 1),
    ("0x2,1", 2),
    ("1.5,2", 2),
    ("gpu1", 0),
    ("0,gpu1,2", 1),
    ("99999999999999999999", 0),
    ("9" * 5000, 0),
    # One device twice
    ("1,1", 0),
    ("0,1,0", 0),
    ("1,01", 0),
    ("1,1gpu", 0),
    ("0,9,0", 1),
    # UUIDs and their prefixes
    (UUIDS[0], 1),
    (f"{UUIDS[2]},{UUIDS[0]}", 2),
    ("GPU-b1", 1),
    ("GPU-8932f9,GPU-8932ff,GPU-b", 3),
    ("GPU-8932f", 0),
    ("GPU-b,GPU-8932f,GPU-8932f9", 1),
    ("GPU-", 0),
    ("GPU-c", 0),
    ("GPU-b,GPU-c,GPU-8932f9", 1),
    ("GPU-b,GPU-b", 0),
    (f"GPU-b,{UUIDS[2]}", 0),
    ("GPU-b,", 1),
    ("gpu-b", 0),
    # Indices and UUIDs: the first entry decides the kind
    ("GPU-b,0", 1),
    ("0,GPU-b", 1),
    # MIG devices: CUDA shows at most one
    (MIG_DEVICES[0], 1),
    (MIG_DEVICES[1], 1),
    (",".join(MIG_DEVICES), 1),
    ("MIG-00000000-0000-0000-0000-000000000000", None),
    (f"MIG-{UUIDS[2]}/7/1", None),
    (f"MIG-none,{MIG_DEVICES[0]}", None),
    (f"{MIG_DEVICES[0]},0", 1),
    (f"0,{MIG_DEVICES[0]}", 1),
    (f"GPU-b,{MIG_DEVICES[0]}", 1),
]


@pytest.mark.parametrize(("text", "expected"), RULES)
def test_count_visible_follows_the_rules(text, expected):
    assert visible_devices.count_visible(text, UUIDS, MIG_DEVICES.__contains__) == expected


@pytest.mark.parametrize("text", [None, "", "0", "GPU-8"])
def test_a_machine_without_gpus_shows_none(text):
    assert visible_devices.count_visible(text, [], MIG_DEVICES.__contains__) == 0


# Measured on a machine with one H200 (driver 580): CUDA shows the GPU for the values of SHOWS_IT, and no GPU for those
# of SHOWS_NOTHING. {start} is the UUID up to its eighth digit.
SHOWS_IT = [
    # Indices
    *("0", "0,", "0,,1", "0,-1", "0,99"),
    *(" 0", "\t0", "0 0", "+0", "-0"),
    *("00", "0x", "0x0", "0.5", "0-0", "0:0", "0;1"),
    *("0gpu1",),
    # One device twice, with entries before or after
    *("0,99,0", "0,-1,0"),
    # UUIDs
    *("{uuid}", "{upper}", "{plain}", "{start}", "{start}-", "{start}--"),
    *("{uuid}0", "{uuid}-0", "{uuid} ", "{uuid}x"),
    *("{start},{start}-x",),
    *("{uuid},", "{uuid},GPU-", "{uuid},GPU-x", "{uuid},GPU-x,{uuid}"),
    # Indices and UUIDs
    *("{uuid},0", "{uuid},1", "{uuid},x", "0,{uuid}", "0,GPU-"),
]
SHOWS_NOTHING = [
    # Indices
    *(",0", "", "-1", "99", "99,0"),
    *("\xa00", "--0", "+-0", "+ 0"),
    *("08", "010", ";0", '"0"'),
    *("gpu0", "all", "18446744073709551616", "-18446744073709551616"),
    # One device twice, with entries before or after
    *("0,0", "0,00", "0 ,0", "0,0,99", "0,0,-1"),
    # UUIDs
    *("{start}x", "{start}-x", "{start} "),
    *("{start}x,0", "GPU-", "GPU-x", "gpu-", "GPU-,{uuid}", " {uuid}", "{lower}"),
    *("{uuid},{uuid}", "{start},{uuid}", "{uuid}x,{uuid}"),
]


def written(text, uuid):
    digits = uuid.removeprefix("GPU-")
    return text.format(
        uuid=uuid,
        start=uuid[:12],
        plain=f"GPU-{digits.replace('-', '')}",
        upper=f"GPU-{digits.upper()}",
        lower=f"gpu-{digits}",
    )


@pytest.mark.parametrize(
    ("text", "expected"), [*((text, 1) for text in SHOWS_IT), *((text, 0) for text in SHOWS_NOTHING)]
)
def test_one_gpu_is_visible_as_measured_with_cuda(text, expected):
    uuid = "GPU-ac69e9a8-d386-22ce-b130-6394da6e882e"
    assert visible_devices.count_visible(written(text, uuid), [uuid], MIG_DEVICES.__contains__) == expected


class FakePynvml(ModuleType):
    """NVML with three GPUs. GPUs in ``mig`` are in MIG mode. Functions in ``failing`` raise the given error.

    The first GPU has no MIG mode, and the driver of the second GPU does not know MIG modes.
    """

    NVMLError = pynvml.NVMLError
    NVMLError_FunctionNotFound = pynvml.NVMLError_FunctionNotFound
    NVMLError_InvalidArgument = pynvml.NVMLError_InvalidArgument
    NVMLError_NotFound = pynvml.NVMLError_NotFound
    NVMLError_NotSupported = pynvml.NVMLError_NotSupported
    NVML_DEVICE_MIG_ENABLE = pynvml.NVML_DEVICE_MIG_ENABLE

    def __init__(self):
        super().__init__("pynvml")
        self.users = 0
        self.mig = set()
        self.failing = {}

    def _enter(self, name):
        if name in self.failing:
            raise self.NVMLError(self.failing[name])
        if not self.users and name != "nvmlInit":
            raise self.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)

    def nvmlInit(self):
        self._enter("nvmlInit")
        self.users += 1

    def nvmlShutdown(self):
        self._enter("nvmlShutdown")
        self.users -= 1

    def nvmlSystemGetCudaDriverVersion_v2(self):
        self._enter("nvmlSystemGetCudaDriverVersion_v2")
        return 13000

    def nvmlDeviceGetCount(self):
        self._enter("nvmlDeviceGetCount")
        return len(UUIDS)

    def nvmlDeviceGetHandleByIndex(self, index):
        self._enter("nvmlDeviceGetHandleByIndex")
        return f"handle {index}"

    def nvmlDeviceGetUUID(self, handle):
        self._enter("nvmlDeviceGetUUID")
        return UUIDS[int(handle[-1])]

    def nvmlDeviceGetMigMode(self, handle):
        self._enter("nvmlDeviceGetMigMode")
        index = int(handle[-1])
        if index in self.mig:
            return [pynvml.NVML_DEVICE_MIG_ENABLE, pynvml.NVML_DEVICE_MIG_ENABLE]
        if index < 2:
            raise self.NVMLError((pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)[index])
        return [pynvml.NVML_DEVICE_MIG_DISABLE, pynvml.NVML_DEVICE_MIG_ENABLE]

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self._enter("nvmlDeviceGetHandleByUUID")
        if uuid == "MIG-":
            raise self.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        if uuid not in MIG_DEVICES:
            raise self.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"handle of {uuid}"


@pytest.fixture
def nvml(monkeypatch):
    fake = FakePynvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    yield fake
    assert fake.users == 0, "nvmlInit and nvmlShutdown are not balanced"


def visible(text=None, cuda_major=13):
    return visible_devices.count(cuda_major, {} if text is None else {"CUDA_VISIBLE_DEVICES": text})


def test_a_driver_older_than_cuda_shows_no_device(nvml):
    assert [visible(cuda_major=major) for major in (12, 13, 14)] == [3, 3, 0]


@pytest.mark.parametrize(("text", "expected"), RULES)
def test_count_follows_the_rules(nvml, text, expected):
    assert visible(text) == expected


def test_count_reads_the_environment(nvml, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    assert visible_devices.count() == 2
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert visible_devices.count() == 3


@pytest.mark.parametrize("text", [None, "0", "0,1", "-1", UUIDS[0]])
def test_count_is_none_if_a_gpu_is_in_mig_mode(nvml, text):
    nvml.mig.add(1)
    assert visible(text) is None


@pytest.mark.parametrize(("text", "expected"), [("", 0), (MIG_DEVICES[0], 1), (MIG_DEVICES[1], 1), ("MIG-", None)])
def test_count_of_mig_devices(nvml, text, expected):
    nvml.mig.add(2)
    assert visible(text) == expected


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("nvmlInit", pynvml.NVML_ERROR_LIBRARY_NOT_FOUND),
        ("nvmlInit", pynvml.NVML_ERROR_DRIVER_NOT_LOADED),
        ("nvmlInit", pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH),
        ("nvmlSystemGetCudaDriverVersion_v2", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND),
        ("nvmlDeviceGetCount", pynvml.NVML_ERROR_UNKNOWN),
        ("nvmlDeviceGetHandleByIndex", pynvml.NVML_ERROR_NO_PERMISSION),
        ("nvmlDeviceGetUUID", pynvml.NVML_ERROR_GPU_IS_LOST),
        ("nvmlDeviceGetMigMode", pynvml.NVML_ERROR_UNKNOWN),
        ("nvmlDeviceGetHandleByUUID", pynvml.NVML_ERROR_NO_PERMISSION),
    ],
)
def test_count_is_none_if_nvml_fails(nvml, function, error):
    nvml.failing[function] = error
    assert visible(MIG_DEVICES[0]) is None


def test_count_is_none_if_nvml_does_not_shut_down(nvml):
    nvml.failing["nvmlShutdown"] = pynvml.NVML_ERROR_UNKNOWN
    assert visible() is None
    nvml.users -= 1  # the failed nvmlShutdown did not count


def test_count_is_none_without_pynvml(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert visible() is None


def test_an_empty_list_shows_no_device_even_if_nvml_fails(nvml):
    nvml.failing["nvmlInit"] = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    assert visible("") == 0


COUNT_TWICE = """
import ctypes
from tcuda._runtime.cuda import visible_devices
by_nvml, by_cuda = visible_devices.count(), ctypes.c_int()
libcuda = ctypes.CDLL("libcuda.so.1")
if libcuda.cuInit(0) == 0:
    libcuda.cuDeviceGetCount(ctypes.byref(by_cuda))
print(by_nvml, by_cuda.value)
"""


@pytest.mark.gpu
@pytest.mark.parametrize("text", [None, *SHOWS_IT, *SHOWS_NOTHING, "MIG-", "MIG-x", "MIG-{uuid}"])
def test_count_agrees_with_cuda(text, tmp_path):
    pynvml.nvmlInit()
    uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0))
    pynvml.nvmlShutdown()
    environ = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    if text is not None:
        environ["CUDA_VISIBLE_DEVICES"] = written(text, uuid)
    child = subprocess.run(
        [sys.executable, "-c", COUNT_TWICE], env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    by_nvml, by_cuda = child.stdout.split()
    assert by_nvml in (by_cuda, "None")


@pytest.mark.wings
def test_the_count_of_gpus_leaves_the_choice_of_the_runtime_open(output_of: OutputOf) -> None:
    code = (
        "from tcuda._runtime import gpus; import tcuda; found = gpus(); tcuda.emulation.enable(3); "
        "print(found >= 0, tcuda.device_count())"
    )
    assert output_of(code, TCUDA_RUNTIME=None) == "True 3"
    assert output_of("from tcuda._runtime import gpus; print(gpus())", **NO_GPU) == "0"


@pytest.mark.gpu
def test_the_count_of_gpus_is_the_count_of_devices(output_of: OutputOf) -> None:
    assert output_of("from tcuda._runtime import gpus; import tcuda; print(gpus() - tcuda.device_count())") == "0"
