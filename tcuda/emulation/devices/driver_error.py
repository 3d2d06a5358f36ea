"""The error of CuPy's CUDA driver."""

from __future__ import annotations

from typing import Any

from tcuda._base import statuses
from tcuda._base.errors import AcceleratorError

_NAMES = {
    1: "INVALID_VALUE",
    2: "OUT_OF_MEMORY",
    301: "FILE_NOT_FOUND",
    400: "INVALID_HANDLE",
    500: "NOT_FOUND",
    700: "ILLEGAL_ADDRESS",
    701: "LAUNCH_OUT_OF_RESOURCES",
    710: "ASSERT",
    719: "LAUNCH_FAILED",
    720: "COOPERATIVE_LAUNCH_TOO_LARGE",
}
"""The driver's names of statuses, without ``CUDA_ERROR_`` in front."""


class CUDADriverError(AcceleratorError):
    """A call to the CUDA driver failed (``cupy.cuda.driver.CUDADriverError``).

    Attributes:
        status: The status of the call.
    """

    __module__ = "tcuda.emulation.cuda.driver"

    def __init__(self, status: int, call: str = "", details: str = "") -> None:
        """Describe the failure ``status`` of ``call``, with ``details`` about its cause."""
        super().__init__(status, call, details)
        self.status = int(status)
        name = "_".join(("CUDA", "ERROR", _NAMES[status])) if status in _NAMES else statuses.name(status)
        if call:
            self.args = (f"{self.args[0]}\nThe driver's name of the error is {name}.",)
        else:
            self.args = (f"{name}: {statuses.text(status)}",)

    def __reduce__(self) -> Any:
        return CUDADriverError, (self.status, self.call, self.details)
