"""The properties of a device, under torch's names."""

from __future__ import annotations

import dataclasses
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, repr=False)
class _CudaDeviceProperties:
    """The properties of a device, under torch's names.

    Sizes are in bytes, clock rates in kHz, and the bus width is in bits.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int
    is_integrated: int
    is_multi_gpu_board: int
    pci_bus_id: int
    pci_device_id: int
    pci_domain_id: int
    uuid: uuid.UUID
    gcnArchName: str  # torch's name for ROCm; on CUDA it holds the device's name

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"uuid={self.uuid}, pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )

    def _repr_html_(self) -> str:
        from tcuda._viz.shared import notebook  # here, because few programs need the module

        rows = [
            ("compute capability", f"{self.major}.{self.minor}"),
            ("memory", f"{self.total_memory / (1 << 30):.1f} GiB"),
            ("multiprocessors", str(self.multi_processor_count)),
            ("L2 cache", f"{self.L2_cache_size / (1 << 20):.0f} MiB"),
            ("shared memory of a block", f"{self.shared_memory_per_block_optin / 1024:.0f} KiB"),
            ("threads of a multiprocessor", f"{self.max_threads_per_multi_processor:,}"),
            ("uuid", self.uuid),
        ]
        return notebook.table(self.name, (), rows)

    @classmethod
    def _from_cuda(cls, properties: Mapping[str, Any]) -> _CudaDeviceProperties:
        """Return the properties for the dictionary that CuPy's ``getDeviceProperties`` returned."""
        name = properties["name"].decode()
        return cls(
            name=name,
            major=properties["major"],
            minor=properties["minor"],
            total_memory=properties["totalGlobalMem"],
            multi_processor_count=properties["multiProcessorCount"],
            warp_size=properties["warpSize"],
            max_threads_per_block=properties["maxThreadsPerBlock"],
            max_threads_per_multi_processor=properties["maxThreadsPerMultiProcessor"],
            regs_per_multiprocessor=properties["regsPerMultiprocessor"],
            shared_memory_per_block=properties["sharedMemPerBlock"],
            shared_memory_per_block_optin=properties["sharedMemPerBlockOptin"],
            shared_memory_per_multiprocessor=properties["sharedMemPerMultiprocessor"],
            L2_cache_size=properties["l2CacheSize"],
            clock_rate=properties["clockRate"],
            memory_clock_rate=properties["memoryClockRate"],
            memory_bus_width=properties["memoryBusWidth"],
            is_integrated=properties["integrated"],
            is_multi_gpu_board=properties["isMultiGpuBoard"],
            pci_bus_id=properties["pciBusID"],
            pci_device_id=properties["pciDeviceID"],
            pci_domain_id=properties["pciDomainID"],
            uuid=uuid.UUID(bytes=bytes(properties["uuid"])),
            gcnArchName=name,
        )
