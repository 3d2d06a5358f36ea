"""Copies between the host and a device.

A copy runs on the current stream of the device. A copy from page-locked memory may still run when the call returns. So
this module keeps memory that tcuda's allocator of page-locked memory does not know alive until the copy is complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._core import buffer_address
from tcuda._device import device
from tcuda._process import waits
from tcuda._process.captures import capture_on, captures, pageable_copy, require_no_capture
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import MEMCPY_DEVICE_TO_HOST, MEMCPY_HOST_TO_DEVICE
from tcuda.comm._copies import contiguous
from tcuda.comm._kept_memory import is_page_locked, keep, needs_keeping
from tcuda.comm._order import queue, settle

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def upload(target: Any, source: npt.NDArray[Any]) -> None:
    """Copy ``source`` to ``target``, an array of a device with the same shape.

    The layouts and the dtypes may differ. During a capture, every launch of the graph reads the memory of the source.

    Raises:
        AcceleratorError: The current stream of the device captures, and the source is not in page-locked memory in C
            order with the dtype of the target (900).
    """
    if not target.size:
        return
    memory = np.asarray(source, target.dtype, order="C")
    if target.flags.c_contiguous:
        upload_parts([target], memory, [0])
        return
    index = target.data.device_id
    dense = backend.transfers().empty(target.shape, target.dtype, index)
    upload_parts([dense], memory, [0])
    with device(index):
        target[...] = dense


def upload_parts(targets: Sequence[Any], source: npt.NDArray[Any], begins: Sequence[int]) -> None:
    """Copy bytes of ``source``, an array in C order, to each of ``targets``, arrays of devices in C order.

    Args:
        targets: The arrays.
        source: The array, whose memory every launch of a graph reads that is captured.
        begins: For each target, the first of the bytes that it gets.

    Raises:
        AcceleratorError: The current stream of a device captures, and the source is not in page-locked memory (900).
    """
    address = buffer_address(source)
    if not captures and not needs_keeping(source):
        backend.transfers().upload(targets, [address + begin for begin in begins])
        return
    for target, begin in zip(targets, begins, strict=True):
        if not target.size:
            continue
        index = target.data.device_id
        with device(index):
            here = queue(index)
            capture = capture_on(here.handle) if captures else None
            if capture is not None and not is_page_locked(source):
                raise pageable_copy(
                    "a copy from an array of the host that is not in page-locked memory, in C order and of the same "
                    "dtype"
                )
            try:
                cuda.memcpyAsync(target.data.ptr, address + begin, target.nbytes, MEMCPY_HOST_TO_DEVICE, here.handle)
                if capture is not None:
                    capture.host_memory.append(source)
                elif needs_keeping(source):
                    keep(source, index, here.handle)
            except BaseException:
                settle([here])
                raise


def download(targets: Sequence[npt.NDArray[Any]], sources: Sequence[Any]) -> None:
    """Copy each of ``sources``, arrays of devices, to one of ``targets``, and wait for the copies.

    Raises:
        AcceleratorError: A capture forbids to wait for a device (900).
    """
    queues = list(dict.fromkeys(queue(source.data.device_id) for source in sources if source.size))
    if captures:
        for each in queues:
            with device(each.device):
                require_no_capture("a copy to the host", stream=each.handle)
    copy, wait = cuda.memcpyAsync, cuda.streamSynchronize
    if waits.watched and queues:
        waits.announce("tcuda.comm")
        copy, wait = waits.unwatched("memcpyAsync"), waits.unwatched("streamSynchronize")
    landed = []
    try:
        for target, source in zip(targets, sources, strict=True):
            if not source.size:
                continue
            dense = target
            if not target.flags.c_contiguous or target.dtype != source.dtype:
                dense = np.empty(source.shape, source.dtype)
                landed.append((target, dense))
            index = source.data.device_id
            memory = contiguous(source)
            with device(index):
                copy(dense.ctypes.data, memory.data.ptr, dense.nbytes, MEMCPY_DEVICE_TO_HOST, queue(index).handle)
        for each in queues:
            with device(each.device):
                wait(each.handle)
    except BaseException:
        settle(queues)
        raise
    for target, dense in landed:
        target[...] = dense.astype(target.dtype)
