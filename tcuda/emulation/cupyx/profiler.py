"""Ranges and times for a profiler (``cupyx.profiler``)."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

from tcuda import nvtx
from tcuda.emulation.cuda import runtime
from tcuda.emulation.cupyx.benchmarks import benchmark as benchmark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Let an attached profiler collect in a scope."""
    runtime.profilerStart()
    try:
        yield
    finally:
        runtime.profilerStop()


class time_range:
    """A range for a profiler: a scope, or each call of a decorated function.

    Args:
        message: The name of the range; the name of the function if None.
        color_id: The number of a colour, which the emulation ignores.
        argb_color: A colour, which the emulation ignores.
        sync: Whether to wait for the current stream at the end of the range.
    """

    def __init__(
        self,
        message: str | None = None,
        color_id: int | None = None,
        argb_color: int | None = None,
        sync: bool = False,
    ) -> None:
        if color_id is not None and argb_color is not None:
            raise ValueError("Only either color_id or argb_color can be specified")
        self.message = message
        self.sync = sync

    def __enter__(self) -> Self:
        if self.message is None:
            raise ValueError("when used as a context manager, the message argument cannot be None")
        nvtx.range_push(self.message)
        return self

    def __exit__(self, *error: object) -> None:
        if self.sync:
            runtime.deviceSynchronize()
        nvtx.range_pop()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``func`` with a range around each call."""
        if self.message is None:
            self.message = func.__name__

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return wrapper
