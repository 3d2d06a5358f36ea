"""The debug mode for calls that let the host wait, its scopes, and the counter of such calls."""

from __future__ import annotations

import contextlib
import inspect
import io
import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.busy_streams import keep_busy
from support.threads import in_thread
from tcuda._process import waits
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

    Call = Callable[[Any, Any], object]

TEXT = "called a synchronizing CUDA operation"
PROTOTYPE = "Synchronization debug mode is a prototype feature and does not yet detect all synchronizing operations"

WAITING: dict[str, Call] = {
    "float": lambda x, one: float(one),
    "int": lambda x, one: int(one),
    "bool": lambda x, one: bool(one),
    "complex": lambda x, one: complex(one),
    "item": lambda x, one: one.item(),
    "get": lambda x, one: x.get(),
    "get to an array": lambda x, one: x.get(out=np.empty(8)),
    "get with gaps": lambda x, one: x[::2].get(),
    "get on a stream": lambda x, one: x.get(stream=tcuda.Stream()),
    "get without waiting, to pageable memory": lambda x, one: x.get(blocking=False),
    "asnumpy": lambda x, one: tcuda.xp.asnumpy(x),
    "tolist": lambda x, one: x.tolist(),
    "tobytes": lambda x, one: x.tobytes(),
    "dumps": lambda x, one: x.dumps(),
    "str": lambda x, one: str(x),
    "repr": lambda x, one: repr(x),
    "format": lambda x, one: f"{one:.2f}",
    "array2string": lambda x, one: tcuda.xp.array2string(x),
    "save": lambda x, one: tcuda.xp.save(io.BytesIO(), x),
    "condition": lambda x, one: 1 if one > 0 else 0,
    "comparison of a sum": lambda x, one: bool((x > 3).any()),
    "blocking upload": lambda x, one: tcuda.xp.array(np.ones(8), blocking=True),
    "blocking array of arrays": lambda x, one: tcuda.xp.array([one, one], blocking=True),
    "mask": lambda x, one: x[x > 1],
    "mask of the host": lambda x, one: x[np.arange(8) > 1],
    "assignment at a mask": lambda x, one: operator.setitem(x, x > 1, 0.0),
    "nonzero": lambda x, one: x.nonzero(),
    "numpy.nonzero": lambda x, one: np.nonzero(x),
    "argwhere": lambda x, one: tcuda.xp.argwhere(x),
    "flatnonzero": lambda x, one: tcuda.xp.flatnonzero(x),
    "where without values": lambda x, one: tcuda.xp.where(x > 1),
    "compress": lambda x, one: x.compress(x > 1),
    "extract": lambda x, one: tcuda.xp.extract(x > 1, x),
    "unique": lambda x, one: tcuda.xp.unique(x),
    "union1d": lambda x, one: tcuda.xp.union1d(x, x),
    "trim_zeros": lambda x, one: tcuda.xp.trim_zeros(x),
    "repeat by an array": lambda x, one: tcuda.xp.repeat(x, tcuda.xp.ones(8, int)),
    "bincount": lambda x, one: tcuda.xp.bincount(x.astype(int)),
    "random numbers with a scale": lambda x, one: tcuda.xp.random.exponential(2.0, 4),
    "nanmax": lambda x, one: tcuda.xp.nanmax(x),
    "Stream.synchronize": lambda x, one: tcuda.Stream().synchronize(),
    "synchronize of the default stream": lambda x, one: tcuda.default_stream().synchronize(),
    "comm.gather to the host": lambda x, one: tcuda.comm.gather([x], destination="cpu"),
}
"""Calls that wait, on emulated devices and on a GPU, with an array of 8 elements and one without axes."""

ONLY_EMULATED: dict[str, Call] = {
    "MemoryPointer.copy_to_host": lambda x, one: x.data.copy_to_host(np.empty(8).ctypes.data, 64),
    "MemoryPointer.copy_to_host_async": lambda x, one: x.data.copy_to_host_async(np.empty(8).ctypes.data, 64),
    "MemoryPointer.copy_from_host": lambda x, one: x.data.copy_from_host(np.ones(8).ctypes.data, 64),
    "MemoryPointer.copy_from_device": lambda x, one: x.data.copy_from_device((x + 1).data, 64),
    "dlpack to the host": lambda x, one: x.__dlpack__(dl_device=(1, 0)),
}
"""Calls whose waits begin in C functions of CuPy, which nothing sees on a GPU."""

EXPLICIT: dict[str, Call] = {
    "synchronize": lambda x, one: tcuda.synchronize(),
    "synchronize of a device": lambda x, one: tcuda.synchronize(0),
    "Event.synchronize": lambda x, one: tcuda.current_stream().record_event().synchronize(),
}
"""Calls that wait for a device or an event, which torch lets pass."""

PASSING: dict[str, Call] = {
    "arithmetic": lambda x, one: x * 2 + one,
    "sum": lambda x, one: x.sum(),
    "view": lambda x, one: x[2:].reshape(3, 2),
    "indices": lambda x, one: x[[0, 1]],
    "assignment": lambda x, one: operator.setitem(x, slice(None), 2.0),
    "where with values": lambda x, one: tcuda.xp.where(x > 1, x, one),
    "repeat by a number": lambda x, one: tcuda.xp.repeat(x, 2),
    "upload": lambda x, one: tcuda.xp.asarray(np.ones(8)),
    "set": lambda x, one: x.set(np.ones(8)),
    "copy": lambda x, one: x.copy(),
    "query": lambda x, one: tcuda.Stream().query(),
    "wait_stream": lambda x, one: tcuda.Stream().wait_stream(tcuda.current_stream()),
    "event": lambda x, one: tcuda.Stream().wait_event(tcuda.current_stream().record_event()),
    "memory_stats": lambda x, one: tcuda.memory_stats(),
    "empty_cache": lambda x, one: tcuda.empty_cache(),
    "state of the generator": lambda x, one: tcuda.get_rng_state(),
    "random numbers": lambda x, one: tcuda.xp.random.random(4),
    "length": lambda x, one: len(x),
    "get of an empty array": lambda x, one: x[:0].get(),
}
"""Calls that do not wait."""

every_waiting_call = pytest.mark.parametrize(
    "call",
    [
        *(pytest.param(call, id=name) for name, call in WAITING.items()),
        *(pytest.param(call, id=name, marks=pytest.mark.emulated) for name, call in ONLY_EMULATED.items()),
    ],
)
every_explicit_call = pytest.mark.parametrize("call", EXPLICIT.values(), ids=list(EXPLICIT))
every_passing_call = pytest.mark.parametrize("call", PASSING.values(), ids=list(PASSING))


@pytest.fixture(autouse=True)
def mode_as_found(runtime: Runtime) -> Iterator[None]:
    """Begin with mode 0 and without torch's first warning, check that nobody watches, and end with mode 0."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", PROTOTYPE)
        tcuda.set_sync_debug_mode(0)
    assert not waits.watched
    yield
    tcuda.set_sync_debug_mode(0)
    assert not waits.watched


@pytest.fixture
def operands(runtime: Runtime) -> tuple[Any, Any]:
    """An array of 8 elements, and an array without axes."""
    made = tcuda.xp.arange(8.0), tcuda.xp.asarray(1.0)
    tcuda.synchronize()
    return made


def count(counter: tcuda.SyncCounter) -> int:
    return sum(row["count"] for row in counter.counts())


class TestSetting:
    @pytest.mark.parametrize(
        ("given", "mode"), [("default", 0), ("warn", 1), ("error", 2), (0, 0), (1, 1), (2, 2), (np.int64(2), 2)]
    )
    def test_the_modes_have_names_and_numbers(self, given: Any, mode: int) -> None:
        tcuda.set_sync_debug_mode(given)
        assert tcuda.get_sync_debug_mode() == mode
        assert type(tcuda.get_sync_debug_mode()) is int

    @pytest.mark.parametrize(
        ("given", "text"),
        [
            ("bad", "invalid value of debug_mode, expected one of `default`, `warn`, `error`; got 'bad'."),
            (5, "invalid value of debug_mode, expected one of 0,1,2; got 5."),
            (-1, "invalid value of debug_mode, expected one of 0,1,2; got -1."),
            (None, "invalid argument to set_sync_debug_mode"),
            (1.0, "invalid argument to set_sync_debug_mode"),
            (True, "invalid argument to set_sync_debug_mode"),
        ],
    )
    def test_other_values_are_refused_in_torch_s_words(self, given: Any, text: str) -> None:
        tcuda.set_sync_debug_mode(1)
        for use in (tcuda.set_sync_debug_mode, tcuda.sync_debug_mode):
            with pytest.raises(RuntimeError) as raised:
                use(given)
            assert raised.type is RuntimeError
            assert str(raised.value).startswith(text)
        assert tcuda.get_sync_debug_mode() == 1

    def test_only_the_first_call_of_a_process_warns_of_the_prototype(self, output_of: OutputOf) -> None:
        program = """
import warnings
import tcuda
assert tcuda.get_sync_debug_mode() == 0
try:
    tcuda.set_sync_debug_mode("bad")  # torch looks at a text before the warning
except RuntimeError:
    pass
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        tcuda.set_sync_debug_mode(5)  # and at a number after the warning
    except RuntimeError:
        pass
    tcuda.set_sync_debug_mode(1)
[warning] = caught
print(warning.category.__name__, warning.message)
print(warning.filename, warning.lineno)
"""
        assert output_of(program).splitlines() == [f"UserWarning {PROTOTYPE}", "<string> 12"]

    def test_a_call_initialises_tcuda(self, output_of: OutputOf) -> None:
        program = "import tcuda\nprint(tcuda.get_sync_debug_mode(), tcuda.is_initialized())"
        assert output_of(program) == "0 True"


class TestTheModes:
    @every_waiting_call
    def test_error_refuses_a_call_that_waits(self, operands: tuple[Any, Any], call: Call) -> None:
        call(*operands)
        tcuda.set_sync_debug_mode("error")
        with pytest.raises(RuntimeError) as raised:
            call(*operands)
        assert raised.type is RuntimeError
        assert str(raised.value) == TEXT

    @every_waiting_call
    def test_warn_warns_at_the_line_of_the_program(self, operands: tuple[Any, Any], call: Call) -> None:
        call(*operands)
        tcuda.set_sync_debug_mode("warn")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(*operands)
        assert caught
        for warning in caught:
            assert warning.category is UserWarning
            assert str(warning.message) == TEXT
            assert (warning.filename, warning.lineno) == (__file__, call.__code__.co_firstlineno)

    @every_waiting_call
    def test_default_lets_a_call_pass(self, operands: tuple[Any, Any], call: Call) -> None:
        for mode in ("error", "default"):
            tcuda.set_sync_debug_mode(mode)
        call(*operands)

    @every_explicit_call
    def test_waits_for_an_event_or_a_device_pass_as_in_torch(self, operands: tuple[Any, Any], call: Call) -> None:
        tcuda.set_sync_debug_mode("error")
        call(*operands)

    @every_passing_call
    def test_calls_that_do_not_wait_pass(self, operands: tuple[Any, Any], call: Call) -> None:
        call(*operands)
        with tcuda.sync_debug_mode("error", explicit=True):
            call(*operands)

    def test_a_refused_call_neither_waits_nor_changes_anything(self, operands: tuple[Any, Any]) -> None:
        x, _ = operands
        y = x.copy()
        y[y > 1] = -1  # a GPU compiles the kernels now
        host, stream = np.full(8, 5.0), tcuda.Stream()
        tcuda.synchronize()
        keep_busy(stream)
        tcuda.set_sync_debug_mode("error")
        for call in (stream.synchronize, lambda: x.get(stream=stream, out=host)):
            with pytest.raises(RuntimeError, match=TEXT):
                call()
        with tcuda.stream(stream), pytest.raises(RuntimeError, match=TEXT):
            x[x > 1] = -1
        assert not stream.query()
        tcuda.set_sync_debug_mode("default")
        assert x.get().tolist() == list(range(8))
        assert host.tolist() == [5.0] * 8
        stream.synchronize()

    def test_a_warning_that_is_an_error_is_raised_before_the_wait(self) -> None:
        stream = tcuda.Stream()
        keep_busy(stream)
        tcuda.set_sync_debug_mode("warn")
        with pytest.raises(UserWarning, match=TEXT):
            stream.synchronize()
        assert not stream.query()
        tcuda.set_sync_debug_mode("default")
        stream.synchronize()

    def test_the_mode_holds_for_all_threads(self) -> None:
        tcuda.set_sync_debug_mode("error")
        assert _error_in_thread(tcuda.Stream().synchronize) == TEXT


class TestScopes:
    def test_scopes_are_nested_and_the_innermost_one_holds(self) -> None:
        stream = tcuda.Stream()
        with tcuda.sync_debug_mode("error"):
            assert tcuda.get_sync_debug_mode() == 2
            with tcuda.sync_debug_mode(0):
                assert tcuda.get_sync_debug_mode() == 0
                stream.synchronize()
            with pytest.raises(RuntimeError, match=TEXT):
                stream.synchronize()
        assert tcuda.get_sync_debug_mode() == 0
        stream.synchronize()

    def test_a_scope_holds_in_its_own_thread_only(self) -> None:
        with tcuda.sync_debug_mode("error"):
            assert _error_in_thread(tcuda.Stream().synchronize) is None
            assert _error_in_thread(lambda: _require_mode(0)) is None
        tcuda.set_sync_debug_mode("error")
        with tcuda.sync_debug_mode("default"):
            tcuda.Stream().synchronize()
            assert _error_in_thread(tcuda.Stream().synchronize) == TEXT

    def test_setting_the_mode_inside_of_a_scope_ends_with_the_scope(self) -> None:
        with tcuda.sync_debug_mode("default"):
            tcuda.set_sync_debug_mode("error")
            assert tcuda.get_sync_debug_mode() == 2
            with pytest.raises(RuntimeError, match=TEXT):
                tcuda.Stream().synchronize()
            assert _error_in_thread(tcuda.Stream().synchronize) is None
        assert tcuda.get_sync_debug_mode() == 0
        tcuda.Stream().synchronize()

    @every_explicit_call
    def test_explicit_waits_are_seen_on_demand(self, operands: tuple[Any, Any], call: Call) -> None:
        with tcuda.sync_debug_mode("error", explicit=True), pytest.raises(RuntimeError) as raised:
            call(*operands)
        assert str(raised.value) == TEXT
        with tcuda.sync_debug_mode("error"):
            call(*operands)

    def test_an_exception_ends_a_scope(self) -> None:
        with contextlib.suppress(KeyError), tcuda.sync_debug_mode("error"):
            raise KeyError
        assert tcuda.get_sync_debug_mode() == 0

    def test_a_scope_may_end_in_another_thread(self) -> None:
        scope = tcuda.sync_debug_mode("error")
        scope.__enter__()
        assert _error_in_thread(lambda: scope.__exit__(None, None, None)) is None
        assert tcuda.get_sync_debug_mode() == 0
        tcuda.Stream().synchronize()

    def test_a_scope_is_a_decorator(self) -> None:
        @tcuda.sync_debug_mode("error")
        def step() -> None:
            tcuda.Stream().synchronize()

        for _ in range(2):
            with pytest.raises(RuntimeError, match=TEXT):
                step()
        tcuda.Stream().synchronize()


class TestCounting:
    @every_waiting_call
    def test_a_call_is_counted_with_its_line(self, operands: tuple[Any, Any], call: Call) -> None:
        call(*operands)
        with tcuda.SyncCounter() as counter:
            call(*operands)
        call(*operands)
        assert counter.counts()
        for row in counter.counts():
            assert (row["file"], row["line"]) == (__file__, call.__code__.co_firstlineno)

    @pytest.mark.parametrize("name", [name for name in WAITING if "get" in name or name in ("float", "str", "item")])
    def test_a_copy_to_the_host_is_one_wait(self, operands: tuple[Any, Any], name: str) -> None:
        with tcuda.SyncCounter() as counter:
            for _ in range(3):
                WAITING[name](*operands)
        assert count(counter) == 3
        for stream in (tcuda.Stream(), tcuda.default_stream()):
            with tcuda.stream(stream), tcuda.SyncCounter() as counter:
                for _ in range(3):
                    WAITING[name](*operands)
            assert count(counter) == 3

    def test_the_rows_name_the_calls_and_the_most_frequent_ones_come_first(self, operands: tuple[Any, Any]) -> None:
        _, one = operands
        stream = tcuda.Stream()
        with tcuda.SyncCounter() as counter:
            for _ in range(2):
                float(one)
            stream.synchronize()
            tcuda.synchronize()
            for _ in range(3):
                stream.record_event().synchronize()
        here = inspect.currentframe()
        assert here is not None
        last = here.f_lineno - 3
        assert counter.counts() == [
            {"call": "Event.synchronize", "file": __file__, "line": last, "count": 3},
            {"call": "ndarray.get", "file": __file__, "line": last - 4, "count": 2},
            {"call": "Stream.synchronize", "file": __file__, "line": last - 3, "count": 1},
            {"call": "synchronize", "file": __file__, "line": last - 2, "count": 1},
        ]

    def test_the_calls_of_all_threads_are_counted(self) -> None:
        with tcuda.SyncCounter() as counter:
            _error_in_thread(tcuda.Stream().synchronize)
            tcuda.Stream().synchronize()
        assert count(counter) == 2

    def test_a_refused_call_is_not_counted(self) -> None:
        with tcuda.SyncCounter() as counter, tcuda.sync_debug_mode("error"), contextlib.suppress(RuntimeError):
            tcuda.Stream().synchronize()
        assert counter.counts() == []

    def test_two_counters_count_apart_and_starting_twice_counts_once(self) -> None:
        stream = tcuda.Stream()
        first, second = tcuda.SyncCounter(), tcuda.SyncCounter()
        for _ in range(2):
            first.start()
        stream.synchronize()
        with second:
            stream.synchronize()
        for _ in range(2):
            first.stop()
        stream.synchronize()
        assert (count(first), count(second)) == (2, 1)

    def test_a_counter_that_starts_before_initialisation_initialises_nothing(self, output_of: OutputOf) -> None:
        program = """
import tcuda
counter = tcuda.SyncCounter()
counter.start()
print(tcuda.is_initialized())
x = tcuda.xp.arange(3.0)
float(x[1])
counter.stop()
float(x[1])
print([(row["call"], row["line"], row["count"]) for row in counter.counts()])
"""
        assert output_of(program).splitlines() == ["False", "[('ndarray.get', 7, 1)]"]

    def test_a_forked_child_goes_on_counting(self, output_of: OutputOf) -> None:
        program = """
import os
import tcuda
counter = tcuda.SyncCounter()
counter.start()
if os.fork():
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
tcuda.Stream().synchronize()
print([(row["call"], row["line"], row["count"]) for row in counter.counts()], flush=True)
os._exit(0)
"""
        assert output_of(program) == "[('Stream.synchronize', 8, 1)]"

    def test_the_waits_of_a_clean_up_are_not_counted(self) -> None:
        from tcuda.comm._order import Queue, settle

        stream = tcuda.Stream()
        keep_busy(stream)
        with tcuda.SyncCounter() as counter, tcuda.sync_debug_mode("error", explicit=True):
            settle([Queue(stream.device_index, stream.cuda_stream)])
        assert stream.query()
        assert counter.counts() == []


class TestWithoutAWatcher:
    def test_the_calls_of_the_runtime_are_its_own(self, runtime: Runtime) -> None:
        names = ("streamSynchronize", "eventSynchronize", "deviceSynchronize", "memcpy", "memcpyAsync")
        before = [vars(cuda)[name] for name in names]
        with tcuda.SyncCounter():
            assert all(vars(cuda)[name] is not own for name, own in zip(names, before, strict=True))
        assert [vars(cuda)[name] for name in names] == before
        assert before == [getattr(runtime, name) for name in names]

    def test_a_mode_that_is_refused_changes_nothing(self) -> None:
        with pytest.raises(RuntimeError):
            tcuda.set_sync_debug_mode(3)
        assert not waits.watched


@pytest.mark.emulated
class TestEmulatedCopies:
    def test_a_copy_to_page_locked_memory_waits_only_if_the_program_says_so(self, runtime: Runtime) -> None:
        x, host = tcuda.xp.arange(8.0), np.empty(8)
        runtime.hostRegister(host.ctypes.data, host.nbytes, 0)
        try:
            with tcuda.SyncCounter() as counter:
                x.get(out=host, blocking=False)
                x.data.copy_to_host_async(host.ctypes.data, host.nbytes)
                assert counter.counts() == []
                x.get(out=host)
                assert count(counter) == 1
        finally:
            tcuda.synchronize()
            runtime.hostUnregister(host.ctypes.data)

    @pytest.mark.parametrize(
        "read",
        [lambda x: x.nonzero(), lambda x: x[x > 1], lambda x: operator.setitem(x, x > 1, 0), tcuda.xp.unique],
        ids=["nonzero", "mask", "assignment at a mask", "unique"],
    )
    def test_a_function_that_needs_the_contents_waits_for_earlier_work(self, read: Callable[[Any], object]) -> None:
        x, stream = tcuda.xp.arange(8.0), tcuda.Stream()
        stream.wait_stream(tcuda.current_stream())
        with tcuda.stream(stream):
            tcuda._sleep(100_000_000)
            before = stream.record_event()
            assert not before.query()
            read(x)
        assert before.query()

    def test_a_mask_without_elements_needs_no_wait(self) -> None:
        x, mask = tcuda.xp.empty(0), tcuda.xp.empty(0, bool)
        with tcuda.sync_debug_mode("error"):
            assert x[mask].shape == (0,)


def _require_mode(mode: int) -> None:
    if tcuda.get_sync_debug_mode() != mode:
        raise RuntimeError(f"the mode is {tcuda.get_sync_debug_mode()}")


def _error_in_thread(call: Callable[[], object]) -> str | None:
    """Call ``call`` in a thread, and return the text of its error."""
    errors: list[str] = []

    def run() -> None:
        try:
            call()
        except RuntimeError as error:
            errors.append(str(error))

    in_thread(run)
    return errors[0] if errors else None
