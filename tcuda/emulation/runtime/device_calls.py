"""The calls for devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.statuses import Status
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.devices import STREAM_PRIORITY_RANGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcuda.emulation.runtime.machine import Machine

_VERSION = 13000


class DeviceCalls:
    """The calls for devices.

    Args:
        machine: The state of the devices.
    """

    def __init__(self, machine: Machine) -> None:
        self._lock = machine.lock
        self._clock = machine.clock
        self._races = machine.races
        self._devices = machine.devices
        self._thread = machine.thread
        self._device = machine.device
        self._captures = machine.captures
        self._streams = machine.streams

    def driverGetVersion(self) -> int:
        return _VERSION

    def runtimeGetVersion(self) -> int:
        return _VERSION

    def visibleDeviceCount(self) -> int:
        return len(self._devices)

    def getDeviceCount(self) -> int:
        return len(self._devices)

    def getDevice(self) -> int:
        return self._thread.device

    def setDevice(self, device: int) -> None:
        self._device(device, ("cudaSetDevice({})", device))
        self._thread.device = device

    def deviceSynchronize(self) -> None:
        call = ("cudaDeviceSynchronize()",)
        with self._lock:
            device = self._thread.device
            for capture in self._captures.in_progress:
                if capture.device == device:
                    raise capture.invalidate(call)
            self._captures.forbid_unsafe(call)
            self._clock.wait_until(self._streams.ready(device))
            self._races.watcher.device_finished(device)

    def getDeviceProperties(self, device: int) -> Mapping[str, Any]:
        return self._device(device, ("cudaGetDeviceProperties({})", device)).properties()

    def deviceCanAccessPeer(self, device: int, peerDevice: int) -> int:
        call = "cudaDeviceCanAccessPeer({}, {})", device, peerDevice
        return int(self._device(device, call) is not self._device(peerDevice, call))

    def deviceEnablePeerAccess(self, peerDevice: int) -> None:
        call = "cudaDeviceEnablePeerAccess({})", peerDevice
        self._device(peerDevice, call)
        device = self._devices[self._thread.device]
        if peerDevice == device.index:
            raise failure(Status.PEER_ACCESS_UNSUPPORTED, call)
        if peerDevice in device.peers:
            raise failure(Status.PEER_ACCESS_ALREADY_ENABLED, call)
        device.peers.add(peerDevice)

    def deviceDisablePeerAccess(self, peerDevice: int) -> None:
        call = "cudaDeviceDisablePeerAccess({})", peerDevice
        self._device(peerDevice, call)
        device = self._devices[self._thread.device]
        if peerDevice not in device.peers:
            raise failure(Status.PEER_ACCESS_NOT_ENABLED, call)
        device.peers.remove(peerDevice)

    def canAccess(self, device: int, owner: int) -> bool:
        """Return whether kernels of ``device`` may use the memory of the device ``owner``."""
        return self._devices[device].can_access(owner)

    def deviceGetStreamPriorityRange(self) -> tuple[int, int]:
        return STREAM_PRIORITY_RANGE

    def profilerStart(self) -> None:
        pass

    def profilerStop(self) -> None:
        pass
