"""Programs with arrays: what a race of a program says, and the state after an error."""

from __future__ import annotations

import gc
import pickle
import threading
from typing import Any

import pytest

import tcuda
from tcuda._process.ledger import ledger
from tcuda.sanitizer import CUDASanitizerErrors, RaceWarning, _detector, check

pytestmark = pytest.mark.emulated


def test_a_missing_wait(xp: Any) -> None:
    main, side = tcuda.current_stream(), tcuda.Stream()
    with check(mode="collect") as report:
        x = xp.arange(64, dtype="float32").reshape(8, 8)
        with tcuda.stream(side):
            x[2:4, 1:5] *= 2
        tcuda.synchronize()
    found = report[0]
    assert found.missing.sentence.startswith("`side.wait_stream(main)` before line ")
    assert found.current.place == found.missing.before
    assert (found.current.stream, found.previous.stream) == (side.cuda_stream, main.cuda_stream)
    assert (found.previous.operation, found.previous.elements) == ("arange", (17, 28))
    assert found.allocation is not None
    assert (found.allocation.address, found.allocation.device) == (x.data.ptr, x.device.id)
    assert found.allocation.stack == found.previous.stack


def test_a_missing_record_stream(xp: Any) -> None:
    main, side = tcuda.current_stream(), tcuda.Stream()
    with check(mode="collect") as report:
        x = xp.ones(1000)
        side.wait_stream(main)
        with tcuda.stream(side):
            x.sum()
        del x
        xp.zeros(1000)
        tcuda.synchronize()
    found = report[0]
    assert found.use_after_free
    assert found.missing.call == "tcuda.memory.record_stream(x, side)"
    assert found.previous_allocation is not None
    assert found.previous_allocation.freed_stack is not None
    assert found.previous_allocation.freed_stack[0].line == found.previous.stack[0].line + 1
    assert found.missing.before == found.previous.stack[0]


def test_a_missing_record_stream_of_a_program_with_streams_of_cupy(xp: Any) -> None:
    main, side = xp.cuda.Stream(), xp.cuda.Stream(non_blocking=True)
    with check(mode="collect") as report:
        with main:
            x = xp.ones(1000)
            side.wait_event(main.record())
            with side:
                x.sum()
            del x
            xp.zeros(1000)
        tcuda.synchronize()
    missing = report[0].missing
    assert missing.call == "tcuda.memory.record_stream(x, side)"
    assert missing.instead.endswith("between the last use and the free: main.wait_event(side.record())")
    assert missing.instead in missing.sentence
    assert str(report[0]).endswith(f", or {missing.instead}")


class TestTheLastUse:
    """The place and the variable in the advice about an array that dies too early."""

    @staticmethod
    def advice(*functions: Any) -> tuple[str, int | None]:
        """Return the missing call, and the line of the first function before which the call belongs."""
        with check(mode="collect") as report:
            functions[0](tcuda.xp, tcuda.current_stream(), tcuda.Stream())
            tcuda.synchronize()
        missing = report.races[0].missing
        first = functions[0].__code__.co_firstlineno
        return missing.call, None if missing.before is None else missing.before.line - first

    def test_a_loop_that_rebinds_the_variable(self) -> None:
        def loop(xp: Any, main: Any, side: Any) -> None:
            for number in range(3):
                batch = xp.full(1000, number)  # frees the array before, and on its first way nothing
                side.wait_stream(main)
                with tcuda.stream(side):
                    batch.sum()

        assert self.advice(loop) == ("tcuda.memory.record_stream(batch, side)", 5)

    def test_the_caller_has_the_variable(self) -> None:
        def make(xp: Any) -> Any:
            return xp.ones(1000)

        def work(array: Any, side: Any) -> None:
            with tcuda.stream(side):
                array.sum()

        def program(xp: Any, main: Any, side: Any) -> None:
            for _ in range(3):
                x: Any = make(xp)
                side.wait_stream(main)
                work(x, side)

        assert self.advice(program) == ("tcuda.memory.record_stream(x, side)", 4)

    def test_an_array_without_a_variable(self) -> None:
        def program(xp: Any, main: Any, side: Any) -> None:
            kept = {}
            for _ in range(3):
                kept["x"] = xp.ones(1000)
                side.wait_stream(main)
                with tcuda.stream(side):
                    kept["x"].sum()

        assert self.advice(program) == ("tcuda.memory.record_stream(array, side)", 6)

    def test_an_array_of_one_line(self) -> None:
        def program(xp: Any, main: Any, side: Any) -> None:
            code = 'extern "C" __global__ void one(float* x) { x[threadIdx.x] = 1; }'
            kernel = xp.RawKernel(code, "one")
            kernel((1,), (8,), (xp.empty(8, "f"),), stream=side)
            xp.zeros(8, "f")

        assert self.advice(program) == ("tcuda.memory.record_stream(array, side)", None)

    def test_an_attribute_of_an_object(self) -> None:
        class Loader:
            def __init__(self, xp: Any, side: Any) -> None:
                self.batch: Any = xp.ones(1000)
                self.side = side

            def step(self) -> None:
                with tcuda.stream(self.side):
                    self.batch.sum()

        def program(xp: Any, main: Any, side: Any) -> None:
            loader = Loader(xp, side)
            side.wait_stream(main)
            loader.step()
            loader.batch = None
            xp.zeros(1000)

        line = Loader.step.__code__.co_firstlineno - program.__code__.co_firstlineno + 2
        assert self.advice(program) == ("tcuda.memory.record_stream(self.batch, side)", line)


def test_a_missing_wait_before_a_launch(xp: Any) -> None:
    main, side = tcuda.Stream(), tcuda.Stream()
    x, graph = xp.zeros(10), tcuda.CUDAGraph()
    with tcuda.graph(graph):
        x += 1
    tcuda.synchronize()
    with check(mode="collect") as report:
        with tcuda.stream(side):
            x[:] = 5
        with tcuda.stream(main):
            graph.replay()
        tcuda.synchronize()
    found = report[0]
    assert found.missing.sentence.startswith("`main.wait_stream(side)` before the launch in line ")
    assert found.current.launch_stack is not None
    assert found.missing.before == found.current.launch_stack[0]


class TestStateAfterAnError:
    @pytest.fixture
    def raced(self, xp: Any) -> Any:
        """An array with work of a stream that the current stream does not wait for."""
        return xp.zeros(8)

    def test_the_operation_is_done_and_the_stream_is_restored(self, raced: Any) -> None:
        main, side = tcuda.current_stream(), tcuda.Stream()
        with check():
            raced += 1
            with pytest.raises(CUDASanitizerErrors), tcuda.stream(side):
                raced += 2
            assert tcuda.current_stream() == main
            tcuda.synchronize()
            assert raced.get().tolist() == [3] * 8

    def test_no_memory_is_lost(self, raced: Any) -> None:
        with check():
            raced += 1
            before = tcuda.memory_allocated()
            with pytest.raises(CUDASanitizerErrors), tcuda.stream(tcuda.Stream()):
                raced + 2
            tcuda.synchronize()
        assert tcuda.memory_allocated() == before

    def test_a_launch_is_done(self, raced: Any) -> None:
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            raced += 1
        tcuda.synchronize()
        with check():
            raced += 1
            with pytest.raises(CUDASanitizerErrors), tcuda.stream(tcuda.Stream()):
                graph.replay()
            tcuda.synchronize()
            assert raced.get().tolist() == [2] * 8


def test_a_pickled_error_has_its_race(xp: Any) -> None:
    with check() as report:
        x = xp.zeros(4)
        with pytest.raises(CUDASanitizerErrors) as caught, tcuda.stream(tcuda.Stream()):
            x += 1
        tcuda.synchronize()
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value) == str(report[0])
    assert copied.errors[0].race == report[0]


def test_a_pickled_warning_has_its_race(xp: Any) -> None:
    with check(mode="warn") as report:
        x = xp.zeros(4)
        with pytest.raises(RaceWarning) as caught, tcuda.stream(tcuda.Stream()):
            x += 1
        tcuda.synchronize()
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (str(copied), copied.race) == (str(report[0]), report[0])


def test_after_the_check_nothing_is_told(xp: Any) -> None:
    from tcuda import _core
    from tcuda.emulation.runtime.choice import emulated_runtime

    with check(mode="collect"):
        detector = _detector._started.detector  # type: ignore[union-attr]
        xp.zeros(4)
    before = detector.operations
    xp.zeros(4)
    assert detector.operations == before == 1
    assert emulated_runtime().races.detector is None
    another = _core.RaceDetector(print)
    another.attach(ledger())  # raises an error if a detector is attached
    another.detach()


def test_checks_begin_and_end_while_other_threads_work(xp: Any) -> None:
    done = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while not done.is_set():
                with tcuda.stream(tcuda.Stream()) as _:
                    x = xp.zeros(16)
                    x += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            with check(mode="collect") as report:
                xp.zeros(4)
            assert not report
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert errors == []


def test_a_race_keeps_no_variable_of_the_program_alive(xp: Any) -> None:
    gc.collect()  # garbage of an earlier test may hold memory
    before = tcuda.memory_allocated()
    x = xp.zeros(1000)
    with check(mode="collect") as report:
        x += 1
        with tcuda.stream(tcuda.Stream()):
            x += 1
        tcuda.synchronize()
    del x
    assert len(report) == 1
    assert tcuda.memory_allocated() == before
