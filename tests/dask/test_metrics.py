"""The memory figures of devices among the metrics of the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distributed import wait

import tcuda
from support.workers import send_metrics

if TYPE_CHECKING:
    from distributed import Client

MIB = 1 << 20


def metrics_of(client: Client) -> dict[str, dict[str, Any]]:
    """Return the metrics that the scheduler has, by the address of the worker, after each worker has sent them."""
    client.run(send_metrics)
    return {address: worker["metrics"] for address, worker in client.scheduler_info()["workers"].items()}


def test_the_metrics_have_the_figures_of_the_device(client: Client, addresses: dict[int, str]) -> None:
    held = client.submit(lambda: tcuda.xp.zeros(4 * MIB, "u1"), workers=[addresses[1]], pure=False)
    wait(held)
    own = metrics_of(client)[addresses[1]]
    figures = own["tcuda"]
    assert figures["allocated"] >= 4 * MIB
    assert figures["peak_allocated"] >= figures["allocated"]
    assert figures["reserved"] >= figures["allocated"]
    assert figures["peak_reserved"] >= figures["reserved"]
    assert figures["limit"] == figures["total"] // 4
    assert 0 <= figures["free"] <= figures["total"] == tcuda.mem_get_info()[1]
    assert figures["device"] == str(tcuda.get_device_properties(1 % tcuda.device_count()).uuid)
    for name in ("allocated", "peak_allocated", "reserved", "peak_reserved", "free", "total", "limit", "device"):
        assert own[f"gpu_{name}"] == figures[name]


def test_the_pages_of_the_dashboard_have_their_figures(client: Client, addresses: dict[int, str]) -> None:
    own = metrics_of(client)[addresses[0]]
    assert own["gpu_memory_used"] == own["gpu-memory-total"] - own["gpu_free"]
    assert 0 <= own["gpu_utilization"] <= 100


def test_the_scheduler_has_the_figures_after_the_registration(client: Client) -> None:
    for worker in client.scheduler_info()["workers"].values():
        assert worker["metrics"]["gpu_total"] == tcuda.mem_get_info()[1]
