"""Finalizers and signal handlers that use tcuda in the middle of its own calls.

Each program runs in its own process. A process with a deadlock ends with a traceback of all threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

PREPARED = """
import faulthandler, gc, itertools, signal, sys
faulthandler.dump_traceback_later(60, exit=True)
import tcuda

class Garbage:
    '''A cycle whose finalizer calls ``use``.'''

    def __init__(self, use):
        self.itself, self.use = self, use

    def __del__(self):
        self.use()

used = itertools.count()

def finalizing(use, work):
    '''Do ``work`` while the garbage collector runs at nearly every allocation and calls ``use``.'''
    def counted():
        use()
        next(used)
    gc.collect()
    gc.freeze()
    for threshold in (1, 2, 3, 5, 8, 13, 21):
        for _ in range(20):
            gc.disable()
            garbage = Garbage(counted)
            gc.collect(0)
            gc.set_threshold(threshold, 1, 1)
            gc.enable()
            garbage = None
            work()
    gc.disable()

def interrupting(use, work):
    '''Do ``work`` while a signal handler calls ``use``, after a timer of varying length.'''
    active, finished = [], []
    def handle(number, frame):
        if not active:
            active.append(True)
            use()
            next(used)
            active.clear()
        finished.append(True)
    signal.signal(signal.SIGALRM, handle)
    for delay in range(20, 420):
        finished.clear()
        signal.setitimer(signal.ITIMER_REAL, delay / 1e6)
        while not finished:
            work()

def a_stream():
    tcuda.Stream()

def new_streams():
    '''Take the streams of a pool for the first time.'''
    tcuda.streams._stream._rings.clear()
    return [tcuda.Stream(priority=priority) for priority in (0, -1) for _ in range(3)]

def new_session():
    '''Initialise NVML.'''
    tcuda._device._nvml._sessions.clear()
    tcuda.temperature(0)

def new_capture():
    '''Capture a graph.'''
    graph = tcuda.CUDAGraph()
    with tcuda.stream(tcuda.Stream()):
        graph.capture_begin(capture_error_mode="relaxed")
        tcuda.memory.caching_allocator_delete(tcuda.memory.caching_allocator_alloc(512))
        graph.capture_end()

def an_operation():
    '''Compute with arrays between two events, and read the elapsed time.'''
    start, end = tcuda.Event(enable_timing=True), tcuda.Event(enable_timing=True)
    with tcuda.stream(tcuda.Stream()):
        start.record()
        x = tcuda.xp.ones(8) + 1
        total = float(x.sum())
        end.record()
    end.synchronize()
    assert total == 16 and start.elapsed_time(end) > 0

import warnings
warnings.simplefilter("ignore", UserWarning)  # the graphs are empty, which is a warning
for use in (new_streams, new_session, new_capture, an_operation):
    use()
"""

AFTER = """
number = next(used)
assert number > 20, number
assert tcuda.current_device() == 0 and tcuda.current_stream() == tcuda.default_stream()
assert not tcuda._process.captures.captures
print("done")
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("use", "work"),
    [
        ("a_stream", "new_streams"),
        pytest.param("new_session", "new_session", marks=pytest.mark.alone),
        ("new_capture", "new_capture"),
        ("an_operation", "an_operation"),
    ],
)
@pytest.mark.parametrize("how", ["finalizing", "interrupting"])
def test_a_call_can_be_made_in_the_middle_of_the_same_call(
    runtime: Runtime, output_of: OutputOf, how: str, use: str, work: str
) -> None:
    if (how, work) == ("interrupting", "new_session") and runtime.name == "cuda":
        pytest.skip("pynvml holds a lock while it counts its users, so the handler could wait for the code below it")
    assert output_of(f"{PREPARED}{how}({use}, {work}){AFTER}") == "done"


@pytest.mark.parametrize("how", ["finalizing", "interrupting"])
def test_the_runtime_can_be_used_during_its_choice(output_of: OutputOf, how: str) -> None:
    choose = """
from tcuda import _runtime
def choose():
    _runtime._in_use = None
    _runtime._successors.clear()
    _runtime._successors.clear()
    assert _runtime.runtime() is _runtime.runtime()
"""
    work = f"{choose}{how}(_runtime.runtime, choose)\nassert next(used) > 20\nprint('done')"
    prepared = PREPARED.replace(
        "for use in (new_streams, new_session, new_capture, an_operation):\n    use()", "_ = tcuda.temperature"
    )
    assert output_of(f"{prepared}{work}") == "done"


def test_streams_made_during_the_creation_of_a_stream_keep_the_order_of_the_pool(output_of: OutputOf) -> None:
    code = """
import itertools
import tcuda
from tcuda._process import lazy
tcuda.init()
runtime = lazy.cuda
create, turns, others = runtime.streamCreateWithPriority, itertools.count(), []

def create_slowly(flags, priority):
    if next(turns) == 0:  # 32 other streams are made while CUDA creates the first stream
        others.extend(tcuda.Stream() for _ in range(32))
    return create(flags, priority)

lazy.cuda.streamCreateWithPriority = create_slowly
first = tcuda.Stream()
assert first == others[-1]
again = [tcuda.Stream() for _ in range(32)]
assert set(again) == set(others) and len(set(again)) == 32
for stream in again:
    stream.synchronize()
print("done")
"""
    assert output_of(code) == "done"
