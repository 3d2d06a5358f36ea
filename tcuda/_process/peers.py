"""Access of a device to the memory of another device, its peer."""

from __future__ import annotations

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._process.devices import exchange_device
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger

_reached: dict[tuple[int, int], bool] = {}
"""Whether the first device of each pair that was asked for can access the memory of the second."""

call_in_child(_reached.clear)  # so that a call in a forked child raises


def reach(device: int, peer: int) -> bool:
    """Let the work of ``device`` use the memory of ``peer``, and return whether that is possible.

    The first call for a pair of devices enables the access (``cudaDeviceEnablePeerAccess``), which stays enabled. Later
    calls for the pair only look up the answer.

    Args:
        device: The index of the device that executes the work.
        peer: The index of the device that has the memory.

    Raises:
        AcceleratorError: One of the devices does not exist.
    """
    found = _reached.get((device, peer))
    if found is None:
        found = _reached[device, peer] = device == peer or _enable(device, peer)
    return found


def _enable(device: int, peer: int) -> bool:
    if not cuda.deviceCanAccessPeer(device, peer):
        return False
    previous = exchange_device(device)
    try:
        cuda.deviceEnablePeerAccess(peer)
    except AcceleratorError as error:
        if error.error_code != Status.PEER_ACCESS_ALREADY_ENABLED:
            raise
    finally:
        exchange_device(previous)
    # The call above does not reach mapped memory of other processes, and now the context of `device` is active.
    ledger().use(device)
    return True
