"""The settings of Fourier transforms: ``cupy.fft.config``."""

from __future__ import annotations

import contextvars
import warnings
from typing import Any, NoReturn

from tcuda._core import set_variable
from tcuda.emulation.arrays.fourier.plan_cache import PlanCache, get_plan_cache


class Config:
    """The settings. Each context of Python, such as a thread, has its own."""

    def __init__(self) -> None:
        self._enable_nd_planning = contextvars.ContextVar("enable_nd_planning", default=True)
        self._use_multi_gpus = contextvars.ContextVar("use_multi_gpus", default=False)
        self._devices: contextvars.ContextVar[tuple[int, ...] | None] = contextvars.ContextVar("devices", default=None)

    def __reduce__(self) -> str:
        return "config"

    @property
    def enable_nd_planning(self) -> bool:
        """Whether one plan transforms several axes where that is possible. CuPy deprecates the setting."""
        self._warn()
        return self._enable_nd_planning.get()

    @enable_nd_planning.setter
    def enable_nd_planning(self, value: bool) -> None:
        self._warn()
        set_variable(self._enable_nd_planning, value)

    @staticmethod
    def _warn() -> None:
        warnings.warn(
            "enable_nd_planning is deprecated as of CuPy 14 and will always be True in the future.",
            DeprecationWarning,
            stacklevel=3,
        )

    @property
    def use_multi_gpus(self) -> bool:
        """Whether the devices of :meth:`set_cufft_gpus` share the work of a transform."""
        return self._use_multi_gpus.get()

    @use_multi_gpus.setter
    def use_multi_gpus(self, value: bool) -> None:
        set_variable(self._use_multi_gpus, bool(value))

    @property
    def devices(self) -> tuple[int, ...] | None:
        """The devices that share the work; None if the current device does all of it."""
        return self._devices.get() if self.use_multi_gpus else None

    def set_cufft_gpus(self, gpus: int | list[int] | tuple[int, ...]) -> None:
        """Set the devices that share the work of a transform.

        Args:
            gpus: The devices, or the number of devices, counted from device 0.

        Raises:
            ValueError: ``gpus`` is neither a number nor a sequence, or there are less than two devices.
        """
        if not isinstance(gpus, (int, list, tuple)):
            raise ValueError(f"gpus must be an int or a list or tuple of int, not {type(gpus)}.")
        devices = tuple(range(gpus) if isinstance(gpus, int) else gpus)
        if len(devices) < 2:
            raise ValueError(f"Must use at least 2 GPUs; got {len(devices)}.")
        set_variable(self._devices, devices)

    def get_plan_cache(self) -> PlanCache:
        """Return the cache of plans of this thread for the current device."""
        return get_plan_cache()

    def clear_plan_cache(self) -> None:
        """Drop all plans of the cache."""
        get_plan_cache().clear()

    def get_plan_cache_size(self) -> int:
        """Return the largest number of plans in the cache."""
        return get_plan_cache().get_size()

    def set_plan_cache_size(self, size: int) -> None:
        """Set the largest number of plans in the cache."""
        get_plan_cache().set_size(size)

    def get_plan_cache_max_memsize(self) -> int:
        """Return the largest number of bytes of the work areas of the plans in the cache."""
        return get_plan_cache().get_memsize()

    def set_plan_cache_max_memsize(self, size: int) -> None:
        """Set the largest number of bytes of the work areas of the plans in the cache."""
        get_plan_cache().set_memsize(size)

    def show_plan_cache_info(self) -> None:
        """Print what the cache holds."""
        get_plan_cache().show_info()

    def get_current_callback_manager(self) -> None:
        """Return None: emulated devices have no callbacks of cuFFT."""
        return

    def set_cufft_callbacks(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse callbacks, which are device functions that cuFFT calls.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("Emulated devices have no callbacks of cuFFT. Transform the array before or after the FFT.")


config = Config()
