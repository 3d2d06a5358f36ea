"""The protocol :class:`~tcuda._backend.transfers.Transfers` on emulated devices, by calls of the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._device import device as current_device
from tcuda._process.lazy import cuda
from tcuda._runtime.protocol import MEMCPY_DEVICE_TO_DEVICE, MEMCPY_HOST_TO_DEVICE
from tcuda.comm._order import queue, settle
from tcuda.emulation import xp
from tcuda.emulation.arrays.ndarray import ndarray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._backend.transfers import Hop

_PACKED_UNIT = 16


class Transfers:
    """Work on arrays of several emulated devices."""

    array: type[Any] = ndarray
    xp: Any = xp

    def empty(self, shape: Sequence[int], dtype: Any, device: int) -> Any:
        """Return a new array in C order on ``device``, in memory of the stream of ``device``."""
        with current_device(device):
            return self.array(shape, dtype)

    def relay(self, arrays: Sequence[Any], hops: Sequence[Hop]) -> None:
        """Make the copies ``hops``, in their order, by ``cudaMemcpyPeerAsync``."""
        hops = [hop for hop in hops if hop.begin < hop.end]
        memories = [array.data for array in arrays]
        queues = [queue(memory.device_id) for memory in memories]
        links = dict.fromkeys((queues[hop.source], queues[hop.target]) for hop in hops)
        ordered = set()

        def order(link: tuple[Any, Any]) -> None:
            if link not in ordered:
                ordered.add(link)
                link[0].wait(link[1])

        try:
            for link in links:
                if any(there == link[1] and here not in link for here, there in links):
                    order(link)
            for source, target, begin, end, to in hops:
                here, there = queues[source], queues[target]
                order((here, there))
                with current_device(here.device):
                    cuda.memcpyPeerAsync(
                        memories[target].ptr + to,
                        there.device,
                        memories[source].ptr + begin,
                        here.device,
                        end - begin,
                        here.handle,
                    )
                there.wait(here)
        except BaseException:
            settle(queues)
            raise

    def copy_rows(self, target: Any, target_pitch: int, source: Any, source_pitch: int, width: int, rows: int) -> None:
        """Copy rows of bytes by ``cudaMemcpy2DAsync``."""
        if not width or not rows:
            return
        here, there = queue(source.data.device_id), queue(target.data.device_id)
        try:
            here.wait(there)
            with current_device(here.device):
                cuda.memcpy2DAsync(
                    target.data.ptr,
                    target_pitch,
                    source.data.ptr,
                    source_pitch,
                    width,
                    rows,
                    MEMCPY_DEVICE_TO_DEVICE,
                    here.handle,
                )
            there.wait(here)
        except BaseException:
            settle([here])
            raise

    def upload(self, targets: Sequence[Any], addresses: Sequence[int]) -> None:
        """Copy memory of the host by ``cudaMemcpyAsync``."""
        queues = [queue(target.data.device_id) for target in targets]
        try:
            for there, target, address in zip(queues, targets, addresses, strict=True):
                if not target.nbytes:
                    continue
                with current_device(there.device):
                    cuda.memcpyAsync(target.data.ptr, address, target.nbytes, MEMCPY_HOST_TO_DEVICE, there.handle)
        except BaseException:
            settle(queues)
            raise

    def pack(self, arrays: Sequence[Any], device: int, full: int) -> tuple[Any, list[int]] | None:
        """Copy the first of ``arrays`` into one array by ``cudaMemcpyAsync``."""
        offsets, end = [], 0
        for array in arrays:
            if not isinstance(array, ndarray) or array.data.device_id != device or not array.flags.c_contiguous:
                return None
            offsets.append(end)
            end += -(-array.nbytes // _PACKED_UNIT) * _PACKED_UNIT
            if end >= full:
                break
        if len(offsets) < 2:
            return None
        flat, here = self.empty((end,), "B", device), queue(device)
        start = flat.data.ptr
        with current_device(device):
            for array, offset in zip(arrays, offsets, strict=False):
                if array.nbytes:
                    cuda.memcpyAsync(start + offset, array.data.ptr, array.nbytes, MEMCPY_DEVICE_TO_DEVICE, here.handle)
        return flat, offsets

    def views(self, flat: Any, like: Sequence[Any], offsets: Sequence[int]) -> list[Any]:
        """Return arrays in C order in the memory of ``flat``."""
        start = flat.data
        return [
            self.array(array.shape, array.dtype, start + offset) for array, offset in zip(like, offsets, strict=True)
        ]

    def add(self, out: Any, inputs: Sequence[Any], *, release: bool = True) -> bool:
        """Return False: there is no kernel that reads the memory of other devices."""
        return False
