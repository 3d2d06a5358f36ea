"""The collectives, and the facts about NCCL."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tcuda._backend import backend_of
from tcuda._base.arguments import a_kind, integer
from tcuda._base.errors import NcclError, NcclNotFoundError
from tcuda._base.warnings import stacklevel
from tcuda._process.captures import require_no_capture
from tcuda._process.lazy import backend, cuda
from tcuda._runtime import runtime
from tcuda.nccl import _elements
from tcuda.nccl._communicators import Communicator
from tcuda.nccl._plan import Plan, array_type, require_collection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcuda._backend.nccl import Nccl
    from tcuda._process.streams import StreamLike

SUM = _elements.SUM
"""The operation that adds, the default of every reduction."""

_OTHER_ARRAYS = ("__array_interface__", "__cuda_array_interface__", "nnz", "is_sparse")
"""Attributes of arrays that NCCL does not take here: of the host, of other libraries, sparse, and of PyTorch."""

_UNIQUE_ID_BYTES = 128
_MOST_RANKS = (1 << 31) - 1


def version() -> tuple[int, ...]:
    """Return the version of NCCL, such as ``(2, 28, 9)`` (``torch.cuda.nccl.version``).

    Raises:
        RuntimeError: NCCL is not installed.

    Example:
        >>> tcuda.nccl.version() >= (2, 0)
        True
    """
    return _library().version()


def unique_id() -> bytes:
    """Return 128 new bytes that name a clique for :func:`init_rank` (``torch.cuda.nccl.unique_id``).

    No device is needed, so a process without a GPU can make the name for others.

    Raises:
        RuntimeError: NCCL is not installed.

    Example:
        >>> uid = tcuda.nccl.unique_id()  # one process makes the bytes and sends them to the others
        >>> len(uid)
        128
    """
    return _library().unique_id()


def init_rank(num_ranks: int, uid: bytes, rank: int) -> Communicator:
    """Join the current device to a clique of devices (``torch.cuda.nccl.init_rank``).

    The other devices join in other threads or processes. The call returns when all of them have joined.

    Args:
        num_ranks: The number of devices in the clique.
        uid: The name of the clique, the same for all ranks, from :func:`unique_id`.
        rank: The number of this device in the clique, from 0 to ``num_ranks - 1``.

    Returns:
        A communicator for the argument ``comms`` of the other functions.

    Raises:
        TypeError: ``num_ranks`` or ``rank`` is not an integer, or ``uid`` is not bytes.
        RuntimeError: ``uid`` does not have 128 bytes, ``rank`` is not in the clique, NCCL refuses the clique or is not
            installed.
        AcceleratorError: A capture in progress forbids the call.

    Example:
        >>> x = xp.arange(3)
        >>> comm = tcuda.nccl.init_rank(1, tcuda.nccl.unique_id(), 0)  # a clique of one device
        >>> tcuda.nccl.all_reduce([x], comms=[comm])
        >>> x
        array([0, 1, 2])
    """
    if not isinstance(uid, (bytes, bytearray, memoryview)):
        raise TypeError(f"uid must be the bytes that unique_id() returns; got {a_kind(uid)}.")
    if len(uid) != _UNIQUE_ID_BYTES:
        raise RuntimeError(f"invalid unique_id (expected {_UNIQUE_ID_BYTES} bytes, got {len(uid)})")
    ranks = integer(num_ranks, "num_ranks", -_MOST_RANKS, _MOST_RANKS)
    place = integer(rank, "rank", -_MOST_RANKS, _MOST_RANKS)
    if not 0 <= place < ranks:
        allowed = f"rank can be 0 to {ranks - 1}" if ranks > 0 else "num_ranks must be 1 or more"
        raise NcclError(4, f"init_rank() got num_ranks={ranks} and rank={place}; {allowed}.")
    require_no_capture("ncclCommInitRank()")
    device = cuda.getDevice()
    return Communicator(backend.nccl().join(ranks, bytes(uid), place), device, place, ranks)


def is_available(tensors: Iterable[Any]) -> bool:
    """Return whether NCCL can work on ``tensors`` (``torch.cuda.nccl.is_available``).

    NCCL takes dense contiguous arrays of different devices. A warning says so if NCCL is not installed.

    Args:
        tensors: The arrays.

    Raises:
        TypeError: ``tensors`` is not iterable, or has an object that is not an array.

    Example:
        >>> arrays = tcuda.comm.broadcast(xp.ones(3), [0, 1])
        >>> tcuda.nccl.is_available(arrays)
        True
        >>> tcuda.nccl.is_available([xp.ones(3), xp.ones(3)])  # two arrays on one device
        False
    """
    try:
        _library()
    except NcclNotFoundError as error:
        warnings.warn(str(error), stacklevel=stacklevel())
        return False
    kind = array_type()
    devices = set()
    for array in tensors:
        if not isinstance(array, kind):
            if any(hasattr(array, name) for name in _OTHER_ARRAYS):
                return False
            raise TypeError(f"is_available() takes a sequence of arrays; got {a_kind(array)} in it.")
        if not array.flags.c_contiguous:
            return False
        device = array.data.device_id
        if device in devices:
            return False
        devices.add(device)
    return True


def all_reduce(
    inputs: Any,
    outputs: Any = None,
    op: int = SUM,
    streams: Sequence[StreamLike | None] | None = None,
    comms: Any = None,
) -> None:
    """Reduce the arrays of all devices, and give every device the result (``torch.cuda.nccl.all_reduce``).

    Args:
        inputs: One contiguous array on each device, all of one dtype and number of elements.
        outputs: The arrays for the result, in the order of the devices; ``inputs`` if None.
        op: The operation: 0 sum, 1 product, 2 maximum, 3 minimum, 4 average.
        streams: The stream of each device; None, or None in a place, means the current stream.
        comms: The communicators of :func:`init_rank`, one for each input, or one alone; those of the devices if None.

    Raises:
        TypeError: ``inputs`` is not a collection of arrays.
        ValueError: ``op`` is not an operation.
        RuntimeError: NCCL cannot work on the arrays, on ``streams`` or with ``comms``, or NCCL is not installed.

    Example:
        >>> arrays = tcuda.comm.broadcast(xp.arange(3), [0, 1])
        >>> tcuda.nccl.all_reduce(arrays)  # in place
        >>> arrays[0]
        array([0, 2, 4])
    """
    require_collection(inputs)
    if outputs is not None:
        require_collection(outputs)
    number = _elements.operation(op)
    plan = Plan(inputs, streams, comms)
    if outputs is None:
        plan.in_place()
    else:
        plan.into(outputs)
    kind, parts, number = _elements.reduced(plan.dtype, number)
    plan.run("all_reduce", plan.size * parts, kind, number)


def reduce(
    inputs: Any,
    output: Any = None,
    root: int = 0,
    op: int = SUM,
    streams: Sequence[StreamLike | None] | None = None,
    comms: Any = None,
    *,
    outputs: Any = None,
) -> None:
    """Reduce the arrays of all devices, and give one device the result (``torch.cuda.nccl.reduce``).

    Args:
        inputs: One contiguous array on each device, all of one dtype and number of elements.
        output: The array for the result, on the device of the root; the root's input if None.
        root: The place of the device that gets the result; with ``comms``, its rank.
        op: The operation, as for :func:`all_reduce`.
        streams: The streams, as for :func:`all_reduce`.
        comms: The communicators, as for :func:`all_reduce`.
        outputs: Deprecated; the result goes to ``outputs[root]``.

    Raises:
        IndexError: ``root`` is not a place in ``inputs`` or ``outputs``.
        TypeError: ``inputs`` is not a collection of arrays.
        ValueError: ``op`` is not an operation, or both ``output`` and ``outputs`` are given.
        RuntimeError: NCCL cannot work on the arrays, on ``streams`` or with ``comms``, or NCCL is not installed.

    Example:
        >>> arrays = tcuda.comm.broadcast(xp.arange(3), [0, 1])
        >>> total = xp.empty_like(arrays[0])
        >>> tcuda.nccl.reduce(arrays, total, root=0)
        >>> total
        array([0, 2, 4])
    """
    require_collection(inputs)
    # The texts of the warnings and of the error are torch's.
    if outputs is not None:
        if output is not None:
            raise ValueError(
                "'output' and 'outputs' can not be both specified. 'outputs' is deprecated in favor of 'output', "
                "taking in a single output tensor. The signature of reduce is: "
                "reduce(inputs, output=None, root=0, op=SUM, streams=None, comms=None)."
            )
        _deprecated(
            "`nccl.reduce` with an output tensor list is deprecated. Please specify a single output tensor with "
            "argument 'output' instead instead."
        )
        output = outputs[root]
    elif isinstance(output, Sequence):
        _deprecated("nccl.reduce with an output tensor list is deprecated. Please specify a single output tensor.")
        output = output[root]
    elif output is None and comms is None:
        output = inputs[root]  # raises torch's IndexError if `root` is too large
    number = _elements.operation(op)
    plan = Plan(inputs, streams, comms, root)
    plan.into_root(output)
    kind, parts, number = _elements.reduced(plan.dtype, number)
    plan.run("reduce", plan.size * parts, kind, number, plan.root)


def broadcast(
    inputs: Any, root: int = 0, streams: Sequence[StreamLike | None] | None = None, comms: Any = None
) -> None:
    """Copy the array of one device into the arrays of all others (``torch.cuda.nccl.broadcast``).

    Args:
        inputs: One contiguous array on each device, all of one dtype and number of elements.
        root: The place of the device whose array is copied; with ``comms``, its rank.
        streams: The streams, as for :func:`all_reduce`.
        comms: The communicators, as for :func:`all_reduce`.

    Raises:
        TypeError: ``inputs`` is not a collection of arrays.
        RuntimeError: NCCL cannot work on the arrays, on ``streams`` or with ``comms``, or NCCL is not installed.

    Example:
        >>> x = xp.arange(3)
        >>> with tcuda.device(1):
        ...     y = xp.zeros_like(x)
        >>> tcuda.nccl.broadcast([x, y], root=0)
        >>> y.get()
        array([0, 1, 2])
    """
    require_collection(inputs)
    plan = Plan(inputs, streams, comms, root)
    plan.in_place()
    kind, parts = _elements.moved(plan.dtype)
    plan.run("broadcast", plan.size * parts, kind, plan.root)


def all_gather(
    inputs: Any, outputs: Any, streams: Sequence[StreamLike | None] | None = None, comms: Any = None
) -> None:
    """Put the arrays of all devices one after the other, on every device (``torch.cuda.nccl.all_gather``).

    Args:
        inputs: One contiguous array on each device, all of one dtype and number of elements.
        outputs: The arrays for the result, in the order of the devices, with room for all inputs.
        streams: The streams, as for :func:`all_reduce`.
        comms: The communicators, as for :func:`all_reduce`.

    Raises:
        TypeError: ``inputs`` or ``outputs`` is not a collection of arrays.
        RuntimeError: NCCL cannot work on the arrays, on ``streams`` or with ``comms``, or NCCL is not installed.

    Example:
        >>> inputs = tcuda.comm.broadcast(xp.arange(2), [0, 1])
        >>> outputs = tcuda.comm.broadcast(xp.zeros(4, dtype=inputs[0].dtype), [0, 1])
        >>> tcuda.nccl.all_gather(inputs, outputs)
        >>> outputs[0]
        array([0, 1, 0, 1])
    """
    require_collection(inputs)
    require_collection(outputs)
    plan = Plan(inputs, streams, comms)
    plan.into(outputs, times=plan.ranks)
    kind, parts = _elements.moved(plan.dtype)
    plan.run("all_gather", plan.size * parts, kind)


def reduce_scatter(
    inputs: Any, outputs: Any, op: int = SUM, streams: Sequence[StreamLike | None] | None = None, comms: Any = None
) -> None:
    """Reduce the arrays of all devices, and give each device a part of the result (``torch.cuda.nccl.reduce_scatter``).

    Args:
        inputs: One contiguous array on each device, all of one dtype and number of elements.
        outputs: The arrays for the parts, in the order of the devices.
        op: The operation, as for :func:`all_reduce`.
        streams: The streams, as for :func:`all_reduce`.
        comms: The communicators, as for :func:`all_reduce`.

    Raises:
        TypeError: ``inputs`` or ``outputs`` is not a collection of arrays.
        ValueError: ``op`` is not an operation.
        RuntimeError: NCCL cannot work on the arrays, on ``streams`` or with ``comms``, or NCCL is not installed.

    Example:
        >>> inputs = tcuda.comm.broadcast(xp.arange(4), [0, 1])
        >>> outputs = tcuda.comm.broadcast(xp.zeros(2, dtype=inputs[0].dtype), [0, 1])
        >>> tcuda.nccl.reduce_scatter(inputs, outputs)
        >>> outputs[0].get(), outputs[1].get()
        (array([0, 2]), array([4, 6]))
    """
    require_collection(inputs)
    require_collection(outputs)
    number = _elements.operation(op)
    plan = Plan(inputs, streams, comms)
    plan.into(outputs, parts=plan.ranks)
    kind, parts, number = _elements.reduced(plan.dtype, number)
    plan.run("reduce_scatter", plan.size * parts // plan.ranks, kind, number)


def _library() -> Nccl:
    """Return the library without initialising tcuda, because the library needs no device."""
    return backend_of(runtime()).nccl()


def _deprecated(text: str) -> None:
    warnings.warn(text, FutureWarning, stacklevel=stacklevel())
