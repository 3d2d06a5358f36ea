"""The protocol :class:`~tcuda._backend.transfers.Transfers` over CuPy: the core makes the calls of the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import cupy
from cupy_backends.cuda.stream import __pyx_capi__ as stream_functions

from tcuda import _core
from tcuda._base.errors import AcceleratorError
from tcuda._cupy import transfer_kernels
from tcuda._cupy.arrays import array_type, scalar_type
from tcuda._process.captures import captures
from tcuda._process.peers import reach
from tcuda.comm._order import Queue
from tcuda.comm._plain import PlainTransfers

if TYPE_CHECKING:
    from collections.abc import Sequence


class Transfers(PlainTransfers):
    """Work on CuPy's arrays of several devices."""

    def __init__(self) -> None:
        super().__init__(cupy)
        stream = stream_functions["get_current_stream_ptr"]
        core = _core.Transfers(
            array_type(),
            cupy.ndarray,
            cupy.cuda.MemoryPointer,
            stream,
            captures,
            scalar_type,
            reach,
            _fail,
            _check,
            transfer_kernels.load,
        )
        self._core = core
        # These are the methods of the core, and not methods around them, because small arrays are sent often.
        self.empty = core.empty  # type: ignore[method-assign]
        self.send = core.send  # type: ignore[method-assign]
        self.cut = core.cut  # type: ignore[method-assign]
        self.copy = core.copy  # type: ignore[method-assign]
        self.upload = core.upload  # type: ignore[method-assign]
        self.spread = core.spread  # type: ignore[method-assign]
        self.copy_rows = core.copy_rows  # type: ignore[method-assign]
        self.relay = core.relay  # type: ignore[method-assign]
        self.sizes = core.sizes  # type: ignore[method-assign]
        self.pack = core.pack  # type: ignore[method-assign]
        self.views = core.views  # type: ignore[method-assign]
        self.join = core.join  # type: ignore[method-assign]
        self.alike = core.alike  # type: ignore[method-assign]
        plain = _core.PlainCalls(core, cupy.cuda.alloc)
        self.broadcast = plain.broadcast  # type: ignore[method-assign]
        self.scatter = plain.scatter  # type: ignore[method-assign]
        self.gather = plain.gather  # type: ignore[method-assign]
        self.reduce_add = plain.reduce_add  # type: ignore[method-assign]
        self.broadcast_coalesced = plain.broadcast_coalesced  # type: ignore[method-assign]
        self.reduce_add_coalesced = plain.reduce_add_coalesced  # type: ignore[method-assign]
        self.places = plain.places  # type: ignore[method-assign]

    def add(self, out: Any, inputs: Sequence[Any], *, release: bool = True) -> None:
        """Add by one kernel, which reads the inputs where they are."""
        if not self._core.add(out, inputs, release=release):
            super().add(out, inputs, release=release)

    def add_in_chain(self, sums: Sequence[Any], arrays: Sequence[Any], cuts: Sequence[tuple[int, int]]) -> None:
        """Add by a kernel for each piece and device, all in one call of the core."""
        if not self._core.add_in_chain(sums, arrays, cuts):
            super().add_in_chain(sums, arrays, cuts)


def _fail(status: int, call: str) -> NoReturn:
    raise AcceleratorError(status, call)


def _check(device: int, stream: int, other_device: int, other_stream: int) -> None:
    """Refuse to let a stream wait for the stream of another device if the wait would invalidate a capture."""
    Queue(device, stream).require_same_capture(Queue(other_device, other_stream))
