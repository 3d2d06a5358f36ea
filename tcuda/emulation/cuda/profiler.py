"""The times at which a profiler collects (``cupy.cuda.profiler``)."""

from __future__ import annotations

from tcuda._process.lazy import cuda


def start() -> None:
    """Let an attached profiler start to collect."""
    cuda.profilerStart()


def stop() -> None:
    """Let an attached profiler stop collecting."""
    cuda.profilerStop()
