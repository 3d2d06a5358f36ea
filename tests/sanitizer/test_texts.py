"""The texts of races: torch's lines word for word, then those of tcuda."""

from __future__ import annotations

import functools
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

import tcuda
from support.found_races import FoundAccess, FoundAllocation, FoundRace, stack
from tcuda._sanitizer import (
    Access,
    AccessType,
    CUDASanitizerErrors,
    SynchronizationError,
    UnsynchronizedAccessError,
)
from tcuda.sanitizer._description import race_of

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime
    from tcuda.sanitizer._race import Race

PROGRAM = "/home/user/program.py"
PACKAGE = Path(tcuda.__file__).parent


def described(found: FoundRace) -> Race:
    return race_of(cast("Any", found))


def written(stream: int, line: int, **more: Any) -> FoundAccess:
    return FoundAccess(stream=stream, stack=stack(("step", PROGRAM, line)), number=line, **more)


def trace(line: int, name: str = "step") -> traceback.StackSummary:
    return traceback.StackSummary.from_list([(PROGRAM, line, name, None)])


def test_an_error_that_a_program_makes_has_torchs_text() -> None:
    error = UnsynchronizedAccessError(
        1,
        trace(1, "alloc"),
        Access(AccessType.WRITE, 1, 1001, "schema", ["b"], True, trace(3)),
        Access(AccessType.READ, 2, 1000, "schema", ["a"], False, trace(2)),
    )
    assert str(error) == (
        "============================\n"
        "CSAN detected a possible data race on tensor with data pointer 1\n"
        "Access by stream 1001 during kernel:\n"
        "schema\n"
        "writing to argument(s) b, and to the output\n"
        "With stack trace:\n"
        f'  File "{PROGRAM}", line 3, in step\n'
        "\n"
        "Previous access by stream 1000 during kernel:\n"
        "schema\n"
        "reading from argument(s) a\n"
        "With stack trace:\n"
        f'  File "{PROGRAM}", line 2, in step\n'
        "\n"
        "Tensor was allocated with stack trace:\n"
        f'  File "{PROGRAM}", line 1, in alloc\n'
    )


def test_memory_without_a_stack_has_torchs_sentence() -> None:
    access = Access(AccessType.WRITE, 1, 1, "fill", [], True, trace(1))
    text = str(UnsynchronizedAccessError(1, None, access, access))
    assert text.endswith("Trace for tensor allocation not found.")
    assert "fill\nwriting to the output\nWith stack trace:\n" in text


def test_the_errors_of_an_operation_are_counted_as_torch_counts_them() -> None:
    errors = [SynchronizationError(), SynchronizationError()]
    raised = CUDASanitizerErrors(errors)
    assert str(raised) == "detected 2 errors"
    assert raised.errors is errors
    assert issubclass(UnsynchronizedAccessError, SynchronizationError)
    assert not issubclass(CUDASanitizerErrors, SynchronizationError)


def test_the_whole_text_of_a_race(runtime: Runtime) -> None:
    main, side = tcuda.Stream(), tcuda.Stream()
    found = FoundRace(
        current=written(side.cuda_stream, 14, operation="add", label="x", kind="read"),
        previous=written(main.cuda_stream, 12, region=(0x0FF0, 4, (128,), (4,))),
        allocation=FoundAllocation(stack=stack(("make", PROGRAM, 3), ("step", PROGRAM, 10))),
    )
    race = described(found)
    assert str(race) == (
        "read after write\n"
        f"   {PROGRAM}:12  fill writes memory on main of device 0\n"
        f"   {PROGRAM}:14  add reads its argument x on side of device 0\n"
        "   both touch elements 0 to 63 of x\n"
        f"   missing: side.wait_stream(main) before {PROGRAM}:14"
    )
    assert str(UnsynchronizedAccessError.of(race)) == (
        "============================\n"
        "CSAN detected a possible data race on tensor with data pointer 4096\n"
        f"Access by stream {side.cuda_stream} during kernel:\n"
        "add\n"
        "reading from argument(s) x\n"
        "With stack trace:\n"
        f'  File "{PROGRAM}", line 14, in step\n'
        "\n"
        f"Previous access by stream {main.cuda_stream} during kernel:\n"
        "fill\n"
        "writing to the output\n"
        "With stack trace:\n"
        f'  File "{PROGRAM}", line 12, in step\n'
        "\n"
        "Tensor was allocated with stack trace:\n"
        f'  File "{PROGRAM}", line 10, in step\n'
        f'  File "{PROGRAM}", line 3, in make\n'
        "\n"
        "Kind: read after write. Confidence: exact.\n"
        "Shared memory: 256 bytes. The current access: elements 0 to 63 of 64 of the argument `x`. The previous "
        "access: elements 4 to 67 of 128.\n"
        "Streams: side (current), main (previous).\n"
        "Missing order: `side.wait_stream(main)` before line 14 of program.py orders them."
    )


def test_a_possible_access_makes_the_race_possible(runtime: Runtime) -> None:
    main, side = tcuda.Stream(), tcuda.Stream()
    race = described(FoundRace(written(side.cuda_stream, 2), written(main.cuda_stream, 1, confidence="possible")))
    assert "Confidence: possible." in race.details


def test_a_use_after_free_has_the_stack_of_the_free(runtime: Runtime) -> None:
    main, side = tcuda.Stream(), tcuda.Stream()
    freed = FoundAllocation(stack=stack(("make", PROGRAM, 2)), freed_stack=stack(("step", PROGRAM, 6)))
    race = described(
        FoundRace(
            current=written(main.cuda_stream, 8),
            previous=written(side.cuda_stream, 5, kind="read"),
            kind="write after read",
            use_after_free=True,
            allocation=FoundAllocation(stack=stack(("make", PROGRAM, 7))),
            previous_allocation=freed,
        )
    )
    assert race.missing.call == "tcuda.memory.record_stream(array, side)"
    assert race.details.endswith(
        "Kind: use after free, write after read. Confidence: exact.\n"
        "Shared memory: 256 bytes. The current access: elements 0 to 63 of 64. The previous access: elements 0 to 63 "
        "of 64.\n"
        "Streams: main (current), side (previous).\n"
        "The memory of the previous access was allocated with stack trace:\n"
        f'  File "{PROGRAM}", line 2, in make\n'
        "The memory of the previous access was freed with stack trace:\n"
        f'  File "{PROGRAM}", line 6, in step\n'
        "Missing order: `tcuda.memory.record_stream(array, side)` before line 5 of program.py, which uses the array "
        "last, orders them."
    )


def test_a_race_of_the_host_asks_for_a_synchronization(runtime: Runtime) -> None:
    main = tcuda.Stream()
    host = FoundAccess(operation="read", kind="read", device=-1, stream=0, host=True, stack=stack(("f", PROGRAM, 9)))
    race = described(FoundRace(host, written(main.cuda_stream, 8, operation="copy")))
    torchs = str(UnsynchronizedAccessError.of(race))
    assert "Access by the host during kernel:\nread\nreading from\nWith stack trace:" in torchs
    assert race.missing.call == "main.synchronize()"
    assert race.missing.sentence == "`main.synchronize()` before line 9 of program.py orders them."
    assert race.current.stream_name == "the host"


def test_the_host_is_known_to_touch_one_byte_of_the_range_of_a_copy(runtime: Runtime) -> None:
    touch = FoundAccess(
        operation="read by the host", kind="read", device=-1, stream=0, host=True, region=(0x1028, 1, (1,), (1,))
    )
    copy = FoundAccess(operation="copy", region=(0x1000, 1, (65536,), (1,)))
    race = described(FoundRace(touch, copy, overlap=(0x1028, 1)))
    assert "Shared memory: the host touches byte 40 of 65,536 first, and perhaps other bytes later." in race.details
    assert race.current.where == "byte 40 of 65536"
    assert race.overlap == (0x1028, 1)


def test_a_graph_must_wait_before_its_launch(runtime: Runtime) -> None:
    main, side = tcuda.Stream(), tcuda.Stream()
    node = written(side.cuda_stream, 4, launch_stack=stack(("replay", PROGRAM, 20)))
    race = described(FoundRace(node, written(main.cuda_stream, 19)))
    assert race.missing.before == ("replay", PROGRAM, 20)
    assert race.missing.sentence == "`side.wait_stream(main)` before the launch in line 20 of program.py orders them."
    assert (
        f'The graph of the current access was launched with stack trace:\n  File "{PROGRAM}", line 20, in replay\n'
        in race.details
    )


def test_branches_of_a_graph_must_wait_in_the_capture(runtime: Runtime) -> None:
    launch = stack(("replay", PROGRAM, 20))
    race = described(FoundRace(written(7, 5, launch_stack=launch), written(7, 4, launch_stack=launch)))
    assert race.missing.sentence == (
        "In the capture, a wait of the stream of line 5 of program.py for the stream of line 4 of program.py, before "
        "line 5 of program.py, orders them."
    )


def test_per_thread_default_streams_are_synchronized_by_their_threads(runtime: Runtime) -> None:
    own = tcuda.ExternalStream(2)
    race = described(FoundRace(written(own.cuda_stream, 9), written(2, 4)))
    assert race.missing.call == "tcuda.current_stream().synchronize()"
    assert race.missing.before == ("step", PROGRAM, 9)
    assert race.missing.sentence == (
        "`tcuda.current_stream().synchronize()` in the other thread, after line 4 of program.py, orders them."
    )
    assert race.previous.stream_name == "the stream 0x2 of another thread"


def test_streams_without_names_are_named_by_their_handles(runtime: Runtime) -> None:
    race = described(FoundRace(written(0xABC0, 2), written(0xABD0, 1)))
    assert race.missing.sentence == (
        "A wait of the stream 0xabc0 for the stream 0xabd0 before line 2 of program.py orders them."
    )
    assert race.missing.call == "<the stream 0xabc0>.wait_stream(<the stream 0xabd0>)"


def test_an_operation_without_a_stack_has_no_line(runtime: Runtime) -> None:
    race = described(FoundRace(FoundAccess(stream=0xABC0), FoundAccess(stream=0xABD0)))
    assert race.missing.before is None
    assert race.missing.sentence.endswith(" before the operation orders them.")
    assert race.as_dict()["before"] is None


def test_the_data_of_a_race(runtime: Runtime) -> None:
    main, side = tcuda.Stream(), tcuda.Stream()
    found = FoundRace(
        current=written(side.cuda_stream, 14, operation="add", label="x", kind="read"),
        previous=written(main.cuda_stream, 12),
        overlap=(0x1010, 32),
        allocation=FoundAllocation(stack=stack(("make", PROGRAM, 3))),
    )
    data = described(found).as_dict()
    assert {
        name: data[name] for name in ("kind", "use_after_free", "missing", "before", "element_range", "overlap")
    } == {
        "kind": "read after write",
        "use_after_free": False,
        "missing": "side.wait_stream(main)",
        "before": {"file": PROGRAM, "line": 14},
        "element_range": [4, 11],
        "overlap": [0x1010, 32],
    }
    assert data["current"] == {
        "operation": "add",
        "argument": "x",
        "kind": "read",
        "device": 0,
        "stream": side.cuda_stream,
        "stream_name": "side",
        "host": False,
        "confidence": "exact",
        "number": 14,
        "address": 0x1000,
        "shape": [64],
        "strides": [4],
        "itemsize": 4,
        "element_range": [4, 11],
        "stack": [{"name": "step", "filename": PROGRAM, "line": 14}],
        "launch_stack": None,
    }
    assert data["allocation"]["stack"] == [{"name": "make", "filename": PROGRAM, "line": 3}]
    assert data["previous"]["stream_name"] == "main"


class TestStreamNames:
    """The names of streams in the running code."""

    @staticmethod
    def missing(current: tcuda.Stream, previous: tcuda.Stream) -> str:
        accesses = [
            FoundAccess(stream=handle, device=device)
            for handle, device in [(s.cuda_stream, s.device_index) for s in (current, previous)]
        ]
        del current, previous
        return described(FoundRace(*accesses)).missing.call

    def test_items_and_attributes_are_named(self, runtime: Runtime) -> None:
        class Pipeline:
            def __init__(self) -> None:
                self.copies = tcuda.Stream()

        pipeline, streams = Pipeline(), {"main": tcuda.Stream()}
        assert self.missing(pipeline.copies, streams["main"]) == "pipeline.copies.wait_stream(streams['main'])"
        ring = [tcuda.Stream(), tcuda.Stream()]
        assert self.missing(ring[1], ring[0]) == "ring[1].wait_stream(ring[0])"

    def test_items_of_attributes_and_attributes_of_items_are_named(self, runtime: Runtime) -> None:
        class Pipeline:
            def __init__(self) -> None:
                self.streams = {"up": tcuda.Stream()}
                self.copies = tcuda.Stream()

        stages = [Pipeline(), Pipeline()]
        call = self.missing(stages[1].copies, stages[0].copies)
        assert call == "stages[1].copies.wait_stream(stages[0].copies)"
        pipeline = stages.pop()
        call = self.missing(pipeline.streams["up"], pipeline.copies)
        assert call == "pipeline.streams['up'].wait_stream(pipeline.copies)"

    def test_a_large_object_is_not_looked_through(self, runtime: Runtime) -> None:
        many: list[list[Any]] = [[None] * 64 for _ in range(64)]
        many[63][62:] = tcuda.Stream(), tcuda.Stream()
        assert self.missing(*many[63][62:]).startswith("<the stream 0x")
        many[0] = many.pop()
        assert self.missing(*many[0][62:]) == "many[0][62].wait_stream(many[0][63])"

    def test_default_streams_are_named_by_their_function(self, runtime: Runtime) -> None:
        side = tcuda.Stream()
        default = FoundAccess(stream=0), FoundAccess(stream=1)
        for access in default:
            found = FoundRace(FoundAccess(stream=side.cuda_stream), access)
            assert described(found).missing.call == "side.wait_stream(tcuda.default_stream())"

    def test_a_current_stream_without_a_name_is_the_current_stream(self, runtime: Runtime) -> None:
        def handle_of_new() -> int:
            return tcuda.current_stream().cuda_stream

        main = tcuda.Stream()
        with tcuda.stream(tcuda.Stream()):
            found = FoundRace(FoundAccess(stream=handle_of_new()), FoundAccess(stream=main.cuda_stream))
            assert described(found).missing.call == "tcuda.current_stream().wait_stream(main)"

    def test_objects_of_the_program_are_not_asked(self, runtime: Runtime) -> None:
        class Angry:
            def __getattribute__(self, name: str) -> Any:
                raise AssertionError(f"read {name}")

        angry = Angry()
        main, side = tcuda.Stream(), tcuda.Stream()
        assert described(
            FoundRace(FoundAccess(stream=side.cuda_stream), FoundAccess(stream=main.cuda_stream))
        ).missing.call == ("side.wait_stream(main)")
        del angry


@pytest.mark.parametrize("name", ["_race.py", "_cupy/x.py"])
def test_frames_of_tcuda_are_left_out(name: str, runtime: Runtime) -> None:
    inner = f"{PACKAGE}/{name}"
    found = FoundRace(
        FoundAccess(stack=stack(("add", inner, 1), ("step", PROGRAM, 3), ("main", inner, 9), ("<module>", PROGRAM, 8))),
        FoundAccess(stack=stack(("add", inner, 1))),
    )
    race = described(found)
    assert [frame.line for frame in race.current.stack] == [3, 8]
    assert [frame.filename for frame in race.previous.stack] == [inner]


PACKAGES = "/venv/lib/python3.11/site-packages"


def test_a_stack_begins_at_the_function_that_pytest_calls(runtime: Runtime) -> None:
    fixture, test = f"{PROGRAM}/conftest.py", f"{PROGRAM}/test_step.py"
    frames = stack(
        ("steps", fixture, 4),
        ("call_fixture_func", f"{PACKAGES}/_pytest/fixtures.py", 930),
        ("test_step", test, 9),
        ("pytest_pyfunc_call", f"{PACKAGES}/_pytest/python.py", 187),
        ("_multicall", f"{PACKAGES}/pluggy/_callers.py", 121),
        ("<module>", "/venv/bin/pytest", 8),
    )
    race = described(FoundRace(FoundAccess(stack=frames), FoundAccess()))
    assert [(frame.filename, frame.line) for frame in race.current.stack] == [(fixture, 4), (test, 9)]


def test_a_file_of_pytest_is_no_place_of_a_mend(runtime: Runtime) -> None:
    frames = stack(
        ("funcargs", f"{PACKAGES}/_pytest/runner.py", 7),
        ("test_step", PROGRAM, 9),
        ("pytest_pyfunc_call", f"{PACKAGES}/_pytest/python.py", 187),
    )
    race = described(FoundRace(FoundAccess(stack=frames, stream=0xABC0), FoundAccess(stream=0xABD0)))
    assert race.missing.before == ("test_step", PROGRAM, 9)


def test_the_demo_is_a_program_of_a_user(runtime: Runtime) -> None:
    demo = f"{PACKAGE}/demo/train.py"
    race = described(FoundRace(FoundAccess(stack=stack(("step", demo, 5))), FoundAccess()))
    assert race.missing.before == ("step", demo, 5)


def names_in_program(current: int, previous: int, **variables: Any) -> str:
    """Return the missing call of a race between two streams in a program with variables."""
    found = FoundRace(FoundAccess(stream=current), FoundAccess(stream=previous))
    variables["find"] = functools.partial(race_of, cast("Any", found))
    exec(compile("missing = find().missing.call", PROGRAM, "exec"), variables)
    return str(variables["missing"])


LIKE_CUPYS = type("Stream", (), {"__module__": "cupy.cuda.stream", "ptr": 0xABC0, "device_id": 0})
CUPY = ModuleType("cupy")


class TestCupysWords:
    """Programs with streams of CuPy, on both runtimes: CuPy's classes are known by the name of their module."""

    def test_a_default_stream_has_cupys_name(self, runtime: Runtime) -> None:
        variables = {"side": LIKE_CUPYS()}
        assert names_in_program(0xABC0, 0, **variables) == "side.wait_event(cupy.cuda.Stream.null.record())"
        call = names_in_program(0, 0xABC0, cp=CUPY, **variables)
        assert call == "cp.cuda.Stream.null.wait_event(side.record())"

    def test_streams_without_a_variable_have_cupys_functions(self, runtime: Runtime) -> None:
        with tcuda.stream(tcuda.Stream()):
            handle = tcuda.current_stream().cuda_stream
            call = names_in_program(handle, 0, cp=CUPY)
            assert call == "cp.cuda.get_current_stream().wait_event(cp.cuda.Stream.null.record())"
            both = names_in_program(handle, 0, cp=CUPY, tcuda=tcuda)
            assert both == "tcuda.current_stream().wait_stream(tcuda.default_stream())"

    def test_a_stream_of_tcuda_keeps_tcudas_words(self, runtime: Runtime) -> None:
        side = tcuda.Stream()
        call = names_in_program(side.cuda_stream, 0, cp=CUPY, side=side)
        assert call == "side.wait_stream(tcuda.default_stream())"

    def test_the_default_stream_of_another_device_has_no_name_in_cupy(self, runtime: Runtime) -> None:
        found = FoundRace(FoundAccess(stream=0xABC0), FoundAccess(stream=0, device=1))
        side = LIKE_CUPYS()
        assert described(found).missing.sentence.startswith(
            "A wait of `side` for the default stream of device 1 before"
        )
        del side

    def test_an_attribute_of_an_object_is_named(self, runtime: Runtime) -> None:
        class Loader:
            def __init__(self) -> None:
                self.streams = [LIKE_CUPYS()]

        call = names_in_program(0xABC0, 0, loader=Loader(), cp=CUPY)
        assert call == "loader.streams[0].wait_event(cp.cuda.Stream.null.record())"


def test_a_stream_of_cupy_waits_for_an_event(runtime: Runtime) -> None:
    like_cupys = type("Stream", (), {"__module__": "cupy.cuda.stream", "ptr": 0xABC0, "device_id": 0})
    main, side = tcuda.Stream(), like_cupys()
    race = described(FoundRace(written(0xABC0, 2), written(main.cuda_stream, 1)))
    assert race.missing.call == "side.wait_event(main.record())"
    assert side.ptr == 0xABC0
