"""The PCI addresses of devices, such as ``"0000:01:00.0"``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tcuda._base.statuses import Status
from tcuda._process.lazy import cuda
from tcuda.emulation.devices.runtime_error import CUDARuntimeError

if TYPE_CHECKING:
    from collections.abc import Mapping


def address_of(properties: Mapping[str, Any]) -> str:
    """Return the PCI address of the device with these properties."""
    return f"{properties['pciDomainID']:04X}:{properties['pciBusID']:02X}:{properties['pciDeviceID']:02X}.0"


def device_at(address: str) -> int:
    """Return the index of the device with a PCI address.

    Raises:
        CUDARuntimeError: The text is no address, or no device has the address.
    """
    match = re.fullmatch(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.[0-9a-fA-F])?", address)
    if match is None:
        raise CUDARuntimeError(Status.INVALID_VALUE)
    wanted = tuple(int(part or "0", 16) for part in match.groups())
    for device in range(cuda.getDeviceCount()):
        properties = cuda.getDeviceProperties(device)
        if (properties["pciDomainID"], properties["pciBusID"], properties["pciDeviceID"]) == wanted:
            return device
    raise CUDARuntimeError(Status.INVALID_DEVICE)
