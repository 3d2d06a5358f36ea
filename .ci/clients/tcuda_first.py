"""A plugin of pytest that imports tcuda before the tests import CuPy, and writes how many blocks tcuda allocated."""

from __future__ import annotations

import atexit

import outcome_log

import tcuda


@atexit.register
def _write_allocations() -> None:
    if tcuda.is_initialized():
        statistics = [tcuda.memory_stats(device) for device in range(tcuda.device_count())]
        outcome_log.write({"allocations": sum(each["allocation.all.allocated"] for each in statistics)})
