"""How many functions and files frequent calls enter on emulated devices. A limit holds for each call."""

from __future__ import annotations

import gc
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.kernels import SAXPY
from tcuda._runtime import runtime as runtime_in_use
from tcuda.emulation import xp

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

PACKAGE = Path(tcuda.__file__).parent

pytestmark = [pytest.mark.emulated, pytest.mark.eager, pytest.mark.usefixtures("runtime")]


def frames_of(call: Callable[[], object]) -> list[str]:
    """Return the names of the Python functions that a later call of ``call`` enters."""
    call()
    call()
    own: CodeType = call.__code__  # type: ignore[attr-defined]
    entered: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code is not own:
            entered.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")

    collecting = gc.isenabled()
    gc.disable()  # finalizers of objects of other tests would count
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        if collecting:
            gc.enable()
    return entered


def files_of(call: Callable[[], object]) -> list[str]:
    """Return the files of tcuda that a later call of ``call`` enters, which a reader opens to follow the call."""
    files = {entered.rpartition(":")[0] for entered in frames_of(call)}
    return sorted(file for file in files if Path(file).is_relative_to(PACKAGE))


def require_at_most(limit: int, call: Callable[[], object]) -> None:
    entered = frames_of(call)
    assert len(entered) <= limit, "\n".join(entered)


@pytest.fixture
def x() -> Any:
    return xp.ones(4)


def test_the_counter_counts_each_call_once() -> None:
    def inner() -> None:
        pass

    def outer() -> None:
        inner()
        inner()

    assert [entered.rpartition(":")[2] for entered in frames_of(lambda: outer())] == ["outer", "inner", "inner"]


def test_frames_of_the_record_of_an_event() -> None:
    require_at_most(20, lambda: tcuda.Event().record())


def test_frames_of_a_wait_for_the_default_stream() -> None:
    stream, default = tcuda.Stream(), tcuda.default_stream()
    require_at_most(25, lambda: stream.wait_stream(default))


def test_frames_of_a_wait_of_the_default_stream_for_itself() -> None:
    require_at_most(25, lambda: tcuda.current_stream().wait_stream(tcuda.default_stream()))


def test_frames_of_a_wait_for_another_stream() -> None:
    stream, other = tcuda.Stream(), tcuda.Stream()
    require_at_most(9, lambda: stream.wait_stream(other))


def test_frames_of_an_operation_on_an_array(x: Any) -> None:
    require_at_most(7, lambda: x + 1)


def test_frames_of_an_operation_that_writes_to_an_array(x: Any) -> None:
    require_at_most(9, lambda: xp.add(x, 1, out=x))


def test_frames_of_the_sum_of_an_array(x: Any) -> None:
    require_at_most(8, lambda: x.sum())


def test_frames_of_a_new_array() -> None:
    require_at_most(7, lambda: xp.empty(10))


def test_frames_of_a_view(x: Any) -> None:
    require_at_most(1, lambda: x[1:3])


def test_frames_of_the_replay_of_a_graph(x: Any) -> None:
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        y = x + 1
    require_at_most(14, lambda: graph.replay())
    del y


def test_a_replay_checks_once_whether_a_stream_captures(x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        y = x + 1
    questions = []

    class Asked:
        """Counts the reads of the captures in progress."""

        @property
        def in_progress(self) -> list[Any]:
            questions.append("in_progress")
            return []

    in_use: Any = runtime_in_use()
    monkeypatch.setattr(in_use._parts.graphs, "_captures", Asked())
    monkeypatch.setattr(in_use._machine.streams, "_captures", Asked())
    graph.replay()
    assert questions == ["in_progress"]
    del y


def test_frames_of_an_event_in_the_runtime_alone(runtime: Any) -> None:
    event, stream = runtime.eventCreateWithFlags(0), runtime.streamCreateWithPriority(1, 0)
    try:
        require_at_most(3, lambda: runtime.eventRecord(event, 0))
        require_at_most(2, lambda: runtime.eventRecord(event, stream))
        # A frame of each call is the report to the watcher.
        require_at_most(3, lambda: runtime.streamWaitEvent(0, event))
        require_at_most(2, lambda: runtime.streamWaitEvent(stream, event))
    finally:
        runtime.eventDestroy(event)
        runtime.streamDestroy(stream)


WALKS: dict[str, tuple[int, Callable[[Any], object]]] = {
    "x + 1": (1, lambda x: x + 1),
    "x[1:3]": (1, lambda x: x[1:3]),
    "record": (6, lambda x: tcuda.Event().record()),
    "broadcast": (24, lambda x: tcuda.comm.broadcast(x, [0, 1])),
}


@pytest.mark.parametrize("name", WALKS)
def test_files_of_a_call(name: str, x: Any) -> None:
    limit, call = WALKS[name]
    files = files_of(lambda: call(x))
    assert len(files) <= limit, files


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_files_of_a_launch_without_and_with_a_race_detector(x: Any) -> None:
    saxpy = xp.RawKernel(SAXPY, "saxpy")
    arguments = 4, xp.float32(2), x.astype("f4"), x.astype("f4")
    files = files_of(lambda: saxpy((1,), (4,), arguments))
    assert len(files) <= 10, files
    with tcuda.sanitizer.check():
        files = files_of(lambda: saxpy((1,), (4,), arguments))
    assert len(files) <= 16, files  # 15, and one more while page-locked memory of other tests is watched
