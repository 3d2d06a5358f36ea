"""The functions over several devices against NumPy, with any number of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY
from support.several_devices import LAWS

if TYPE_CHECKING:
    from support.fixture_types import OutputOf


@pytest.mark.usefixtures("memory_comes_back")
@pytest.mark.parametrize("law", LAWS)
def test_the_laws_hold_on_the_devices_of_the_process(law: str) -> None:
    LAWS[law]()


@pytest.mark.long
@pytest.mark.emulated
@pytest.mark.parametrize("devices", ["1", "4", "8"])
def test_the_laws_hold_on_other_numbers_of_devices(devices: str, output_of: OutputOf) -> None:
    code = "from support.several_devices import check_all; check_all(); import tcuda; print(tcuda.device_count())"
    assert output_of(code, TCUDA_EMULATED_DEVICES=devices, PYTHONPATH=str(REPOSITORY / "tests")) == devices
