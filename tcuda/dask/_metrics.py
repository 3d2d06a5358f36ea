"""The memory figures of a worker's device among the worker's metrics, which Dask sends to the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import Worker

_FIGURES = "tcuda"
"""The metric with all figures in a dict. The other metrics repeat the figures, because the table of workers on Dask's
dashboard shows numbers and texts only."""

_COLUMNS = (
    "device",
    "allocated",
    "peak_allocated",
    "reserved",
    "peak_reserved",
    "free",
    "total",
    "limit",
)

_OF_DASHBOARD = {
    "gpu_memory_used": "used",
    "gpu-memory-total": "total",
    "gpu_utilization": "utilization",
}
"""The metrics that the pages "GPU memory" and "GPU utilization" of the dashboard show."""


def memory_figures(index: int) -> dict[str, Any]:
    """Return the figures of the device ``index``; sizes are in bytes.

    Returns:
        The UUID of the device (``device``), the memory that arrays of this process use (``allocated``,
        ``peak_allocated``), the memory that the allocator of this process holds (``reserved``, ``peak_reserved``), the
        ``limit`` for ``reserved``, the memory of the device that all processes and the driver use (``used``), ``free``,
        ``total``, and the ``utilization`` of the device in percent.
    """
    free, total = tcuda.mem_get_info(index)
    return {
        "device": str(tcuda.get_device_properties(index).uuid),
        "allocated": tcuda.memory_allocated(index),
        "peak_allocated": tcuda.max_memory_allocated(index),
        "reserved": tcuda.memory_reserved(index),
        "peak_reserved": tcuda.max_memory_reserved(index),
        "limit": int(total * tcuda.get_per_process_memory_fraction(index)),
        "used": total - free,
        "free": free,
        "total": total,
        "utilization": _utilization(index),
    }


def add_metrics(worker: Worker, index: int) -> None:
    """Send the figures of the device ``index`` with every heartbeat of ``worker``.

    Dask's own figures are those of the first GPU of the machine for every worker, so this function turns them off.
    """
    latest: dict[str, Any] = {}

    def read(worker: Worker) -> dict[str, Any]:
        latest.update(memory_figures(index))
        return dict(latest)

    def figure(name: str) -> Callable[[Worker], Any]:
        return lambda worker: latest[name]

    remove_metrics(worker)
    worker.monitor.gpu_name = None
    for metric in _OF_DASHBOARD:  # Dask would go on to send its last figures
        worker.monitor.quantities.pop(metric, None)
    worker.metrics[_FIGURES] = read  # Dask asks in the order of insertion, so the others repeat the latest figures
    for name in _COLUMNS:
        worker.metrics[f"gpu_{name}"] = figure(name)
    for metric, name in _OF_DASHBOARD.items():
        worker.metrics[metric] = figure(name)
    if "gpu" in worker.metrics:
        worker.metrics["gpu"] = lambda worker: {"memory-used": latest["used"], "utilization": latest["utilization"]}


def remove_metrics(worker: Worker) -> None:
    """Send the figures no more."""
    for name in [_FIGURES, *(f"gpu_{name}" for name in _COLUMNS), *_OF_DASHBOARD]:
        worker.metrics.pop(name, None)


def _utilization(index: int) -> int:
    try:
        return tcuda.utilization(index)
    except RuntimeError:  # NVML has no answer, for example for a MIG device
        return 0
