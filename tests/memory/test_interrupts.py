"""Signal handlers that raise while the allocator calls the Python code of emulated streams: no exception is lost."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, NoReturn

import pytest

from support.threads import in_thread
from tcuda import _core

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.emulated

PROGRAM = """
import gc, random, signal, sys
import tcuda
from tcuda import _core, xp
from tcuda.emulation.runtime.driver_streams import DriverStreams

class Private(Exception):
    pass

entries = {function.__code__ for function in vars(DriverStreams).values() if hasattr(function, "__code__")}
raised, arrived, ignored = [], [], []

def handle(number, frame):
    while frame is not None and frame.f_code not in entries:
        frame = frame.f_back
    if frame is not None:  # the core has called this Python code
        error = (KeyboardInterrupt, Private)[len(raised) % 2](len(raised))
        raised.append(error)
        raise error

def arrive(error):
    while error is not None:
        if error not in arrived:
            assert type(error) in (KeyboardInterrupt, Private), repr(error)
            arrived.append(error)
        error = error.__context__

def ignore(unraisable):  # Python ignores exceptions of signal handlers in __del__() in this way
    assert unraisable.object.__name__ == "__del__", unraisable
    ignored.append(unraisable.exc_value)
    arrive(unraisable.exc_value)

sys.unraisablehook = ignore
tcuda.init()
side = tcuda.Stream()
core = tcuda._process.ledger.ledger()
gc.collect()

def attempt(call):
    try:
        return call()
    except (KeyboardInterrupt, Private) as error:
        arrive(error)

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
turns = 0
while len(raised) < 60:
    turns += 1
STEPS
signal.setitimer(signal.ITIMER_REAL, 0)
for _ in range(100):
    attempt(lambda: None)
assert set(map(id, raised)) == set(map(id, arrived)), (raised, arrived)
gc.collect()
tcuda.synchronize()
tcuda.empty_cache()
statistics = tcuda.memory_stats()
left = {key: value for key, value in statistics.items() if key.endswith(".current") and value}
assert not left, left
print("end", len(raised), len(ignored), turns)
"""

STEPS = {
    "allocating and freeing": """
address = attempt(lambda: tcuda.caching_allocator_alloc(1000 * (turns % 7 + 1)))
if address:
    attempt(lambda: core.record_stream(0, address, side.cuda_stream))
    tcuda._sleep(1000)
    attempt(lambda: core.free(address))
""",
    "the cache": """
with tcuda.stream(side):
    address = core.allocate(0, 3 << 20, side.cuda_stream)
core.free(address)
attempt(lambda: core.empty_cache(0))
""",
    "pools": """
pool = 0, core.next_pool()
core.create_pool(0, pool, None, True, False)
core.begin_pool(0, pool)
address = attempt(lambda: core.allocate(0, 1000, 0))
attempt(lambda: core.end_pool(0, pool))
if address:
    core.free(address)
attempt(lambda: core.release_pool(0, pool))
""",
    "captures": """
graph = tcuda.CUDAGraph()
with tcuda.stream(side):
    attempt(graph.capture_begin)
    if tcuda.is_current_stream_capturing():
        address = attempt(lambda: core.allocate(0, 1000, side.cuda_stream))
        xp.zeros(10)
        if address:
            core.free(address)
        attempt(graph.capture_end)
attempt(graph.reset)
""",
    "arrays": """
array = attempt(lambda: xp.empty(1000))
if array is not None:
    tcuda._sleep(1000)
    attempt(lambda: tcuda.memory.record_stream(array, side))
    with tcuda.stream(side):
        tcuda._sleep(100_000)
    last = [array]
    del array
    attempt(last.clear)  # the code that runs after the free raises the exception
""",
}


@pytest.mark.long
@pytest.mark.parametrize("steps", STEPS)
def test_every_exception_of_a_signal_handler_is_raised_or_reported(output_of: OutputOf, steps: str) -> None:
    indented = textwrap.indent(STEPS[steps].strip(), "    ")
    output = output_of(PROGRAM.replace("STEPS", indented))
    assert output.startswith("end ")


class Broken:
    """The streams of a device; each call fails with an exception that has no CUDA status."""

    def capture_of(self, device: int, stream: int) -> int:
        return 0

    def record(self, device: int, stream: int) -> int:
        raise LookupError("there are no events")

    def query_stream(self, device: int, stream: int) -> int:
        raise LookupError("there is no stream")

    synchronize_stream = query_stream


class TestErrorsWithoutStatus:
    """An exception of the streams that is no CUDA error is raised unchanged, not as an error with the status 999."""

    @pytest.fixture
    def ledger(self) -> _core.Ledger:
        def fail(*facts: object) -> NoReturn:
            raise AssertionError(facts)

        memory = _core.EmulatedMemory(1 << 30)
        options = _core.Settings()
        options.trim_always = True  # each allocation that needs new memory asks which streams are idle
        return _core.Ledger(_core.EmulatedDriver([memory], Broken()), 1, options, fail, fail)

    def used_elsewhere(self, ledger: _core.Ledger) -> int:
        address = ledger.allocate(0, 1000, 0)
        assert ledger.record_stream(0, address, 16)
        return address

    def test_a_call_that_waits_raises_the_exception(self, ledger: _core.Ledger) -> None:
        assert ledger.free(ledger.allocate(0, 1000, 0))
        with pytest.raises(LookupError, match="there is no stream"):
            ledger.empty_cache(0)

    def test_an_allocation_raises_the_exception_and_keeps_no_memory(self, ledger: _core.Ledger) -> None:
        assert ledger.free(ledger.allocate(0, 1000, 0))
        with pytest.raises(LookupError, match="there is no stream"):
            ledger.allocate(0, 3 << 20, 0)
        assert ledger.allocated(0) == 0

    def test_a_free_in_the_main_thread_raises_the_exception(self, ledger: _core.Ledger) -> None:
        address = self.used_elsewhere(ledger)
        with pytest.raises(LookupError, match="there are no events"):
            ledger.free(address)
        assert ledger.allocated(0) == 0

    def test_all_exceptions_of_the_tries_are_contexts_of_the_last(self) -> None:
        tries: list[str] = []

        class Interrupted:
            """The streams of a device; the first two tries to record an event fail."""

            def capture_of(self, device: int, stream: int) -> int:
                return 0

            query = destroy_event = query_stream = synchronize_stream = capture_of

            def record(self, device: int, stream: int) -> int:
                tries.append("record")
                if len(tries) == 1:
                    raise LookupError("first")
                if len(tries) > 2:
                    return 1
                try:
                    raise LookupError("second")
                finally:
                    raise LookupError("third")

        memory = _core.EmulatedMemory(1 << 30)
        ledger = _core.Ledger(_core.EmulatedDriver([memory], Interrupted()), 1, _core.Settings(), print, print)
        address = self.used_elsewhere(ledger)
        with pytest.raises(LookupError, match="third") as caught:
            ledger.free(address)
        contexts: list[str] = []
        error: BaseException | None = caught.value
        while error is not None:
            contexts.append(str(error))
            error = error.__context__
        assert contexts == ["third", "second", "first"]

    def test_a_free_in_another_thread_reports_the_exception(
        self, ledger: _core.Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: list[str] = []
        monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(str(unraisable.exc_value)))
        address = self.used_elsewhere(ledger)
        in_thread(ledger.free, address)
        assert told == ["there are no events"]
        assert ledger.allocated(0) == 0
