"""The protocol :class:`~tcuda._backend.transfers.Transfers` over CuPy: the core makes the calls of the driver."""

from __future__ import annotations

from typing import Any, NoReturn

import cupy
from cupy_backends.cuda.stream import __pyx_capi__ as stream_functions

from tcuda import _core
from tcuda._base.errors import AcceleratorError
from tcuda._cupy import transfer_kernels
from tcuda._cupy.arrays import array_type, scalar_type
from tcuda._process.captures import captures
from tcuda._process.peers import reach
from tcuda.comm._order import Queue


class Transfers(_core.Transfers):
    """Work on CuPy's arrays of several devices. The methods are those of the core."""

    array: type[Any] = cupy.ndarray
    xp: Any = cupy

    def __init__(self) -> None:
        super().__init__(
            array_type(),
            cupy.ndarray,
            cupy.cuda.MemoryPointer,
            stream_functions["get_current_stream_ptr"],
            captures,
            scalar_type,
            reach,
            _fail,
            _check,
            transfer_kernels.load,
        )


def _fail(status: int, call: str) -> NoReturn:
    raise AcceleratorError(status, call)


def _check(device: int, stream: int, other_device: int, other_stream: int) -> None:
    """Refuse to let a stream wait for the stream of another device if the wait would invalidate a capture."""
    Queue(device, stream).require_same_capture(Queue(other_device, other_stream))
