"""The arguments of a kernel: their conversion to bytes, and the checks of their types and of their layouts."""

from __future__ import annotations

import ctypes
import itertools
import struct
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._base.warnings import stacklevel
from tcuda.emulation import rtc
from tcuda.emulation.devices.memory import MemoryPointer
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.kernels.mdspan import MdSpan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._core import EmulatedFunction, EmulatedModule
    from tcuda.emulation.kernels.launched_kernel import LaunchedKernel

_POINTER_BYTES = 8
_WHOLE = frozenset("iub")
_NAMES = {
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "g2": "bfloat16",
    **{f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)},
}


class KernelArguments:
    """The arguments of a launch.

    Args:
        function: The kernel.
        args: The arguments, as CuPy takes them.

    Attributes:
        packed: The bytes of the arguments, each at the offset of its parameter.
        arrays: The arrays of a device among the arguments.

    Raises:
        OverflowError: An integer does not fit in its parameter.
        TypeError: The number of the arguments is wrong, or CUDA would read an argument as another value.
    """

    __slots__ = ("arrays", "packed")

    def __init__(self, function: EmulatedFunction, args: Sequence[Any]) -> None:
        parameters = function.parameters
        if len(args) != len(parameters):
            raise TypeError(
                f"The kernel {function.name} has {_counted(len(parameters), 'parameter')}, and the launch passes "
                f"{_counted(len(args), 'argument')}."
            )
        packed = bytearray(function.argument_bytes)
        self.arrays: list[Strided] = []
        for place, (argument, (kind, size, offset)) in enumerate(zip(args, parameters, strict=True)):
            if isinstance(argument, Strided):
                self.arrays.append(argument)
            elif isinstance(argument, MdSpan):
                self.arrays.append(argument.array)
            content = _content(argument, kind, size)
            if content is None:
                raise TypeError(_mismatch(function.name, place, argument, kind, size))
            if len(content) != size:
                raise OverflowError(
                    f"Argument {place} of the kernel {function.name} is {argument!r}, which does not fit in the "
                    f"parameter, {_described(kind, size)}."
                )
            packed[offset : offset + size] = content
        self.packed = bytes(packed)


def _content(argument: Any, kind: str, size: int) -> bytes | None:
    """Return the bytes of ``argument``; None if its type is wrong, and no bytes if its value is too large."""
    if isinstance(argument, MdSpan):  # A layout without strides has fewer bytes than the argument.
        return argument.content[:size] if kind in "ps" and len(argument.content) >= size else None
    if argument is None or isinstance(argument, (Strided, MemoryPointer)):
        if kind != "p" and not (kind in "iu" and size == _POINTER_BYTES):
            return None
        return _address(argument).to_bytes(_POINTER_BYTES, "little")
    if kind == "p":
        whole = isinstance(argument, (int, np.integer)) and not isinstance(argument, bool)
        return _integer(int(argument), size) if whole and _width(argument) == size else None
    if kind == "s":
        return _structure(argument, size)
    if isinstance(argument, np.ndarray):
        # CuPy copies the bytes of a NumPy array into the parameter.
        argument = argument.reshape(-1)[0] if argument.size == 1 else None
    if kind == "f":
        return _floating(argument, size)
    if kind == "g":  # NumPy's floats of 16 bits are other numbers with the same size.
        return (
            argument.tobytes()
            if isinstance(argument, np.generic) and argument.dtype.kind == "V" and argument.nbytes == size
            else None
        )
    if kind in "iub":
        return _whole(argument, kind, size)
    return None


def _address(argument: Strided | MemoryPointer | None) -> int:
    if isinstance(argument, Strided):
        host = argument._host
        return host.ctypes.data if host.size else argument._block.ptr
    return 0 if argument is None else argument.ptr


def _whole(argument: Any, kind: str, size: int) -> bytes | None:
    if isinstance(argument, (bool, np.bool_)):
        return bytes([bool(argument)]) if size == 1 else None
    if not isinstance(argument, (int, np.integer)):
        return None
    if kind == "b":
        return bytes([int(argument)]) if int(argument) in (0, 1) else b""
    width = _width(argument)
    if width < size:  # CUDA would read bytes after the number.
        return None
    if width == size and not isinstance(argument, int):
        return argument.tobytes()
    return _integer(int(argument), size)


def _integer(number: int, size: int) -> bytes:
    """Return the bytes of ``number``, signed or not; no bytes if the number is too large."""
    bits = 8 * size
    if not -(1 << (bits - 1)) <= number < 1 << bits:
        return b""
    return (number & ((1 << bits) - 1)).to_bytes(size, "little")


def _width(number: Any) -> int:
    """Return the bytes in which CuPy passes ``number``."""
    return _POINTER_BYTES if isinstance(number, int) else int(number.itemsize)


def _floating(argument: Any, size: int) -> bytes | None:
    if type(argument) is float:
        argument = np.float64(argument)
    if not isinstance(argument, np.generic) or argument.dtype.kind not in "fV":
        return None
    return argument.tobytes() if argument.itemsize == size else None


def _structure(argument: Any, size: int) -> bytes | None:
    if type(argument) is complex:
        argument = np.complex128(argument)
    if not isinstance(argument, (np.generic, np.ndarray)) or argument.nbytes != size:
        return None
    return argument.tobytes()


def _mismatch(kernel: str, place: int, argument: Any, kind: str, size: int) -> str:
    given = type(argument)
    if not isinstance(
        argument, (MdSpan, Strided, MemoryPointer, np.generic, np.ndarray, int, float, complex, type(None))
    ):
        return f"Unsupported type {given} of argument {place} of the kernel {kernel}."
    shown = f"a {given.__name__}"
    if isinstance(argument, np.ndarray):
        shown = f"a NumPy array of {argument.nbytes} bytes"
    elif isinstance(argument, Strided):
        shown = "an array of a device"
    elif isinstance(argument, MdSpan):
        shown = f"an mdspan of {len(argument.content)} bytes"
    elif given in (int, float, complex):
        shown = f"a Python {given.__name__}, which is passed in {16 if given is complex else 8} bytes"
    return (
        f"Argument {place} of the kernel {kernel} is {shown}, and the parameter is {_described(kind, size)}. "
        f"{_advice(argument, kind, size)}"
    )


def _described(kind: str, size: int) -> str:
    names = {
        "p": "a pointer",
        "i": f"a signed integer of {_counted(size, 'byte')}",
        "u": f"an unsigned integer of {_counted(size, 'byte')}",
        "f": f"a floating-point number of {_counted(size, 'byte')}",
        "g": "a bfloat16",
        "b": "a bool",
        "s": f"a structure of {_counted(size, 'byte')}",
    }
    return names[kind]


def _advice(argument: Any, kind: str, size: int) -> str:
    bits = 8 * size
    if kind == "p":
        if isinstance(argument, np.ndarray):
            return "A kernel cannot read memory of the host; copy the array to the device with xp.asarray()."
        return "Pass an array of the device, or None for a null pointer."
    if kind == "s":
        return f"Pass a NumPy scalar of a structured dtype with {_counted(size, 'byte')}."
    if kind == "b":
        return "Pass True or False."
    if kind == "g":
        return "Pass a scalar of ml_dtypes.bfloat16."
    scalar = {"f": f"float{bits}", "i": f"int{bits}", "u": f"uint{bits}"}[kind]
    return f"Pass numpy.{scalar}(...)."


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# The elements of arrays


class ElementTypes:
    """The elements to which the parameters of a kernel point.

    Args:
        kinds: For each parameter, the kind of the elements, in the letters that ``EmulatedFunction`` has for
            parameters; ``"-"`` for a parameter that is no pointer.
        sizes: For each parameter, the size of an element.
    """

    def __init__(self, kinds: str = "", sizes: Sequence[int] = ()) -> None:
        # The elements of structures are not known, and bytes stand for elements of any type.
        self._expected: list[tuple[int, str, int, set[np.dtype[Any]]]] = [
            (place, kind, size, set())
            for place, (kind, size) in enumerate(zip(kinds, sizes, strict=True))
            if kind in "iufgb" and size > 1
        ]

    def mismatch(self, args: Sequence[Any]) -> str:
        """Return a description of the first array among ``args`` with other elements than the kernel reads, or ``""``.

        An integer fits a pointer to integers of the same size, with or without a sign. A complex number is two
        floating-point numbers. Integers of 16 bits may be the bits of floating-point numbers.
        """
        for place, kind, size, fitting in self._expected:
            array = args[place]
            if isinstance(array, Strided):
                dtype = array._host.dtype
                if dtype not in fitting:
                    if array._host.size and not _fits(dtype, kind, size):
                        return f"{place} is an array of {dtype}, and the parameter points to {_NAMES[f'{kind}{size}']}"
                    fitting.add(dtype)
        return ""


def _fits(dtype: np.dtype[Any], kind: str, size: int) -> bool:
    if dtype.kind == "V":  # structures, and the types of other libraries
        return True
    if dtype.kind == "c":
        return kind == "f" and size == dtype.itemsize // 2
    if dtype.itemsize != size:
        return False
    if dtype.kind in _WHOLE or kind in _WHOLE:
        return size == 2 or (dtype.kind in _WHOLE and kind in _WHOLE)
    return dtype.kind == kind


# The layout of arrays


def misread_view(args: Sequence[Any]) -> int | None:
    """Return the place of the first view among ``args`` of which a kernel reads other elements than those of the view.

    A kernel gets the address of the first element only, and expects the elements in the order of the array of which the
    program has made the view: mostly row by row, and column by column if that array has this order. The kernel can find
    the elements of another view if the launch passes the strides too, in bytes or in elements. A structure, and an
    array of integers with as many elements as the view has axes, or with twice as many, may have the strides.
    """
    passed: set[int] | None = None
    for place, argument in enumerate(args):
        if isinstance(argument, Strided) and argument._base is not None and not argument._host.flags.c_contiguous:
            strides = _unexpected_strides(argument)
            if not strides:
                continue
            if any(_may_have_strides(other, argument._host.ndim) for other in args):
                continue
            if passed is None:
                passed = {int(other) for other in args if isinstance(other, (int, np.integer))}
            in_elements = {stride / argument._host.itemsize for stride in strides}
            if not (strides <= passed or in_elements <= passed):
                return place
    return None


def _unexpected_strides(view: Strided) -> set[int]:
    """Return the strides of the axes along which the elements of ``view`` do not lie side by side."""
    owner = view
    while owner._base is not None:
        owner = owner._base
    by_columns = owner._host.flags.f_contiguous and not owner._host.flags.c_contiguous
    axes = list(zip(view._host.shape, view._host.strides, strict=True))
    expected, found = view._host.itemsize, set()
    for length, stride in axes if by_columns else reversed(axes):
        if length > 1:
            if stride != expected:
                found.add(stride)
            expected = stride * length
    return found


def _may_have_strides(argument: Any, axes: int) -> bool:
    """Return whether ``argument`` is a structure, or an array of integers for the shape or the strides of ``axes``."""
    array = argument._host if isinstance(argument, Strided) else argument
    if not isinstance(array, (np.void, np.ndarray)):
        return False
    return array.dtype.char == "V" or (array.dtype.kind in "iu" and array.shape in ((axes,), (2 * axes,)))


def element_types(module: EmulatedModule) -> dict[str, ElementTypes]:
    """Return the elements for each kernel of ``module`` by the name of the kernel in the module."""
    found: dict[str, ElementTypes] = {}
    for number in itertools.count():
        entry = module.symbol(f"{rtc.ELEMENTS}{number}")
        if entry is None:
            break
        name, kinds, sizes = (
            ctypes.string_at(address).decode() for address in struct.unpack("QQQ", ctypes.string_at(*entry))
        )
        found[name] = ElementTypes(kinds, [ord(size) - ord("0") for size in sizes])
    return found


class ArgumentCheck:
    """A check of the arguments, which warns once for each kernel, or refuses each launch.

    Args:
        kernel: The kernel.
    """

    def __init__(self, kernel: LaunchedKernel) -> None:
        self._kernel = kernel
        self._consequence = kernel.checks.types

    def _tell(self, message: str) -> None:
        """Raise or warn, as the user wants."""
        if self._consequence == "error":
            raise TypeError(message)
        warnings.warn(
            f"{message} TCUDA_EMULATED_CHECKS=memory,types makes this warning an error.",
            RuntimeWarning,
            stacklevel=stacklevel(),
        )
        self._consequence = "nothing"


class TypesCheck(ArgumentCheck):
    """The check that arrays have the elements that the kernel reads.

    Args:
        kernel: The kernel.
        elements: The elements to which the parameters point.
    """

    def __init__(self, kernel: LaunchedKernel, elements: ElementTypes) -> None:
        super().__init__(kernel)
        self._elements = elements

    def __call__(self, args: Sequence[Any]) -> None:
        """Check the arguments of a launch.

        Raises:
            TypeError: An array has other elements, and the user wants an error.
        """
        if self._consequence != "nothing" and (mismatch := self._elements.mismatch(args)):
            self._tell(
                f"Argument {mismatch}, so that the kernel {self._kernel.name} takes the bytes of the array for other "
                "numbers, as on a GPU. Convert the array by astype(). If the kernel means these bytes, pass a view of "
                "the array with the type of the parameter."
            )


class LayoutsCheck(ArgumentCheck):
    """The check that the elements of views lie side by side, or that the launch passes the strides too."""

    def __call__(self, args: Sequence[Any]) -> None:
        """Check the arguments of a launch.

        Raises:
            TypeError: The kernel reads a view in another order than the program, and the user wants an error.
        """
        if self._consequence != "nothing" and (place := misread_view(args)) is not None:
            self._tell(self._message(args, place))

    def _message(self, args: Sequence[Any], place: int) -> str:
        view, names = args[place], self._kernel.parameter_names
        name = f" ({names[place]})" if place < len(names) else ""
        return (
            f"Argument {place}{name} is a view that is not C-contiguous, of shape {view.shape} and strides "
            f"{view.strides}. The kernel {self._kernel.name} gets the address of the first element without the "
            "strides, and uses the elements that follow in memory, as on a GPU. Pass a copy by "
            "xp.ascontiguousarray(), and copy the result back if the kernel writes to the view. Or pass all strides as "
            "arguments, in bytes or in elements."
        )
