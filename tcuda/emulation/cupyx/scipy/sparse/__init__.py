"""Sparse matrices and sparse arrays of emulated devices (``cupyx.scipy.sparse``), by SciPy."""

from __future__ import annotations

from tcuda.emulation.cupyx.scipy.sparse import csgraph, linalg
from tcuda.emulation.cupyx.scipy.sparse.base import (
    SparseEfficiencyWarning,
    SparseWarning,
    issparse,
    isspmatrix,
)
from tcuda.emulation.cupyx.scipy.sparse.base import (
    _spbase as _spbase,
)
from tcuda.emulation.cupyx.scipy.sparse.compressed import (
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    isspmatrix_csc,
    isspmatrix_csr,
)
from tcuda.emulation.cupyx.scipy.sparse.construct import (
    block_array,
    block_diag,
    bmat,
    diags,
    diags_array,
    eye,
    eye_array,
    find,
    hstack,
    identity,
    kron,
    kronsum,
    matrix_transpose,
    permute_dims,
    rand,
    random,
    random_array,
    spdiags,
    swapaxes,
    tril,
    triu,
    vstack,
)
from tcuda.emulation.cupyx.scipy.sparse.coo import coo_array, coo_matrix, isspmatrix_coo
from tcuda.emulation.cupyx.scipy.sparse.dia import dia_array, dia_matrix, isspmatrix_dia
from tcuda.emulation.cupyx.scipy.sparse.kinds import sparray, spmatrix
from tcuda.emulation.cupyx.scipy.sparse.parts import get_index_dtype, safely_cast_index_arrays

__all__ = [
    "SparseEfficiencyWarning",
    "SparseWarning",
    "block_array",
    "block_diag",
    "bmat",
    "coo_array",
    "coo_matrix",
    "csc_array",
    "csc_matrix",
    "csgraph",
    "csr_array",
    "csr_matrix",
    "dia_array",
    "dia_matrix",
    "diags",
    "diags_array",
    "eye",
    "eye_array",
    "find",
    "get_index_dtype",
    "hstack",
    "identity",
    "issparse",
    "isspmatrix",
    "isspmatrix_coo",
    "isspmatrix_csc",
    "isspmatrix_csr",
    "isspmatrix_dia",
    "kron",
    "kronsum",
    "linalg",
    "matrix_transpose",
    "permute_dims",
    "rand",
    "random",
    "random_array",
    "safely_cast_index_arrays",
    "sparray",
    "spdiags",
    "spmatrix",
    "swapaxes",
    "tril",
    "triu",
    "vstack",
]

for _name in __all__:
    _found = globals()[_name]
    if getattr(_found, "__module__", "").startswith(f"{__name__}."):
        _found.__module__ = __name__  # where users find the name, by which it is pickled


def __dir__() -> list[str]:
    return sorted(__all__)
