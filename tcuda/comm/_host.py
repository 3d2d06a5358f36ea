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


def upload(targets: Sequence[Any], sources: Sequence[npt.NDArray[Any]]) -> None:
    """Copy each of ``sources`` to the target at its place, an array of a device with the same shape.

    The layouts and the dtypes may differ. During a capture, every launch of the graph reads the memory of the source.

    Raises:
        AcceleratorError: The current stream of a device captures, and the source is not in page-locked memory in C
            order with the dtype of the target (900).
    """
    direct = []
    for target, source in zip(targets, sources, strict=True):
        if not target.size:
            continue
        is_plain = target.flags.c_contiguous and source.flags.c_contiguous and source.dtype == target.dtype
        if captures or not is_plain or needs_keeping(source):
            _upload(target, source)
        else:
            direct.append((target, buffer_address(source)))
    if direct:
        backend.transfers().upload([target for target, _ in direct], [address for _, address in direct])


def _upload(target: Any, source: npt.NDArray[Any]) -> None:
    """Copy ``source`` to ``target``, whose layouts and dtypes may differ."""
    index = target.data.device_id
    with device(index):
        here = queue(index)
        memory = np.asarray(source, target.dtype, order="C")
        capture = capture_on(here.handle) if captures else None
        if capture is not None and not (memory.ctypes.data == source.ctypes.data and is_page_locked(memory)):
            raise pageable_copy(
                "a copy from an array of the host that is not in page-locked memory, in C order and of the same dtype"
            )
        dense = target if target.flags.c_contiguous else backend.transfers().empty(target.shape, target.dtype, index)
        try:
            cuda.memcpyAsync(dense.data.ptr, memory.ctypes.data, memory.nbytes, MEMCPY_HOST_TO_DEVICE, here.handle)
            if capture is not None:
                capture.host_memory.append(memory)
            elif needs_keeping(memory):
                keep(memory, index, here.handle)
        except BaseException:
            settle([here])
            raise
        if dense is not target:
            target[...] = dense


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
