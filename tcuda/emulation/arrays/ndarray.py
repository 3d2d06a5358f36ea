"""The array of an emulated device."""

from __future__ import annotations

import inspect
import pickle
import warnings
from types import GenericAlias
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from tcuda._device import device as _device
from tcuda.emulation.arrays import duck_arrays, namespace
from tcuda.emulation.arrays.flat import flatiter
from tcuda.emulation.arrays.functions import FUNCTIONS, IMPLEMENTATIONS, for_method, method
from tcuda.emulation.arrays.operators import Operators
from tcuda.emulation.arrays.signatures import Setting
from tcuda.emulation.devices import array_interface
from tcuda.emulation.devices.operands import SCALARS
from tcuda.emulation.devices.strided import ARRAYS, Strided, named_dtype
from tcuda.emulation.kernels.mdspan import MdSpan
from tcuda.emulation.names import tensor_names
from tcuda.emulation.work import copies, creation, dlpack, filling, indexing, numpy_work

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

_COMPARISONS = frozenset([np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal])
_SHAPE = Setting("reshape", "shape")
_AXES = Setting("transpose", "axes")
_KNOWN = (Strided, np.ndarray, type(None), *SCALARS)
"""The types of operands that reach the function. The function refuses a NumPy array with a better message than NumPy's.
"""
_clip, _compress, _partition, _sort = map(for_method, ("clip", "compress", "partition", "sort"))
_UFUNC_METHODS = frozenset(["__call__", "accumulate", "at", "outer", "reduce", "reduceat"])


class ndarray(Strided, Operators):
    """An array in the memory of an emulated device, with the surface of ``cupy.ndarray``.

    NumPy computes on the host. Memory, streams and time are those of the device. Calls that CuPy refuses are refused:

    * Only :meth:`get` converts an array to a NumPy array, and no operation takes a NumPy array.
    * All arrays of an operation must be on the current device. (CuPy reaches the memory of another device where the
      hardware has peer access. Here such an operation is always an error, because not all hardware has peer access.)
    * An operation returns an array even where NumPy returns a scalar.
    * While the current stream captures, copies from and to the host are refused, and so is work that depends on the
      contents of an array. The memory of an array that is made then has 0xFF in every byte until the graph is launched.

    An index out of bounds in an array of indices raises :class:`IndexError`; CuPy wraps such an index around.

    ``__cuda_array_interface__`` and ``__dlpack__`` pass the array to other libraries, as an array of a GPU. The memory
    is memory of the host, which a library for CUDA cannot read.

    Args:
        shape: The lengths of the axes.
        dtype: The type of the elements.
        memptr: The address of the first element (:attr:`data` of another array); new memory on the current device if
            None.
        strides: The bytes from one element to the next along each axis; without gaps if None.
        order: ``"C"`` or ``"F"``; ignored unless ``strides`` is None.

    Raises:
        ValueError: CuPy does not know the dtype, or the array does not fit in the memory.
        OutOfMemoryError: The device has no room for the array.
    """

    __slots__ = ()

    __module__ = "tcuda.emulation"  # where users find the class
    __array_priority__ = 100

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        duck_arrays.enter_class(cls, ndarray)

    if not TYPE_CHECKING:  # for a type checker, the class has no other attributes

        def __getattr__(self, name):
            if hasattr(type(self), name):  # a property has failed, and fails again with its own error
                return object.__getattribute__(self, name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{tensor_names.about(name)}",
                name=name,
                obj=self,
            )

    # Copies between host and device

    def get(
        self,
        stream: Any = None,
        order: str = "C",
        out: npt.NDArray[Any] | None = None,
        blocking: bool = True,
    ) -> npt.NDArray[Any]:
        """Return a copy in a NumPy array.

        Args:
            stream: The stream that copies, any object with ``ptr``; the current stream if None.
            order: The layout of the copy: ``"C"``, ``"F"``, or ``"A"`` for the layout of this array.
            out: The array to copy to; ``order`` is ignored then.
            blocking: Whether to wait until the copy is complete.

        Raises:
            TypeError: ``out`` is not a NumPy array, or has another dtype.
            ValueError: ``out`` has another shape, or is read-only.

        Example:
            >>> xp.arange(3).get()
            array([0, 1, 2])
        """
        return copies.to_host(self, stream, order, out, blocking)

    def set(self, arr: npt.NDArray[Any], stream: Any = None) -> None:
        """Copy the elements of ``arr``, a NumPy array, into this array.

        Args:
            arr: The array, of the same shape and dtype.
            stream: The stream that copies, any object with ``ptr``; the current stream if None.

        Raises:
            TypeError: ``arr`` is not a NumPy array, or has another dtype.
            ValueError: ``arr`` has another shape.
            RuntimeError: There are gaps between the elements of this array.

        Example:
            >>> import numpy
            >>> x = xp.zeros(3)
            >>> x.set(numpy.array([1.0, 2.0, 3.0]))
            >>> x
            array([1., 2., 3.])
        """
        copies.to_device(self, arr, stream)

    def item(self) -> Any:
        """Return the only element as a Python scalar; waits for the current stream.

        Raises:
            ValueError: The array has no element, or more than one.

        Example:
            >>> xp.arange(4).sum().item()
            6
        """
        return creation.item(self)

    def tolist(self) -> Any:
        """Return the elements in nested lists; waits for the current stream.

        Example:
            >>> xp.eye(2).tolist()
            [[1.0, 0.0], [0.0, 1.0]]
        """
        return self.get().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """Return the bytes of the elements; waits for the current stream.

        Args:
            order: ``"C"`` or ``"F"``: the order of the elements; ``"A"`` for the layout of the array.

        Example:
            >>> list(xp.arange(3, dtype="int8").tobytes())
            [0, 1, 2]
        """
        return self.get(order=order).tobytes("A")

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the elements to the file ``fid``; waits for the current stream.

        Args:
            fid: A path, or a file that is open for writing.
            sep: The text between the elements; ``""`` writes bytes.
            format: The format of each element, if ``sep`` is not empty.

        Example:
            >>> import pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "numbers")
            ...     xp.arange(3).tofile(path, sep=",")
            ...     path.read_text()
            '0,1,2'
        """
        self.get().tofile(fid, sep, format)

    def dump(self, file: Any) -> None:
        """Pickle the array to the file object ``file``.

        Args:
            file: A path, or a file that is open for writing bytes.

        Example:
            >>> import io, pickle
            >>> file = io.BytesIO()
            >>> xp.arange(3).dump(file)
            >>> pickle.loads(file.getvalue()).tolist()
            [0, 1, 2]
        """
        pickle.dump(self, file, pickle.HIGHEST_PROTOCOL)

    def dumps(self) -> bytes:
        """Return a pickle of the array.

        Example:
            >>> import pickle
            >>> pickle.loads(xp.arange(3).dumps()).tolist()
            [0, 1, 2]
        """
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    def __bool__(self) -> bool:
        if self.size == 0:
            warnings.warn(
                "The truth value of an empty array is ambiguous. Returning False, but in future this will result in an "
                "error. Use `array.size > 0` to check that an array is not empty.",
                DeprecationWarning,
                stacklevel=2,
            )
            return False
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            )
        return bool(self.get().item())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __bytes__(self) -> bytes:
        return bytes(self.get())

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __format__(self, format_spec: str) -> str:
        return format(self.get(), format_spec)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array "
            "explicitly."
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return array_interface.interface_of(self)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return dlpack.capsule_of(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.device_of(self)

    def toDlpack(self) -> Any:
        """Return a capsule of DLPack with the array; deprecated in CuPy in favour of ``from_dlpack``.

        Example:
            >>> x = xp.arange(3)
            >>> capsule = x.toDlpack()
            >>> type(capsule).__name__
            'PyCapsule'
        """
        return dlpack.old_capsule_of(self)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return creation.array, (self.get(order="A"),)

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        with _device(self.device):
            return self.copy()

    # Elements

    __getitem__ = indexing.getitem

    def __setitem__(self, index: Any, value: Any) -> None:
        indexing.setitem(self, index, value)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[place] for place in range(len(self)))

    def fill(self, value: Any) -> None:
        """Set every element to ``value``, a scalar or an array without axes.

        Args:
            value: A number, or an array without dimensions.

        Example:
            >>> x = xp.empty(3)
            >>> x.fill(2)
            >>> x
            array([2., 2., 2.])
        """
        filling.fill(self, value)

    take = method("take")
    put = method("put")
    repeat = method("repeat")
    choose = method("choose")
    searchsorted = method("searchsorted")
    nonzero = method("nonzero")

    def compress(self, condition: Any, axis: int | None = None, out: ndarray | None = None) -> ndarray:
        """Return the slices along ``axis`` for which ``condition`` is true.

        Args:
            condition: A vector of truth values, an array of the device.
            axis: The axis along which to choose; the elements of the flat array if None.
            out: The array for the result; a new one if None.

        Example:
            >>> xp.arange(4).compress(xp.asarray([True, False, True, False]))
            array([0, 2])
        """
        compressed: ndarray = _compress(condition, self, axis, out)
        return compressed

    def sort(self, axis: int = -1, kind: str | None = None) -> None:
        """Sort in place, stably.

        Args:
            axis: The axis to sort along.
            kind: None or ``"stable"``.

        Raises:
            NotImplementedError: There are gaps between the elements, which CuPy refuses, too.

        Example:
            >>> x = xp.asarray([3, 1, 2])
            >>> x.sort()
            >>> x
            array([1, 2, 3])
        """
        self._require_contiguous()
        self[...] = _sort(self, axis, kind)

    argsort = method("argsort")

    def partition(self, kth: Any, axis: int = -1) -> None:
        """Reorder in place: elements at ``kth`` are where sorting puts them, smaller ones before, larger ones after.

        Args:
            kth: The place, or the places, of the elements that must be where a sort would put them.
            axis: The axis.

        Raises:
            NotImplementedError: There are gaps between the elements, which CuPy refuses, too.

        Example:
            >>> x = xp.asarray([3, 1, 2])
            >>> x.partition(1)
            >>> int(x[1])
            2
        """
        self._require_contiguous()
        self[...] = _partition(self, kth, axis)

    argpartition = method("argpartition")

    def _require_contiguous(self) -> None:
        if not self.flags.c_contiguous:
            raise NotImplementedError("Sorting non-contiguous array is not supported.")

    def scatter_add(self, slices: Any, value: Any) -> None:
        """Add ``value`` to the elements at ``slices``; deprecated in CuPy in favour of ``add.at``.

        Args:
            slices: The places, as in ``x[slices]``.
            value: An array, or a number.

        Example:
            >>> x = xp.zeros(3)
            >>> x.scatter_add([0, 2, 2], 1)
            >>> x.tolist()
            [1.0, 0.0, 2.0]
        """
        _warn_of_scatter("scatter_add", "add")
        FUNCTIONS["add"].at(self, slices, value)

    def scatter_max(self, slices: Any, value: Any) -> None:
        """Store the larger of elements and ``value`` at ``slices``; deprecated in favour of ``maximum.at``.

        Args:
            slices: The places, as in ``x[slices]``.
            value: An array, or a number.

        Example:
            >>> x = xp.arange(3)
            >>> x.scatter_max([0, 2], 1)
            >>> x.tolist()
            [1, 1, 2]
        """
        _warn_of_scatter("scatter_max", "maximum")
        FUNCTIONS["maximum"].at(self, slices, value)

    def scatter_min(self, slices: Any, value: Any) -> None:
        """Store the smaller of elements and ``value`` at ``slices``; deprecated in favour of ``minimum.at``.

        Args:
            slices: The places, as in ``x[slices]``.
            value: An array, or a number.

        Example:
            >>> x = xp.arange(3)
            >>> x.scatter_min([0, 2], 1)
            >>> x.tolist()
            [0, 1, 1]
        """
        _warn_of_scatter("scatter_min", "minimum")
        FUNCTIONS["minimum"].at(self, slices, value)

    # Shape, layout and type

    @property
    def flat(self) -> flatiter:
        """An iterator over the elements in row-major order. An assignment sets the elements, from the first on."""
        return flatiter(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        flatiter(self)[...] = value

    @property
    def T(self) -> ndarray:
        """A view with the axes in reverse order; the array itself if it has one axis at most."""
        return self if self.ndim <= 1 else ndarray.transpose(self)

    @property
    def mT(self) -> ndarray:
        """A view with the last two axes swapped."""
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        swapped: ndarray = self.swapaxes(-1, -2)
        return swapped

    @property
    def real(self) -> ndarray:
        """A view of the real parts."""
        part: ndarray = FUNCTIONS["real"](self)
        return part

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> ndarray:
        """A view of the imaginary parts; zeros if the elements are real."""
        part: ndarray = FUNCTIONS["imag"](self)
        return part

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("cupy.ndarray does not have imaginary part to set")
        self.imag[...] = value

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> ndarray:
        """Return the elements in another shape: a view, where that is possible and ``copy`` is not true.

        Args:
            *shape: The lengths of the axes, or one tuple; -1 stands for the length that fits.
            order: The order in which the elements are read and placed: ``"C"``, ``"F"`` or ``"A"``.
            copy: True to copy always, False to refuse a copy with ValueError, None to copy only where needed.

        Raises:
            ValueError: The shape has another number of elements, ``copy`` is false and a view is not possible, or
                ``copy`` is a text.

        Example:
            >>> xp.arange(6).reshape(2, -1)
            array([[0, 1, 2],
                   [3, 4, 5]])
        """
        if isinstance(copy, str):
            raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")
        lengths = _SHAPE.admit(shape[0] if len(shape) == 1 else shape)
        source = self.copy() if copy else self
        reshaped: ndarray
        if order in ("F", "f") or (order in ("A", "a") and self.flags.fnc):  # as CuPy does, for strides like CuPy's
            backward = lengths[::-1] if isinstance(lengths, (tuple, list)) else lengths
            reshaped = numpy_work.view(np.ndarray.reshape, (source.transpose(), backward)).transpose()
        else:
            reshaped = numpy_work.view(np.ndarray.reshape, (source, lengths), {"order": order})
        if copy is False and self.size and reshaped._block is not self._block:
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        return reshaped

    def transpose(self, *axes: Any) -> ndarray:
        """Return a view with the axes in another order; without arguments, in the reverse order.

        Args:
            *axes: The axes in their new order, or one tuple; the reverse order without arguments.

        Example:
            >>> xp.zeros((2, 3, 4)).transpose(2, 0, 1).shape
            (4, 2, 3)
        """
        order = [_AXES.admit(axis) for axis in axes]
        transposed: ndarray = numpy_work.view(np.ndarray.transpose, (self, *order))
        return transposed

    def flatten(self, order: str = "C") -> ndarray:
        """Return a copy with one axis.

        Args:
            order: The order in which the elements are read: ``"C"``, ``"F"``, ``"A"`` or ``"K"``.

        Example:
            >>> xp.eye(2).flatten()
            array([1., 0., 0., 1.])
        """
        flat: ndarray = numpy_work.call(np.ndarray.flatten, (self, order))
        return flat

    def astype(
        self, dtype: npt.DTypeLike, order: str = "K", casting: None = None, subok: None = None, copy: bool = True
    ) -> ndarray:
        """Return a copy with elements of ``dtype``; the array itself if no copy is needed and ``copy`` is false.

        Args:
            dtype: The dtype of the copy.
            order: The layout of the copy: ``"C"``, ``"F"``, ``"A"`` or ``"K"``.
            casting: Must be None, as in CuPy.
            subok: Must be None, as in CuPy.
            copy: Whether to copy even if dtype and layout are right already.

        Example:
            >>> xp.asarray([1.7, -2.7]).astype("int32")
            array([ 1, -2], dtype=int32)
        """
        if casting is not None:
            raise TypeError("casting is not supported yet")
        if subok is not None:
            raise TypeError("subok is not supported yet")
        numpy_work.require_current_device([self])
        return cast("ndarray", creation.array(self, dtype, copy or None, order))

    def copy(self, order: str = "C") -> ndarray:
        """Return a copy on the current device, whichever device this array is on.

        Args:
            order: The layout of the copy: ``"C"``, ``"F"``, ``"A"`` or ``"K"``.

        Example:
            >>> x = xp.zeros(2)
            >>> y = x.copy()
            >>> y += 1
            >>> x
            array([0., 0.])
        """
        return cast("ndarray", creation.array(self, order=order))

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        """Return another array over the same memory, whose elements are of ``dtype``.

        Args:
            dtype: The type of the elements, or the class of the array; those of this array if None.
            type: The class of the array, a subclass of :class:`ndarray`.

        Example:
            >>> xp.ones(1, dtype="float32").view("int32").item()
            1065353216
        """
        if inspect.isclass(dtype) and issubclass(dtype, (Strided, np.ndarray)):
            if type is not None:
                raise ValueError("Cannot specify output type twice.")
            dtype, type = None, dtype
        if type is not None and not (inspect.isclass(type) and issubclass(type, ndarray)):
            raise ValueError("Type must be a sub-type of ndarray type")
        kind = self.dtype if dtype is None else named_dtype(dtype)
        viewing: builtins.type[ndarray] = type or self.__class__
        return viewing._view_of(self, self._host.view(kind))

    def byteswap(self, inplace: bool = False) -> ndarray:
        """Return the array with the bytes of each element in reverse order.

        Args:
            inplace: Whether to change this array, and return it.

        Example:
            >>> xp.asarray([1], dtype="int16").byteswap()
            array([256], dtype=int16)
        """
        swapped: ndarray = numpy_work.call(np.ndarray.byteswap, (self,))
        if not inplace:
            return swapped
        self[...] = swapped
        return self

    diagonal = method("diagonal")
    ravel = method("ravel")
    squeeze = method("squeeze")
    swapaxes = method("swapaxes")

    def mdspan(self, *, index_type: Any, allow_unsafe: bool = False) -> MdSpan:
        """Return the array as an argument of a kernel with a parameter of the type ``cuda::std::mdspan``.

        All lengths of that type are dynamic. The layout can be ``layout_stride``, ``layout_right`` or ``layout_left``.

        Args:
            index_type: The type of the lengths and strides, ``int32`` or ``int64``.
            allow_unsafe: Whether axes may have the length 0, or strides that are not positive.

        Raises:
            ValueError: ``index_type`` is another type, or does not hold the size of the array.
            RuntimeError: An axis has the length 0, or a stride that is not positive, and ``allow_unsafe`` is false.

        Example:
            >>> import numpy as np
            >>> x = xp.zeros((2, 3), dtype="float32")
            >>> span = x.mdspan(index_type=np.int32)  # an argument of a kernel
            >>> type(span).__name__
            'MdSpan'
        """
        return MdSpan(self, index_type, allow_unsafe)

    # Arithmetic

    all = method("all")
    any = method("any")
    argmax = method("argmax")
    argmin = method("argmin")
    cumprod = method("cumprod")
    cumsum = method("cumsum")
    dot = method("dot")
    max = method("max")
    mean = method("mean")
    min = method("min")
    prod = method("prod")
    ptp = method("ptp")
    round = method("round")
    std = method("std")
    sum = method("sum")
    trace = method("trace")
    var = method("var")

    def clip(self, min: Any = None, max: Any = None, out: ndarray | None = None) -> ndarray:
        """Return the elements, with ``min`` in place of smaller elements and ``max`` in place of larger elements.

        Args:
            min: The least value, an array or a number; no limit if None.
            max: The greatest value; no limit if None.
            out: The array for the result; a new one if None.

        Example:
            >>> xp.arange(5).clip(1, 3)
            array([1, 1, 2, 3, 3])
        """
        clipped: ndarray = _clip(self, min, max, out=out)
        return clipped

    def conj(self) -> ndarray:
        """Return the complex conjugate of each element.

        Example:
            >>> xp.array([1 + 2j, 3]).conj()
            array([1.-2.j, 3.-0.j])
        """
        return FUNCTIONS["conjugate"](self) if self.dtype.kind == "c" else self

    conjugate = conj

    def __eq__(self, other: object) -> Any:
        if other is None or type(other).__eq__ is object.__eq__:  # No element is equal to such an object.
            return creation.zeros(self.shape, bool)
        return super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        if other is None or (type(other).__eq__ is object.__eq__ and type(other).__ne__ is object.__ne__):
            return creation.ones(self.shape, bool)
        return super().__ne__(other)

    __hash__ = None  # type: ignore[assignment]

    def __class_getitem__(cls, item: tuple[Any, Any]) -> GenericAlias:
        shape, dtype = item
        return GenericAlias(ndarray, (shape, dtype))

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        return super().__pow__(other)  # CuPy ignores the modulo, as NumPy does.

    def __imatmul__(self, other: Any) -> Any:
        return self @ other  # CuPy has no matrix product in place.

    # NumPy's functions on arrays of the device

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        implementation = IMPLEMENTATIONS.get(ufunc)
        if implementation is None or method not in _UFUNC_METHODS:
            return NotImplemented
        if method not in ("at", "reduceat"):
            for operand in (*inputs, *kwargs.get("out", ())):
                if not isinstance(operand, _KNOWN) and not array_interface.is_array(operand):
                    return NotImplemented
        if ufunc in _COMPARISONS:  # A NumPy scalar becomes an array before a comparison (numpy#12142).
            inputs = tuple([x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in inputs])
        function = implementation if method == "__call__" else getattr(implementation, method)
        return function(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        implementation = namespace.counterpart(func)
        if implementation is None or not all(issubclass(kind, (Strided, np.ndarray)) for kind in types):
            return NotImplemented
        return implementation(*args, **kwargs)


Strided.array_type = ndarray
ARRAYS.use(ndarray)


def _warn_of_scatter(name: str, function: str) -> None:
    warnings.warn(
        f"`ndarray.{name}` is deprecated. Please use `cupy.{function}.at` instead.", DeprecationWarning, stacklevel=3
    )
