"""Collectives on the arrays of several devices (``torch.cuda.nccl``), by NCCL or the emulated counterpart of NCCL.

A call concerns one array on each of several devices. The work runs on the current stream of each device, or on the
streams that the caller gives, and the host does not wait for the work.

The communicators of the devices are made at the first call for these devices in this order. As in torch, a communicator
is never destroyed, because NCCL may not be called at the exit of a process.

A call allocates nothing. From the start to the end of NCCL's group, the thread runs no Python code. So no finalizer and
no signal handler of the thread takes or gives back memory of a device while the group is open, which can make NCCL
hang. Another thread may call ``cudaFree`` at that time: in :func:`tcuda.empty_cache`, or where a device is out of
memory. ``cudaFree`` waits for the kernels that NCCL has started, these wait for the kernels on the other devices, and
the driver may start the other kernels only after ``cudaFree``. NCCL starts the kernels of a group within microseconds,
and torch takes no lock here either.
"""

from tcuda._base.public_names import public_names
from tcuda.nccl._collectives import (
    all_gather,
    all_reduce,
    broadcast,
    init_rank,
    is_available,
    reduce,
    reduce_scatter,
    unique_id,
    version,
)
from tcuda.nccl._elements import SUM as SUM

__all__ = [
    "all_gather",
    "all_reduce",
    "broadcast",
    "init_rank",
    "is_available",
    "reduce",
    "reduce_scatter",
    "unique_id",
    "version",
]
__dir__ = public_names(__name__)
