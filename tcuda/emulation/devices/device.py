"""Devices as CuPy's objects."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tcuda._process.devices import exchange_device
from tcuda._process.lazy import backend, cuda
from tcuda.emulation.devices import device_attributes, pci_addresses, synchronization
from tcuda.emulation.devices.runtime_error import with_cupys_error
from tcuda.emulation.names import tensor_names

if TYPE_CHECKING:
    from typing_extensions import Self


class _Entered(threading.local):
    """The devices that were current when this thread entered the scopes that it has not left."""

    def __init__(self) -> None:
        self.devices: list[int] = []


_entered = _Entered()


class Device:
    """A device (``cupy.cuda.Device``). In a ``with`` block, the device is current.

    Args:
        device: The index, or a device; the current device if None. The device need not exist.

    Attributes:
        id: The index.
    """

    __module__ = "tcuda.emulation.cuda"
    __slots__ = ("id",)

    def __init__(self, device: Any = None) -> None:
        self.id: int = cuda.getDevice() if device is None else int(device)

    @classmethod
    def from_pci_bus_id(cls, pci_bus_id: str) -> Self:
        """Return the device with a PCI address such as ``"0000:01:00.0"``.

        Raises:
            CUDARuntimeError: The text is no address, or no device has the address.
        """
        return cls(pci_addresses.device_at(pci_bus_id))

    if not TYPE_CHECKING:  # for a type checker, the class has no other attributes

        def __getattr__(self, name):
            more = tensor_names.about_device(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{more}", name=name, obj=self)

    def __int__(self) -> int:
        return self.id

    @with_cupys_error
    def __enter__(self) -> Self:
        previous = cuda.getDevice()
        if self.id != previous:
            cuda.setDevice(self.id)
        _entered.devices.append(previous)
        return self

    def __exit__(self, *error: object) -> None:
        cuda.setDevice(_entered.devices.pop())

    @with_cupys_error
    def use(self) -> Self:
        """Make the device current, and return the device.

        Raises:
            CUDARuntimeError: There is no such device.
        """
        cuda.setDevice(self.id)
        return self

    @with_cupys_error
    def synchronize(self) -> None:
        """Wait for all work of the device.

        Raises:
            CUDARuntimeError: There is no such device, or a stream of the device captures.
            DeviceSynchronized: A scope of ``cupyx.allow_synchronize()`` forbids the wait.
        """
        synchronization.declare()
        previous = exchange_device(self.id)
        try:
            cuda.deviceSynchronize()
        finally:
            exchange_device(previous)

    @property
    def compute_capability(self) -> str:
        """The compute capability, such as ``"90"``."""
        properties = self._properties()
        return f"{properties['major']}{properties['minor']}"

    @property
    def mem_info(self) -> tuple[int, int]:
        """The free and the total memory in bytes."""
        with self:
            return cuda.memGetInfo()

    @property
    def attributes(self) -> dict[str, int]:
        """The attributes of the device by the names of ``cudaDeviceAttr``, without ``cudaDevAttr`` in front."""
        return device_attributes.all_of(self._properties())

    @property
    def pci_bus_id(self) -> str:
        """The PCI address of the device."""
        return pci_addresses.address_of(self._properties())

    @property
    def cublas_handle(self) -> int:
        """A number for this thread and the device, which no library accepts as a handle."""
        with self:
            return backend.blas_handle()

    @property
    def cusolver_handle(self) -> int:
        """A number for this thread and the device, which no library accepts as a handle."""
        with self:
            return backend.solver_handle()

    @with_cupys_error
    def _properties(self) -> Any:
        return cuda.getDeviceProperties(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __lt__(self, other: object) -> bool:
        return self.id < other.id if isinstance(other, Device) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.id <= other.id if isinstance(other, Device) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.id > other.id if isinstance(other, Device) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.id >= other.id if isinstance(other, Device) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"
