"""``CUDA_VISIBLE_DEVICES`` on emulated devices: the rules of CUDA."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tcuda.emulation.runtime import EmulatedRuntime
from tcuda.emulation.runtime.devices import uuid_of

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.emulated

UUIDS = [str(uuid_of(ordinal)) for ordinal in range(4)]
SEEN = """
import json, tcuda
print(json.dumps([str(tcuda.get_device_properties(index).uuid) for index in range(tcuda.device_count())]))
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        ("-1", []),
        ("1", [1]),
        ("3,0,2", [3, 0, 2]),
        ("0,-1,1", [0]),
        ("0,4,1", [0]),
        ("1,none,2", [1]),
        ("2,2", []),
        (f"GPU-{UUIDS[2]}", [2]),
        (f"GPU-{UUIDS[3][:8]},GPU-{UUIDS[0]}", [3, 0]),
        (f"GPU-{UUIDS[1]},0", [1]),
        ("GPU-no", []),
        (f"MIG-{UUIDS[0]}", []),
    ],
)
def test_a_process_sees_the_devices_of_the_variable(text: str | None, expected: list[int], output_of: OutputOf) -> None:
    printed = output_of(SEEN, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_DEVICES="4", CUDA_VISIBLE_DEVICES=text)
    assert json.loads(printed) == [UUIDS[ordinal] for ordinal in expected]


def test_a_process_without_visible_devices_is_told_the_variable(output_of: OutputOf) -> None:
    code = (
        "import tcuda\nassert not tcuda.is_available()\n"
        "try: tcuda.init()\nexcept RuntimeError as error: print(error)\n"
        "tcuda.emulation.enable(devices=2)\nprint(tcuda.device_count())"
    )
    printed = output_of(code, TCUDA_RUNTIME="emulated", CUDA_VISIBLE_DEVICES="")
    assert printed.startswith("No CUDA GPUs are available")
    assert "CUDA_VISIBLE_DEVICES='' may hide all devices, also emulated ones: unset the variable." in printed
    assert printed.endswith("\n2")  # devices that the program itself asks for are visible


def test_a_program_may_set_the_variable_before_its_first_use_of_a_device(output_of: OutputOf) -> None:
    code = "import os, tcuda\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\nx = tcuda.xp.ones(2)\n" + SEEN
    printed = output_of(code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_DEVICES="2", CUDA_VISIBLE_DEVICES=None)
    assert json.loads(printed) == [UUIDS[1]]


def test_the_places_of_devices_are_those_of_the_process_and_of_the_machine() -> None:
    runtime = EmulatedRuntime(3, 1 << 20, [2, 0])
    assert [(device.index, device.ordinal) for device in runtime.devices] == [(0, 2), (1, 0)]
    assert [runtime.getDeviceProperties(index)["pciBusID"] for index in range(2)] == [2, 0]
    nvml = runtime.nvml()
    nvml.nvmlInit()
    handles = [nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}") for uuid in UUIDS[:3]]
    assert [nvml.nvmlDeviceGetIndex(handle) for handle in handles] == [0, 1, 2]  # NVML sees all devices
    environment = runtime.environment()  # a child process sees the same devices
    assert (environment["TCUDA_EMULATED_DEVICES"], environment["CUDA_VISIBLE_DEVICES"]) == ("3", "2,0")
