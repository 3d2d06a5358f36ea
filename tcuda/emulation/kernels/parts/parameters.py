"""The parameters of a kernel, and the strings that declare them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcuda.emulation.kernels.parts.type_names import type_name


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, like CuPy's ``ParameterInfo``.

    Attributes:
        name: The name.
        dtype: The type; None if the type is a placeholder.
        ctype: The name of the type in the source, which may be a placeholder of one character.
        raw: Whether the operation indexes the parameter itself.
        is_const: Whether the operation may only read the parameter.
    """

    name: str
    dtype: np.dtype[Any] | None
    ctype: str
    raw: bool
    is_const: bool


@functools.cache
def parameters_of(declarations: str, is_const: bool) -> tuple[Parameter, ...]:
    """Return the parameters that ``declarations`` declares, such as ``"T x, raw float32 y"``.

    Args:
        declarations: The declarations, with commas between them.
        is_const: Whether the parameters are inputs, which the operation only reads.

    Raises:
        TypeError: ``declarations`` is not a string, or names a type that NumPy does not know.
        ValueError: CUDA C++ has no type like one of the named types.
        Exception: A declaration has no type or no name, or a word before the type is unknown. (CuPy raises this class.)
    """
    if not isinstance(declarations, str):
        raise TypeError(f"The parameters of a kernel are a string such as 'T x, raw T y', not {declarations!r}.")
    if not declarations:
        return ()
    return tuple(_parameter(text, is_const) for text in declarations.strip().split(","))


def _parameter(declaration: str, is_const: bool) -> Parameter:
    words = declaration.split()
    if len(words) < 2:
        raise Exception(f"Syntax error: {declaration!r} does not declare a parameter, as 'T x' and 'raw float32 y' do.")
    *qualifiers, ctype, name = words
    dtype: np.dtype[Any] | None = None
    if len(ctype) > 1:
        dtype = np.dtype(ctype)
        ctype = type_name(dtype)
    for word in qualifiers:
        if word not in ("raw", "_non_const"):
            raise Exception(f'Unknown keyword "{word}" in {declaration!r}; the keywords are "raw" and "_non_const".')
    return Parameter(name, dtype, ctype, "raw" in qualifiers, is_const and "_non_const" not in qualifiers)
