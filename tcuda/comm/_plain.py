"""Work on the arrays of several devices, by calls of the runtime and by operations of the array library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._backend.transfers import Hop
from tcuda._device import device
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import MEMCPY_DEVICE_TO_DEVICE, MEMCPY_HOST_TO_DEVICE
from tcuda.comm._order import queue, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda._backend.transfers import Places
    from tcuda.comm._order import Queue


PACKED_UNIT = 16
"""The places of packed arrays are multiples of this number of bytes."""


class PlainTransfers:
    """The protocol :class:`~tcuda._backend.transfers.Transfers` over the runtime in use, for any array library.

    Args:
        xp: The module of the library that makes arrays.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.array: type[Any] = xp.ndarray

    def empty(self, shape: Sequence[int], dtype: Any, device: int) -> Any:
        """Return a new array in C order on ``device``, in memory of the stream of ``device``."""
        with _current(device):
            return self.array(shape, dtype)

    def send(self, source: Any, devices: Sequence[int]) -> list[Any]:
        """Return a copy of ``source`` for each of ``devices``, copied from the device of ``source`` one by one."""
        targets = [self.empty(source.shape, source.dtype, index) for index in devices]
        hops = [Hop(0, place, 0, source.nbytes, first=True) for place in range(1, len(targets) + 1)]
        self.relay([source, *targets], hops)
        return targets

    def cut(self, source: Any, lengths: Sequence[int], devices: Sequence[int]) -> list[Any] | None:
        """Cut by views, and send each part that leaves the device of ``source``."""
        if not source.ndim or not source.flags.c_contiguous:
            return None
        begin, parts = 0, []
        for length, index in zip(lengths, devices, strict=True):
            part = source[begin : begin + length]
            parts.append(part if index == source.data.device_id else self.send(part, [index])[0])
            begin += length
        return parts

    def copy(self, target: Any, source: Any) -> None:
        """Copy ``source`` to ``target`` by ``cudaMemcpyPeerAsync``."""
        here, there = source.data, target.data
        here_device, there_device, nbytes = here.device_id, there.device_id, source.nbytes

        def copy(handle: int) -> None:
            cuda.memcpyPeerAsync(there.ptr, there_device, here.ptr, here_device, nbytes, handle)

        if nbytes:
            _ordered(queue(here_device), queue(there_device), copy)

    def upload(self, target: Any, address: int, mark: int) -> None:
        """Copy memory of the host by ``cudaMemcpyAsync``."""
        there = queue(target.data.device_id)
        try:
            with device(there.device):
                cuda.memcpyAsync(target.data.ptr, address, target.nbytes, MEMCPY_HOST_TO_DEVICE, there.handle)
                cuda.eventRecord(mark, there.handle)
        except BaseException:
            settle([there])
            raise

    def spread(
        self,
        address: int,
        shape: Sequence[int],
        dtype: Any,
        lengths: Sequence[int],
        devices: Sequence[int],
        marks: Sequence[int],
    ) -> list[Any]:
        """Copy the parts one after another by :meth:`upload`."""
        parts = []
        try:
            for length, index, mark in zip(lengths, devices, marks, strict=True):
                part = self.empty((length, *shape[1:]), dtype, index)
                parts.append(part)
                if part.nbytes:
                    self.upload(part, address, mark)
                address += part.nbytes
        except BaseException:
            settle([queue(part.data.device_id) for part in parts])
            raise
        return parts

    def copy_rows(self, target: Any, target_pitch: int, source: Any, source_pitch: int, width: int, rows: int) -> None:
        """Copy rows of bytes by ``cudaMemcpy2DAsync``."""
        here, there = source.data, target.data

        def copy(handle: int) -> None:
            cuda.memcpy2DAsync(
                there.ptr, target_pitch, here.ptr, source_pitch, width, rows, MEMCPY_DEVICE_TO_DEVICE, handle
            )

        if width and rows:
            _ordered(queue(here.device_id), queue(there.device_id), copy)

    def relay(self, arrays: Sequence[Any], hops: Sequence[Hop]) -> None:
        """Make the copies ``hops``, in their order, by ``cudaMemcpyPeerAsync``."""
        addresses = [array.data.ptr for array in arrays]
        queues = [queue(array.data.device_id) for array in arrays]
        try:
            for source, target, begin, end, first in hops:
                if begin == end:
                    continue
                here, there = queues[source], queues[target]
                if first:
                    here.wait(there)
                with device(here.device):
                    cuda.memcpyPeerAsync(
                        addresses[target] + begin,
                        there.device,
                        addresses[source] + begin,
                        here.device,
                        end - begin,
                        here.handle,
                    )
                there.wait(here)
        except BaseException:
            settle(queues)
            raise

    def sizes(self, arrays: Sequence[Any], device: int) -> list[int] | None:
        """Return the bytes that each of ``arrays`` takes among packed arrays; None for an array with gaps."""
        sizes = []
        for array in arrays:
            if not isinstance(array, self.array) or array.data.device_id != device or not array.flags.c_contiguous:
                return None
            sizes.append(-(-array.nbytes // PACKED_UNIT) * PACKED_UNIT)
        return sizes

    def pack(self, arrays: Sequence[Any], flat: Any, offsets: Sequence[int]) -> None:
        """Copy arrays of the current device into ``flat`` by ``cudaMemcpyAsync``."""
        start, handle = flat.data.ptr, backend.current_stream().ptr
        for array, offset in zip(arrays, offsets, strict=True):
            if array.nbytes:
                cuda.memcpyAsync(start + offset, array.data.ptr, array.nbytes, MEMCPY_DEVICE_TO_DEVICE, handle)

    def views(self, flat: Any, like: Sequence[Any], offsets: Sequence[int]) -> list[Any]:
        """Return arrays in C order in the memory of ``flat``."""
        start = flat.data
        return [
            self.array(array.shape, array.dtype, start + offset) for array, offset in zip(like, offsets, strict=True)
        ]

    def add(self, out: Any, inputs: Sequence[Any], *, release: bool = True) -> None:
        """Copy the inputs of other devices to the device of ``out``, and add there."""
        here = out.data.device_id
        with device(here):
            local = [self._on(here, array) for array in inputs]
            total = local.pop()
            while local:
                self.xp.add(local.pop(), total, out=out)
                total = out

    def add_in_chain(self, sums: Sequence[Any], arrays: Sequence[Any], cuts: Sequence[tuple[int, int]]) -> None:
        """Add piece by piece, with :meth:`add`."""
        flat_sums, flat_arrays = ([array.reshape(-1) for array in each] for each in (sums, arrays))
        for begin, end in cuts:
            part, is_last = slice(begin, end), end == flat_sums[0].size
            for place in reversed(range(len(sums) - 1)):
                terms = flat_arrays[place][part], flat_sums[place + 1][part]
                self.add(flat_sums[place][part], terms, release=is_last)

    def join(self, out: Any, arrays: Sequence[Any]) -> bool:
        """Copy ``arrays`` by ``cudaMemcpyPeerAsync``."""
        if not all(array.flags.c_contiguous and array.dtype == out.dtype for array in (out, *arrays)):
            return False
        places = [(array.data.ptr, array.nbytes) for array in arrays]
        place, end = out.data.ptr, out.data.ptr + out.nbytes
        if sum(nbytes for _, nbytes in places) != out.nbytes:
            return False
        if any(begin < end and place < begin + nbytes for begin, nbytes in places):
            return False
        there, queues = queue(out.data.device_id), [queue(array.data.device_id) for array in arrays]
        others = [each for each in dict.fromkeys(queues) if each != there]
        try:
            for other in others:
                other.wait(there)
            for here, (begin, nbytes) in zip(queues, places, strict=True):
                if nbytes:
                    with device(here.device):
                        cuda.memcpyPeerAsync(place, there.device, begin, here.device, nbytes, here.handle)
                place += nbytes
            for other in others:
                there.wait(other)
        except BaseException:
            settle([there, *others])
            raise
        return True

    def alike(self, rows: Sequence[Sequence[Any]]) -> list[int] | None:
        """Return the device of each row, or None, by comparing the attributes of the arrays."""
        found: list[int] = []
        expected = None
        for row in rows:
            if not row or not isinstance(row[0], self.array):
                return None
            index = row[0].data.device_id
            if self.sizes(row, index) is None:
                return None
            kinds = [(array.shape, array.dtype) for array in row]
            if expected is not None and kinds != expected:
                return None
            expected = kinds
            found.append(index)
        return found

    def broadcast(self, tensor: Any, devices: Any, small: int) -> list[Any] | None:
        """Return None: there is no single call for the work."""
        return None

    def scatter(self, tensor: Any, devices: Any) -> tuple[Any, ...] | None:
        """Return None: there is no single call for the work."""
        return None

    def gather(self, tensors: Any, destination: Any) -> Any | None:
        """Return None: there is no single call for the work."""
        return None

    def reduce_add(self, inputs: Any, destination: Any, small: int) -> Any | None:
        """Return None: there is no single call for the work."""
        return None

    def broadcast_coalesced(self, tensors: Any, devices: Any, buffer_size: Any, small: int) -> list[list[Any]] | None:
        """Return None: there is no single call for the work."""
        return None

    def reduce_add_coalesced(
        self, inputs: Any, destination: Any, buffer_size: Any, small: int
    ) -> tuple[Any, ...] | None:
        """Return None: there is no single call for the work."""
        return None

    def places(self, inputs: Any, outputs: Any) -> Places | None:
        """Read the attributes of the arrays one by one."""
        given, got = inputs, inputs if outputs is None else outputs
        if any(type(arrays) not in (list, tuple) for arrays in (given, got)) or len(given) != len(got) or not given:
            return None
        if any(type(array) is not self.array or not array.flags.c_contiguous for array in (*given, *got)):
            return None
        dtype, size, target_size = given[0].dtype, given[0].size, got[0].size
        devices = tuple([array.data.device_id for array in given])
        if (
            any(array.dtype != dtype for array in (*given, *got))
            or any(array.size != size for array in given)
            or any(array.size != target_size for array in got)
            or len(set(devices)) != len(devices)
            or devices != tuple([array.data.device_id for array in got])
        ):
            return None
        sources, targets = (tuple([array.data.ptr for array in arrays]) for arrays in (given, got))
        return devices, dtype, size, target_size, sources, targets

    def _on(self, index: int, array: Any) -> Any:
        return array if array.data.device_id == index else self.send(array, [index])[0]


_current = device  # `device` is also the name of an argument


def _ordered(here: Queue, there: Queue, copy: Callable[[int], None]) -> None:
    """Call ``copy`` with the handle of ``here`` in the order that a copy from ``here`` to ``there`` has."""
    here.wait(there)
    with device(here.device):
        copy(here.handle)
    try:
        there.wait(here)
    except BaseException:
        settle([here])
        raise
