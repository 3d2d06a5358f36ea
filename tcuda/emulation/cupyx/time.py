"""The older name of :func:`~tcuda.emulation.cupyx.profiler.benchmark` (``cupyx.time``)."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from tcuda.emulation.cupyx.benchmarks import Times, benchmark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NOTHING: dict[str, Any] = {}


def repeat(
    func: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] = _NOTHING,
    n_repeat: int = 10000,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = math.inf,
    devices: tuple[int, ...] | None = None,
) -> Times:
    """Call ``cupyx.profiler.benchmark``, with a warning of the older name.

    Raises:
        ValueError: An argument is of a wrong type.
    """
    warnings.warn(
        "cupyx.time.repeat has been moved to cupyx.profiler.benchmark since CuPy v10. Access through cupyx.time is "
        "deprecated and will be removed in the future.",
        UserWarning,
        stacklevel=2,
    )
    return benchmark(
        func, args, kwargs, n_repeat, name=name, n_warmup=n_warmup, max_duration=max_duration, devices=devices
    )


def __dir__() -> list[str]:
    return ["repeat"]
