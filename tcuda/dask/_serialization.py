"""Arrays between workers: the elements are copied once from the device to the host, and once from the host to a device.

The memory on the host is pageable. Page-locked memory is faster to copy, but to allocate it can wait for all work of
the device, and Dask may keep the memory for long.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.sizeof import sizeof
from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
from distributed.protocol.serialize import dask_deserialize, dask_serialize

import tcuda
from tcuda._process.ledger import ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

_BYTE = np.dtype("u1")


def serialize(array: Any) -> tuple[dict[str, Any], list[memoryview]]:
    """Return a header and the bytes of ``array``.

    The copy runs on the stream for which the memory of the array was allocated, and the call waits for this stream. A
    view is sent without the elements that it skips, and a broadcast array without the repetitions.

    Args:
        array: An array of the device.
    """
    shape = array.shape
    distinct = _without_repetitions(array)
    with _own_stream(array):
        host = distinct.get(order="A")
    order = "C" if host.flags.c_contiguous else "F"
    header = {"dtype": host.dtype.str, "shape": host.shape, "order": order, "broadcast_to": shape}
    return header, [host.reshape(-1, order="A").view(_BYTE).data]


def deserialize(header: dict[str, Any], frames: list[Any]) -> Any:
    """Return an array on the current device, copied on the current stream.

    Raises:
        RuntimeError: This process has no device.
    """
    shape, wanted, order = tuple(header["shape"]), tuple(header["broadcast_to"]), header["order"]
    _require_device(shape, header["dtype"])
    array = tcuda.xp.empty(shape, header["dtype"], order)
    if array.size:
        (frame,) = frames
        host: npt.NDArray[Any] = np.ndarray(shape, header["dtype"], frame, order=order)
        array.set(host, tcuda.current_stream())
    return array if shape == wanted else tcuda.xp.broadcast_to(array, wanted)


def register() -> None:
    """Let Dask send arrays of tcuda.xp by these functions."""
    _register_when_used("tcuda", _register_own)
    sizeof.register_lazy("tcuda", _register_own)  # Dask knows the size of CuPy's arrays
    for name in ("cupy", "cupyx"):  # Dask's own functions for either would replace these
        _register_when_used(name, _register_cupy, of_gpus=True)
    if "distributed.protocol.cupy" in sys.modules:
        _register_cupy()


def _register_when_used(module: str, function: Callable[[], None], *, of_gpus: bool = False) -> None:
    """Call ``function`` at the first object of ``module``.

    Args:
        module: The name of the package.
        function: The function.
        of_gpus: Whether Dask has a second table for the package, for connections that carry memory of GPUs.
    """
    tables = [dask_serialize, dask_deserialize]
    if of_gpus:
        tables += [cuda_serialize, cuda_deserialize]
    for table in tables:
        table.register_lazy(module, function)


def _register_own() -> None:
    """Register the arrays of emulated devices. On a GPU, all arrays are CuPy's."""
    kind = tcuda.xp.ndarray
    if kind.__module__.startswith("tcuda."):
        _register_type(kind)
        sizeof.register(kind, operator.attrgetter("nbytes"))


def _register_cupy() -> None:
    import cupy

    # Dask's functions for sparse matrices, and for connections that carry memory of GPUs, need Numba or RMM, whose
    # warnings do not concern the program.
    with contextlib.suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("distributed.protocol.cupy")
    _register_type(cupy.ndarray)


def _register_type(kind: type[Any]) -> None:
    dask_serialize.register(kind, serialize)
    dask_deserialize.register(kind, deserialize)


def _without_repetitions(array: Any) -> Any:
    """Return the part of ``array`` whose elements are all in different places."""
    if 0 not in array.strides:
        return array
    first = slice(0, 1)
    return array[tuple(slice(None) if stride else first for stride in array.strides)]


@contextlib.contextmanager
def _own_stream(array: Any) -> Iterator[None]:
    """Make the stream current for which the memory of ``array`` was allocated.

    If this stream is destroyed, only a wait for the device waits for its last work. Memory that tcuda has not allocated
    belongs to the current stream.
    """
    device, address = array.data.device_id, array.data.mem.ptr
    with tcuda.device(device):
        in_use = ledger()
        handle = in_use.stream_of(device, address) if address else None
        if handle is not None:
            own = tcuda.default_stream(device) if handle == 0 else tcuda.ExternalStream(handle, device)
            with tcuda.stream(own):
                yield
            return
        if address and in_use.size_of(device, address):
            tcuda.synchronize(device)
        yield


def _require_device(shape: tuple[int, ...], dtype: str) -> None:
    try:
        tcuda.init()
    except RuntimeError as error:
        raise RuntimeError(
            f"An array of shape {shape} and dtype {np.dtype(dtype)} has arrived in a process that cannot hold it: "
            f"{error} To send an array to such a process, copy it to the host by array.get() in the task."
        ) from error
