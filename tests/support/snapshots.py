"""Handmade snapshots of memory in torch's schema, and their files."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from support.sizes import MIB
from tcuda._viz.memory import devices

if TYPE_CHECKING:
    from pathlib import Path

    from tcuda._viz.memory import Device


BASE = 0x7F0000000000


def frame(name: str, filename: str = "/home/user/train.py", line: int = 1) -> dict[str, Any]:
    return {"name": name, "filename": filename, "line": line}


LOAD = [frame("read", "/usr/lib/python3.12/site-packages/cupy/io.py", 7), frame("load", line=3), frame("main", line=9)]
STEP = [frame("step", line=5), frame("main", line=9)]


def event(action: str, addr: int, size: int, frames: Any = (), **more: Any) -> dict[str, Any]:
    return {
        "action": action,
        "addr": addr,
        "size": size,
        "stream": 0,
        "time_us": 1_700_000_000_000_000,
        "compile_context": "N/A",
        "user_metadata": "",
        "frames": list(frames),
        **more,
    }


def alloc(addr: int, size: int, frames: Any = STEP, **more: Any) -> dict[str, Any]:
    return event("alloc", addr, size, frames, **more)


def free(addr: int, size: int) -> list[dict[str, Any]]:
    return [event("free_requested", addr, size, STEP), event("free_completed", addr, size, STEP)]


def block(address: int, size: int, state: str = "active_allocated", frames: Any = STEP, **more: Any) -> dict[str, Any]:
    used = state != "inactive"
    requested = size if used else 0
    return {
        "address": address,
        "size": size,
        "requested_size": requested,
        "state": state,
        "frames": list(frames) if used else [],
        **more,
    }


def segment(address: int, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    allocated, awaiting = (
        sum(each["size"] for each in blocks if each["state"] == state)
        for state in ("active_allocated", "active_awaiting_free")
    )
    return {
        "device": 0,
        "address": address,
        "total_size": sum(each["size"] for each in blocks),
        "allocated_size": allocated,
        "active_size": allocated + awaiting,
        "requested_size": sum(each.get("requested_size", 0) for each in blocks),
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": list(blocks),
        **more,
    }


def snapshot(*segments: dict[str, Any], traces: Any = ()) -> dict[str, Any]:
    return {
        "segments": list(segments),
        "device_traces": [list(trace) for trace in traces],
        "allocator_settings": {"garbage_collection_threshold": 0.0},
        "external_annotations": [],
    }


def two_devices() -> dict[str, Any]:
    """Return a snapshot of a training that runs out of memory on device 0, and of a few allocations on device 1."""
    start = 1_700_000_000_000_000
    trace = [
        event("segment_alloc", BASE, 20 * MIB, LOAD),
        alloc(BASE, 8 * MIB, LOAD),
        alloc(BASE + 8 * MIB, 6 * MIB),
        alloc(BASE + 14 * MIB, 2 * MIB, stream=0x55),
        *free(BASE + 8 * MIB, 6 * MIB),
        event("free_requested", BASE + 14 * MIB, 2 * MIB),
        alloc(BASE + 8 * MIB, 3 * MIB, user_metadata="second <b>step</b>"),
        {**event("oom", 0, 99 * MIB, STEP), "device_free": 5 * MIB},
    ]
    del trace[-1]["addr"]
    for number, each in enumerate(trace):
        each["time_us"] = start + 100 * number
    return snapshot(
        segment(
            BASE,
            block(BASE, 8 * MIB, frames=LOAD),
            block(BASE + 8 * MIB, 4 * MIB, requested_size=3 * MIB),
            block(BASE + 12 * MIB, 2 * MIB, "inactive"),
            block(BASE + 14 * MIB, 2 * MIB, "active_awaiting_free"),
            block(BASE + 16 * MIB, 4 * MIB, "inactive"),
        ),
        segment(2 * BASE, block(2 * BASE, 2 * MIB), segment_pool_id=(1, 0), stream=0x55),
        segment(3 * BASE, block(3 * BASE, 1024), block(3 * BASE + 1024, 1024, "inactive"), device=1),
        traces=[trace, [alloc(3 * BASE, 1024), alloc(3 * BASE + 1024, 1024), *free(3 * BASE + 1024, 1024)]],
    )


def only_device(*segments: dict[str, Any], trace: Any = ()) -> Device:
    (device,), _ = devices(snapshot(*segments, traces=[trace] if trace else []))
    return device


def write(path: Path, content: object, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(content, protocol))
    return path


NASTY = "</script><script>document.title='taken'</script><!--\u2028\ud800$data\"'&"


def nasty() -> dict[str, Any]:
    frames = [frame(NASTY, f"/home/{NASTY}.py", 1)]
    return snapshot(
        segment(1, block(1, 512, frames=frames), segment_type=NASTY),
        traces=[[alloc(1, 512, frames, user_metadata=NASTY), event(NASTY, 0, 0)]],
    )
