"""Pools that sleep: the device gets their memory back, and the arrays keep their addresses and their bytes."""

from __future__ import annotations

import pickle
import re
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

import tcuda
from support.peer import read
from tcuda import xp
from tcuda._process import asleep as module
from tcuda._process.asleep import asleep
from tcuda.memory import _sleep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

MIB = 1 << 20


@pytest.fixture(autouse=True)
def awake() -> Iterator[None]:
    yield
    tcuda.memory.wake()
    tcuda.empty_cache()


def sleeping() -> int:
    return tcuda.memory_stats()["sleeping_bytes.all.current"]


class TestADefaultPool:
    def test_keeps_addresses_and_bytes(self) -> None:
        x = xp.arange(3 * MIB)
        small = [xp.full(count, count % 256, "uint8") for count in (1, 100, 5000)]
        view, addresses = x[7:1000:3], [array.data.ptr for array in (x, *small)]
        tcuda.memory.sleep()
        tcuda.memory.wake()
        assert [array.data.ptr for array in (x, *small)] == addresses
        assert int(x.sum()) == sum(range(3 * MIB))
        assert [int(array.sum()) for array in small] == [1, 100 * 100, 5000 * (5000 % 256)]
        assert view.get().tolist() == list(range(7, 1000, 3))

    @pytest.mark.alone
    def test_leaves_the_memory_to_others(self) -> None:
        x = xp.zeros(64 * MIB, "uint8")
        tcuda.synchronize()
        free, _ = tcuda.mem_get_info()
        tcuda.memory.sleep()
        assert tcuda.mem_get_info()[0] >= free + 64 * MIB
        tcuda.memory.wake()
        assert tcuda.mem_get_info()[0] < free + 64 * MIB
        assert not x.any()

    def test_gives_its_memory_back_and_counts_it_apart(self) -> None:
        x = xp.zeros(64 * MIB, "uint8")
        reserved, allocated = tcuda.memory_reserved(), tcuda.memory_allocated()
        tcuda.memory.sleep()
        assert tcuda.memory_reserved() == 0
        assert tcuda.memory_allocated() == allocated
        assert 64 * MIB <= sleeping() <= reserved
        tcuda.memory.wake()
        assert sleeping() == 0
        assert 64 * MIB <= tcuda.memory_reserved() <= reserved
        del x

    def test_drops_its_contents_without_keep(self) -> None:
        x = xp.zeros(4 * MIB, "uint8")
        address = x.data.ptr
        tcuda.memory.sleep(keep=False)
        tcuda.memory.wake()
        x[...] = 5
        assert x.data.ptr == address
        assert int(x[-1]) == 5

    def test_sleeps_and_wakes_once(self) -> None:
        x = xp.arange(1000)
        for _ in range(2):
            tcuda.memory.sleep()
        assert tcuda.memory.is_asleep()
        counted = tcuda.memory_stats()
        tcuda.memory.sleep(keep=False)
        assert tcuda.memory_stats() == counted
        for _ in range(2):
            tcuda.memory.wake()
        assert not tcuda.memory.is_asleep()
        assert int(x[999]) == 999

    def test_hands_out_no_memory_while_asleep(self) -> None:
        x = xp.arange(10)
        tcuda.memory.sleep()
        with pytest.raises(RuntimeError, match=r"asleep.*tcuda\.memory\.wake\(\)"):
            xp.zeros(3)
        tcuda.memory.wake()
        assert int(xp.zeros(3).sum() + x.sum()) == 45

    def test_lets_arrays_go_while_asleep(self) -> None:
        x, y = xp.ones(8 * MIB, "uint8"), xp.full(3, 7)
        tcuda.memory.sleep()
        before = sleeping()
        del x
        tcuda.empty_cache()
        left = sleeping()
        assert left <= before - 8 * MIB + 2 * MIB
        tcuda.memory.wake()
        assert tcuda.memory_reserved() == left
        assert int(y.sum()) == 21

    def test_waits_for_work_in_flight(self) -> None:
        x = xp.zeros(1000)
        stream = tcuda.Stream()
        stream.wait_stream(tcuda.current_stream())
        with tcuda.stream(stream):
            tcuda._sleep(50_000_000)
            x += 1
        tcuda.memory.sleep()
        assert stream.query()
        tcuda.memory.wake()
        assert int(x.sum()) == 1000

    def test_leaves_other_pools_awake(self) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            mine = xp.arange(100)
        other = xp.arange(50)
        tcuda.memory.sleep()
        assert not pool.is_asleep
        assert mine.get().sum() == 4950
        with tcuda.use_mem_pool(pool):
            assert int((mine + 1).sum()) == 5050
        tcuda.memory.wake()
        assert int(other.sum()) == 1225

    def test_sleeps_on_the_named_device(self) -> None:
        tcuda.memory.sleep(0)
        assert tcuda.memory.is_asleep("cuda:0")
        assert tcuda.memory.is_asleep(tcuda.current_device())
        tcuda.memory.wake(0)
        with pytest.raises((RuntimeError, ValueError)):
            tcuda.memory.sleep(99)

    @pytest.mark.parametrize("keep", [0, None, "yes"])
    def test_takes_true_or_false(self, keep: Any) -> None:
        with pytest.raises(TypeError, match="keep"):
            tcuda.memory.sleep(keep=keep)
        assert not tcuda.memory.is_asleep()

    def test_shows_sleeping_segments_in_snapshots(self) -> None:
        x = xp.zeros(5 * MIB, "uint8")
        tcuda.memory.sleep()
        asleep = [segment for segment in tcuda.memory_snapshot() if segment.get("is_asleep")]
        assert sum(segment["allocated_size"] for segment in asleep) == tcuda.memory_allocated()
        tcuda.memory.wake()
        assert not any(segment.get("is_asleep") for segment in tcuda.memory_snapshot())
        assert x.nbytes == 5 * MIB


class TestAPool:
    def test_sleeps_beside_the_default_pool(self) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            x = xp.arange(2 * MIB)
        y = xp.arange(10)
        pool.sleep()
        assert pool.is_asleep
        assert not tcuda.memory.is_asleep()
        assert sleeping() >= 16 * MIB
        assert int((y + 1).sum()) == 55
        pool.wake()
        assert not pool.is_asleep
        assert int(x[-1]) == 2 * MIB - 1

    def test_hands_out_no_memory_while_asleep(self) -> None:
        pool = tcuda.MemPool()
        pool.sleep()
        with tcuda.use_mem_pool(pool), pytest.raises(RuntimeError, match=r"asleep.*MemPool\.wake\(\)"):
            xp.zeros(3)
        pool.wake()

    def test_says_that_it_is_asleep(self) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            x = xp.arange(2 * MIB)
        pool.sleep()
        assert repr(pool).endswith(f"{x.nbytes} bytes allocated, 0 bytes reserved, asleep>")
        pool.wake()
        assert "asleep" not in repr(pool)

    def test_ends_while_asleep(self) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            x = xp.arange(2 * MIB)
        pool.sleep()
        del pool, x
        assert sleeping() == 0

    def test_wakes_with_the_default_pool_once_the_object_is_gone(self) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            x = xp.arange(2 * MIB)
        pool.sleep()
        del pool
        tcuda.memory.wake()
        assert int(x[-1]) == 2 * MIB - 1

    def test_is_no_help_for_others_while_asleep(self) -> None:
        pool = tcuda.MemPool(use_on_oom=True)
        with tcuda.use_mem_pool(pool):
            x = xp.zeros(40 * MIB, "uint8")
            y = xp.zeros(1, "uint8")
        del x
        pool.sleep()
        tcuda.set_per_process_memory_fraction((tcuda.memory_reserved() + 512) / tcuda.mem_get_info()[1])
        try:
            with pytest.raises(tcuda.OutOfMemoryError):
                xp.zeros(30 * MIB, "uint8")
        finally:
            tcuda.set_per_process_memory_fraction(1.0)
        pool.wake()
        assert int(y[0]) == 0


class TestTheGraphs:
    def test_of_the_default_pool_replay_after_a_wake(self) -> None:
        x = xp.arange(1000)
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            y = x * 2
            z = y + 1
        graph.replay()
        tcuda.memory.sleep()
        assert tcuda.memory_reserved() == 0
        tcuda.memory.wake()
        assert int(z[-1]) == 1999
        x += 1
        graph.replay()
        assert int(z[-1]) == 2001
        graph.reset()

    def test_of_a_pool_replay_after_a_wake(self) -> None:
        pool = tcuda.MemPool()
        x = xp.arange(1000)
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph, pool=pool.id):
            y = x * 2
        graph.replay()
        pool.sleep()
        pool.wake()
        assert int(y[-1]) == 1998
        x += 1
        graph.replay()
        assert int(y[-1]) == 2000
        graph.reset()

    @pytest.mark.parametrize("keep", [True, False])
    def test_keep_memory_that_the_program_has_dropped(self, keep: bool) -> None:
        x = xp.arange(3 * MIB)
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            y = x * 2
            z = y + 1
        del y
        tcuda.memory.sleep(keep=keep)
        tcuda.memory.wake()
        x[...] = 1
        graph.replay()
        assert int(z[-1]) == 3
        graph.reset()

    def test_are_refused_while_asleep(self) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            x = xp.arange(1000)
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            y = x * 2
        pool.sleep()
        with pytest.raises(RuntimeError, match="asleep"):
            graph.replay()
        pool.wake()
        tcuda.memory.sleep()
        with pytest.raises(RuntimeError, match="asleep"):
            graph.replay()
        tcuda.memory.wake()
        graph.replay()
        assert int(y[-1]) == 1998
        graph.reset()

    def test_may_go_while_asleep(self) -> None:
        x = xp.arange(1000)
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            y = x * 2
        tcuda.memory.sleep()
        del y
        graph.reset()
        tcuda.memory.wake()
        assert int(x[-1]) == 999


class TestARefusal:
    """Every refusal leaves the pool awake and unchanged."""

    def refuse(self, match: str, call: Any = tcuda.memory.sleep) -> None:
        x = xp.arange(100)
        before = tcuda.memory_stats()
        with pytest.raises(RuntimeError, match=match):
            call()
        assert tcuda.memory_stats() == before
        assert not tcuda.memory.is_asleep()
        assert int(x[99]) == 99

    def test_names_a_capture(self) -> None:
        stream = tcuda.Stream()
        graph = tcuda.CUDAGraph()
        x = xp.arange(100)
        with tcuda.stream(stream):
            graph.capture_begin()
            y = x + 1
            with pytest.raises(RuntimeError, match="captured"):
                tcuda.memory.sleep()
            graph.capture_end()
        assert not tcuda.memory.is_asleep()
        graph.replay()
        tcuda.synchronize()
        assert int(y[99]) == 100
        graph.reset()

    def test_names_another_source(self, plugged: Any, plugged_path: str) -> None:
        pool = tcuda.MemPool(plugged.Plugged(plugged_path).allocator)
        with tcuda.use_mem_pool(pool):
            x = xp.arange(10)
        self.refuse("another source", pool.sleep)
        assert int(x.sum()) == 45

    def test_names_memory_outside_of_expandable_segments(self) -> None:
        pool = tcuda.MemPool(no_split=True)
        with tcuda.use_mem_pool(pool):
            x = xp.arange(10)
        self.refuse("expandable segments", pool.sleep)
        assert int(x.sum()) == 45


class TestAWake:
    def test_without_memory_leaves_the_pool_asleep(self) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            x = xp.arange(8 * MIB)
        pool.sleep()
        hog = xp.zeros(MIB, "uint8")
        tcuda.set_per_process_memory_fraction((tcuda.memory_reserved() + 16 * MIB + 512) / tcuda.mem_get_info()[1])
        try:
            needed = sleeping() // MIB
            assert needed >= 64
            words = rf"needs {needed}\.00 MiB.* leaves 16\.00 MiB: {needed - 16}\.00 MiB are missing"
            with pytest.raises(tcuda.OutOfMemoryError, match=words):
                pool.wake()
            assert pool.is_asleep
            assert sleeping() == needed * MIB
        finally:
            tcuda.set_per_process_memory_fraction(1.0)
        pool.wake()
        assert int(x[-1]) == 8 * MIB - 1
        del hog

    def test_takes_the_free_memory_of_others(self) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            x = xp.arange(8 * MIB)
        pool.sleep()
        cached = xp.zeros(64 * MIB, "uint8")
        tcuda.set_per_process_memory_fraction((tcuda.memory_reserved() + 4 * MIB) / tcuda.mem_get_info()[1])
        try:
            del cached
            pool.wake()
        finally:
            tcuda.set_per_process_memory_fraction(1.0)
        assert int(x[-1]) == 8 * MIB - 1

    def test_asks_callbacks_for_room(self) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            x = xp.arange(8 * MIB)
        pool.sleep()
        cache = [xp.zeros(64 * MIB, "uint8")]
        tcuda.set_per_process_memory_fraction((tcuda.memory_reserved() + 4 * MIB) / tcuda.mem_get_info()[1])

        def drop(device: int, size: int) -> bool:
            return bool(cache) and cache.pop() is not None

        try:
            with tcuda.memory.on_out_of_memory(drop):
                pool.wake()
        finally:
            tcuda.set_per_process_memory_fraction(1.0)
        assert int(x[-1]) == 8 * MIB - 1
        assert not cache

    def test_gives_the_page_locked_copy_back(self) -> None:
        before = tcuda.host_memory_stats()
        x = xp.arange(MIB)
        tcuda.memory.sleep()
        tcuda.memory.wake()
        after = tcuda.host_memory_stats()
        assert [after[key] for key in ("allocated_bytes.current", "active_bytes.current")] == [
            before[key] for key in ("allocated_bytes.current", "active_bytes.current")
        ]
        assert int(x[-1]) == MIB - 1


def test_threads_may_sleep_and_wake_one_pool() -> None:
    pool = tcuda.MemPool()
    with tcuda.use_mem_pool(pool):
        x = xp.arange(MIB)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                pool.sleep()
                pool.wake()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert int(x[-1]) == MIB - 1


KERNEL = 'extern "C" __global__ void add(double *x) { x[threadIdx.x] += 1; }'


@pytest.mark.emulated
class TestWorkOnSleepingMemory:
    """On emulated devices, nothing begins that would use memory which is asleep."""

    @pytest.fixture
    def pool(self) -> Iterator[Any]:
        made = tcuda.MemPool()
        yield made
        made.wake()

    @pytest.mark.parametrize(
        "work",
        [
            lambda x, y: x + 1,
            lambda x, y: x.sum(),
            lambda x, y: x.sort(),
            lambda x, y: x.fill(1),
            lambda x, y: x.copy(),
            lambda x, y: y[x > 3],
            lambda x, y: y.__setitem__(0, x[0]),
            lambda x, y: x.__setitem__(slice(3), 1),
            lambda x, y: xp.copyto(y, x),
            lambda x, y: xp.add(y, y, out=x),
            lambda x, y: xp.concatenate([y, x]),
            lambda x, y: xp.fft.fft(x),
            lambda x, y: xp.linalg.norm(x),
            lambda x, y: xp.RawKernel(KERNEL, "add")((1,), (8,), (x,)),
            lambda x, y: xp.RawKernel(KERNEL, "add")((1,), (8,), (x.data.ptr,)),
            lambda x, y: xp.ElementwiseKernel("float64 x", "float64 y", "y = x * 2", "twice")(x),
            lambda x, y: xp.ReductionKernel("float64 x", "float64 y", "x", "a + b", "y = a", "0", "total")(x),
            lambda x, y: tcuda.memory.copy_async(tcuda.memory.empty_pinned(1000), x),
        ],
    )
    def test_is_refused_before_it_begins(self, pool: Any, work: Any) -> None:
        with tcuda.use_mem_pool(pool):
            x = xp.arange(1000.0)
        y = xp.arange(1000.0)
        pool.sleep()
        with pytest.raises(RuntimeError, match="asleep"):
            work(x, y)
        pool.wake()
        assert x.get().tolist() == list(range(1000)) == y.get().tolist()

    @pytest.mark.parametrize("work", [lambda x: x.get(), lambda x: float(x[0]), lambda x: x.data.memset(0, 8)])
    def test_of_the_runtime_has_the_status_of_unmapped_memory(self, pool: Any, work: Any) -> None:
        with tcuda.use_mem_pool(pool):
            x = xp.arange(1000.0)
        pool.sleep()
        with pytest.raises(tcuda.AcceleratorError, match="invalid argument"):
            work(x)
        pool.wake()
        assert x.get().tolist() == list(range(1000))

    def test_in_a_graph_of_another_library_is_an_illegal_access(self, pool: Any) -> None:
        with tcuda.use_mem_pool(pool):
            x = xp.arange(1000.0)
            stream = xp.cuda.Stream(non_blocking=True)
            with stream:
                stream.begin_capture()
                x += 1
                graph = stream.end_capture()
        pool.sleep()
        with pytest.raises(tcuda.AcceleratorError, match="illegal memory access"):
            graph.launch(stream)
        pool.wake()
        graph.launch(stream)
        stream.synchronize()
        assert x.get().tolist() == list(range(1, 1001))


class FailingLedger:
    """The ledger, of which one function raises an error; if ``is_late``, after its work."""

    def __init__(self, name: str, error: Callable[[], BaseException], *, is_late: bool = True) -> None:
        self._known, self._name, self._error, self._is_late = module.ledger(), name, error, is_late

    def __getattr__(self, name: str) -> Any:
        return self._fail if name == self._name else getattr(self._known, name)

    def _fail(self, *arguments: Any) -> NoReturn:
        if self._is_late:
            getattr(self._known, self._name)(*arguments)
        raise self._error()


def test_a_process_may_end_while_its_pools_sleep(output_of: OutputOf) -> None:
    program = """
import tcuda
from tcuda import xp
from tcuda._process.asleep import asleep
pool = tcuda.MemPool()
with tcuda.use_mem_pool(pool):
    x = xp.arange(1000)
y = xp.arange(1000)
pool.sleep()
tcuda.memory.sleep()
print(tcuda.memory_reserved())
"""
    assert output_of(program) == "0"


def test_a_pool_that_falls_asleep_during_a_look_at_the_others_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, known = tcuda.MemPool(), module.ledger()
    pool.sleep()
    others = [threading.Thread(target=tcuda.memory.sleep)]

    class Ledger:
        def is_asleep(self, device: int, pool: tuple[int, int]) -> bool:
            if others and threading.current_thread() is threading.main_thread():
                other = others.pop()
                other.start()
                started.append(other)
                other.join(0.1)  # the thread ends now, unless the thread waits for this look
            return known.is_asleep(device, pool)

    started: list[threading.Thread] = []
    monkeypatch.setattr(module, "ledger", Ledger)
    module.note((), module.COMMON_POOL)
    started.pop().join()
    device = tcuda.current_device()
    assert {(device, pool.id), (device, module.COMMON_POOL)} <= {*asleep}
    pool.wake()


def test_a_signal_handler_that_raises_leaves_the_pool_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.arange(1000)
    monkeypatch.setattr(_sleep, "ledger", lambda: FailingLedger("sleep", KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tcuda.memory.sleep()
    assert not tcuda.memory.is_asleep()
    assert int(x[999]) == 999


@pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")
class TestAPoolThatALaterDeviceRefuses:
    """The pool is awake again on the earlier devices, or the error says where the pool is still asleep."""

    @pytest.fixture
    def pool(self) -> Iterator[Any]:
        """Yield a pool with 64 MiB on the first device, and with memory on the second one that cannot sleep."""
        made = tcuda.MemPool()
        with tcuda.use_mem_pool(made):
            self.x = xp.arange(8 * MIB)
        tcuda.memory._set_allocator_settings("expandable_segments:False")
        try:
            with tcuda.device(1), tcuda.use_mem_pool(made):
                self.y = xp.arange(10)
        finally:
            tcuda.memory._set_allocator_settings("")
        yield made
        tcuda.set_per_process_memory_fraction(1.0)
        made.wake()
        del self.x, self.y

    @staticmethod
    def leave(size: int, pool: Any) -> None:
        """Leave ``size`` bytes of the first device to this process, once ``pool`` is asleep."""
        tcuda.empty_cache()  # or else a wake would find this memory
        own = sum(segment["total_size"] for segment in pool.snapshot() if segment["device"] == 0)
        others = tcuda.memory_reserved() - own
        tcuda.set_per_process_memory_fraction((others + size + 512) / tcuda.mem_get_info()[1])

    @staticmethod
    def refused(pool: Any) -> RuntimeError:
        """Return the error of ``pool.sleep()``, without the frames, which would keep the pool."""
        try:
            pool.sleep()
        except RuntimeError as error:
            return error.with_traceback(None)
        raise AssertionError("The pool sleeps.")

    def test_is_awake_with_its_contents(self, pool: Any) -> None:
        message = str(self.refused(pool))
        assert message.startswith("MemPool.sleep() cannot be done on cuda:1: ")
        assert "asleep" not in message
        assert not pool.is_asleep
        assert int(self.x[-1]) == 8 * MIB - 1

    def test_says_how_much_memory_a_wake_lacks(self, pool: Any) -> None:
        self.leave(48 * MIB, pool)
        words = (
            r"(?s)cannot be done on cuda:1: .*The pool is still asleep on cuda:0.*MemPool\.wake\(\) needs \d+\.00 MiB "
            r"on GPU 0, and .* leaves 48\.00 MiB: \d+\.00 MiB are missing"
        )
        error = self.refused(pool)
        assert type(error) is RuntimeError
        assert re.search(words, str(error))
        assert pool.is_asleep
        assert (0, pool.id) in asleep
        tcuda.set_per_process_memory_fraction(1.0)
        pool.wake()
        assert int(self.x[-1]) == 8 * MIB - 1

    def test_asks_callbacks_for_room(self, pool: Any) -> None:
        cache = [xp.zeros(64 * MIB, "uint8")]
        self.leave(48 * MIB, pool)

        def drop(device: int, size: int) -> bool:
            return bool(cache) and cache.pop() is not None

        with tcuda.memory.on_out_of_memory(drop), pytest.raises(RuntimeError, match="expandable segments"):
            pool.sleep()
        assert not pool.is_asleep
        assert not cache

    def test_says_that_dropped_contents_are_gone(self, pool: Any) -> None:
        with pytest.raises(RuntimeError, match=r"expandable segments(?s:.*)cuda:0 have lost their contents"):
            pool.sleep(keep=False)
        assert not pool.is_asleep

    def test_says_why_the_driver_does_not_wake(self, pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def failure() -> tcuda.AcceleratorError:
            return tcuda.AcceleratorError(46, "mapping memory that wakes; the memory is asleep")

        with monkeypatch.context() as context:
            context.setattr(_sleep, "ledger", lambda: FailingLedger("wake", failure, is_late=False))
            with pytest.raises(RuntimeError, match=r"cuda:1(?s:.*)still asleep on cuda:0.*mapping memory that wakes"):
                pool.sleep()
        assert pool.is_asleep

    def test_says_where_a_driver_that_failed_twice_leaves_the_pool_asleep(
        self, pool: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failure() -> tcuda.AcceleratorError:
            return tcuda.AcceleratorError(46, "unmapping memory that falls asleep; the memory is asleep")

        with monkeypatch.context() as context:
            context.setattr(_sleep, "ledger", lambda: FailingLedger("sleep", failure))
            error = self.refused(pool)
        assert isinstance(error, tcuda.AcceleratorError)
        assert "The pool is still asleep on cuda:0, and MemPool.wake() can be called later: " in error.details
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        assert pool.is_asleep

    def test_keeps_the_error_of_a_signal_handler(self, pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.leave(48 * MIB, pool)
        with monkeypatch.context() as context:
            context.setattr(_sleep, "ledger", lambda: FailingLedger("sleep", KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt, match=r"still asleep on cuda:0.* MiB are missing"):
                pool.sleep()


def test_operations_ask_for_no_addresses_once_a_pool_that_slept_has_ended() -> None:
    pool = tcuda.MemPool()
    with tcuda.use_mem_pool(pool):
        x = xp.arange(10)
    pool.sleep()
    assert (0, pool.id) in asleep
    del x, pool
    tcuda.memory.copy_async(xp.arange(3), tcuda.memory.empty_pinned(3, "int64"))
    assert asleep == []


def test_a_capture_may_begin_while_the_default_pool_sleeps() -> None:
    """The small pool that captures take over from released graphs does not sleep."""
    for _ in range(2):
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            y = xp.zeros(10)
        graph.replay()
        del y
        graph.reset()
    tcuda.synchronize()
    tcuda.memory.sleep()
    assert tcuda.memory_reserved() == 0
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        y = xp.full(10, 3)
    graph.replay()
    assert int(y[9]) == 3
    tcuda.memory.wake()
    graph.reset()


def test_the_free_memory_of_a_graphs_pool_keeps_its_bytes(runtime: Runtime) -> None:
    """A replay may read what an earlier replay has written to memory whose array is gone."""
    x = xp.full(5 * MIB, 7, "uint8")
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        y = x + 1
    address = y.data.ptr
    del y
    graph.replay()
    tcuda.synchronize()
    tcuda.memory.sleep()
    tcuda.memory.wake()
    assert read(runtime, address, 8) == read(runtime, address + 5 * MIB - 8, 8) == bytes([8] * 8)
    graph.reset()


@pytest.mark.emulated
def test_a_lack_of_addresses_for_the_copy_unmaps_nothing_else(output_of: OutputOf) -> None:
    program = """
import ctypes
import mmap
import resource
from pathlib import Path
import tcuda
from tcuda import xp
x = xp.empty(512 << 20, "uint8")  # the copy has two parts, and the process has addresses for neither
system = ctypes.CDLL(None)
system.mmap.restype = ctypes.c_void_p
system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
fixed = 0x100000  # MAP_FIXED_NOREPLACE
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | fixed
low = system.mmap(4 << 20, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
ctypes.memset(low, 7, 1)
used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), -1))
try:
    tcuda.memory.sleep()
except tcuda.AcceleratorError:
    print(tcuda.memory.is_asleep(), ctypes.string_at(low, 1) == bytes([7]))
"""
    assert output_of(program) == "False True"
