"""The functions of cuSPARSE that CuPy calls on emulated devices (``cupyx.cusparse``); SciPy computes in their place."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_AVAILABLE = frozenset(
    [
        "coo2csr",
        "coosort",
        "csc2csrEx2",
        "cscsort",
        "csr2coo",
        "csr2cscEx2",
        "csr2csr_compress",
        "csrgeam2",
        "csrilu02",
        "csrsort",
        "denseToSparse",
        "sparseToDense",
        "spgemm",
        "spmm",
        "spmv",
        "spsm",
    ]
)
_ABSENT = frozenset(
    [
        "csc2csr",
        "csc2dense",
        "csr2csc",
        "csr2dense",
        "csrgeam",
        "csrgemm",
        "csrgemm2",
        "csrmm",
        "csrmm2",
        "csrmv",
        "csrsm2",
        "dense2csc",
        "dense2csr",
        "gthr",
        "spgeam",
        "spgemm_int64",
    ]
)
_VERSION = 12709

_handles = itertools.count(1)


class MatDescriptor:
    """What cuSPARSE knows of a matrix beside its elements. Emulated devices keep the settings, and need none of them.

    Args:
        descriptor: The number of the descriptor in cuSPARSE.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._settings = {"type": 0, "index base": 0, "fill mode": 0, "diagonal": 0}

    @classmethod
    def create(cls) -> MatDescriptor:
        """Return a new descriptor, of a general matrix whose indices begin with 0."""
        return MatDescriptor(next(_handles))

    def __reduce__(self) -> tuple[Callable[[], MatDescriptor], tuple[()]]:
        return MatDescriptor.create, ()  # as in CuPy, without the settings

    def set_mat_type(self, typ: int) -> None:
        """Say what the matrix is: general (0), symmetric (1), Hermitian (2) or triangular (3).

        Raises:
            RuntimeError: There is no such number.
        """
        self._set("type", typ, 4)

    def set_mat_index_base(self, base: int) -> None:
        """Say whether the first index is 0 or 1.

        Raises:
            RuntimeError: There is no such number.
        """
        self._set("index base", base, 2)

    def set_mat_fill_mode(self, fill_mode: int) -> None:
        """Say which part of a triangular matrix is stored: the lower (0) or the upper (1).

        Raises:
            RuntimeError: There is no such number.
        """
        self._set("fill mode", fill_mode, 2)

    def set_mat_diag_type(self, diag_type: int) -> None:
        """Say whether all elements of the diagonal are one: no (0) or yes (1).

        Raises:
            RuntimeError: There is no such number.
        """
        self._set("diagonal", diag_type, 2)

    def _set(self, name: str, value: int, count: int) -> None:
        if value not in range(count):
            numbers = ", ".join(map(str, range(count)))
            raise RuntimeError(
                f"CUSPARSE_STATUS_INVALID_VALUE: the {name} of a matrix is one of {numbers}; got {value!r}."
            )
        self._settings[name] = int(value)


def check_availability(name: str) -> bool:
    """Return whether the cuSPARSE of the CUDA that the devices emulate has the function ``name``.

    Raises:
        ValueError: There is no such function.
    """
    if name not in _AVAILABLE | _ABSENT:
        raise ValueError(
            f"No available version information specified for {name}; there are {sorted(_AVAILABLE | _ABSENT)}."
        )
    return name in _AVAILABLE


def getVersion() -> int:
    """Return the version of the cuSPARSE of the CUDA that the devices emulate."""
    return _VERSION


def __dir__() -> list[str]:
    return ["MatDescriptor", "check_availability", "getVersion"]
