"""Making arrays on the current device, from nothing, from the host, and from other arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tcuda._lazy import cuda
from tcuda.emulation import kernel, transfer
from tcuda.emulation.strided import Strided, supported

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tcuda.emulation.ndarray import ndarray

    Shape = int | Sequence[int]


def empty(shape: Shape, dtype: npt.DTypeLike = float, order: str = "C") -> ndarray:
    """Return a new array whose elements are whatever was in its memory before."""
    return kernel.new(shape, dtype, order)


def zeros(shape: Shape, dtype: npt.DTypeLike = float, order: str = "C") -> ndarray:
    """Return a new array of zeros."""
    return _cleared(empty(shape, dtype, order))


def ones(shape: Shape, dtype: npt.DTypeLike = float, order: str = "C") -> ndarray:
    """Return a new array of ones."""
    return full(shape, 1, dtype, order)


def full(shape: Shape, fill_value: Any, dtype: npt.DTypeLike | None = None, order: str = "C") -> ndarray:
    """Return a new array of ``fill_value``, a scalar or an array without axes; with its type if ``dtype`` is None."""
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, Strided) else np.array(fill_value).dtype
    return _filled(empty(shape, dtype, order), fill_value)


def empty_like(
    prototype: Any, dtype: npt.DTypeLike | None = None, order: str = "K", subok: None = None, shape: Any = None
) -> ndarray:
    """Return a new array with the shape, type and layout of ``prototype``, as far as they are not given."""
    if subok is not None:
        raise TypeError("subok is not supported yet")
    if isinstance(prototype, np.generic):
        prototype = array(prototype)
    if not isinstance(prototype, Strided):
        raise TypeError(f"Unsupported type {type(prototype)}")
    kind = supported(prototype.dtype if dtype is None else dtype)
    # NumPy knows the rules of the layout; memory that nobody writes to costs nothing.
    model = np.empty_like(prototype._host, kind, order, shape=shape)  # type: ignore[call-overload]
    return cast("ndarray", Strided.array_type(model.shape, kind, strides=model.strides))


def zeros_like(
    a: Strided, dtype: npt.DTypeLike | None = None, order: str = "K", subok: None = None, shape: Any = None
) -> ndarray:
    """Return a new array of zeros with the shape, type and layout of ``a``, as far as they are not given."""
    return _cleared(empty_like(a, dtype, order, subok, shape))


def ones_like(
    a: Strided, dtype: npt.DTypeLike | None = None, order: str = "K", subok: None = None, shape: Any = None
) -> ndarray:
    """Return a new array of ones with the shape, type and layout of ``a``, as far as they are not given."""
    return full_like(a, 1, dtype, order, subok, shape)


def full_like(
    a: Strided,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: None = None,
    shape: Any = None,
) -> ndarray:
    """Return a new array of ``fill_value`` with the shape, type and layout of ``a``, as far as they are not given."""
    return _filled(empty_like(a, dtype, order, subok, shape), fill_value)


def array(
    obj: Any,
    dtype: npt.DTypeLike | None = None,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> ndarray:
    """Return an array on the current device with the elements of ``obj``.

    Args:
        obj: An array of any device, an array of NumPy's, a scalar, or a sequence of any of these.
        dtype: The type of the elements; that of ``obj`` if None.
        copy: Whether to copy an array that is already as it should be. False: never copy, and raise where a copy is
            needed of an array of a device. None: only where it is needed.
        order: The layout, ``"C"``, ``"F"``, ``"A"`` or ``"K"``.
        subok: Must be false.
        ndmin: The least number of axes; missing ones come first.
        blocking: Whether to wait until a copy from the host is complete.

    Raises:
        RuntimeError: The current stream captures, and ``obj`` is of the host and has an axis.
        NotImplementedError: ``subok`` is true, as with CuPy.
        ValueError: ``obj`` has a dtype that no kernel knows, or ``copy`` is False and ``obj`` must be copied.
    """
    if subok:
        raise NotImplementedError("array() makes arrays of one class only; leave subok out.")
    order = order or "K"
    if isinstance(obj, Strided):
        made = _from_array(obj, dtype, copy, order)
    elif _has_arrays(obj):
        made = _from_sequence(obj, dtype, order)
    else:
        host = np.asarray(obj, dtype=dtype)
        host = host.astype(host.dtype.newbyteorder("="), copy=False)
        supported(host.dtype)
        column_major = order == "F" or (order in "AK" and host.flags.fnc)
        made = transfer.from_host(host, "F" if column_major else "C")
        if blocking and host.ndim:
            transfer.synchronize(made)
    if made.ndim < ndmin:
        made = made[(None,) * (ndmin - made.ndim)]
    return made


def asarray(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    blocking: bool = False,
) -> ndarray:
    """Return ``a`` as an array on the current device, without a copy where it is one already; see :func:`array`."""
    return array(a, dtype, copy, order, blocking=blocking)


asanyarray = asarray


def ascontiguousarray(a: Strided, dtype: npt.DTypeLike | None = None) -> ndarray:
    """Return ``a`` in row-major order and with an axis at least, without a copy where it is so already."""
    return _contiguous(a, dtype, "C")


def asfortranarray(a: Strided, dtype: npt.DTypeLike | None = None) -> ndarray:
    """Return ``a`` in column-major order and with an axis at least, without a copy where it is so already."""
    return _contiguous(a, dtype, "F")


def copy(a: Any, order: str = "K") -> ndarray:
    """Return a copy of ``a`` on the current device, whichever device ``a`` is on."""
    return array(a, order=order)


def astype(x: Strided, dtype: npt.DTypeLike, /, *, copy: bool = True) -> ndarray:
    """Return ``x`` with elements of ``dtype``; ``x`` itself if it has them and ``copy`` is false."""
    return array(x, dtype, copy or None)


def from_dlpack(x: Any, /, *, device: None = None, copy: bool | None = None) -> ndarray:
    """Return an array on the current device with the elements of ``x``, which speaks DLPack.

    Args:
        x: An array of a device, which gives a view of its memory, or one of the host, which is copied.
        device: Must be None.
        copy: Whether to copy an array of a device, too.

    Raises:
        BufferError: The memory of ``x`` cannot be read from the host.
    """
    if device is not None:
        raise BufferError("An array can be made on the current device only; leave device out.")
    if isinstance(x, Strided):
        return array(x, copy=copy)
    return array(np.from_dlpack(x))


def _cleared(array: ndarray) -> ndarray:
    if array.nbytes:
        with kernel.unfinished(array):
            cuda.memsetAsync(array.data.ptr, 0, array.nbytes, cuda.currentStream().ptr)
    return array


def _filled(array: ndarray, value: Any) -> ndarray:
    with kernel.unfinished(array):
        array.fill(value)
    return array


def _from_array(source: Strided, dtype: npt.DTypeLike | None, copy: bool | None, order: str) -> ndarray:
    kind = source.dtype if dtype is None else supported(dtype)
    elsewhere = source._block.device != cuda.getDevice()
    if not copy and not elsewhere and kind == source.dtype and _is_laid_out(source, order):
        return cast("ndarray", source)
    if elsewhere:
        copied = transfer.to_current_device(source, order)
        return copied if kind == copied.dtype else _from_array(copied, kind, None, order)
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    target = empty_like(source, kind, order)
    kernel.launch(np.copyto, (target, source), {"casting": "unsafe"}, reads=[source], fresh=[target])
    return target


def _is_laid_out(array: Strided, order: str) -> bool:
    flags = array.flags
    return {"K": True, "A": flags.forc, "C": flags.c_contiguous, "F": flags.f_contiguous}[order]


def _has_arrays(obj: Any) -> bool:
    """Tell whether ``obj`` is a sequence with an array of a device in it, at any depth."""
    if not isinstance(obj, (list, tuple)):
        return False
    return any(isinstance(item, Strided) or _has_arrays(item) for item in obj)


def _has_arrays_only(obj: Any) -> bool:
    return isinstance(obj, Strided) or (isinstance(obj, (list, tuple)) and all(map(_has_arrays_only, obj)))


def _from_sequence(obj: Sequence[Any], dtype: npt.DTypeLike | None, order: str) -> ndarray:
    if not _has_arrays_only(obj):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed: a sequence has either arrays of the device or what "
            "the host has. Make arrays of the device of the latter with asarray() first."
        )

    def gather(*parts: Any) -> npt.NDArray[Any]:
        return np.array(parts, dtype, order="F" if order == "F" else "C")

    made: ndarray = kernel.call(gather, tuple(obj))
    return made


def _contiguous(a: Strided, dtype: npt.DTypeLike | None, order: str) -> ndarray:
    if not isinstance(a, Strided):
        raise TypeError(f"Unsupported type {type(a)}")
    return array(a, dtype, None, order, ndmin=1)
