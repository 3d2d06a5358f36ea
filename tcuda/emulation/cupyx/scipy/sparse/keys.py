"""Indices of sparse matrices, with arrays of the device in the places of lists and of NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcuda.emulation.cupyx.scipy.sparse.layout import HOST
from tcuda.emulation.cupyx.scipy.sparse.parts import is_dense
from tcuda.emulation.work import creation


def device_key(key: Any, matrix: Any) -> Any:
    """Return ``key``, an index of ``matrix``, with arrays of the device for lists and NumPy arrays.

    Raises:
        IndexError: The index has something that is no index.
    """
    if isinstance(key, tuple):
        given = sum(item is not None and item is not Ellipsis for item in key)
        if given > matrix.ndim:
            raise IndexError(
                f"too many indices for array: array is {matrix.ndim}-dimensional, but {given} were indexed"
            )
        skips_axes = key and key[0] is Ellipsis
        lengths = iter(matrix.shape[matrix.ndim - given :] if skips_axes else matrix.shape)
        return tuple(
            _wrapped(_item(item), next(lengths)) if item is not None and item is not Ellipsis else item for item in key
        )
    return _wrapped(_item(key), matrix.shape[0])


def _wrapped(item: Any, length: int) -> Any:
    """Return ``item`` with indices from 0 to ``length``: without a wait, CuPy cannot refuse an index out of bounds."""
    return item % length if is_dense(item) and item.dtype.kind in "iu" and length else item


def _item(item: Any) -> Any:
    if is_dense(item):
        if not item.ndim:
            return item.item()
        return item if item.dtype.kind in "biu" else item.astype(np.int64)
    if hasattr(item, "_layout"):
        if item.dtype.kind != "b":
            raise IndexError(
                "Indexing with sparse matrices is not supported except boolean indexing where matrix and index are "
                "equal shapes."
            )
        return item
    if HOST.issparse(item):
        return _item(creation.array(item.toarray()))
    if isinstance(item, (list, tuple, np.ndarray)):
        array = np.asarray(item, dtype=None if np.size(item) else np.int64)
        return array.item() if not array.ndim else _item(creation.array(array))
    return item
