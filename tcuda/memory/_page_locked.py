"""Page-locked memory of the host: its statistics, and NumPy arrays in it (``torch.cuda.host_memory_stats``)."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Literal

from tcuda import _core
from tcuda._base.strides import byte_bounds
from tcuda._process.captures import captures
from tcuda._process.exit import finalizer
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger, ledger_if_any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Shape = int | Sequence[int]

_MOST_BYTES = 1 << 62
_PORTABLE = 1  # cudaHostRegisterPortable
_make: Callable[[object, object], Any] | None = None
"""Makes an array of a shape and a dtype; None before the first array, and in a forked child."""


def host_memory_stats() -> dict[str, int]:
    """Return the statistics of the page-locked memory of the host (``torch.cuda.host_memory_stats``).

    The keys with four figures, ``current``, ``peak``, ``allocated`` and ``freed``, are:

    * ``active_requests`` and ``active_bytes``: the blocks that the program has;
    * ``allocations`` and ``allocated_bytes``: the memory that the driver has allocated, used and free.

    ``host_alloc_time`` and ``host_free_time`` have the ``total``, ``max``, ``min``, ``avg`` and ``count`` of the calls
    of the driver, in microseconds. ``num_host_alloc`` and ``num_host_free`` count these calls.

    Returns:
        A dictionary of 28 numbers, in bytes, counts or microseconds; an empty dictionary before tcuda is initialised.

    Example:
        >>> before = tcuda.host_memory_stats()["active_bytes.current"]
        >>> staging = tcuda.memory.empty_pinned(1024, "uint8")
        >>> tcuda.host_memory_stats()["active_bytes.current"] - before
        1024
    """
    known = ledger_if_any()
    return {} if known is None else known.host_statistics()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Return :func:`host_memory_stats` as nested dictionaries (``torch.cuda.host_memory_stats_as_nested_dict``).

    Returns:
        The numbers by the parts of their keys, in bytes, counts or microseconds; an empty dictionary before tcuda is
        initialised.

    Example:
        >>> staging = tcuda.memory.empty_pinned(1024, "uint8")
        >>> stats = tcuda.host_memory_stats_as_nested_dict()
        >>> stats["active_bytes"]["current"] >= 1024
        True
    """
    nested: dict[str, Any] = {}
    for key, value in host_memory_stats().items():
        name, dot, figure = key.partition(".")
        if dot:
            nested.setdefault(name, {})[figure] = value
        else:
            nested[name] = value
    return nested


def reset_accumulated_host_memory_stats() -> None:
    """Set the sums and counts of :func:`host_memory_stats` to 0 (``torch.cuda.reset_accumulated_host_memory_stats``).

    The sums are the figures ``allocated``, ``freed``, ``total`` and ``count``, and the numbers whose names begin with
    ``num_``.

    Example:
        >>> tcuda.reset_accumulated_host_memory_stats()
        >>> tcuda.host_memory_stats()["active_bytes.allocated"]
        0
    """
    ledger().reset_host_accumulated()


def reset_peak_host_memory_stats() -> None:
    """Set the peaks of :func:`host_memory_stats` to the current values (``torch.cuda.reset_peak_host_memory_stats``).

    The ``max`` and ``min`` of the durations become 0.

    Example:
        >>> tcuda.reset_peak_host_memory_stats()
        >>> stats = tcuda.host_memory_stats()
        >>> stats["active_bytes.peak"] == stats["active_bytes.current"]
        True
    """
    ledger().reset_host_peaks()


def empty_pinned(shape: Shape, dtype: npt.DTypeLike = float, order: Literal["C", "F"] = "C") -> npt.NDArray[Any]:
    """Return a new NumPy array in page-locked memory, with uninitialised elements (``cudaHostAlloc``).

    Copies between the array and a device run at the full speed of the bus, and beside the work of the host. When the
    array dies, its memory is handed out again as soon as no copy uses the memory any more. The program need not wait.

    Args:
        shape: The shape: a number of elements, or a sequence of such numbers.
        dtype: The type of the elements.
        order: The layout of the elements: ``"C"`` or ``"F"``.

    Returns:
        The array. Its memory is counted in bytes by :func:`tcuda.host_memory_stats`.

    Raises:
        ValueError: ``shape`` has a negative number, ``order`` is unknown, or the elements are Python objects.
        TypeError: ``shape`` is not made of integers.
        AcceleratorError: The driver has no more page-locked memory.

    Example:
        >>> staging = tcuda.memory.empty_pinned((2, 3), "float32")
        >>> staging[...] = 1
        >>> x = xp.empty((2, 3), "float32")
        >>> x.set(staging)
        >>> float(x.sum())
        6.0
    """
    if order == "C":
        made: npt.NDArray[Any] | None = (_make or _prepared())(shape, dtype)
        if made is not None:
            return made
    return _unusual_array(shape, dtype, order)


def _prepared() -> Callable[[object, object], Any]:
    """Return the core's function that makes arrays; initialise tcuda if tcuda is not initialised yet."""
    global _make
    import numpy as np

    table = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    _make = _core.PageLockedArrays(ledger(), table, np.ndarray, np.dtype).make
    return _make


def _forget() -> None:
    global _make
    _make = None


call_in_child(_forget)


def _unusual_array(shape: Shape, dtype: npt.DTypeLike, order: str) -> npt.NDArray[Any]:
    """Return an array that the core does not make, or raise the error for the arguments."""
    import numpy as np

    kind = np.dtype(dtype)
    if kind.hasobject:
        raise ValueError(f"page-locked memory cannot hold Python objects: dtype is {kind}")
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', and is {order!r}")
    lengths = _lengths(shape)
    nbytes = math.prod(lengths) * kind.itemsize
    if nbytes >= _MOST_BYTES:
        raise ValueError(f"the array has too many bytes: shape is {shape}, dtype is {kind}")
    if not nbytes:
        return np.empty(lengths, kind, order)  # type: ignore[call-overload, no-any-return]
    memory: Any = _core.allocate_page_locked(ledger(), nbytes)
    made: npt.NDArray[Any] = np.ndarray(lengths, kind, memory, 0, None, order)  # type: ignore[arg-type]
    return made


def zeros_pinned(shape: Shape, dtype: npt.DTypeLike = float, order: Literal["C", "F"] = "C") -> npt.NDArray[Any]:
    """Return a new NumPy array of zeros in page-locked memory; see :func:`empty_pinned`.

    Args:
        shape: The shape: a number of elements, or a sequence of such numbers.
        dtype: The type of the elements.
        order: The layout of the elements: ``"C"`` or ``"F"``.

    Returns:
        The array. Its memory is counted in bytes by :func:`tcuda.host_memory_stats`.

    Raises:
        ValueError: ``shape`` has a negative number, ``order`` is unknown, or the elements are Python objects.
        TypeError: ``shape`` is not made of integers.
        AcceleratorError: The driver has no more page-locked memory.

    Example:
        >>> tcuda.memory.zeros_pinned(3).tolist()
        [0.0, 0.0, 0.0]
    """
    made = empty_pinned(shape, dtype, order)
    made[...] = 0
    return made


def empty_host_cache() -> None:
    """Give page-locked memory that nobody uses back to the driver, after the work of the devices (``cudaFreeHost``).

    While a stream captures, memory that was freed and that captured work may use is kept.

    Example:
        >>> staging = tcuda.memory.empty_pinned(1024)
        >>> del staging
        >>> tcuda.memory.empty_host_cache()
        >>> stats = tcuda.host_memory_stats()
        >>> stats["allocated_bytes.current"] >= stats["active_bytes.current"]
        True
    """
    known = ledger_if_any()
    if known is not None:
        known.empty_host_cache()


def is_pinned(array: npt.NDArray[Any]) -> bool:
    """Return whether the memory of a NumPy array is page-locked (``torch.Tensor.is_pinned``).

    Args:
        array: The array.

    Returns:
        True for arrays of :func:`empty_pinned` and of ``cupyx.empty_pinned``, for arrays in the scope of :func:`pin`,
        and for views of these. False before tcuda is initialised, and for an array without elements.

    Raises:
        TypeError: ``array`` is not a NumPy array.

    Example:
        >>> tcuda.memory.is_pinned(tcuda.memory.empty_pinned(3))
        True
    """
    begin, end = _bounds(array, "is_pinned()")
    return begin < end and ledger_if_any() is not None and cuda.pointerIsPageLocked(begin)


class pin:
    """Page-lock the memory that a NumPy array has already (``cudaHostRegister``).

    The memory stays page-locked until the end of the scope, until :meth:`unpin`, or until the object dies. All of them
    wait for the work of the devices first, because a copy may still use the memory. Memory that is page-locked already
    stays as it is.

    Args:
        array: The array. Its elements must lie in one range of memory: all bytes of this range are page-locked.

    Attributes:
        array: The array.

    Raises:
        TypeError: ``array`` is not a NumPy array.
        AcceleratorError: A part of the memory is page-locked already (712), or the system refuses to lock the memory.

    Example:
        >>> import numpy as np
        >>> a = np.arange(1000.0)
        >>> x = xp.empty(1000)
        >>> with tcuda.memory.pin(a):
        ...     x.set(a)  # need not wait for the copy
        >>> tcuda.memory.is_pinned(a)
        False
    """

    _locked = 0

    def __init__(self, array: npt.NDArray[Any]) -> None:
        begin, end = _bounds(array, "pin()")
        self.array = array
        ledger()
        if begin < end and not (cuda.pointerIsPageLocked(begin) and cuda.pointerIsPageLocked(end - 1)):
            cuda.hostRegister(begin, end - begin, _PORTABLE)
            self._locked = begin

    def unpin(self) -> None:
        """Wait for the devices, and let the memory be pageable again; a second call does nothing.

        Raises:
            RuntimeError: A stream captures. The captured work may use the memory.

        Example:
            >>> import numpy as np
            >>> a = np.arange(1000.0)
            >>> pinned = tcuda.memory.pin(a)
            >>> tcuda.memory.is_pinned(a)
            True
            >>> pinned.unpin()
            >>> tcuda.memory.is_pinned(a)
            False
        """
        if not self._locked:
            return
        if captures:
            raise RuntimeError("unpin() waits for the devices, which is impossible while a graph is captured.")
        current, memory = cuda.getDevice(), ledger()
        try:
            for device in range(cuda.getDeviceCount()):
                if device == current or memory.reserved(device):
                    cuda.setDevice(device)
                    cuda.deviceSynchronize()
        finally:
            cuda.setDevice(current)
        begin, self._locked = self._locked, 0
        cuda.hostUnregister(begin)

    def __enter__(self) -> npt.NDArray[Any]:
        return self.array

    def __exit__(self, *error: object) -> None:
        self.unpin()

    __del__ = finalizer(unpin)


def _bounds(array: Any, call: str) -> tuple[int, int]:
    """Return the addresses of the first byte of ``array`` and of the byte after the last."""
    import numpy as np

    if not isinstance(array, np.ndarray):
        raise TypeError(f"{call} expects a NumPy array, but got {type(array).__name__}")
    return byte_bounds(array.__array_interface__["data"][0], array.itemsize, array.shape, array.strides)


def _lengths(shape: Shape) -> tuple[int, ...]:
    lengths = tuple(map(operator.index, shape)) if isinstance(shape, (tuple, list)) else (operator.index(shape),)  # type: ignore[arg-type]
    if any(length < 0 for length in lengths):
        raise ValueError(f"negative dimensions are not allowed: shape is {shape}")
    return lengths
