"""Memory from a shared library, for the whole process or for a pool."""

from __future__ import annotations

import ctypes
import gc
import json
import shutil
import subprocess
import weakref
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import tcuda
from support.folders import DATA, REPOSITORY
from support.sizes import MIB
from tcuda import _core
from tcuda.memory._allocators import _CUDAAllocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.fixture_types import Changes, CompiledCpp, HoldAtMost, OutputOf
    from tcuda._runtime.protocol import Runtime


class TestWholeProcess:
    """The library gives all memory: each test starts a process, which reports the calls of the library."""

    @pytest.fixture
    def told(self, output_of: OutputOf, plugged_path: str) -> Callable[[str], Any]:
        """Run a program that can use ``library``, and return the value that the program assigns to ``told``."""

        def run(program: str) -> Any:
            code = f"""
import json, tcuda
from plugged import Plugged
library = Plugged({plugged_path!r})
{program}
print(json.dumps(told))
"""
            return json.loads(output_of(code, PYTHONPATH=str(DATA)))

        return run

    def test_the_allocator_can_be_changed_before_the_first_allocation(self, told: Callable[[str], Any]) -> None:
        program = """
told = [tcuda.get_allocator_backend()]
tcuda.change_current_allocator(library.allocator)
told.append(tcuda.get_allocator_backend())
told.append(tcuda.is_initialized())
x = tcuda.xp.ones(1000, "f4")
told.append(len(library.live()))
told.append(tcuda.get_allocator_backend())
told.append(tcuda.memory._get_current_allocator().allocator() is library.allocator.allocator())
del x
told.append(library.live())
"""
        assert told(program) == ["native", "pluggable", False, 1, "pluggable", True, []]

    def test_contents_can_be_copied_to_the_host_and_back(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
x = tcuda.xp.asarray([1, 2, 3])
told = (x * 2).tolist()
"""
        assert told(program) == [2, 4, 6]

    def test_arrays_in_a_pool_of_the_library_have_the_right_contents(self, told: Callable[[str], Any]) -> None:
        program = """
with tcuda.use_mem_pool(tcuda.MemPool(library.allocator)):
    arrays = [tcuda.xp.arange(size) for size in (1000, 300_000)]
told = [int((array * 2).sum()) for array in arrays]
"""
        assert told(program) == [999_000, 299_999 * 300_000]

    def test_memory_of_the_library_is_memory_of_the_device_until_the_library_has_it_back(
        self, told: Callable[[str], Any]
    ) -> None:
        program = """
from tcuda._process.lazy import cuda
pool = tcuda.MemPool(library.allocator)
with tcuda.use_mem_pool(pool):
    x = tcuda.xp.asarray([1, 2, 3])
address = x.data.ptr
told = [x.tolist(), cuda.pointerGetDevice(address)]
del x
told.append(cuda.pointerGetDevice(address))
del pool
tcuda.empty_cache()
told += [len(library.live()), cuda.pointerGetDevice(address) if tcuda.xp.__name__.startswith("tcuda") else -1]
"""
        assert told(program) == [[1, 2, 3], 0, 0, 0, -1]

    def test_the_allocator_can_be_changed_after_initialisation(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.init()
tcuda.empty_cache()
tcuda.memory_stats()
tcuda.change_current_allocator(library.allocator)
x = tcuda.xp.empty(1000)
told = len(library.live())
"""
        assert told(program) == 1

    def test_the_library_gets_the_size_the_device_and_the_current_stream(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
last, side = tcuda.device_count() - 1, tcuda.Stream()
arrays = [tcuda.xp.empty(1000, "B")]
with tcuda.stream(side):
    arrays.append(tcuda.xp.empty(12_000_001, "B"))
with tcuda.device(last):
    arrays.append(tcuda.xp.empty(513, "B"))
address = tcuda.caching_allocator_alloc(77, last, 1)
pointers = [array.data.ptr for array in arrays] + [address]
expected = [[0, 1000, 0, 0], [0, 12_000_001, 0, side.cuda_stream], [0, 513, last, 0], [0, 77, last, 0]]
expected = [call + [pointer] for call, pointer in zip(expected, pointers)]
calls = library.calls()
with tcuda.stream(side):
    del arrays[:]
tcuda.caching_allocator_delete(address)
told = [calls == [tuple(call) for call in expected], library.live(), len(library.frees())]
"""
        assert told(program) == [True, [], 4]

    def test_memory_of_the_library_is_counted(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
xp = tcuda.xp
kept = [xp.empty(1000, "B"), xp.empty(3000, "B"), xp.empty(5_000_000, "B")]
names = ["allocation", "allocated_bytes", "requested_bytes", "active", "segment", "reserved_bytes", "inactive_split"]
def figures():
    stats = tcuda.memory_stats()
    return [stats[f"{name}.all.current"] for name in names] + [stats["num_device_alloc"], stats["num_device_free"]]
told = [figures(), tcuda.memory_stats()["segment.large_pool.current"]]
segments = tcuda.memory_snapshot()
told.append([(s["total_size"], s["segment_type"], [b["state"] for b in s["blocks"]]) for s in segments])
told[-1].sort()
del kept[1]
told.append(figures())
with tcuda.memory.track() as usage:
    xp.empty(700, "B")
told.append(usage.usage[:5])
del kept
told.append(figures())
"""
        total = 1000 + 3000 + 5_000_000
        state = ["active_allocated"]
        assert told(program) == [
            [3, total, total, 3, 3, total, 0, 3, 0],
            1,
            [[1000, "small", state], [3000, "small", state], [5_000_000, "large", state]],
            [2, total - 3000, total - 3000, 2, 2, total - 3000, 0, 3, 1],
            [0, 700, 700, 700, 1],
            [0, 0, 0, 0, 0, 0, 0, 4, 4],
        ]

    def test_a_null_pointer_of_the_library_is_an_out_of_memory_error(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
xp = tcuda.xp
library.refuse_above(10_000)
try:
    xp.empty(20_000, "B")
except tcuda.OutOfMemoryError as error:
    told = [str(error).partition(". GPU")[0]]
stats = tcuda.memory_stats()
told += [stats[key] for key in ("num_ooms", "num_alloc_retries", "allocation.all.allocated", "segment.all.allocated")]
told.append([call.size for call in library.calls()])
xp.empty(10_000, "B")
library.refuse_above(None)
xp.empty(20_000, "B")
told.append([call.size for call in library.frees()])
"""
        result = told(program)
        assert result[:5] == ["CUDA out of memory. Tried to allocate 19.53 KiB", 1, 1, 0, 0]
        assert result[5] == [20_000, 20_000]  # the second call follows after all free memory was given back
        assert result[6:] == [[10_000, 20_000]]

    def test_an_address_in_use_that_the_library_returns_again_is_refused(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
xp = tcuda.xp
kept = xp.empty(1000, "B")
before = tcuda.memory_stats()
library.repeat(kept.data.ptr)
try:
    xp.empty(2000, "B")
except RuntimeError as error:
    told = [type(error).__name__, str(error).replace(hex(kept.data.ptr), "ADDRESS")]
library.repeat(None)
after = tcuda.memory_stats()
told.append([key for key in after if after[key] != before[key]])
told.append(library.frees())
xp.empty(3000, "B")
del kept
told.append([call.size for call in library.frees()])
told.append(tcuda.memory_allocated())
"""
        assert told(program) == [
            "RuntimeError",
            "The allocator returned ADDRESS, which it had returned before and which is still in use. Its alloc "
            "function must return memory of its own for every call.",
            [],
            [],
            [3000, 1000],
            0,
        ]

    def test_a_segment_in_use_that_the_library_returns_again_is_refused(self, told: Callable[[str], Any]) -> None:
        program = """
pool = tcuda.MemPool(library.allocator)
xp = tcuda.xp
with tcuda.use_mem_pool(pool):
    kept = xp.empty(1000, "B")
    before = tcuda.memory_stats()
    library.repeat(kept.data.ptr)
    told = ["nothing raised"]
    try:
        xp.empty(3 << 20, "B")
    except RuntimeError as error:
        told = [str(error).replace(hex(kept.data.ptr), "ADDRESS").partition(" and which")[0]]
    library.repeat(None)
    after = tcuda.memory_stats()
    told.append([key for key in after if after[key] != before[key] and not key.startswith("num")])
    del kept
    told.append(tcuda.memory_allocated())
"""
        assert told(program) == ["The allocator returned ADDRESS, which it had returned before", [], 0]

    def test_the_allocator_cannot_be_changed_after_the_first_allocation(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.xp.empty(1000)
try:
    tcuda.change_current_allocator(library.allocator)
except RuntimeError as error:
    told = [str(error)]
told.append(tcuda.get_allocator_backend())
tcuda.xp.empty(1000)
told.append(library.calls())
"""
        text, backend, calls = told(program)
        assert text.startswith("Can't swap an already initialized allocator: memory was allocated before.")
        assert (backend, calls) == ("native", [])

    def test_the_allocator_cannot_be_changed_after_an_allocation_of_the_library(
        self, told: Callable[[str], Any]
    ) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
tcuda.change_current_allocator(library.allocator)
tcuda.xp.empty(1000)
try:
    tcuda.change_current_allocator(library.allocator)
except RuntimeError as error:
    told = str(error)[:43]
"""
        assert told(program) == "Can't swap an already initialized allocator"

    def test_memory_that_another_stream_uses_is_freed_when_the_stream_is_done(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
side = tcuda.Stream()
x = tcuda.xp.empty(1000)
with tcuda.stream(side):
    tcuda._sleep(100_000_000)
tcuda.memory.record_stream(x, side)
del x
told = [len(library.live()), tcuda.memory_stats()["active.all.current"]]
side.synchronize()
tcuda.empty_cache()
told += [len(library.live()), tcuda.memory_stats()["active.all.current"]]
"""
        assert told(program) == [1, 1, 0, 0]

    def test_the_memory_fraction_limits_the_memory_of_the_library(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
total = tcuda.mem_get_info()[1]
tcuda.set_per_process_memory_fraction(40_000_000 / total)
kept = tcuda.xp.empty(30_000_000, "B")
try:
    tcuda.xp.empty(30_000_000, "B")
except tcuda.OutOfMemoryError as error:
    told = ["by set_per_process_memory_fraction()" in str(error), len(library.calls())]
del kept
kept = tcuda.xp.empty(30_000_000, "B")
"""
        assert told(program) == [True, 1]

    def test_without_the_cache_the_library_is_not_called(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
with tcuda.caching_allocator_disabled():
    apart = tcuda.xp.empty(1000)
kept = tcuda.xp.empty(1000)
told = [len(library.live())]
del apart
told.append(len(library.live()))
"""
        assert told(program) == [1, 1]

    def test_threads_may_allocate_at_once(self, told: Callable[[str], Any]) -> None:
        program = """
import threading
tcuda.change_current_allocator(library.allocator)
together = threading.Barrier(4)
def churn():
    together.wait()
    with tcuda.stream(tcuda.Stream()):
        for size in range(1, 100):
            tcuda.xp.empty(size, "B")
threads = [threading.Thread(target=churn) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
told = [library.live(), sorted(call.size for call in library.frees()) == sorted([*range(1, 100)] * 4)]
"""
        assert told(program) == [[], True]

    def test_the_history_records_memory_of_the_library(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
tcuda.memory._record_memory_history()
tcuda.xp.empty(1000, "B")
told = [(e["action"], e["size"]) for e in tcuda.memory._snapshot()["device_traces"][0]]
"""
        assert told(program) == [
            ["segment_alloc", 1000],
            ["alloc", 1000],
            ["free_requested", 1000],
            ["free_completed", 1000],
            ["segment_free", 1000],
        ]

    def test_callbacks_can_let_the_library_find_memory(self, told: Callable[[str], Any]) -> None:
        program = """
tcuda.change_current_allocator(library.allocator)
library.refuse_above(1 << 20)
sizes = []
def allow(device, size):
    sizes.append(size)
    library.refuse_above(None)
    return True  # without a free
with tcuda.memory.on_out_of_memory(allow):
    x = tcuda.xp.ones(1 << 18)
told = [sizes, len(library.live()), tcuda.memory_stats()["num_ooms"]]
"""
        assert told(program) == [[2 << 20], 1, 0]


class TestLoading:
    def test_a_missing_library_is_refused(self) -> None:
        with pytest.raises(OSError, match="nowhere.so: cannot open shared object file"):
            tcuda.CUDAPluggableAllocator("./nowhere.so", "alloc", "free")

    @pytest.mark.parametrize(
        ("names", "missing"), [(("no_alloc", "logged_free"), "no_alloc"), (("logged_alloc", "no_free"), "no_free")]
    )
    def test_a_missing_function_is_refused(self, plugged_path: str, names: tuple[str, str], missing: str) -> None:
        with pytest.raises(AttributeError, match=f"undefined symbol: {missing}"):
            tcuda.CUDAPluggableAllocator(plugged_path, *names)

    def test_a_misspelt_function_is_named(self, plugged_path: str) -> None:
        with pytest.raises(AttributeError, match="with names like this: logged_alloc"):
            tcuda.CUDAPluggableAllocator(plugged_path, "loged_alloc", "logged_free")

    def test_a_function_with_the_name_of_a_cpp_function_is_named(self, compiled_cpp: CompiledCpp) -> None:
        path = compiled_cpp("mangled_allocator")
        with pytest.raises(AttributeError, match=r'exports _Z\d+plain_alloc\w+: .* Declare it as extern "C"'):
            tcuda.CUDAPluggableAllocator(path, "plain_alloc", "plain_free")

    def test_loading_a_library_initialises_nothing(self, output_of: OutputOf, plugged_path: str) -> None:
        program = f"""
import tcuda
a = tcuda.CUDAPluggableAllocator({plugged_path!r}, "logged_alloc", "logged_free")
tcuda.change_current_allocator(a)
print(tcuda.is_initialized(), isinstance(a, tcuda.memory._CUDAAllocator), type(a.allocator()).__name__)
"""
        assert output_of(program) == "False True LibrarySource"

    @pytest.mark.parametrize("what", [None, 5, "native", object()])
    def test_only_an_allocator_can_become_the_current_allocator(self, what: Any) -> None:
        with pytest.raises(TypeError, match=f"got {type(what).__name__}."):
            tcuda.change_current_allocator(what)

    def test_the_native_allocator_cannot_be_chosen_again(self, runtime: Runtime) -> None:
        assert tcuda.memory._get_current_allocator().allocator() is None
        with pytest.raises(RuntimeError, match="Can't swap an already initialized allocator"):
            tcuda.change_current_allocator(tcuda.memory._get_current_allocator())


@pytest.mark.usefixtures("allocator_as_found")
class TestPool:
    """A pool whose segments come from a library."""

    @pytest.fixture
    def library(self, plugged: Any, plugged_path: str, runtime: Runtime) -> Iterator[Any]:
        """The library with an empty log; all its memory must be free at the end."""
        library = plugged.Plugged(plugged_path)
        assert not library.live()
        library.forget()
        yield library
        library.refuse_above(None)
        library.repeat(None)
        gc.collect()
        tcuda.empty_cache()
        assert library.live() == []

    @pytest.mark.parametrize("wrapped", [True, False])
    def test_segments_of_the_pool_come_from_the_library(self, xp: Any, library: Any, wrapped: bool) -> None:
        pool = tcuda.MemPool(library.allocator if wrapped else library.allocator.allocator())
        assert pool.allocator is library.allocator.allocator()
        side = tcuda.Stream()
        with tcuda.use_mem_pool(pool):
            small = [xp.empty(1000, "B") for _ in range(5)]
            middle = [xp.empty(3 * MIB, "B") for _ in range(3)]
            large = xp.empty(31 * MIB, "B")
            with tcuda.stream(side):
                aside = xp.empty(1000, "B")
        outside = xp.empty(1000, "B")
        assert [(call.size, call.device, call.stream) for call in library.calls()] == [
            (2 * MIB, 0, 0),
            (20 * MIB, 0, 0),
            (32 * MIB, 0, 0),
            (2 * MIB, 0, side.cuda_stream),
        ]
        segments = {segment["address"]: segment for segment in pool.snapshot()}
        assert set(segments) == {call.address for call in library.live()}
        assert not any(segment["is_expandable"] for segment in segments.values())
        assert segments.keys().isdisjoint({outside.data.ptr})
        del small, middle, large, aside, outside, pool

    def test_segments_go_back_to_the_library_with_the_pool(self, xp: Any, library: Any, changes: Changes) -> None:
        pool = tcuda.MemPool(library.allocator)
        with tcuda.use_mem_pool(pool):
            arrays = [xp.empty(1000, "B"), xp.empty(31 * MIB, "B")]
        with changes() as changed:
            del arrays
        assert len(library.live()) == 2
        assert "reserved_bytes.all.current" not in changed
        with changes() as changed:
            del pool
        assert library.live() == []
        assert changed["reserved_bytes.all.current"] == -34 * MIB
        assert changed["segment.all.current"] == -2
        assert {(call.size, call.stream) for call in library.frees()} == {(2 * MIB, 0), (32 * MIB, 0)}

    def test_an_array_may_outlive_the_pool_and_the_library_object(
        self, xp: Any, plugged: Any, plugged_path: str, library: Any
    ) -> None:
        def make() -> Any:
            pool = tcuda.MemPool(plugged.Plugged(plugged_path).allocator)
            with tcuda.use_mem_pool(pool):
                return xp.empty(1000)

        array = make()
        gc.collect()
        assert len(library.live()) == 1
        del array
        tcuda.empty_cache()
        assert library.live() == []

    def test_the_pool_keeps_the_allocator(self, xp: Any, runtime: Runtime) -> None:
        # Python functions take the place of the functions of a library. A call of a function that is gone would crash.
        functions = PythonFunctions(runtime)
        pool = tcuda.MemPool(functions.allocator())
        alive = functions.alive
        del functions
        gc.collect()
        assert alive()
        with tcuda.use_mem_pool(pool):
            array = xp.arange(1000)
        del pool
        gc.collect()
        assert alive()
        assert int(array.sum()) == 499_500
        del array
        tcuda.empty_cache()

    def test_a_null_pointer_of_the_library_is_an_out_of_memory_error(
        self, xp: Any, library: Any, changes: Changes
    ) -> None:
        pool = tcuda.MemPool(library.allocator)
        library.refuse_above(10 * MIB)
        with tcuda.use_mem_pool(pool):
            kept = xp.empty(1000)
            with changes() as changed, pytest.raises(tcuda.OutOfMemoryError, match="Tried to allocate 3.00 MiB"):
                xp.empty(3 * MIB, "B")
            assert changed == {"num_alloc_retries": 1, "num_ooms": 1, "num_sync_all_streams": 1}
            library.refuse_above(None)
            xp.empty(3 * MIB, "B")
        del kept, pool

    def test_the_memory_fraction_limits_the_memory_of_the_library(
        self, xp: Any, library: Any, hold_at_most: HoldAtMost
    ) -> None:
        pool = tcuda.MemPool(library.allocator)
        with hold_at_most(30 * MIB), tcuda.use_mem_pool(pool):
            xp.empty(3 * MIB, "B")
            with pytest.raises(tcuda.OutOfMemoryError):
                xp.empty(28 * MIB, "B")
        assert [call.size for call in library.calls()] == [20 * MIB]
        del pool

    def test_no_split_gives_every_array_a_segment(self, xp: Any, library: Any) -> None:
        pool = tcuda.MemPool(library.allocator, no_split=True)
        with tcuda.use_mem_pool(pool):
            arrays = [xp.empty(1000, "B"), xp.empty(1000, "B"), xp.empty(3 * MIB, "B")]
        assert [call.size for call in library.live()] == [2 * MIB, 2 * MIB, 20 * MIB]
        assert {array.data.ptr for array in arrays} == {call.address for call in library.live()}
        del arrays, pool

    def test_the_device_is_current_when_the_library_is_called(self, runtime: Runtime) -> None:
        last = tcuda.device_count() - 1
        functions = PythonFunctions(runtime)
        pool = tcuda.MemPool(functions.allocator())
        with tcuda.use_mem_pool(pool, last):
            address = tcuda.caching_allocator_alloc(1000, last)
        assert functions.devices == [(last, last)]
        assert tcuda.current_device() == 0
        tcuda.caching_allocator_delete(address)
        del pool

    def test_the_library_may_call_tcuda(self, xp: Any, runtime: Runtime) -> None:
        functions = PythonFunctions(runtime)
        spare = [xp.empty(1000, "B"), xp.empty(3 * MIB, "B")]

        def meanwhile() -> None:
            if spare:
                spare.pop()
            tcuda.memory_stats()
            tcuda.memory_snapshot()
            gc.collect()

        functions.meanwhile.append(meanwhile)
        pool = tcuda.MemPool(functions.allocator())
        with tcuda.use_mem_pool(pool):
            kept = [xp.arange(1000), xp.zeros(5 * MIB, "B")]
        assert not spare
        assert int(kept[0].sum()) == 499_500
        del kept, pool


class TestThrowing:
    """Libraries whose functions throw C++ exceptions."""

    THROWN: ClassVar = {"error": 1, "bad_alloc": 2, "number": 3}
    TEXTS: ClassVar = {"error": "^the library is on strike$", "bad_alloc": "bad_alloc", "number": "no std::exception"}

    PROGRAM = """
import ctypes, gc, re, sys, tcuda
from plugged import Plugged
from tcuda import xp
unraisable = []
sys.unraisablehook = unraisable.append
library = Plugged({plugged!r})
throwing = ctypes.CDLL({path!r})
alloc_throws, free_throws = (ctypes.c_int.in_dll(throwing, name) for name in ("alloc_throws", "free_throws"))
for name in ("alloc", "free"):
    function = ctypes.cast(getattr(ctypes.CDLL({plugged!r}), "logged_" + name), ctypes.c_void_p)
    ctypes.c_void_p.in_dll(throwing, name + "_with").value = function.value
allocator = tcuda.CUDAPluggableAllocator({path!r}, "throwing_alloc", "throwing_free")

def refused(allocate):
    before = tcuda.memory_stats()
    try:
        allocate()
    except RuntimeError as error:
        assert type(error) is RuntimeError and re.search({text!r}, str(error)), repr(error)
    else:
        raise AssertionError("nothing was raised")
    assert tcuda.memory_stats() == before
"""

    RUNTIMES: ClassVar = {"the C++ runtime of the core": (), "one of its own": ("-static-libstdc++",)}

    def run(
        self, output_of: OutputOf, compiled_cpp: CompiledCpp, plugged: str, thrown: str, program: str, *options: str
    ) -> None:
        path = compiled_cpp("throwing_allocator", *options)
        preamble = self.PROGRAM.format(plugged=plugged, path=path, text=self.TEXTS[thrown])
        output = output_of(f"{preamble}{program}\nprint('end')", PYTHONPATH=str(DATA))
        assert output == "end"

    @pytest.mark.long
    @pytest.mark.parametrize("runtime", RUNTIMES)
    @pytest.mark.parametrize("thrown", THROWN)
    def test_exceptions_in_a_pool_of_the_library(
        self, output_of: OutputOf, compiled_cpp: CompiledCpp, plugged_path: str, thrown: str, runtime: str
    ) -> None:
        program = f"""
pool = tcuda.MemPool(allocator)
with tcuda.use_mem_pool(pool):
    kept = xp.empty(1000, "B")
    alloc_throws.value = {self.THROWN[thrown]}
    refused(lambda: xp.empty(3 << 20, "B"))
    alloc_throws.value = 0
    kept = xp.empty(3 << 20, "B")
assert len(library.live()) == 2
free_throws.value = {self.THROWN[thrown]}
del kept, pool
tcuda.empty_cache()
assert library.live() == []
assert len(unraisable) == 2
for each in unraisable:
    assert each.exc_type is RuntimeError and re.search({self.TEXTS[thrown]!r}, str(each.exc_value)), each
assert tcuda.memory_reserved() == 0
"""
        self.run(output_of, compiled_cpp, plugged_path, thrown, program, *self.RUNTIMES[runtime])

    @pytest.mark.long
    @pytest.mark.parametrize("thrown", THROWN)
    def test_exceptions_where_the_library_gives_all_memory(
        self, output_of: OutputOf, compiled_cpp: CompiledCpp, plugged_path: str, thrown: str
    ) -> None:
        program = f"""
tcuda.change_current_allocator(allocator)
kept = xp.empty(1000, "B")
alloc_throws.value = {self.THROWN[thrown]}
refused(lambda: xp.empty(1000, "B"))
alloc_throws.value = 0
xp.empty(1000, "B")
free_throws.value = {self.THROWN[thrown]}
try:
    raise KeyError("being handled")
except KeyError:
    del kept
assert library.live() == []
[each] = unraisable
assert each.exc_type is RuntimeError and re.search({self.TEXTS[thrown]!r}, str(each.exc_value)), each
assert tcuda.memory_allocated() == 0
"""
        self.run(output_of, compiled_cpp, plugged_path, thrown, program)


class PythonFunctions:
    """Two Python functions with the signatures of a library; the runtime gives the memory."""

    def __init__(self, runtime: Runtime) -> None:
        signature = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        no_result = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
        self.devices: list[tuple[int, int]] = []
        self.meanwhile: list[Callable[[], object]] = []
        devices, meanwhile = self.devices, self.meanwhile

        def allocate(size: int, device: int, stream: int | None) -> int:
            devices.append((device, tcuda.current_device()))
            for call in meanwhile:
                call()
            return runtime.malloc(size)

        def free(address: int, size: int, device: int, stream: int | None) -> None:
            runtime.free(address)

        self._functions = signature(allocate), no_result(free)
        self.alive = weakref.ref(allocate)

    def allocator(self) -> _CUDAAllocator:
        addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in self._functions]
        return _CUDAAllocator(_core.LibrarySource(*addresses, self._functions))


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param("", id="by a variable"),
        pytest.param(
            "import os, tcuda.emulation\nos.environ.pop('TCUDA_RUNTIME', None)\ntcuda.emulation.enable()\n",
            id="in code",
            marks=pytest.mark.emulated,
        ),
    ],
)
def test_the_example_of_the_documentation_works(tmp_path: Path, output_of: OutputOf, chosen: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler, and there is no cc")
    source = (REPOSITORY / "docs/examples/pluggable_allocator.c").read_text()
    [command] = [line.strip(" *") for line in source.splitlines() if "cc -shared" in line]
    assert f"\n{command}\n" in (REPOSITORY / "docs/memory.md").read_text()
    (tmp_path / "pluggable_allocator.c").write_text(source)
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    program = f"""
{chosen}
import ctypes, tcuda
from tcuda import xp
allocator = tcuda.CUDAPluggableAllocator("./pluggable_allocator.so", "example_alloc", "example_free")
tcuda.change_current_allocator(allocator)
in_use = ctypes.CDLL("./pluggable_allocator.so").example_bytes_in_use
in_use.restype = ctypes.c_longlong
x = xp.ones(1000)
print(in_use(), tcuda.memory_allocated())
pool = tcuda.MemPool(allocator)
with tcuda.use_mem_pool(pool):
    y = xp.ones(1000)
print(in_use() - (2 << 20))
del x, y, pool
tcuda.empty_cache()
print(in_use())
"""
    assert output_of(program).splitlines() == ["8000 8000", "8000", "0"]


@pytest.mark.emulated
def test_a_library_frees_memory_after_the_pending_work_on_it(output_of: OutputOf) -> None:
    program = """
import ctypes, os
os.environ.pop("CUDA_VISIBLE_DEVICES", None)
import tcuda.emulation
tcuda.emulation.enable(schedule="late")
import tcuda
from tcuda import _core, xp
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
def allocate(size, device, stream):
    return libc.aligned_alloc(ctypes.c_size_t(512), ctypes.c_size_t(size))
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
def free(address, size, device, stream):
    print(ctypes.c_double.from_address(address).value)
functions = allocate, free
addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
from tcuda.memory._allocators import _CUDAAllocator
tcuda.memory.change_current_allocator(_CUDAAllocator(_core.LibrarySource(*addresses, functions)))
x = xp.empty(64)
x.fill(7)
del x
"""
    assert output_of(program, TCUDA_RUNTIME=None).splitlines() == ["7.0"]
