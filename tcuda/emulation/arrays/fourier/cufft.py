"""Plans of Fourier transforms, as ``cupy.cuda.cufft`` has them.

A plan says for which lengths and types a transform was prepared. NumPy needs no preparation, so that an emulated plan
only refuses the arrays that do not fit. CuPy's plans also have a work area on the device.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tcuda._base.errors import AcceleratorError
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

CUFFT_FORWARD, CUFFT_INVERSE = -1, 1
CUFFT_C2C, CUFFT_R2C, CUFFT_C2R = 0x29, 0x2A, 0x2C
CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D = 0x69, 0x6A, 0x6C


_VERSION = 11302
"""The last version of cuFFT without callbacks that are compiled while the program runs, which these devices lack."""


def getVersion() -> int:
    """Return the version of cuFFT whose calls the devices have."""
    return _VERSION


_RESULTS = {5: "CUFFT_INTERNAL_ERROR"}


class CuFFTError(RuntimeError):
    """An error of cuFFT.

    Args:
        result: The status.

    Attributes:
        result: The status.
    """

    def __init__(self, result: int) -> None:
        self.result = result
        super().__init__(_RESULTS.get(result, f"the status {result} of cuFFT"))

    def __reduce__(self) -> tuple[type[CuFFTError], tuple[int]]:
        return type(self), (self.result,)


class _State(threading.local):
    plan: Plan | None = None


_state = _State()


def get_current_plan() -> Any:
    """Return the plan whose ``with`` block this thread is in; None if there is none."""
    return _state.plan


class Plan:
    """The base class of plans. A plan is a context manager: the transforms in the scope must fit the plan.

    Raises:
        CuFFTError: A capture forbids that the plan is made now; the capture is invalidated.
    """

    def __init__(self) -> None:
        try:
            cuda.malloc(0)  # cuFFT allocates the tables of a plan, which captures forbid
        except AcceleratorError as error:
            raise CuFFTError(5) from error

    def __enter__(self) -> Self:
        _state.plan = self
        return self

    def __exit__(self, *error: object) -> None:
        _state.plan = None


class Plan1d(Plan):
    """A plan for transforms along one axis.

    Args:
        nx: The length of the transform.
        fft_type: The type, such as ``CUFFT_C2C``.
        batch: The number of transforms.
        devices: The devices that share the work; the current device if None.
        out: Ignored.

    Attributes:
        nx: The length of the transform.
        fft_type: The type.
        batch: The number of transforms.
        gpus: The devices that share the work; None if there is one.
    """

    def __init__(self, nx: int, fft_type: int, batch: int, *, devices: Any = None, out: Any = None) -> None:
        super().__init__()
        self.nx = int(nx)
        self.fft_type = int(fft_type)
        self.batch = int(batch)
        self.gpus = None if devices is None else list(range(devices) if isinstance(devices, int) else devices)


class PlanNd(Plan):
    """A plan for transforms along up to three axes.

    Args:
        shape: The lengths of the transform.
        inembed: The lengths of the input in memory.
        istride: The distance of two elements of the input.
        idist: The distance of two inputs.
        onembed: The lengths of the output in memory.
        ostride: The distance of two elements of the output.
        odist: The distance of two outputs.
        fft_type: The type, such as ``CUFFT_C2C``.
        batch: The number of transforms.
        order: The layout of the array, ``"C"`` or ``"F"``.
        last_axis: The axis that becomes shorter or longer in a transform of real numbers.
        last_size: The length of this axis in the output.

    Attributes:
        shape: The lengths of the transform.
        fft_type: The type.
        order: The layout of the array.
        last_axis: The axis that becomes shorter or longer.
        last_size: The length of this axis in the output.
        gpus: None, because one device does all the work.
    """

    def __init__(
        self,
        shape: Sequence[int],
        inembed: Sequence[int] | None,
        istride: int,
        idist: int,
        onembed: Sequence[int] | None,
        ostride: int,
        odist: int,
        fft_type: int,
        batch: int,
        order: str,
        last_axis: int,
        last_size: int | None,
    ) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.fft_type = int(fft_type)
        self.batch = int(batch)
        self.order = order
        self.last_axis = last_axis
        self.last_size = last_size
        self.gpus = None
