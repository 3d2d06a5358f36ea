"""The limits of launches, which the properties of a device tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("maxThreadsPerBlock", 1024),
        ("maxThreadsDim", (1024, 1024, 64)),
        ("maxGridSize", (2**31 - 1, 65535, 65535)),
        ("sharedMemPerBlock", 49152),
    ],
)
def test_the_properties_of_a_device_tell_the_limits(name: str, limit: object, runtime: Runtime) -> None:
    assert runtime.getDeviceProperties(0)[name] == limit
