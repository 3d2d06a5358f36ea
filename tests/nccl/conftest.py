"""The fixtures of the tests of collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcuda
from tcuda._errors import NcclNotFoundError

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime


@pytest.fixture(autouse=True)
def _nccl_on_two_devices(request: pytest.FixtureRequest) -> None:
    """Skip a test that needs two devices or the library where these do not exist."""
    if request.node.get_closest_marker("without_nccl"):
        return
    runtime: Runtime = request.getfixturevalue("runtime")
    if runtime.getDeviceCount() < 2:
        pytest.skip("needs two devices")
    try:
        tcuda.nccl.version()
    except NcclNotFoundError as error:
        pytest.skip(str(error))
