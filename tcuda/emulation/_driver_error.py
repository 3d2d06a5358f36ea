"""The error of CuPy's CUDA driver."""

from __future__ import annotations

from typing import Any

from tcuda import _status
from tcuda._errors import AcceleratorError

_NAMES = {
    1: "CUDA_ERROR_INVALID_VALUE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    301: "CUDA_ERROR_FILE_NOT_FOUND",
    400: "CUDA_ERROR_INVALID_HANDLE",
    500: "CUDA_ERROR_NOT_FOUND",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    710: "CUDA_ERROR_ASSERT",
    719: "CUDA_ERROR_LAUNCH_FAILED",
}
"""The driver's names of the statuses for which runtime and driver have different names."""


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
        name = _NAMES.get(status, _status.name(status))
        if call:
            self.args = (f"{self.args[0]}\nThe driver's name of the error is {name}.",)
        else:
            self.args = (f"{name}: {_status.text(status)}",)

    def __reduce__(self) -> Any:
        return CUDADriverError, (self.status, self.call, self.details)
