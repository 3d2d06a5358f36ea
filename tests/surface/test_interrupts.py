"""Signal handlers that raise in the middle of a scope: the scope undoes its changes in every case.

Each program runs in its own process. A timer interrupts a loop of scopes at random moments, again and again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

PROGRAM = """
import faulthandler, gc, random, signal, sys, warnings
faulthandler.dump_traceback_later(110, exit=True)
import tcuda
from tcuda.sanitizer import _detector
from tcuda._process import lazy, scopes
from tcuda.streams import _green_context
from tcuda._process.captures import captures as in_progress
from tcuda.graphs import _body

class Interrupt(Exception):
    pass

def handle(number, frame):
    raise Interrupt

tcuda.init()
runtime, backend = lazy.cuda, lazy.backend
last = tcuda.device_count() - 1
near, far = tcuda.Stream(), tcuda.Stream(last)
pool = tcuda.MemPool()
usage = tcuda.memory.track()
quiet = warnings.catch_warnings()
quiet.__enter__()
warnings.simplefilter("ignore")  # the graphs are empty, which is a warning
kept = tcuda.CUDAGraph()
with tcuda.graph(kept):
    pass

def device():
    with tcuda.device(last):
        with tcuda.device(0):
            pass

def stream():
    with tcuda.stream(near):
        with tcuda.stream(far):
            with tcuda.stream(far):
                pass

def with_stream():
    with near:
        with far:
            pass

def use_mem_pool():
    with tcuda.use_mem_pool(pool):
        with tcuda.use_mem_pool(pool, device=0):
            pass

def memory_scope():
    with tcuda.memory.scope("outer"):
        with tcuda.memory.scope("inner"):
            pass

def no_caching():
    with tcuda.memory.caching_allocator_disabled():
        pass

def fork_rng():
    with tcuda.random.fork_rng():
        tcuda.manual_seed(7)

def track():
    with usage:
        pass

graphs = []
def graph():
    made = tcuda.CUDAGraph()
    graphs.append(made)
    with tcuda.graph(made, capture_error_mode="relaxed"):
        pass

flag = tcuda.xp.ones((), bool)
def bodies():
    made = tcuda.CUDAGraph()
    graphs.append(made)
    with tcuda.graph(made, capture_error_mode="relaxed"):
        made.begin_capture_to_if_node(flag)
        tcuda.graphs.while_loop(flag, lambda: None)
        made.end_capture_to_conditional_node()

def capture():
    made = tcuda.CUDAGraph()
    graphs.append(made)
    with tcuda.stream(near):
        try:
            made.capture_begin(capture_error_mode="relaxed")
            made.capture_end()
        except Exception:  # the runtime, the graph and the list of captures agree whether the capture goes on
            captures = runtime.streamIsCapturing(near.cuda_stream)
            noted = made._open is not None and made._open.capture in in_progress
            assert captures == (made._open is not None) == noted
            made._abandon_capture()
            raise

def check():
    with tcuda.sanitizer.check(mode="collect"):
        pass

def set_context(made=[]):
    if not made:
        made.append(tcuda.GreenContext.create(num_sms=2))
    green, = made
    try:
        green.set_context()
        green.pop_context()
    except Interrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if green._parent is not None:  # the context is set, or not left
            assert tcuda.current_stream() != tcuda.default_stream()
            green.pop_context()
        raise

def state():
    devices = range(tcuda.device_count())
    return (
        tcuda.current_device(),
        [tcuda.current_stream(index).cuda_stream for index in devices],
        pool.use_count(),
        tcuda._process.ledger.ledger().caching,
        [tcuda.initial_seed(), usage._active],
        [capture.number for capture in in_progress],
        [_detector.is_started(), _detector._is_attached],
        [len(_green_context._thread.contexts), scopes._open.get()],
        [runtime.streamIsCapturing(taken.cuda_stream) for taken in (near, far, tcuda.graph.default_capture_stream)],
        nothing_entered(),
    )

def nothing_entered():
    '''Return the current stream of each device after a scope of CuPy: the default stream if CuPy's stack is empty.'''
    found = []
    for index in range(tcuda.device_count()):
        tcuda.set_device(index)
        backend.enter_stream((near, far)[index == last])
        backend.exit_stream()
        found.append(backend.current_stream().ptr)
    tcuda.set_device(0)
    return found

def strike(work, times):
    '''Return the state after each interrupt that left a changed state.'''
    signal.signal(signal.SIGALRM, handle)
    random.seed(1)
    work()
    start = time.perf_counter()
    for _ in range(10):
        work()
    longest = 3 * (time.perf_counter() - start) / 10
    before, wrong, struck = state(), [], 0
    gc.disable()  # Python drops the exception of a handler that runs in a finalizer
    while struck < times:
        try:
            # Python drops the exception of a handler that runs in a finalizer, so the timer strikes again.
            signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-6, longest), 0.05)
            while True:
                work()
        except Interrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            struck += 1
        for made in graphs:
            assert made._open is None
            made.reset()
        assert not _body._in_use
        for spare in _body._spare.values():
            assert not any(map(runtime.streamIsCapturing, spare))
        graphs.clear()
        after = state()
        if after != before:
            wrong.append(after)
            tcuda.set_device(0)
            for index in range(tcuda.device_count()):
                with tcuda.device(index):
                    backend.use_stream(backend.default_stream)
            before = state()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return wrong

import time
"""


@pytest.mark.wings
@pytest.mark.long
@pytest.mark.parametrize(
    ("work", "times"),
    [
        ("device", 2000),
        ("stream", 2000),
        ("with_stream", 2000),
        ("use_mem_pool", 2000),
        ("memory_scope", 2000),
        ("no_caching", 2000),
        ("fork_rng", 1000),
        ("track", 2000),
        ("graph", 300),
        ("bodies", 100),
        ("capture", 1000),
        ("check", 2000),
        ("set_context", 2000),
    ],
)
def test_a_scope_undoes_its_changes_if_a_signal_handler_raises(
    fresh_output_of: OutputOf, work: str, times: int
) -> None:
    code = f"{PROGRAM}\nwrong = strike({work}, {times})\nprint(len(wrong), *wrong[:3])"
    assert fresh_output_of(code) == "0"


@pytest.mark.emulated
def test_no_stream_of_a_context_is_lost_if_a_signal_handler_raises(fresh_output_of: OutputOf) -> None:
    code = """
from tcuda import _runtime
created = _runtime.runtime()._machine.streams.created
before = len(created)
signal.signal(signal.SIGALRM, handle)
random.seed(1)
for _ in range(150):
    contexts = [tcuda.GreenContext.create(num_sms=2) for _ in range(10)]
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-6, 5e-4))
        for context in contexts * 3:
            context.Stream()
        while True:
            pass
    except Interrupt:
        pass
    contexts = context = None
print(len(created) - before)
"""
    assert fresh_output_of(PROGRAM + code) == "0"


DROPPED = """
import faulthandler, gc, random, signal, sys
faulthandler.dump_traceback_later(110, exit=True)
import tcuda
from tcuda import xp

swallowed = []
sys.unraisablehook = lambda unraisable: swallowed.append(unraisable.exc_type)
tcuda.init()

def dropped():
    {dropped}

def drop():
    while True:
        dropped()

dropped()
handled = delivered = 0

def interrupt(number, frame):
    global handled
    handled += 1
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
for _ in range({count}):
    try:
        # Python may overlook a signal until the next one (CPython 3.11, on a busy machine), so the timer strikes again.
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 3e-3), 1)
        drop()
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        delivered += 1
print(handled == delivered, swallowed)
"""

DROPPING = {
    "graph": "g = tcuda.CUDAGraph()\n    with tcuda.graph(g, capture_error_mode='relaxed'): x.fill(1)",
    "event": "e = tcuda.Event(); e.record()",
    "stream": "tcuda.Stream()",
    "array": "xp.empty(8)",
    "pool": "tcuda.MemPool()",
    "pinned": "tcuda.memory.empty_pinned(8)",
    "measurement": "u = tcuda.memory.track(); u.__enter__()",
}


@pytest.mark.parametrize("name", DROPPING)
def test_an_interrupt_in_a_destructor_is_raised_afterwards(name: str, output_of: OutputOf) -> None:
    program = DROPPED.format(dropped=DROPPING[name], count=100).replace(
        "swallowed = []", "x = xp.zeros(8)\nswallowed = []"
    )
    assert output_of(program) == "True []"
