"""The scope in which CuPy tunes its kernels (``cupyx.optimizing``). Emulated kernels have nothing to tune."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTINGS = ("max_total_time_per_trial", "max_trials", "timeout")

__all__ = ["optimize"]


@contextlib.contextmanager
def optimize(
    *, key: str | None = None, path: str | None = None, readonly: bool = False, **config_dict: Any
) -> Iterator[None]:
    """Return a scope that leaves all kernels as they are.

    CuPy tries numbers of threads and blocks in this scope, and keeps the fastest.

    Args:
        key: The name under which CuPy keeps the numbers.
        path: The file in which CuPy keeps the numbers. Nothing is written here.
        readonly: Whether CuPy only reads the file.
        config_dict: CuPy's settings ``max_trials``, ``timeout`` and ``max_total_time_per_trial``.

    Raises:
        TypeError: CuPy has no such setting.
    """
    unknown = sorted(set(config_dict) - set(_SETTINGS))
    if unknown:
        raise TypeError(f"optimize() has no setting {unknown[0]!r}; there are {', '.join(_SETTINGS)}")
    if path is not None and readonly and not Path(path).exists():
        warnings.warn(
            f"The specified path {path} could not be found, and the readonly option is set. "
            "The optimization results will never be stored.",
            stacklevel=3,
        )
    yield


def __dir__() -> list[str]:
    return sorted(__all__)
