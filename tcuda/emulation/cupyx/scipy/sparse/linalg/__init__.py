"""Linear algebra of sparse matrices on emulated devices (``cupyx.scipy.sparse.linalg``), by SciPy."""

from __future__ import annotations

from tcuda.emulation.cupyx.scipy.sparse.linalg.factors import SuperLU, factorized, spilu, splu
from tcuda.emulation.cupyx.scipy.sparse.linalg.operator import LinearOperator, aslinearoperator
from tcuda.emulation.cupyx.scipy.sparse.linalg.solvers import (
    bicgstab,
    cg,
    cgs,
    eigsh,
    gmres,
    lobpcg,
    lsmr,
    lsqr,
    matrix_power,
    minres,
    norm,
    spsolve,
    spsolve_triangular,
    svds,
)

__all__ = [
    "LinearOperator",
    "SuperLU",
    "aslinearoperator",
    "bicgstab",
    "cg",
    "cgs",
    "eigsh",
    "factorized",
    "gmres",
    "lobpcg",
    "lsmr",
    "lsqr",
    "matrix_power",
    "minres",
    "norm",
    "spilu",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "svds",
]

for _name in __all__:
    _found = globals()[_name]
    if getattr(_found, "__module__", "").startswith(f"{__name__}."):
        _found.__module__ = __name__  # where users find the name, by which it is pickled


def __dir__() -> list[str]:
    return sorted(__all__)
