"""Processes that end with memory in use, and frees at unusual moments, print no error and do not crash."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import tcuda
from support.folders import DATA
from support.garbage import collect_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import RunPython

BACKENDS = ["backend:native", "expandable_segments:False", "backend:cupy", "backend:cudaMallocAsync"]


@pytest.fixture
def ends_well(run_python: RunPython) -> Callable[..., None]:
    """Run a program that prints "end" last, and check that the exit of the process succeeds without a message."""

    def check(program: str, **environment: str | None) -> None:
        code = "import atexit\nimport tcuda\nfrom tcuda import xp\n" + program
        done = run_python(code, PYTHONPATH=str(DATA), **environment)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1] == "end"

    return check


class TestExit:
    @pytest.mark.long
    @pytest.mark.parametrize("settings", BACKENDS)
    def test_with_live_arrays_everywhere(self, ends_well: Callable[..., None], settings: str) -> None:
        program = """
import builtins, sys
in_module = [xp.ones(1000), xp.empty(30 << 20, "B")]
builtins.for_ever = [xp.ones(1000), in_module]
sys.mine = xp.ones(1000)[5:]
with tcuda.stream(tcuda.Stream()):
    on_a_stream = xp.ones(1000)
    tcuda._sleep(1_000_000)
with tcuda.device(tcuda.device_count() - 1):
    elsewhere = xp.ones(1000)
recorded = xp.ones(1000)
tcuda.memory.record_stream(recorded, tcuda.Stream())
buffer = tcuda.caching_allocator_alloc(1000)
class Keeper:
    arrays = {"one": xp.ones(10)}
    def method(self, default=xp.ones(10)): pass
print("end")
"""
        ends_well(program, TCUDA_ALLOC_CONF=settings)

    def test_with_arrays_in_cycles(self, ends_well: Callable[..., None]) -> None:
        program = """
import gc
gc.disable()
class Node:
    def __init__(self):
        self.array, self.me = xp.ones(1000), self
    def __del__(self):
        self.array = None
nodes = [Node() for _ in range(10)]
del nodes[:5]
late = Node()
print("end")
"""
        ends_well(program)

    def test_with_live_pools_and_arrays_that_outlive_them(self, ends_well: Callable[..., None]) -> None:
        program = """
import builtins
pool, gone = tcuda.MemPool(), tcuda.MemPool()
with tcuda.use_mem_pool(pool):
    inside = xp.ones(1000)
with tcuda.use_mem_pool(gone):
    builtins.orphan = xp.ones(1000)
del gone
builtins.another = tcuda.MemPool()
empty = tcuda.MemPool()
print("end")
"""
        ends_well(program)

    def test_in_the_scope_of_a_pool(self, ends_well: Callable[..., None]) -> None:
        program = """
import builtins, contextlib
stack = contextlib.ExitStack()
stack.enter_context(tcuda.use_mem_pool(tcuda.MemPool()))
builtins.other = contextlib.ExitStack()
builtins.other.enter_context(tcuda.use_mem_pool(tcuda.MemPool()))
array = xp.ones(1000)
print("end")
"""
        ends_well(program)

    def test_with_the_history_on(self, ends_well: Callable[..., None]) -> None:
        program = """
import builtins
tcuda.memory._record_memory_history()
tcuda.memory._set_memory_metadata("to the end")
def allocate():
    return xp.ones(1000)
builtins.array = allocate()
array = allocate()
snapshot = tcuda.memory._snapshot()
print("end")
"""
        ends_well(program)

    @pytest.mark.parametrize("gone", ["", "del library, allocator, Plugged, plugged\nimport gc; gc.collect()"])
    def test_with_a_library_plugged_in(self, ends_well: Callable[..., None], plugged_path: str, gone: str) -> None:
        program = f"""
import builtins
import plugged
from plugged import Plugged
library = Plugged({plugged_path!r})
allocator = library.allocator
tcuda.change_current_allocator(allocator)
builtins.array = xp.ones(1000)
array = xp.ones(1000)
with tcuda.use_mem_pool(tcuda.MemPool(allocator)):
    inside = xp.ones(1000)
builtins.pool = tcuda.MemPool(allocator)
with tcuda.use_mem_pool(builtins.pool):
    builtins.inside = xp.ones(1000)
{gone}
print("end")
"""
        ends_well(program)

    def test_with_functions_of_python_plugged_in(self, ends_well: Callable[..., None]) -> None:
        program = """
import ctypes
from tcuda import _core
from tcuda._process.lazy import cuda
from tcuda.memory import _CUDAAllocator
take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(
    lambda size, device, stream: cuda.malloc(size))
give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)(
    lambda address, size, device, stream: cuda.free(address))
addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in (take, give)]
allocator = _CUDAAllocator(_core.LibrarySource(*addresses, (take, give)))
pool = tcuda.MemPool(allocator)
with tcuda.use_mem_pool(pool):
    array = xp.ones(1000)
print("end")
"""
        ends_well(program)

    def test_in_the_middle_of_a_measurement(self, ends_well: Callable[..., None]) -> None:
        program = """
import builtins, contextlib
usage = tcuda.memory.track()
usage.__enter__()
stack = contextlib.ExitStack()
stack.enter_context(tcuda.memory.track(thread=True))
builtins.arrays = [xp.ones(1000)]
arrays = [xp.ones(1000) for _ in range(20)]
cycle = [xp.ones(1000)]
cycle.append(cycle)
def steps():
    with tcuda.memory.track():
        yield xp.ones(1000)
generator = steps()
next(generator)
print("end")
"""
        ends_well(program)

    def test_with_atexit_handlers_that_use_memory(self, ends_well: Callable[..., None]) -> None:
        program = """
array = xp.ones(1000)
def early():
    global array
    del array
    kept.append(xp.ones(30 << 20, "B"))
    tcuda.empty_cache()
    with tcuda.use_mem_pool(tcuda.MemPool()):
        kept.append(float(xp.ones(1000).sum()))
    print(tcuda.memory_stats()["allocation.all.current"] > 0, tcuda.memory_summary()[:1])
    print("end")
kept = []
atexit.register(early)
"""
        ends_well(program)

    def test_with_atexit_handlers_that_run_after_tcudas(self, ends_well: Callable[..., None]) -> None:
        # The handler that is registered first runs last. tcuda registers its own handler at initialisation.
        program = """
def late():
    array[:] = []
    print("end")
atexit.register(late)
array = [xp.ones(1000)]
"""
        ends_well(program)

    def test_after_the_exit_a_library_gets_no_memory_back(
        self, ends_well: Callable[..., None], plugged_path: str
    ) -> None:
        program = f"""
from plugged import Plugged
def late():
    frees = len(library.frees())
    array.clear()
    assert tcuda.memory_allocated() == 0
    assert len(library.frees()) == frees
    print("end")
atexit.register(late)
library = Plugged({plugged_path!r})
tcuda.change_current_allocator(library.allocator)
array = [xp.ones(1000)]
xp.empty(1000)
"""
        ends_well(program)

    def test_with_weakref_callbacks_that_free_and_allocate(self, ends_well: Callable[..., None]) -> None:
        program = """
import weakref
class Thing:
    pass
arrays = [xp.ones(1000) for _ in range(3)]
thing, other = Thing(), Thing()
references = [weakref.ref(thing, lambda _: arrays.pop()), weakref.ref(other, lambda _: arrays.append(xp.ones(10)))]
weakref.finalize(thing, arrays.clear)
del other
print("end")
"""
        ends_well(program)

    def test_with_an_observer_and_a_kept_error(self, ends_well: Callable[..., None]) -> None:
        program = """
facts = []
tcuda.memory.attach_out_of_memory_observer(lambda *told: facts.append(xp.ones(10)))
try:
    xp.empty(1 << 50, "B")
except tcuda.OutOfMemoryError as error:
    kept = error
print("end")
"""
        ends_well(program)

    def test_without_anything_allocated(self, ends_well: Callable[..., None]) -> None:
        ends_well("tcuda.init()\nprint('end')")
        ends_well("tcuda.empty_cache()\nprint('end')")


class TestDaemonThreads:
    """Threads that the end of the interpreter stops inside the core; before Python 3.14 their stacks are unwound."""

    RUNS = 4  # runs of each program, because a thread is not inside the core at the end of every run

    LOOPS: ClassVar = {
        "arrays": "kept = [*kept[-10:], xp.empty(1000, 'B')]",
        "the cache": "xp.empty(1000, 'B'); tcuda.empty_cache()",
        "pools": """
with tcuda.use_mem_pool(tcuda.MemPool()):
    xp.empty(1000, "B")
""",
        # The threads take turns, so that a thread may be stopped while it waits to capture.
        "captures": """
with turn:
    graph = tcuda.CUDAGraph()
    with tcuda.stream(stream):
        graph.capture_begin(capture_error_mode="relaxed")
        array = xp.ones(10)
        graph.capture_end()
    graph.replay()
    graph = array = None
""",
        "a lack of memory": """
try:
    xp.empty(1 << 50, "B")
except tcuda.OutOfMemoryError:
    pass
""",
        "uses by other streams": """
array = xp.empty(1000, "B")
tcuda.memory.record_stream(array, stream)
del array
""",
        "statistics": "tcuda.memory_stats(); tcuda.memory_snapshot()",
        "operations of NumPy, which let other threads run": "xp.cumsum(xp.ones(30000))",
        "numbers that Python makes": """
class Number:
    def __index__(self):
        return sum(range(100))
_core.EmulatedMemory(Number())
""",
        "owners that Python drops": """
class Owner:
    def __del__(self):
        sum(range(100))
_core.LibrarySource(0, 0, Owner())
""",
    }

    @staticmethod
    def program(loop: str) -> str:
        """Return a program that ends while four threads repeat ``loop``."""
        indented = "\n        ".join(loop.strip().splitlines())
        return f"""
import os, sys, threading
from tcuda import _core
sys.setswitchinterval(1e-5)
tcuda.init()
turn = threading.Lock()
def fail(raised):  # a thread that fails does not set its event
    print(repr(raised.exc_value), file=sys.stderr, flush=True)
    os._exit(1)
threading.excepthook = fail
def work(going):
    stream, kept, turns = tcuda.Stream(), [], 0
    while True:
        {indented}
        turns += 1
        if turns == 3:
            going.set()
events = [threading.Event() for _ in range(4)]
for event in events:
    threading.Thread(target=work, args=(event,), daemon=True).start()
for event in events:
    event.wait()
print("end", flush=True)
"""

    @pytest.mark.long
    @pytest.mark.parametrize("loop", LOOPS)
    def test_a_thread_may_be_stopped_inside_each_call(self, ends_well: Callable[..., None], loop: str) -> None:
        for _ in range(self.RUNS):
            ends_well(self.program(self.LOOPS[loop]))

    @pytest.mark.long
    @pytest.mark.parametrize("settings", BACKENDS[1:])
    def test_a_thread_may_be_stopped_inside_each_backend(self, ends_well: Callable[..., None], settings: str) -> None:
        for loop in ("arrays", "the cache"):
            for _ in range(self.RUNS // 2):
                ends_well(self.program(self.LOOPS[loop]), TCUDA_ALLOC_CONF=settings)


class TestFork:
    def test_a_child_may_free_what_the_parent_allocated(self, ends_well: Callable[..., None]) -> None:
        program = """
import gc, os, sys, warnings
warnings.simplefilter("ignore")  # Python warns when a process with threads forks
arrays = [xp.ones(1000) for _ in range(10)]
pool = tcuda.MemPool()
with tcuda.use_mem_pool(pool):
    inside = xp.ones(1000)
usage = tcuda.memory.track()
usage.__enter__()
tcuda.memory._record_memory_history()
core = tcuda._process.ledger.ledger()
before = tcuda.memory_stats()
child = os.fork()
if child == 0:
    address = arrays[9].data.ptr
    del arrays[:5], inside, pool, usage
    gc.collect()
    assert core.free(address) and core.free(address)  # in a child, free() does nothing for every address
    assert tcuda.memory_allocated() == 0
    for call in (lambda: xp.empty(1000), lambda: tcuda.caching_allocator_delete(address)):
        try:
            call()
        except RuntimeError as error:
            # CuPy asks CUDA for the device before it asks for memory.
            assert "forked subprocess" in str(error) or "initialization error" in str(error), error
        else:
            os._exit(2)
    print("end")
    sys.exit(0)  # runs all exit handlers
assert os.waitpid(child, 0)[1] == 0
assert tcuda.memory_stats() == before
del arrays[:5], inside, pool
assert float(sum(array.sum() for array in arrays)) == 5000
print("end")
"""
        ends_well(program)

    def test_a_child_may_fork_while_another_thread_allocates(self, ends_well: Callable[..., None]) -> None:
        program = """
import os, threading, warnings
warnings.simplefilter("ignore")
arrays = [xp.ones(1000) for _ in range(10)]
stop = threading.Event()
def work():
    while not stop.is_set():
        xp.empty(1000, "B")
thread = threading.Thread(target=work)
thread.start()
core = tcuda._process.ledger.ledger()
addresses = [array.data.ptr for array in arrays]
for _ in range(10):
    child = os.fork()
    if child == 0:
        del arrays
        os._exit(0 if all(map(core.free, addresses + addresses)) else 2)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
print("end")
"""
        ends_well(program)


@pytest.mark.usefixtures("allocator_as_found")
class TestCollecting:
    """Frees by the garbage collector, which may run at any moment."""

    @pytest.fixture
    def eager(self) -> Iterator[None]:
        """Let the garbage collector run as often as possible."""
        before = gc.get_threshold()
        gc.set_threshold(1, 1, 1)
        yield
        gc.set_threshold(*before)

    @staticmethod
    def drop_cycle(xp: Any, size: int) -> None:
        cycle: list[Any] = [xp.empty(size, "B")]
        cycle.append(cycle)

    def test_a_collection_may_run_inside_every_call(self, xp: Any, eager: None) -> None:
        tcuda.memory._record_memory_history(max_entries=100)
        try:
            with tcuda.memory.track() as usage:
                for turn in range(60):
                    self.drop_cycle(xp, 1000 * (turn + 1))
                    kept = xp.empty(5000, "B")
                    tcuda.memory_stats()
                    tcuda.memory._snapshot()
                    with tcuda.use_mem_pool(tcuda.MemPool()):
                        self.drop_cycle(xp, 3 << 20)
                    with pytest.raises(tcuda.OutOfMemoryError):
                        xp.empty(1 << 50, "B")
                    tcuda.empty_cache()
                del kept
                collect_until(lambda: usage.current == 0)
            assert usage.current == 0
            assert usage.allocations == 180
        finally:
            tcuda.memory._record_memory_history(None)

    def test_a_finalizer_may_allocate(self, xp: Any, eager: None) -> None:
        made: list[int] = []

        class Node:
            def __init__(self) -> None:
                self.array, self.me = xp.ones(1000, "f4"), self

            def __del__(self) -> None:
                made.append(int((self.array + 1).sum()))

        for _ in range(30):
            Node()
            xp.empty(1000, "B")
        collect_until(lambda: len(made) == 30)
        assert made == [2000] * 30

    def test_a_callback_of_a_weak_reference_may_free_and_allocate(self, xp: Any) -> None:
        class Thing:
            pass

        arrays = [xp.empty(1000, "B") for _ in range(5)]
        references = []
        for _ in range(5):
            thing = Thing()
            references.append(weakref.ref(thing, lambda _: (arrays.pop(), xp.empty(2000, "B"))))
            del thing
        assert arrays == []
