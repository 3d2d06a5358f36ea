"""The functions of cuSPARSE that CuPy calls on emulated devices (``cupyx.cusparse``); SciPy computes in their place."""

from __future__ import annotations

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
    return ["check_availability", "getVersion"]
