"""The exceptions of the surface, with the base classes of torch's exceptions.

This module does not import CuPy, so that ``except tcuda.OutOfMemoryError`` works without CuPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base import statuses
from tcuda._base.statuses import Status

if TYPE_CHECKING:
    from tcuda._base.user_code import Place

_HINTS: dict[int, str] = {
    Status.INVALID_DEVICE: "GPU device may be out of range, do you have enough GPUs? tcuda.device_count() tells.",
    Status.INVALID_RESOURCE_HANDLE: "The object of a handle was destroyed, is of another device, or lacks what this "
    "call needs, such as a flag or the record of an event.",
    Status.NOT_READY: "Synchronize first, or ask query().",
    Status.ILLEGAL_STATE: "The stream captures already, or captures nothing. Captures cannot be nested: a stream "
    "captures for one graph at a time, and each capture_begin() has one capture_end(). tcuda.graph() makes both calls.",
    Status.STREAM_CAPTURE_UNSUPPORTED: "A stream is capturing: synchronizing, querying and allocating device memory "
    "are forbidden until the capture ends.",
    Status.STREAM_CAPTURE_ISOLATION: "A capturing stream can wait only for events recorded in the same capture.",
    Status.STREAM_CAPTURE_UNJOINED: "Make the origin stream wait for an event of every stream that joined the "
    "capture before it ends.",
    Status.CAPTURED_EVENT: "The event was recorded in a capturing stream: no work has run that it could stand for.",
}
_ASYNCHRONOUS = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
)

_NCCL_TEXTS = {
    1: "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
    2: "unhandled system error (run with NCCL_DEBUG=INFO for details)",
    3: "internal error - please report this issue to the NCCL developers",
    4: "invalid argument (run with NCCL_DEBUG=WARN for details)",
    5: "invalid usage (run with NCCL_DEBUG=WARN for details)",
    6: "remote process exited or there was a network error",
    7: "NCCL operation in progress",
}
"""The texts of ``ncclGetErrorString``."""


class UnjoinedStream(NamedTuple):
    """A stream that took part in a capture, and whose work the capture does not wait for.

    Attributes:
        device: The device of the stream.
        handle: The ``cudaStream_t``.
        place: The line of the program that made the last captured call of the stream; None if it is not known.
    """

    device: int
    handle: int
    place: Place | None


class AcceleratorError(RuntimeError):
    """A call to the CUDA runtime failed (``torch.AcceleratorError``).

    Attributes:
        error_code: The status that the CUDA runtime returned, such as 101 (``cudaErrorInvalidDevice``).
        call: The text of the call that failed.
        details: What is known of the cause; an empty text if nothing is known.

    Example:
        >>> try:
        ...     tcuda.set_device(99)
        ... except tcuda.AcceleratorError as error:
        ...     print(error.error_code, str(error).splitlines()[0])
        101 CUDA error: invalid device ordinal
    """

    _unjoined: tuple[UnjoinedStream, ...] = ()

    def __init__(self, error_code: int, call: str = "", details: str = "") -> None:
        """Describe the failure ``error_code`` of ``call``, with ``details`` about its cause."""
        self.error_code = int(error_code)
        self.call = call
        self.details = details
        symbol = f"{statuses.name(error_code)} ({self.error_code})"
        lines = [
            f"CUDA error: {statuses.text(error_code)}",
            f"{call} failed with {symbol}." if call else f"{symbol}.",
            details or _HINTS.get(error_code, _ASYNCHRONOUS),
        ]
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[AcceleratorError], tuple[int, str, str]]:
        return type(self), (self.error_code, self.call, self.details)


class UnwrittenMemoryError(AcceleratorError):
    """Work on an emulated device has used memory that nothing has written since the memory was given out.

    The environment variable ``TCUDA_EMULATED_CHECKS=memory,init`` asks for the check. The call that waits for the work
    raises the error, as for other failures of kernels. The device stays usable. The status is 719, which stands for the
    failure of a launch.

    Attributes:
        reads: The reads of a kernel, each a :class:`~tcuda.sanitizer.UnwrittenRead`; empty for other work.

    Example:
        >>> issubclass(tcuda.sanitizer.UnwrittenMemoryError, tcuda.AcceleratorError)
        True
    """

    __module__ = "tcuda.sanitizer"

    def __init__(self, error_code: int, call: str = "", details: str = "", reads: tuple[Any, ...] = ()) -> None:
        """Describe a use of unwritten memory by ``call``."""
        super().__init__(error_code, call, details)
        self.reads = reads

    def __reduce__(self) -> tuple[type[UnwrittenMemoryError], tuple[int, str, str, tuple[Any, ...]]]:  # type: ignore[override]
        return type(self), (self.error_code, self.call, self.details, self.reads)


class OutOfMemoryError(RuntimeError, MemoryError):
    """A device has no memory left for an allocation (``torch.OutOfMemoryError``).

    Example:
        >>> try:
        ...     x = xp.zeros(2**45, dtype="uint8")
        ... except tcuda.OutOfMemoryError as error:
        ...     print(str(error).split(".")[0])
        CUDA out of memory
    """


class AllocatorSettingsError(ValueError, RuntimeError):
    """The allocator's settings are wrong; the error is a ``RuntimeError`` as in torch, and also a ``ValueError``."""


class DeferredCudaCallError(Exception):
    """A call that was queued before initialisation failed when it ran (``torch.cuda.DeferredCudaCallError``).

    Example:
        >>> tcuda._lazy_call(lambda: 1 / 0)
        >>> tcuda.init()
        Traceback (most recent call last):
            ...
        tcuda.DeferredCudaCallError: CUDA call failed lazily at initialization with error: division by zero...
    """


class CudaError(RuntimeError):
    """A status returned by :func:`tcuda.cudart` that is not success (``torch.cuda.CudaError``).

    Attributes:
        code: The status, such as 2 (``cudaErrorMemoryAllocation``).

    Example:
        >>> try:
        ...     tcuda.check_error(2)  # the status of a function of tcuda.cudart()
        ... except tcuda.CudaError as error:
        ...     print(error)
        out of memory (2)
    """

    def __init__(self, code: int) -> None:
        """Describe the status ``code``."""
        self.code = int(code)
        super().__init__(f"{statuses.text(self.code)} ({self.code})")

    def __reduce__(self) -> tuple[type[CudaError], tuple[int]]:
        return type(self), (self.code,)


class NcclNotFoundError(RuntimeError):
    """The library NCCL is not installed."""


class NcclError(RuntimeError):
    """A call to NCCL failed.

    Attributes:
        status: The ``ncclResult_t`` that NCCL returned, such as 5 (``ncclInvalidUsage``).
        details: What is known of the cause; an empty text if nothing is known.
    """

    def __init__(self, status: int, details: str = "") -> None:
        """Describe the failure ``status``, with ``details`` about its cause."""
        self.status = int(status)
        self.details = details
        lines = [f"NCCL Error {self.status}: {_NCCL_TEXTS.get(self.status, 'unknown result code')}"]
        super().__init__("\n".join([*lines, details] if details else lines))

    def __reduce__(self) -> tuple[type[NcclError], tuple[int, str]]:
        return type(self), (self.status, self.details)


def add_sentence(error: BaseException, sentence: str) -> None:
    """Let the message of ``error`` end with ``sentence``; a message that is not the error's first argument stays.

    Args:
        error: The error, which is about to be raised again.
        sentence: What the caller must know beside the cause.
    """
    first = str(error)
    if isinstance(error, AcceleratorError):
        hint = _HINTS.get(error.error_code, _ASYNCHRONOUS)
        shown = error.details or (hint if first.endswith(hint) else "")  # details would replace the hint in a copy
        error.details = f"{shown}\n{sentence}".lstrip()
    if not error.args:
        error.args = (sentence,)
    elif error.args[0] == first:
        error.args = (f"{first}\n{sentence}", *error.args[1:])
    elif hasattr(error, "add_note"):
        error.add_note(sentence)


# A traceback shows these classes by their public names.
for _public in (AcceleratorError, OutOfMemoryError, DeferredCudaCallError, CudaError):
    _public.__module__ = "tcuda"
