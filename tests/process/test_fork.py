"""A forked child of an initialised process: each use of an object of the parent raises torch's error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

OBJECTS = """
import gc, os, sys, warnings
import tcuda
from tcuda import xp

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns when a process with threads forks
stream, default = tcuda.Stream(), tcuda.default_stream()
event = stream.record_event()
timed = tcuda.Event(enable_timing=True)
timed.record()
unrecorded = tcuda.Event()
tcuda.synchronize()
pool, other_pool = tcuda.MemPool(), tcuda.MemPool()
x = xp.ones(8)
graph, random_graph, kept_graph, empty_graph = (tcuda.CUDAGraph(keep_graph=keep) for keep in (0, 0, 1, 0))
with tcuda.graph(graph):
    y = x + 1
with tcuda.graph(random_graph):
    z = xp.random.random(8)
with tcuda.graph(kept_graph):
    w = x + 2
kept_graph.instantiate()
graph.replay()
generator = tcuda.default_generators[0]
own_generator = tcuda.Generator()
state = generator.get_state()
address = tcuda.memory.caching_allocator_alloc(512)
tracked = tcuda.memory.track()
tracked.__enter__()
inside = tcuda.memory.track()
properties = tcuda.get_device_properties(0)
in_stream, in_device = tcuda.stream(stream), tcuda.device(0)
tcuda.temperature()

def in_block(context):
    with context:
        pass

def begin(graph):
    with tcuda.stream(tcuda.Stream()):
        graph.capture_begin()

USES = {
    name: use
    for name, use in {
        "graph.replay": graph.replay,
        "random_graph.replay": random_graph.replay,
        "kept_graph.replay": kept_graph.replay,
        "kept_graph.instantiate": kept_graph.instantiate,
        "graph.reset": graph.reset,
        "graph.capture_begin": lambda: begin(empty_graph),
        "graph.debug_dump": lambda: kept_graph.enable_debug_mode() or kept_graph.debug_dump("graph.dot"),
        "event.record": event.record,
        "event.record(stream)": lambda: event.record(stream),
        "event.wait": event.wait,
        "event.wait(stream)": lambda: event.wait(stream),
        "event.query": event.query,
        "event.synchronize": event.synchronize,
        "event.elapsed_time": lambda: timed.elapsed_time(timed),
        "event.ipc_handle": lambda: tcuda.Event(interprocess=True).ipc_handle(),
        "unrecorded.record": unrecorded.record,
        "Stream": tcuda.Stream,
        "Stream(0)": lambda: tcuda.Stream(0),
        "ExternalStream": lambda: tcuda.ExternalStream(stream.cuda_stream, device=0),
        "stream.query": stream.query,
        "stream.synchronize": stream.synchronize,
        "stream.wait_event": lambda: stream.wait_event(event),
        "stream.wait_stream": lambda: stream.wait_stream(default),
        "stream.record_event": stream.record_event,
        "stream.priority": lambda: stream.priority,
        "stream.is_capturing": stream.is_capturing,
        "with stream": lambda: in_block(stream),
        "tcuda.stream": lambda: in_block(in_stream),
        "tcuda.device": lambda: in_block(in_device),
        "set_stream": lambda: tcuda.set_stream(stream),
        "set_device": lambda: tcuda.set_device(0),
        "current_stream": tcuda.current_stream,
        "current_stream(0)": lambda: tcuda.current_stream(0),
        "default_stream": tcuda.default_stream,
        "default_stream(0)": lambda: tcuda.default_stream(0),
        "current_device": tcuda.current_device,
        "synchronize": tcuda.synchronize,
        "get_device_properties(0)": lambda: tcuda.get_device_properties(0),
        "get_device_name(0)": lambda: tcuda.get_device_name(0),
        "mem_get_info": tcuda.mem_get_info,
        "temperature": tcuda.temperature,
        "MemPool": tcuda.MemPool,
        "MemPool.snapshot": pool.snapshot,
        "MemPool.use_count": pool.use_count,
        "use_mem_pool": lambda: in_block(tcuda.use_mem_pool(pool)),
        "use_mem_pool(device=0)": lambda: in_block(tcuda.use_mem_pool(pool, device=0)),
        "graph_pool_handle": tcuda.graph_pool_handle,
        "caching_allocator_alloc": lambda: tcuda.memory.caching_allocator_alloc(512),
        "caching_allocator_delete": lambda: tcuda.memory.caching_allocator_delete(address),
        "caching_allocator_disabled": lambda: in_block(tcuda.memory.caching_allocator_disabled()),
        "record_stream": lambda: tcuda.memory.record_stream(x, stream),
        "track.usage": lambda: tracked.usage,
        "track": lambda: in_block(inside),
        "get_rng_state": tcuda.get_rng_state,
        "generator.random": lambda: tcuda.random.default_rng(0).random(8),
        "own_generator.random": lambda: own_generator.random(8),
        "Generator": lambda: tcuda.Generator(0),
        "fork_rng": lambda: in_block(tcuda.random.fork_rng()),
        "initial_seed": tcuda.initial_seed,
        "default_generators": lambda: tcuda.default_generators[0],
    }.items()
}
ARRAY_USES = {
    "x + 1": lambda: x + 1,
    "x.get": x.get,
    "x.copy": x.copy,
    "x.fill": lambda: x.fill(1),
    "x[0]": lambda: x[0],
    "x[...] = 1": lambda: x.__setitem__(..., 1),
    "float(x.sum())": lambda: float(x.sum()),
    "xp.ones": lambda: xp.ones(8),
    "xp.random.random": lambda: xp.random.random(8),
}

def in_child(do):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            do()
            sys.stdout.flush()
        except BaseException as error:
            print("the child failed:", repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def try_all(uses):
    for name, use in uses.items():
        try:
            found = use()
        except RuntimeError as error:
            if "Cannot re-initialize CUDA in forked subprocess" not in str(error):
                print(name, "raised", repr(error))
        except BaseException as error:
            print(name, "raised", repr(error))
        else:
            print(name, "returned", found)
"""


def test_every_use_of_an_object_of_the_parent_raises_torchs_error(fresh_output_of: OutputOf) -> None:
    assert fresh_output_of(f"{OBJECTS}\nin_child(lambda: try_all(USES))\nprint('done')") == "done"


@pytest.mark.emulated  # on CUDA the arrays are CuPy's and raise CuPy's errors
def test_every_use_of_an_emulated_array_of_the_parent_raises_torchs_error(fresh_output_of: OutputOf) -> None:
    assert fresh_output_of(f"{OBJECTS}\nin_child(lambda: try_all(ARRAY_USES))\nprint('done')") == "done"


def test_the_state_of_a_generator_can_be_read_and_set_because_it_is_on_the_host(fresh_output_of: OutputOf) -> None:
    code = """
def keep():
    seed = int.from_bytes(bytes(state[:8]), "little")
    assert (generator.get_state() == state).all() and generator.initial_seed() == seed
    generator.set_state(state)

in_child(keep)
print("done")
"""
    assert fresh_output_of(OBJECTS + code) == "done"


def test_dropping_objects_of_the_parent_calls_no_runtime_function_and_the_parent_goes_on(
    fresh_output_of: OutputOf,
) -> None:
    code = """
def drop():
    calls = []
    def tell(name):
        def call(*args, **kwargs):
            calls.append(name)
        return call
    for name in dir(runtime):
        if name[0] != "_" and callable(getattr(runtime, name)):
            setattr(runtime, name, tell(name))
    runtime.eventDestroy(0)
    assert calls == ["eventDestroy"]
    calls.clear()
    USES.clear()
    ARRAY_USES.clear()
    for name in [name for name in globals() if name not in KEPT]:
        del globals()[name]
    gc.collect()
    assert not calls, calls

runtime = tcuda._runtime.runtime()
KEPT = {name for name in globals() if name[:2] == "__"} | {"tcuda", "gc", "os", "sys"}
in_child(drop)
graph.replay()
random_graph.replay()
with tcuda.use_mem_pool(pool), tcuda.stream(stream):
    a = xp.ones(8)
event.synchronize()
stream.synchronize()
assert event.query() and float(a.sum()) == 8 and tracked.allocations >= 1 and float(y.sum()) == 16
print("done")
"""
    assert fresh_output_of(OBJECTS + code) == "done"


@pytest.mark.emulated  # CUDA must not be initialised before the fork, and the question for the devices may do so
def test_each_child_of_a_process_that_has_used_no_device_has_devices_of_its_own(fresh_output_of: OutputOf) -> None:
    code = """
import os
import tcuda
assert tcuda.device_count()
for _ in range(2):
    child = os.fork()
    if not child:
        print(float(tcuda.xp.arange(4.0).sum()), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
print(float(tcuda.xp.arange(5.0).sum()))
"""
    assert fresh_output_of(code).splitlines() == ["6.0", "6.0", "10.0"]
