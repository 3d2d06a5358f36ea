"""The source of a kernel, in parts that elementwise and reduction kernels share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.kernels.parts.array_layouts import Layout
from tcuda.emulation.kernels.parts.type_names import type_name
from tcuda.emulation.numbers.bfloat16 import is_bfloat16

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.kernels.parts.parameters import Parameter

_SHORT = 1 << 31


@dataclass(frozen=True)
class Form:
    """What the source of a kernel says about an argument. Calls with equal forms use the same compiled kernel.

    Attributes:
        dtype: The type of the argument.
        ndim: The number of axes; None for a scalar.
        c_contiguous: Whether the elements lie in row-major order without gaps.
        short_index: Whether 32 bits hold the place of each element.
    """

    dtype: np.dtype[Any]
    ndim: int | None = None
    c_contiguous: bool = True
    short_index: bool = True


@dataclass(frozen=True)
class Loop:
    """What the source of a kernel says about the shape of a loop.

    Attributes:
        name: The name of the index.
        ndim: The number of axes.
        short_index: Whether 32 bits hold the number of each element.
    """

    name: str
    ndim: int
    short_index: bool


def form_of(value: Layout | np.generic) -> Form:
    """Return the form of an argument, which is the layout of an array or a scalar with its type."""
    if isinstance(value, Layout):
        return Form(value.array.dtype, len(value.shape), value.c_contiguous, value.short_index)
    return Form(value.dtype)


def loop_of(name: str, shape: tuple[int, ...]) -> Loop:
    """Return the form of a loop over ``shape``."""
    return Loop(name, len(shape), math.prod(shape) <= _SHORT)


def arguments_of(values: Sequence[Layout | np.generic], shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Return the arguments of the kernel for the head that :func:`head_of` makes.

    Args:
        values: The arguments of the call, which are layouts and scalars with their types.
        shapes: The shapes of the loops.
    """
    words: list[int] = []
    arguments: list[Any] = []
    for value in values:
        if isinstance(value, Layout):
            arguments.append(value.array)
            words += value.shape
            words += value.strides
        else:
            arguments.append(value)
    for shape in shapes:
        words += shape
    arguments.append(np.void(np.array(words or [0], np.int64).tobytes()))
    return arguments


@dataclass(frozen=True)
class Head:
    """The beginning of a kernel.

    Attributes:
        declarations: The declarations before the kernel.
        parameters: The list of the parameters.
        variables: The first statements, which make the arrays and indices.
    """

    declarations: str
    parameters: str
    variables: str


def head_of(params: Sequence[Parameter], forms: Sequence[Form], loops: Sequence[Loop]) -> Head:
    """Return the beginning of a kernel.

    The kernel takes a pointer for each array, each scalar by value, and one structure with all shapes and strides.
    """
    parameters: list[str] = []
    variables: list[str] = []
    words = 0
    for parameter, form in zip(params, forms, strict=True):
        const = "const " if parameter.is_const else ""
        ctype = type_name(form.dtype)
        if form.ndim is None:
            parameters.append(f"{const}{ctype} {parameter.name}")
            continue
        parameters.append(f"{ctype} *_data_{parameter.name}")
        kind = f"CArray<{ctype}, {form.ndim}, {form.c_contiguous:d}, {form.short_index:d}>"
        variables.append(
            f"{const}{kind} {variable_of(parameter)}(_data_{parameter.name}, _layout.words + {words}, "
            f"_layout.words + {words + form.ndim});"
        )
        words += 2 * form.ndim
    for loop in loops:
        variables.append(f"CIndexer<{loop.ndim}, {loop.short_index:d}> {loop.name}(_layout.words + {words});")
        words += loop.ndim
    return Head(
        f"struct _Layout {{ ptrdiff_t words[{max(words, 1)}]; }};\n",
        ", ".join([*parameters, "const _Layout _layout"]),
        "\n".join(variables),
    )


def variable_of(parameter: Parameter) -> str:
    """Return the name of the array of ``parameter``. The name of the parameter itself is the element, unless raw."""
    return parameter.name if parameter.raw else f"_raw_{parameter.name}"


def element_of(parameter: Parameter, index: str) -> str:
    """Return the statement that makes the name of ``parameter`` the element at the current place of ``index``."""
    const = "const " if parameter.is_const else ""
    return f"{const}{parameter.ctype} &{parameter.name} = {variable_of(parameter)}[{index}.get()];"


def includes_of(forms: Sequence[Form]) -> str:
    """Return the lines that include the headers of types that few kernels use."""
    of_small = "#include <cupy/bfloat16.cuh>\n" if any(is_bfloat16(form.dtype) for form in forms) else ""
    return of_small + ("#include <cupy/structview.cuh>\n" if any(form.dtype.fields for form in forms) else "")


def typedefs_of(placeholders: Sequence[tuple[str, np.dtype[Any]]]) -> str:
    """Return the definitions of the placeholders of types."""
    return "".join(f"typedef {type_name(dtype)} {name};\n" for name, dtype in placeholders)


def user_part(text: str, kernel: str, part: str) -> str:
    """Return a part that the user wrote, with directives by which errors of the compiler tell the part and its line.

    Args:
        text: The text of the user.
        kernel: The name of the kernel.
        part: The name of the part.
    """
    if not text.strip():
        return ""
    return f'#line 1 "{kernel}: {part}"\n{text}\n#line 1 "{kernel}: generated"\n'
