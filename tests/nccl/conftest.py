"""The fixtures of the tests of collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcuda
from tcuda._base.errors import NcclNotFoundError

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime


@pytest.fixture(scope="session")
def nccl_on_two_devices(runtime: Runtime) -> None:
    """Skip the tests where there are fewer than two devices, or no library."""
    if runtime.getDeviceCount() < 2:
        pytest.skip("needs two devices")
    try:
        tcuda.nccl.version()
    except NcclNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest) -> None:
    if not request.node.get_closest_marker("without_nccl"):
        request.getfixturevalue("nccl_on_two_devices")
