"""What ``cupy.show_config`` prints."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda

pytestmark = pytest.mark.emulated


@pytest.mark.parametrize("options", [{}, {"_full": True}])
def test_show_config_prints_the_versions_and_the_devices(capsys, options):
    tcuda.xp.show_config(**options)
    facts = dict(line.split(" : ", 1) for line in capsys.readouterr().out.splitlines())
    facts = {name.strip(): value for name, value in facts.items()}
    assert facts["CuPy Version"] == f"{tcuda.xp.__version__}, on emulated devices of tcuda {tcuda.__version__}"
    assert facts["NumPy Version"] == np.__version__
    assert [facts[f"Device {index} Name"] for index in range(2)] == ["tcuda emulated device"] * 2
    assert facts["Device 1 Compute Capability"] == "90"
