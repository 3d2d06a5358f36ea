"""The memory of an array, and the layout of its elements in that memory."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tcuda import _core
from tcuda._base.errors import OutOfMemoryError
from tcuda._base.strides import byte_bounds
from tcuda.emulation.devices import memory
from tcuda.emulation.devices.memory import Block, MemoryPointer, allocate
from tcuda.emulation.numbers import structured
from tcuda.emulation.numbers.bfloat16 import is_bfloat16

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt
    from typing_extensions import Self

    from tcuda.emulation.devices.device import Device

_MOST = 2**63 - 1
_MOST_AXES = 64  # NumPy's limit
_DTYPES = frozenset("?bhilqBHILQefdFD")
"""The dtypes that the kernels of CuPy know, as the characters of NumPy."""
NUMBERS = frozenset(map(np.dtype, _DTYPES))
"""The dtypes of numbers that the kernels of CuPy know, in the byte order of the machine."""
_KINDS: dict[type, np.dtype[Any]] = {kind: np.dtype(kind) for kind in (bool, int, float, complex)}
_KINDS.update({np.dtype(char).type: np.dtype(char) for char in _DTYPES})
"""The dtypes by the types that name them; the dtype of ``longlong`` has a name of its own."""
_TEXTS = {text for kind in map(np.dtype, _DTYPES) for text in (kind.char, kind.name, kind.str[1:])}
KINDS: dict[Any, np.dtype[Any] | None] = {**_KINDS, **{text: np.dtype(text) for text in _TEXTS}}
KINDS.update(dict.fromkeys(NUMBERS))
"""The dtypes by the types and the texts that name them, and None for a dtype itself."""

_FLAGS = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA")

GROUPS: list[type] = []
"""Classes of objects that are made of several arrays, such as sparse matrices. ``get_array_module`` knows them."""


class Flags:
    """The layout of an array, as ``cupy.ndarray.flags``.

    Args:
        c_contiguous: Whether the elements lie in row-major order without gaps.
        f_contiguous: Whether the elements lie in column-major order without gaps.
        owndata: Whether the array is not a view of another array.
    """

    def __init__(self, c_contiguous: bool, f_contiguous: bool, owndata: bool) -> None:
        self._c_contiguous = c_contiguous
        self._f_contiguous = f_contiguous
        self._owndata = owndata

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return self._c_contiguous

    @property
    def f_contiguous(self) -> bool:
        """Whether the elements lie in column-major order without gaps."""
        return self._f_contiguous

    @property
    def owndata(self) -> bool:
        """Whether the array is not a view of another array."""
        return self._owndata

    @property
    def fnc(self) -> bool:
        """Whether the order is column-major and not row-major."""
        return self._f_contiguous and not self._c_contiguous

    @property
    def forc(self) -> bool:
        """Whether the order is column-major or row-major."""
        return self._f_contiguous or self._c_contiguous

    def __getitem__(self, name: str) -> bool:
        if name not in _FLAGS:
            raise KeyError(f"{name} is not defined for cupy.ndarray.flags, which has {', '.join(_FLAGS)}.")
        flag: bool = getattr(self, name.lower())
        return flag

    def __repr__(self) -> str:
        return "\n".join(f"  {name} : {self[name]}" for name in _FLAGS)


class Strided(_core.EmulatedArray):
    """A strided view of a :class:`~tcuda.emulation.devices.memory.Block`.

    Args:
        shape: The lengths of the axes.
        dtype: The type of the elements.
        memptr: The address of the first element; new memory on the current device if None.
        strides: The bytes from one element to the next along each axis; without gaps if None.
        order: ``"C"`` or ``"F"``; ignored unless ``strides`` is None.

    Raises:
        TypeError: The class is not a class of arrays.
        ValueError: CuPy does not know the dtype, or the array does not fit in the memory.
        OutOfMemoryError: The device has no room for the array.
    """

    __slots__ = ("__weakref__",)

    _block: Block
    _base: Strided | None

    array_type: ClassVar[type[Strided]]
    """The class of the arrays that operations return, which :mod:`tcuda.emulation.arrays.ndarray` sets.

    Some operations return an array of the class of their operand, if that is a subclass (:func:`of_class`).
    """

    def __new__(
        cls,
        shape: int | Sequence[int],
        dtype: npt.DTypeLike = float,
        memptr: MemoryPointer | None = None,
        strides: Sequence[int] | None = None,
        order: str | None = "C",
    ) -> Self:
        """Return a new array; a subclass calls this method in a ``__new__`` with arguments of its own."""
        if not issubclass(cls, Strided):
            raise TypeError(f"ndarray.__new__({cls.__name__}) makes arrays only: pass a subclass of ndarray.")
        lengths = lengths_of(shape)
        if order != "C" and order not in (None, "F", "c", "f"):
            raise ValueError(f"order not understood: {order!r}; an array is laid out in 'C' or 'F' order")
        kind = supported(dtype) if memptr is None else named_dtype(dtype)
        if memptr is None:
            nbytes = math.prod(lengths) * kind.itemsize
            if strides is not None:
                _require_within(lengths, kind.itemsize, strides, nbytes)
            if nbytes > _MOST:
                raise too_large(f"an array of shape {lengths} and dtype {kind}")
            if memory.allocators:
                allocated = memory.allocators[0](nbytes)
                block, offset = allocated.mem, allocated.offset
            else:
                block, offset = allocate(nbytes), 0
        elif isinstance(memptr, MemoryPointer):
            block, offset = memptr.mem, memptr.offset
        else:
            raise TypeError(f"memptr is the data of an array, and no {type(memptr).__name__}.")
        if not isinstance(block, Block):  # The core reads the members of a block.
            raise TypeError(f"the memory of an array is a xp.cuda.BaseMemory, and no {type(block).__name__}.")
        buffer: Any = block if block.size else block.host()
        host = np.ndarray(lengths, kind, buffer, offset, strides, "F" if order in ("F", "f") else "C")
        return cls._made(block, host, None, None)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: as in CuPy, ``__new__`` makes the array, and a subclass may have any arguments here."""

    def __array_finalize__(self, obj: Strided | None) -> None:
        """Do nothing; a subclass sets here the attributes of a new array, which ``obj`` may have already.

        Args:
            obj: The array from which this array was made; None if the program made this array from a shape.
        """

    @classmethod
    def _made(cls, block: Block, host: npt.NDArray[Any], base: Strided | None, obj: Strided | None) -> Self:
        """Return an array of this class.

        Args:
            block: The memory.
            host: The NumPy array over the memory.
            base: The array of which the array is a view, if the array is one.
            obj: The argument of ``__array_finalize__``.
        """
        array = object.__new__(cls)
        array._block, array._host, array._base = block, host, base
        if cls is not Strided.array_type:
            array.__array_finalize__(obj)
        return array

    @classmethod
    def _view_of(cls, base: Strided, host: npt.NDArray[Any]) -> Self:
        """Return the array whose elements are those of ``host``, which lies in the memory of ``base``."""
        # NumPy protects diagonals and broadcast arrays from writing. The flag of a broadcast array must not be read,
        # because reading it gives a warning.
        protected = 0 in host.strides or not host.flags.writeable
        view = cls._part_of(base, _unprotected(host, base._block) if protected else host)
        if cls is not Strided.array_type:
            view.__array_finalize__(base)
        return view

    def _over(self, memory: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a NumPy array with this shape, type and layout over ``memory``, which stands for the block."""
        host: npt.NDArray[Any] = np.ndarray(self.shape, self.dtype, memory, self.data.offset, self.strides)
        return host

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes. Setting the shape reshapes the array in place and never copies."""
        return self._host.shape

    @shape.setter
    def shape(self, shape: int | Sequence[int]) -> None:
        host = self._host.reshape(shape)
        if host.size and not np.may_share_memory(host, self._host):
            raise AttributeError(
                f"incompatible shape: an array of shape {self.shape} and strides {self.strides} cannot take the shape "
                f"{shape} without a copy; use reshape()"
            )
        self._host = host

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._host.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._host.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._host.size

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, without gaps between them."""
        return self._host.nbytes

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._host.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis."""
        return self._host.strides

    @property
    def flags(self) -> Flags:
        """How the elements lie in memory."""
        flags = self._host.flags
        return Flags(flags.c_contiguous, flags.f_contiguous, self._base is None)

    @property
    def base(self) -> Strided | None:
        """The array of which this array is a view; None if it is not a view."""
        return self._base

    @property
    def data(self) -> MemoryPointer:
        """The address of the first element; ``data.ptr`` is the address as a number."""
        return MemoryPointer(self._block, self._host.ctypes.data - self._block.ptr if self._host.size else 0)

    @property
    def device(self) -> Device:
        """The device in whose memory the array lies."""
        return MemoryPointer(self._block).device


def _functions_of_numpy() -> object:
    """Return the capsule with NumPy's C functions, which extensions look up under this name."""
    core: Any = np._core  # type: ignore[attr-defined]
    return core._multiarray_umath._ARRAY_API


def _require_within(lengths: Sequence[int], itemsize: int, strides: Sequence[int], nbytes: int) -> None:
    """Refuse strides with which the elements of a new array lie outside of its ``nbytes`` bytes.

    Raises:
        ValueError: A stride is negative, or an element lies after the last byte.
    """
    if len(strides) != len(lengths):
        raise ValueError("len(shape) != len(strides)")
    if nbytes:
        begin, end = byte_bounds(0, itemsize, lengths, strides)
        if begin < 0:
            raise ValueError("ndarray() with strides currently does not allow negative strides")
        if end > nbytes:
            raise ValueError(f"ndarray() with strides must stay withing a contiguous size of {nbytes} but got {end}.")


ARRAYS = _core.EmulatedArrays(Block, np.ndarray, _functions_of_numpy(), KINDS)
"""Makes arrays in the core; :mod:`tcuda.emulation.arrays.ndarray` sets the class of the arrays."""


def template_among(operands: Iterable[Any]) -> Strided | None:
    """Return the first array of a subclass among ``operands``, which gives results their class; None if all are plain.

    CuPy does not compare ``__array_priority__`` here.
    """
    for operand in operands:
        if isinstance(operand, Strided) and type(operand) is not Strided.array_type:
            return operand
    return None


def of_class(template: Strided, array: Strided) -> Strided:
    """Return ``array``, a new array that nothing else holds, as an array of the class of ``template``."""
    return type(template)._made(array._block, array._host, array._base, template)


def as_plain(array: Strided) -> Strided:
    """Return ``array`` without the class of its own: a view, if ``array`` is of a subclass."""
    kind = Strided.array_type
    return array if type(array) is kind else kind._part_of(array, array._host)


def lengths_of(shape: Any) -> tuple[int, ...]:
    """Return the lengths of the axes of an array of ``shape``.

    Raises:
        OverflowError: A length is too large for an index.
        TypeError: A length is not an integer.
        ValueError: A length is negative, or there are too many axes.
    """
    if type(shape) is int and 0 <= shape <= _MOST:
        return (shape,)
    if shape is None:
        raise TypeError("Use () not None as shape arguments")
    if type(shape) is tuple or np.iterable(shape):
        lengths = tuple(map(operator.index, shape))
    else:
        lengths = (operator.index(shape),)
    for length in lengths:
        if length < 0:
            raise ValueError("Negative dimensions are not allowed")
        if length > _MOST:
            raise OverflowError(f"An axis of an array has at most 2**63 - 1 elements; got {shortened(length)}.")
    if len(lengths) > _MOST_AXES:
        raise ValueError(f"An array has at most {_MOST_AXES} axes; got {len(lengths)}.")
    return lengths


def shortened(number: int) -> str:
    """Return ``number`` as a short text for a message."""
    return str(number) if number.bit_length() <= 128 else f"one of {number.bit_length()} bits"


def too_large(what: str) -> OutOfMemoryError:
    """Return the error for a size that needs more than 63 bits, which no device has.

    Args:
        what: A text for the object that would need the memory.
    """
    return OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate more than 1EB memory, {what}: that is more than any device has."
    )


def named_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the ``numpy.dtype`` that ``dtype`` names.

    Raises:
        TypeError: ``dtype`` is a list, a dictionary or an array. CuPy looks dtypes up in a table, where none of them
            can be a key.
    """
    if isinstance(dtype, (list, dict)):
        kind = type(dtype).__name__
        raise TypeError(f"unhashable type: {kind!r}. CuPy takes no {kind} as a dtype; pass numpy.dtype({dtype!r}).")
    if isinstance(dtype, (Strided, np.ndarray)):
        kind = type(dtype).__name__
        raise TypeError(f"unhashable type: {kind!r}. An array is no dtype; pass the dtype of the array.")
    return np.dtype(dtype)


def supported(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return ``dtype`` as a ``numpy.dtype``.

    Raises:
        TypeError: ``dtype`` is a list or a dictionary.
        ValueError: The kernels of CuPy do not know the dtype.
    """
    kind = _KINDS.get(dtype) if isinstance(dtype, type) else None
    if kind is not None:
        return kind
    kind = named_dtype(dtype)
    if kind.byteorder == ">":
        raise ValueError(f"Unsupported dtype {kind} with big-endian byte-order")
    if kind.char not in _DTYPES and not is_bfloat16(kind) and not structured.is_supported(kind):
        raise ValueError(f"Unsupported dtype {kind}")
    return kind


def _unprotected(host: npt.NDArray[Any], block: Block) -> npt.NDArray[Any]:
    """Return ``host``, a view of ``block``, without the write protection of NumPy, which CuPy does not have."""
    unprotected: npt.NDArray[Any]
    if host.size:
        offset = host.ctypes.data - block.ptr
        unprotected = np.ndarray(host.shape, host.dtype, block.host(), offset, host.strides)
    else:  # An array without elements has no place in the block.
        unprotected = host.copy()
    return unprotected
