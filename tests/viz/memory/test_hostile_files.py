"""Files that were made to attack the reader of snapshots."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.examples import examples
from tcuda._viz.memory import pickles, read_snapshot
from tcuda.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.fixture_types import RunPython

LINE_OF_PYTHON = "SystemError: deallocated bytearray object has exported buffers"
"""CPython may write this line when it has no memory for a ``bytearray``, whose counter of buffers is not set then."""

FRAME = {"name": "step", "filename": "/home/user/train.py", "line": 5}


def event(action: str = "alloc", **more: Any) -> dict[str, Any]:
    return {
        "action": action,
        "addr": 4096,
        "size": 512,
        "stream": 0,
        "time_us": 1_700_000_000_000_000,
        "compile_context": "N/A",
        "user_metadata": "",
        "frames": [FRAME],
        **more,
    }


def block(**more: Any) -> dict[str, Any]:
    return {
        "address": 4096,
        "size": 512,
        "requested_size": 500,
        "state": "active_allocated",
        "frames": [FRAME],
        **more,
    }


def segment(**more: Any) -> dict[str, Any]:
    return {
        "device": 0,
        "address": 4096,
        "total_size": 1024,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [block(), block(address=4608, state="inactive", frames=[])],
        **more,
    }


def snapshot(*segments: Any, trace: Any = ()) -> dict[str, Any]:
    return {
        "segments": list(segments),
        "device_traces": [trace if isinstance(trace, list) else list(trace)],
        "allocator_settings": {"garbage_collection_threshold": 0.0},
    }


def valid() -> dict[str, Any]:
    events = [event("segment_alloc"), event(), event("oom", device_free=0), event("free_requested"), event("snapshot")]
    return snapshot(segment(), trace=events)


def doubling(times: int) -> list[Any]:
    """Return a list that is small in a file and has 2 to the power of ``times`` items when read item by item."""
    nested: list[Any] = ["x"]
    for _ in range(times):
        nested = [nested, nested]
    return nested


def endless() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


def snapshot_with(field: str, value: Any) -> dict[str, Any]:
    content = valid()
    owners = content["segments"][0] if field in content["segments"][0] else content["device_traces"][0][1]
    owners[field] = value
    return content


CONTENTS: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"no pickle",
    "zeros": lambda: bytes(1 << 20),
    "cut off": lambda: pickle.dumps(valid())[:-20],
    "address of nested lists": lambda: pickle.dumps(snapshot(segment(address=doubling(60)))),
    "frames of nested lists": lambda: pickle.dumps(snapshot_with("frames", doubling(60))),
    "frame of nested lists": lambda: pickle.dumps(snapshot(segment(frames=[{"name": doubling(60)}]))),
    "pool of nested lists": lambda: pickle.dumps(snapshot(segment(segment_pool_id=[doubling(60), 0]))),
    "state of nested lists": lambda: pickle.dumps(snapshot(segment(blocks=[block(state=doubling(60))]))),
    "kind of nested lists": lambda: pickle.dumps(snapshot(segment(segment_type=doubling(60)))),
    "note of nested lists": lambda: pickle.dumps(snapshot_with("user_metadata", doubling(60))),
    "scope of nested lists": lambda: pickle.dumps(snapshot_with("scope", doubling(60))),
    "scope of a block that is a number": lambda: pickle.dumps(snapshot(segment(blocks=[block(scope=5)]))),
    "lists in lists": lambda: b"\x80\x04" + b"]" * 1_000_000 + b"a" * 999_999 + b".",
    "marks in marks": lambda: b"\x80\x04" + b"(" * 1_000_000 + b".",
    "frames that hold themselves": lambda: pickle.dumps(snapshot_with("frames", endless())),
    "segments that hold themselves": lambda: pickle.dumps({"segments": endless()}),
    "traces that hold themselves": lambda: pickle.dumps({"segments": [], "device_traces": endless()}),
    "number of 400 digits": lambda: pickle.dumps(snapshot_with("total_size", 10**400)),
    "number of 400 digits in a line": lambda: pickle.dumps(snapshot_with("total_size", 10**400), 0),
    "number of a million bytes": lambda: b"\x8b" + struct.pack("<I", 1_000_000) + b"\x7f" * 1_000_000 + b".",
    "negative size": lambda: pickle.dumps(snapshot_with("size", -1)),
    "size of 64 bits": lambda: pickle.dumps(snapshot_with("size", 1 << 63)),
    "truth as a size": lambda: pickle.dumps(snapshot_with("size", True)),
    "size that is no number": lambda: pickle.dumps(snapshot_with("size", math.nan)),
    "infinite time": lambda: pickle.dumps(snapshot_with("time_us", math.inf)),
    "blocks larger than their segment": lambda: pickle.dumps(snapshot(segment(total_size=1))),
    "device a billion": lambda: pickle.dumps(snapshot(segment(device=1_000_000_000))),
    "a million devices": lambda: pickle.dumps({"segments": [], "device_traces": [[]] * 1_000_000}),
    "note that is a number": lambda: pickle.dumps(snapshot_with("user_metadata", 5)),
    "context that is bytes": lambda: pickle.dumps(snapshot_with("compile_context", b"N/A")),
    "one event a million times": lambda: pickle.dumps(snapshot(trace=[event()] * 1_000_000)),
    "one trace of every device": lambda: pickle.dumps({"segments": [], "device_traces": [[event()]] * 100}),
    "one segment a million times": lambda: pickle.dumps(snapshot(*[segment()] * 1_000_000)),
    "kind of a megabyte": lambda: pickle.dumps(snapshot_with("segment_type", "x" * (1 << 20))),
    "action of a megabyte": lambda: pickle.dumps(snapshot_with("action", "x" * (1 << 20))),
    "place that has nothing": lambda: b"\x80\x04h\x05.",
    "huge text": lambda: b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"x.",
    "huge bytearray": lambda: b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x.",
    "huge frame": lambda: b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"K\x05.",
    "set": lambda: pickle.dumps({1, 2}),
    "stack that is empty": lambda: b"\x80\x04a.",
    "text that is filled": lambda: b"\x80\x04\x8c\x01xK\x01a.",
    "half a dict": lambda: b"\x80\x04}(\x8c\x01xu.",
    "surrogates": lambda: b"\x80\x04\x8c\x01\xff.",
}

# Time and memory are limited, so that a successful attack fails the test and leaves the machine alone.
RUN = """
import json, resource, sys, time
from pathlib import Path
from tcuda.cli import main

resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
for path in sorted(Path({folder!r}).iterdir()):
    print(path.name, file=sys.stderr)
    page = Path("page.html")
    status = main(["memory-viz", str(path), "-o", str(page)])
    print(json.dumps([path.name, status, page.stat().st_size if page.exists() else None]))
    page.unlink(missing_ok=True)
"""


def answers(output: str) -> list[Any]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("[")]


@pytest.mark.long
def test_every_hostile_file_is_refused_in_one_line(tmp_path: Path, run_python: RunPython) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content())
    done = run_python(RUN.format(folder=str(folder)))
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert answers(done.stdout) == [[name, 1, None] for name in sorted(CONTENTS)], done.stderr
    lines = done.stderr.splitlines()
    assert lines[::2] == sorted(CONTENTS), done.stderr
    for name, message in zip(lines[::2], lines[1::2], strict=True):
        assert message.startswith(f"tcuda memory-viz: {str(folder / name)!r} holds no allocator snapshot: ")
        assert message.endswith("torch.cuda.memory._dump_snapshot().")
        assert len(message) < 500 + len(str(folder))


SHARED: dict[str, Callable[[], dict[str, Any]]] = {
    "one stack of all events": lambda: snapshot(
        trace=[event(frames=frames) for frames in [[FRAME] * 20_000] for _ in range(20_000)]
    ),
    "one long text in all frames": lambda: snapshot(
        segment(
            frames=[{"name": text, "filename": text, "line": n} for text in ["x" * 2_000_000] for n in range(5_000)]
        )
    ),
    "one long note of all events": lambda: snapshot(
        trace=[event(addr=n, user_metadata=text) for text in ["x" * 20_000_000] for n in range(5_000)]
    ),
    "a segment on every device": lambda: snapshot(*(segment(device=n % 1024, address=n << 20) for n in range(30_000))),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SHARED)
def test_shared_objects_take_time_and_memory_once(name: str, tmp_path: Path, run_python: RunPython) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "shared").write_bytes(pickle.dumps(SHARED[name]()))
    done = run_python(RUN.format(folder=str(folder)).replace("(100, 100)", "(30, 30)"))
    assert (done.returncode, done.stderr) == (0, "shared\n")
    ((_, status, size),) = answers(done.stdout)
    assert status == 0
    assert size < 50_000_000


# Reading pickles

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=()))
    | st.text(alphabet="ab", min_size=250, max_size=300),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(), inner)
        | inner.map(lambda value: [value, value])
    ),
    max_leaves=30,
)


@pytest.mark.long
@given(PLAIN, st.integers(0, pickle.HIGHEST_PROTOCOL))
@settings(deadline=None)
def test_plain_data_is_read_as_pickle_reads_it(data: Any, protocol: int) -> None:
    assert pickles.load(pickle.dumps(data, protocol)) == data


def test_an_object_in_two_places_is_read_as_one_object() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        loaded: Any = pickles.load(pickle.dumps([FRAME, FRAME, endless()], protocol))
        assert loaded[0] is loaded[1]
        assert loaded[2][0] is loaded[2]


def test_bytes_are_plain_data_since_protocol_3() -> None:
    assert pickles.load(pickle.dumps([b"abc", b"x" * 300], 4)) == [b"abc", b"x" * 300]


# Any file


def places(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each value in a snapshot."""
    keys = range(len(content)) if isinstance(content, list) else content if isinstance(content, dict) else ()
    for key in keys:
        yield (*place, key)
        yield from places(content[key], (*place, key))


WRONG = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1 << 31,
        (1 << 53) + 1,
        (1 << 63) - 1,
        1 << 63,
        (1 << 64) - 1,
        1 << 64,
        -(1 << 63),
        10**400,
        0.5,
        math.nan,
        math.inf,
        "",
        "alloc",
        "\ud800",
        "x" * 10_000,
        "\x1b[2J\n",
        b"bytes",
        [],
        {},
        (),
        [[]],
        [{}],
        (0, 0),
        {"name": 1},
        endless(),
        doubling(40),
    ]
)
REMOVED = object()


@pytest.mark.long
@given(st.data())
@settings(deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_snapshot_with_any_value_in_any_field_gives_a_page_or_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    content: Any = copy.deepcopy(valid())
    for place in data.draw(st.lists(st.sampled_from(sorted(places(content), key=str)), min_size=1, max_size=3)):
        *way, last = place
        value = data.draw(st.just(REMOVED) | WRONG)
        owner = content
        try:
            for key in way:
                owner = owner[key]
            if value is REMOVED:
                del owner[last]
            else:
                owner[last] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change has removed the place
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(content, data.draw(st.sampled_from([0, 2, 4]))))
    check_command(path, capsys)


@given(st.data())
@settings(deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_with_any_bytes_gives_a_page_or_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    content = bytearray(pickle.dumps(valid(), data.draw(st.sampled_from([0, 2, 4]))))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    path = tmp_path / "s.pickle"
    path.write_bytes(content)
    check_command(path, capsys)


def check_command(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = path.with_suffix(".html")
    output.unlink(missing_ok=True)
    status = main(["memory-viz", str(path)])
    said = capsys.readouterr()
    if status:
        lines = [line for line in said.err.splitlines() if line != LINE_OF_PYTHON]
        assert len(lines) == 1
        (line,) = lines
        assert (status, said.out, output.exists()) == (1, "", False)
        assert line.startswith(f"tcuda memory-viz: {str(path)!r} holds no allocator snapshot: ")
        assert line.isprintable()
    else:
        _, *peak = said.out.removesuffix("\n").split("\n")
        assert said.err == ""
        assert len(peak) <= 1
        assert all(line.startswith("At the peak, ") and line.isprintable() for line in peak)
        data = output.read_text(encoding="utf-8").split('<script type="application/json" id="data">')[1]
        json.loads(
            data.split("</script>")[0], parse_constant=lambda name: pytest.fail(f"the page has a number that is {name}")
        )


# Paths that are no regular files


def test_a_pipe_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["memory-viz", str(tmp_path / "pipe")]) == 1
    assert "holds no allocator snapshot: it is not a regular file. " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null"])
def test_a_device_is_not_read(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory-viz", name]) == 1
    assert "it is not a regular file" in capsys.readouterr().err


@pytest.mark.long
def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate((1 << 30) + 1)  # a sparse file, which takes no space on the disk
    with pytest.raises(ValueError, match=r"it has more than 1,073,741,824 bytes"):
        read_snapshot(tmp_path / "large")
