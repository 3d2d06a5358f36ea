"""A trace has the allocations of torch's history, in its order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_trace_numbers_the_allocations_and_leaves_out_what_was_there_before(
    bench_module: Callable[[str], Any], tmp_path: Path
) -> None:
    recording, workloads = bench_module("record_trace"), bench_module("workloads")
    rows = [
        ("free_completed", 0x900, 64),
        ("alloc", 0x100, 512),
        ("segment_alloc", 0x100, 2 << 20),
        ("alloc", 0x300, 1024),
        ("free_requested", 0x100, 512),
        ("free_completed", 0x100, 512),
        ("alloc", 0x100, 2048),
        ("free_completed", 0x100, 2048),
    ]
    events = recording.events_of({"action": action, "addr": addr, "size": size} for action, addr, size in rows)
    assert events == [(0, 512), (1, 1024), (0, -1), (2, 2048), (2, -1)]
    np.savez(tmp_path / "trace.npz", events=np.array(events))
    assert workloads.read_trace(tmp_path / "trace.npz") == events
