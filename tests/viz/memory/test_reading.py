"""Files of snapshots: the kinds that are read, and the messages about all others."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.snapshots import (
    MIB,
    alloc,
    block,
    segment,
    snapshot,
    two_devices,
    write,
)
from tcuda._viz.memory import devices, read_snapshot
from tcuda._viz.shared.stacks import Frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_reading_returns_the_written_snapshot(protocol: int, tmp_path: Path) -> None:
    content = two_devices()
    assert read_snapshot(write(tmp_path / "s.pickle", content, protocol)) == content
    assert read_snapshot(str(tmp_path / "s.pickle")) == content


def test_a_list_of_segments_is_read_too(tmp_path: Path) -> None:
    segments = two_devices()["segments"]
    assert read_snapshot(write(tmp_path / "s.pickle", segments)) == {"segments": segments, "device_traces": []}


class Hostile:
    def __init__(self, does: Callable[..., Any], *arguments: Any) -> None:
        self.done = does, arguments

    def __reduce__(self) -> Any:
        return self.done


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("where", ["all", "segments", "frames"])
def test_a_pickle_that_runs_code_is_refused(protocol: int, where: str, tmp_path: Path) -> None:
    hostile = Hostile(Path.touch, tmp_path / "touched")
    content: Any = {
        "all": hostile,
        "segments": snapshot(hostile),  # type: ignore[arg-type]
        "frames": snapshot(traces=[[alloc(1, 2, [hostile])]]),
    }[where]
    path = write(tmp_path / "s.pickle", content, protocol)
    with pytest.raises(
        ValueError, match=r"'.*s\.pickle' holds no allocator snapshot: it asks for .*_dump_snapshot\(\)"
    ):
        read_snapshot(path)
    assert not (tmp_path / "touched").exists()
    pickle.loads(path.read_bytes())  # the pickle module runs the code
    assert (tmp_path / "touched").exists()


def test_a_pickle_that_asks_for_a_builtin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it asks for builtins.eval"):
        read_snapshot(write(tmp_path / "s.pickle", Hostile(eval, "1")))


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x04]", b"(dp0\nI0\n", b"\x8e" + 8 * b"\x7f", b"I1\n."])
def test_a_file_that_holds_no_snapshot_is_a_value_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "s.pickle").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"holds no allocator snapshot: .+\. Write one with tcuda.memory._dump_snapshot"
    ):
        read_snapshot(tmp_path / "s.pickle")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (5, "it is a int, not a dict"),
        ({}, "segments is missing or not a list"),
        ({"segments": {}}, "segments is missing or not a list"),
        ([3], r"segments\[0\] is a int, not a dict"),
        ([{"address": 1}], r"segments\[0\]\['total_size'\] is None, not a whole number"),
        ([segment(1) | {"address": "1"}], r"segments\[0\]\['address'\] is '1', not a whole number"),
        ([segment(1) | {"device": None}], r"segments\[0\]\['device'\] is None, not a whole number"),
        ([segment(1) | {"segment_pool_id": "ab"}], r"segments\[0\]\['segment_pool_id'\] is 'ab', not a pair"),
        ([segment(1, block(1, 2, "") | {"state": 2})], r"segments\[0\]\['blocks'\]\[0\]\['state'\] is 2, not a text"),
        ([segment(1, block(1, 2, frames=[{"name": "f"}]))], r"segments\[0\]\['blocks'\]\[0\] has a frame"),
        (snapshot() | {"device_traces": 0}, "device_traces is not a list"),
        (
            snapshot(traces=[[alloc(1, 2) | {"action": None}]]),
            r"device_traces\[0\]\[0\]\['action'\] is None, not a text",
        ),
        (snapshot(traces=[[], [alloc(1, 2), {"action": "alloc", "size": 1}]]), r"device_traces\[1\]\[1\]\['addr'\]"),
        (snapshot(traces=[[alloc(1, 2, time_us=1.5)]]), r"\['time_us'\] is 1.5, not a whole number"),
    ],
)
def test_the_error_names_the_fault_of_a_snapshot(content: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read_snapshot(write(tmp_path / "s.pickle", content))


def test_a_snapshot_of_tcuda_is_read(output_of: OutputOf, tmp_path: Path) -> None:
    output_of(
        "import tcuda\n"
        "before = tcuda.xp.zeros(2 << 20, dtype='uint8')\n"
        "tcuda.memory._record_memory_history()\n"
        "def f():\n"
        "    return tcuda.xp.zeros(1 << 20, dtype='uint8')\n"
        "kept, dropped = f(), f()\n"
        "del dropped\n"
        "tcuda.memory._dump_snapshot('snapshot.pickle')\n"
    )
    found, stacks = devices(read_snapshot(tmp_path / "snapshot.pickle"))
    past = found[0].history
    assert (past.live[0], found[0].peak_bytes, past.live[-1]) == (2 * MIB, 4 * MIB, 3 * MIB)
    assert [(a.size, a.start == 0, a.end is None) for a in past.allocations] == [
        (2 * MIB, True, True),
        (MIB, False, True),
        (MIB, False, False),
    ]
    sites = {None if site.frame is None else stacks.frames[site.frame]: site.usage.count for site in found[0].sites}
    assert sites == {None: 1, Frame("f", "<string>", 5): 2}
    assert found[0].reserved_bytes >= 3 * MIB
