"""Structured dtypes, and dtypes that are bytes without a meaning: the rules of CuPy's kernels for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

_ALIGNMENT = "__cuda_alignment__"
"""The key of an alignment in the metadata of a dtype."""
_OF_ANOTHER_LIBRARY = 2
"""What NumPy says of a dtype that another library adds (``numpy.dtype.isbuiltin``)."""


def is_supported(dtype: np.dtype[Any]) -> bool:
    """Return whether an array of a device can have ``dtype``, a dtype of kind ``"V"``.

    Raises:
        ValueError: ``dtype`` has references to objects of Python.
    """
    if dtype.kind != "V" or dtype.subdtype is not None or not dtype.itemsize or dtype.isbuiltin == _OF_ANOTHER_LIBRARY:
        return False
    if dtype.hasobject:
        raise ValueError(
            f"Unsupported dtype {dtype} because it contains references which cannot be supported by CuPy.\nThis may "
            "happen even if a dtype only contains basic types if the original array contained e.g. object dtype."
        )
    return True


def is_structured(dtype: np.dtype[Any]) -> bool:
    """Return whether elements of ``dtype`` are structures or bytes, and no numbers of another library."""
    return dtype.kind == "V" and dtype.isbuiltin != _OF_ANOTHER_LIBRARY


def require_layout(dtype: np.dtype[Any]) -> int:
    """Refuse a dtype whose fields are not where a kernel needs them, and return its alignment.

    Raises:
        ValueError: A field or the whole is not aligned, or a field is an array of structures.
    """
    fields = dtype.fields
    if fields is None:
        return alignment_of(dtype)
    alignment = _stated_alignment(dtype) or dtype.alignment
    for name, (field, offset, *_) in fields.items():
        if field.fields is not None:
            needed = require_layout(field)
        else:
            if field.subdtype is not None:
                raise ValueError(f"Unsupported dtype {field}: CuPy does not yet support subarray dtypes.")
            needed = _stated_alignment(field) or alignment_of(field)
        alignment = max(alignment, needed)
        if offset % needed:
            raise ValueError(
                f"Field {name} with offset {offset} is not aligned to {needed} in dtype {dtype}. This is not supported "
                "by CuPy please ensure the structure is aligned. You can do so with the `make_aligned_dtype()` helper."
            )
    if dtype.itemsize % alignment:
        raise ValueError(
            f"Itemsize {dtype.itemsize} is not a multiple of alignment {alignment} for dtype {dtype} and kernel "
            "launches are not supported. You can ensure compatibility with the `make_aligned_dtype()` helper (or try "
            "`align=True`)."
        )
    return alignment


def _stated_alignment(dtype: np.dtype[Any]) -> int:
    """Return the alignment in the metadata of ``dtype``; 0 if there is none."""
    metadata: Mapping[str, Any] = dtype.metadata or {}
    return int(metadata.get(_ALIGNMENT, 0))


def alignment_of(dtype: np.dtype[Any]) -> int:
    """Return the alignment of ``dtype``, which is not structured, in memory of a device."""
    if dtype.subdtype is not None:
        if dtype.base.fields is not None:
            raise ValueError("CuPy does not yet support subarray dtypes.")
        return alignment_of(dtype.base)
    return 1 if is_structured(dtype) else dtype.itemsize


def make_aligned_dtype(dtype: npt.DTypeLike, *, alignment: int = -1, recurse: bool = True) -> np.dtype[Any]:
    """Return a structured dtype with the fields of ``dtype`` where kernels need them.

    Args:
        dtype: The dtype, whose offsets are ignored.
        alignment: The alignment of the whole, a power of two; the least possible alignment if -1.
        recurse: Whether fields that are structures are aligned, too.

    Raises:
        ValueError: ``dtype`` is not structured, its fields are not in order, or ``alignment`` is too small or not a
            power of two.
    """
    described = np.dtype(dtype, align=True)
    if described.fields is None:
        raise ValueError("make_aligned_dtype() only supports structured dtypes.")
    return _aligned(described, alignment, recurse)[0]


def _aligned(dtype: np.dtype[Any], alignment: int, recurse: bool) -> tuple[np.dtype[Any], int]:
    if alignment != -1 and (alignment <= 0 or alignment.bit_count() != 1):
        raise ValueError("Reasonable alignments must be >0 and a power of 2.")
    names, offsets, formats = [], [], []
    least, here, beyond = 1, 0, 0
    for name, (field, offset, *_) in (dtype.fields or {}).items():
        if offset < beyond:
            raise ValueError(
                "make_aligned_dtype() only supports well behaved in-order fields as it ignores field offsets."
            )
        beyond = offset + field.itemsize
        needed = _stated_alignment(field)
        if not needed:
            if field.fields is None:
                needed = alignment_of(field)
            elif recurse:
                field, needed = _aligned(np.dtype(field, align=True), -1, True)
            else:
                needed = field.alignment
        here += -here % needed
        least = max(least, needed)
        names.append(name)
        offsets.append(here)
        formats.append(field)
        here += field.itemsize
    metadata: dict[str, Any] = {}
    if alignment != -1:
        if alignment < least:
            raise ValueError(
                f"make_aligned_dtype(): given alignment={alignment} smaller than minimum alignment {least}"
            )
        least = alignment
        metadata = {"metadata": {_ALIGNMENT: alignment}}
    itemsize = here + -here % least
    if dtype.itemsize > itemsize:
        raise ValueError("Input descriptor had larger itemsize than inferred.")
    made: Any = {"names": names, "offsets": offsets, "formats": formats, "itemsize": itemsize}
    return np.dtype(made, align=True, **metadata), least


def require_comparable(one: np.dtype[Any], other: np.dtype[Any]) -> None:
    """Refuse to compare elements of two dtypes, of which one at least is of kind ``"V"``.

    Raises:
        TypeError: Only one is structured, the fields have no common type, or the sizes differ.
        ValueError: A field is an array of structures.
    """
    if one.kind != other.kind or (one.fields is None) != (other.fields is None):
        raise TypeError("Cannot compare structured and non-structured dtypes")
    if one.fields is None:
        if one.itemsize != other.itemsize:
            raise TypeError(f"cannot compare unstructured voids of different size ({one.itemsize} vs {other.itemsize})")
        return
    try:
        common = np.promote_types(one, other)
    except TypeError:
        raise TypeError(
            "Cannot compare structured arrays unless they have a common dtype.  I.e. `np.result_type(arr1, arr2)` must "
            "be defined."
        ) from None
    make_aligned_dtype(common)


def equal(x1: Any, x2: Any, out: Any = None) -> Any:
    """Compare arrays of the host, which have structured elements or bytes."""
    return _stored(x1 == x2, out)


def not_equal(x1: Any, x2: Any, out: Any = None) -> Any:
    """Compare arrays of the host, which have structured elements or bytes."""
    return _stored(x1 != x2, out)


def _stored(result: Any, out: Any) -> Any:
    if out is None:
        return result
    out[...] = result
    return out
