"""Streams: their pool, their attributes, waiting, and the current stream."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.foreign_streams import ForeignEvent, ForeignStream, NumberedStream
from support.threads import in_thread, in_threads
from tcuda._process.devices import Device
from tcuda._runtime.protocol import CAPTURE_RELAXED
from tcuda.streams import _stream

if TYPE_CHECKING:
    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime

LONG = 100_000_000


def busy_stream() -> tcuda.Stream:
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        tcuda._sleep(LONG)
    return stream


class TestMaking:
    def test_streams_come_in_turn_from_a_pool_of_32(self) -> None:
        handles = [tcuda.Stream().cuda_stream for _ in range(64)]
        assert len(set(handles)) == 32
        assert handles[:32] == handles[32:]

    def test_two_streams_are_two_objects(self) -> None:
        first = tcuda.Stream()
        same = next(stream for stream in (tcuda.Stream() for _ in range(32)) if stream == first)
        assert same is not first

    def test_each_priority_has_a_pool_and_priorities_out_of_range_are_clamped(self) -> None:
        assert [tcuda.Stream(priority=p).priority for p in (5, 1, 0, -1, -2, -3, -4, -9)] == [
            0,
            0,
            0,
            -1,
            -2,
            -3,
            -3,
            -3,
        ]
        far, nearest = ({tcuda.Stream(priority=p).cuda_stream for _ in range(32)} for p in (-99, -3))
        assert far == nearest

    def test_there_are_at_most_as_many_pools_as_priority_levels(self) -> None:
        greatest = tcuda.Stream.priority_range()[1]
        levels = {tcuda.Stream(priority=p).cuda_stream: p for p in range(greatest, 1)}
        assert len(levels) == 1 - greatest
        known = len(_stream._rings)
        for priority in range(1000):
            tcuda.Stream(priority=priority)
            tcuda.Stream(priority=-priority)
        tcuda.Stream(priority=10**400)
        assert len(_stream._rings) == known

    def test_the_range_of_priorities_equals_torchs(self) -> None:
        assert tcuda.Stream.priority_range() == tcuda.Stream().priority_range() == (0, -3)

    def test_a_stream_belongs_to_the_given_device(self) -> None:
        last = tcuda.device_count() - 1
        stream = tcuda.Stream(f"cuda:{last}")
        assert (stream.device, stream.device_index) == (Device("cuda", last), last)
        with tcuda.device(last):
            assert tcuda.Stream().device_index == last
        assert tcuda.Stream(-1).device_index == tcuda.Stream(None).device_index == 0

    def test_threads_get_different_streams(self) -> None:
        handles: list[int] = []
        together = threading.Barrier(4)

        def take() -> None:
            together.wait()
            handles.extend([tcuda.Stream(priority=-1).cuda_stream for _ in range(8)])

        in_threads(take, 4 * [()])
        assert len(set(handles)) == 32

    def test_streams_are_non_blocking(self, runtime: Runtime) -> None:
        assert runtime.streamGetFlags(tcuda.Stream().cuda_stream) == 1

    @pytest.mark.parametrize(
        ("arguments", "error", "text"),
        [
            ({"priority": 1.5}, TypeError, "cannot be interpreted as an integer"),
            ({"priority": "high"}, TypeError, "cannot be interpreted as an integer"),
            ({"colour": 1}, TypeError, "colour"),
            ({"stream_id": 1}, TypeError, "stream_id and device_index together"),
            ({"device": "cpu"}, ValueError, "Expected a cuda device, but got: cpu"),
            ({"device": 99}, tcuda.AcceleratorError, "invalid device ordinal"),
            ({"priority": []}, TypeError, "cannot be interpreted as an integer"),
            ({"stream_ptr": "a"}, TypeError, "stream_ptr must be an integer; got a str"),
            ({"stream_ptr": -1}, ValueError, r"stream_ptr must be from 0 to 2\*\*63 - 1; got -1"),
            ({"stream_ptr": 2**64}, ValueError, "stream_ptr must be from 0 to "),
        ],
    )
    def test_bad_arguments_are_refused(self, arguments: dict[str, Any], error: Any, text: str) -> None:
        with pytest.raises(error, match=text):
            tcuda.Stream(**arguments)

    def test_a_subclass_makes_objects_of_the_subclass(self) -> None:
        class Mine(tcuda.Stream):
            pass

        assert type(Mine()) is Mine


class TestLooks:
    def test_attributes(self) -> None:
        stream = tcuda.Stream(priority=-1)
        assert stream.cuda_stream == stream.stream_id == stream.ptr > 2
        assert stream.device == Device("cuda", 0)
        assert (stream.device_index, stream.device_id, stream.device_type, stream.priority) == (0, 0, 1, -1)
        assert stream.__cuda_stream__() == (0, stream.cuda_stream)
        assert isinstance(stream._as_parameter_, ctypes.c_void_p)
        assert stream._as_parameter_.value == stream.cuda_stream
        assert repr(stream) == f"<tcuda.Stream device=cuda:0 cuda_stream={stream.cuda_stream:#x}>"

    def test_equality_and_hash_depend_on_handle_and_device(self) -> None:
        stream = tcuda.Stream()
        same = tcuda.Stream(stream_id=stream.stream_id, device_index=0, device_type=stream.device_type)
        assert stream == same
        assert hash(stream) == hash(same)
        assert stream == tcuda.ExternalStream(stream.cuda_stream)
        assert stream != tcuda.Stream()
        last = tcuda.device_count() - 1
        elsewhere = tcuda.Stream(stream_id=stream.stream_id, device_index=last)
        assert (stream == elsewhere) is (last == 0)
        assert stream not in (None, 5, stream.cuda_stream)

    def test_it_can_carry_attributes_and_weak_references(self) -> None:
        stream = tcuda.Stream()
        stream.purpose = "copies"  # type: ignore[attr-defined]
        reference = weakref.ref(stream)
        del stream
        gc.collect()
        assert reference() is None

    def test_the_default_stream(self) -> None:
        default = tcuda.default_stream()
        assert (default.stream_id, default.cuda_stream, default.priority) == (0, 0, 0)
        assert default is tcuda.default_stream(0) is tcuda.default_stream("cuda")
        assert default.is_capturing() is False

    def test_default_streams_of_devices_differ(self) -> None:
        streams = {tcuda.default_stream(index) for index in range(tcuda.device_count())}
        assert len(streams) == tcuda.device_count()

    def test_capturing(self, runtime: Runtime) -> None:
        stream = tcuda.Stream()
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        assert stream.is_capturing()
        runtime.graphDestroy(runtime.streamEndCapture(stream.cuda_stream))
        assert not stream.is_capturing()


class TestExternal:
    def test_it_wraps_a_handle(self, runtime: Runtime) -> None:
        handle = runtime.streamCreateWithPriority(0, -2)
        for stream in (
            tcuda.ExternalStream(handle),
            tcuda.get_stream_from_external(handle),
            tcuda.Stream(stream_ptr=handle),
        ):
            assert (stream.cuda_stream, stream.device_index, stream.priority) == (handle, 0, -2)
            assert stream.query()
        assert isinstance(tcuda.ExternalStream(handle), tcuda.Stream)
        runtime.streamDestroy(handle)

    @pytest.mark.parametrize("make", [tcuda.ExternalStream, tcuda.get_stream_from_external])
    def test_bad_arguments_are_refused(self, make: Any) -> None:
        with pytest.raises(TypeError):
            make("a")
        with pytest.raises(tcuda.AcceleratorError, match="invalid device ordinal"):
            make(0, 99)
        last = tcuda.device_count() - 1
        assert make(0, last).device_index == last


class TestWaiting:
    def test_query_and_synchronize(self) -> None:
        stream = busy_stream()
        assert stream.query() is False
        stream.synchronize()
        assert stream.query() is True

    def test_the_default_stream_of_a_device_that_is_not_current_can_be_used(self) -> None:
        last = tcuda.device_count() - 1
        with tcuda.device(last):
            tcuda._sleep(LONG)
        default = tcuda.default_stream(last)
        assert not default.query()
        default.synchronize()
        assert default.query()
        event = default.record_event()
        event.wait(default)
        assert event.device == Device("cuda", last)
        assert tcuda.current_device() == 0

    def test_wait_event_delays_later_work(self) -> None:
        event, waiting = busy_stream().record_event(), tcuda.Stream()
        waiting.wait_event(event)
        assert not waiting.query()
        waiting.synchronize()
        assert event.query()

    def test_wait_stream_delays_later_work(self) -> None:
        busy, waiting = busy_stream(), tcuda.Stream()
        waiting.wait_stream(busy)
        assert not waiting.query()
        waiting.synchronize()
        assert busy.query()

    def test_wait_stream_waits_only_for_earlier_work(self) -> None:
        first, waiting = tcuda.Stream(), tcuda.Stream()
        waiting.wait_stream(first)
        with tcuda.stream(first):
            tcuda._sleep(LONG)
        waiting.synchronize()
        assert not first.query()
        first.synchronize()

    def test_streams_of_two_devices_wait_for_each_other(self) -> None:
        last = tcuda.device_count() - 1
        busy, waiting = busy_stream(), tcuda.Stream(last)
        waiting.wait_stream(busy)
        assert not waiting.query()
        waiting.synchronize()
        assert busy.query()

    def test_record_event_returns_the_event(self) -> None:
        stream, event = tcuda.Stream(), tcuda.Event()
        assert stream.record_event(event) is event
        assert isinstance(stream.record_event(), tcuda.Event)

    @pytest.mark.parametrize("name", ["ptr", "cuda_event"])
    def test_wait_event_takes_foreign_events(self, name: str) -> None:
        event, waiting = busy_stream().record_event(), tcuda.Stream()
        waiting.wait_event(SimpleNamespace(**{name: event.cuda_event}))  # type: ignore[arg-type]
        assert not waiting.query()
        waiting.synchronize()
        waiting.wait_event(SimpleNamespace(**{name: 0}))  # type: ignore[arg-type]
        assert waiting.query()

    def test_wait_event_takes_events_whose_handle_is_no_integer(self) -> None:
        event, waiting = busy_stream().record_event(), tcuda.Stream()
        waiting.wait_event(ForeignEvent(event.cuda_event))
        assert not waiting.query()
        waiting.synchronize()
        assert event.query()

    def test_a_closed_event_is_refused(self) -> None:
        with pytest.raises(RuntimeError, match="A closed event orders no work"):
            tcuda.Stream().wait_event(ForeignEvent(0))

    @pytest.mark.parametrize(
        "bad",
        [
            "a",
            5,
            None,
            SimpleNamespace(ptr="a"),
            SimpleNamespace(handle=5),  # a buffer of cuda.core has a handle too
            SimpleNamespace(handle=None, sync=None),
            SimpleNamespace(handle="a", sync=None),
        ],
    )
    def test_other_objects_than_events_are_refused(self, bad: Any) -> None:
        with pytest.raises(RuntimeError, match="expected event to be a tcuda.Event"):
            tcuda.Stream().wait_event(bad)

    @pytest.mark.parametrize("stream", [lambda: tcuda.Stream(), lambda: ForeignStream(tcuda.Stream().cuda_stream)])
    def test_wait_event_refuses_a_stream_and_names_wait_stream(self, stream: Any) -> None:
        with pytest.raises(RuntimeError, match=r"got the stream .*Use wait_stream\(\)"):
            tcuda.Stream().wait_event(stream())

    def test_wait_stream_takes_foreign_streams(self) -> None:
        busy, waiting = busy_stream(), tcuda.Stream()
        waiting.wait_stream(ForeignStream(busy.cuda_stream))  # type: ignore[arg-type]
        assert not waiting.query()
        waiting.synchronize()

    @pytest.mark.parametrize("bad", ["a", 5, None, object()])
    def test_other_objects_than_streams_are_refused(self, bad: Any) -> None:
        with pytest.raises(RuntimeError, match="expected stream to be a"):
            tcuda.Stream().wait_stream(bad)

    def test_an_event_is_no_stream(self, xp: Any) -> None:
        side = tcuda.Stream()
        for event in (tcuda.Event(), side.record_event(), xp.cuda.Event()):
            for function in (side.wait_stream, tcuda.set_stream, tcuda.stream, tcuda.Event().record):
                with pytest.raises(RuntimeError, match="expected stream to be a"):
                    function(event)
        assert tcuda.current_stream() == tcuda.default_stream()

    def test_a_stream_is_no_event(self, xp: Any) -> None:
        side = tcuda.Stream()
        for stream in (side, tcuda.Stream(), xp.cuda.Stream(), ForeignStream(side.cuda_stream)):
            for function in (side.record, side.record_event, side.wait_event):
                with pytest.raises(RuntimeError, match="expected event to be a"):
                    function(stream)


class TestCurrent:
    def test_the_first_current_stream_is_the_default_stream(self) -> None:
        assert tcuda.current_stream() is tcuda.default_stream()
        with tcuda.stream(tcuda.Stream()):
            assert in_thread(tcuda.current_stream) == tcuda.default_stream()

    def test_inside_a_scope_the_current_stream_is_the_same_object(self, backend: Backend) -> None:
        stream = tcuda.Stream()
        with tcuda.stream(stream) as entered:
            assert entered is None
            assert tcuda.current_stream() is stream
            assert backend.current_stream() is stream
        assert tcuda.current_stream() == tcuda.default_stream()

    def test_a_stream_is_a_context_manager_itself(self) -> None:
        first, second = tcuda.Stream(), tcuda.Stream()
        with first as entered:
            assert entered is first
            with second, first:
                assert tcuda.current_stream() is first
            assert tcuda.current_stream() is first
        assert tcuda.current_stream() == tcuda.default_stream()

    def test_scopes_nest_and_end_after_errors(self) -> None:
        first, second = tcuda.Stream(), tcuda.Stream()
        with tcuda.stream(first):
            with pytest.raises(ZeroDivisionError), tcuda.stream(second):
                _ = 1 / 0
            assert tcuda.current_stream() is first

    def test_the_scope_of_none_changes_nothing(self) -> None:
        stream = tcuda.Stream()
        with tcuda.stream(stream), tcuda.stream(None):
            assert tcuda.current_stream() is stream

    def test_the_default_stream_can_be_entered(self) -> None:
        with tcuda.stream(tcuda.Stream()):
            with tcuda.stream(tcuda.default_stream()):
                assert tcuda.current_stream() is tcuda.default_stream()
            assert tcuda.current_stream() != tcuda.default_stream()

    def test_a_stream_of_another_device_selects_its_device(self) -> None:
        last = tcuda.device_count() - 1
        here, there, before = tcuda.Stream(), tcuda.Stream(last), tcuda.Stream(last)
        with tcuda.device(last):
            tcuda.set_stream(before)
        with tcuda.stream(here):
            with tcuda.stream(there):
                assert tcuda.current_device() == last
                assert tcuda.current_stream() is there
            assert tcuda.current_device() == 0
            assert tcuda.current_stream() is here
        assert tcuda.current_stream(last) is before if last else tcuda.current_stream() is before
        tcuda.set_stream(tcuda.default_stream(last))
        tcuda.set_device(0)

    def test_a_scope_restores_the_device_that_changed_inside(self) -> None:
        last = tcuda.device_count() - 1
        stream = tcuda.Stream()
        with tcuda.stream(stream):
            tcuda.set_device(last)
        assert tcuda.current_device() == 0
        assert tcuda.current_stream() == tcuda.default_stream()

    def test_set_stream_is_effective_until_the_next_set_stream(self) -> None:
        first, second = tcuda.Stream(), tcuda.Stream()
        tcuda.set_stream(first)
        assert tcuda.current_stream() is first
        with tcuda.stream(second):
            assert tcuda.current_stream() is second
        assert tcuda.current_stream() is first
        with tcuda.stream(second):
            tcuda.set_stream(first)
        assert tcuda.current_stream() is first
        tcuda.set_stream(None)
        assert tcuda.current_stream() is first
        assert second.use() is second
        assert tcuda.current_stream() is second
        tcuda.set_stream(tcuda.default_stream())
        assert tcuda.current_stream() is tcuda.default_stream()

    def test_set_stream_selects_the_device_too(self) -> None:
        last = tcuda.device_count() - 1
        tcuda.set_stream(tcuda.Stream(last))
        assert tcuda.current_device() == last
        tcuda.set_stream(tcuda.default_stream(last))
        tcuda.set_stream(tcuda.default_stream(0))
        assert tcuda.current_device() == 0

    def test_work_goes_to_the_current_stream(self) -> None:
        stream = tcuda.Stream()
        with tcuda.stream(stream):
            tcuda._sleep(LONG)
        assert not stream.query()
        assert tcuda.default_stream().query()
        stream.synchronize()

    def test_every_device_has_a_current_stream(self) -> None:
        last = tcuda.device_count() - 1
        assert tcuda.current_stream(last) is tcuda.default_stream(last)
        assert tcuda.current_stream(-1) is tcuda.current_stream("cuda") is tcuda.current_stream()

    @pytest.mark.parametrize("function", [tcuda.current_stream, tcuda.default_stream])
    def test_a_device_out_of_range_is_refused(self, function: Any) -> None:
        with pytest.raises(RuntimeError, match=r"Device index value 99 is out of index range \[0, \d+\)"):
            function(99)

    def test_a_foreign_stream_can_be_entered(self, runtime: Runtime) -> None:
        handle = runtime.streamCreateWithPriority(1, 0)
        with tcuda.stream(ForeignStream(handle)):  # type: ignore[arg-type]
            assert tcuda.current_stream().cuda_stream == handle
        runtime.streamDestroy(handle)

    def test_the_device_that_a_foreign_stream_names_becomes_current(self) -> None:
        last = tcuda.device_count() - 1
        theirs = tcuda.Stream(last)
        with tcuda.stream(NumberedStream(theirs.cuda_stream, last)):  # type: ignore[arg-type]
            assert tcuda.current_stream() == theirs
            assert tcuda.current_device() == last
        assert tcuda.current_device() == 0

    def test_a_foreign_current_stream_is_returned_and_kept_alive(self, runtime: Runtime, backend: Backend) -> None:
        handle = runtime.streamCreateWithPriority(1, 0)

        class Theirs(SimpleNamespace):
            pass

        theirs = Theirs(ptr=handle, device_id=0)
        backend.enter_stream(theirs)
        ours = tcuda.current_stream()
        backend.exit_stream()
        assert (ours.cuda_stream, ours.device_index) == (handle, 0)
        reference = weakref.ref(theirs)
        del theirs
        assert reference() is not None
        del ours
        gc.collect()
        assert reference() is None
        runtime.streamDestroy(handle)

    @pytest.mark.parametrize("bad", ["a", 5, object()])
    @pytest.mark.parametrize("function", [tcuda.stream, tcuda.set_stream])
    def test_other_objects_than_streams_are_refused(self, function: Any, bad: Any) -> None:
        with pytest.raises(RuntimeError, match="expected stream to be a"):
            function(bad)

    def test_the_context_has_the_previous_streams(self) -> None:
        stream = tcuda.Stream()
        context = tcuda.stream(stream)
        assert isinstance(context, tcuda.StreamContext)
        assert context.stream is stream
        with tcuda.stream(tcuda.Stream()):
            outer = tcuda.current_stream()
            with context:
                assert context.src_prev_stream is context.dst_prev_stream is outer

    def test_the_context_has_no_previous_streams_before_the_entry(self) -> None:
        context = tcuda.stream(tcuda.Stream())
        assert context.src_prev_stream is context.dst_prev_stream is None
        with tcuda.StreamContext(None) as nothing:
            assert nothing is None

    def test_a_previous_default_stream_is_that_of_its_device(self) -> None:
        for index in {0, tcuda.device_count() - 1}:
            context = tcuda.stream(tcuda.Stream(index))
            with tcuda.device(0), context:
                source, target = context.src_prev_stream, context.dst_prev_stream
            assert source == tcuda.default_stream(0)
            assert target == tcuda.default_stream(index)
            assert repr(target) == repr(tcuda.default_stream(index))
            assert type(source) is type(target) is tcuda.Stream

    @pytest.mark.parametrize("make", [tcuda.Stream, lambda **words: tcuda.ExternalStream(0, **words)])
    def test_an_unknown_keyword_is_named(self, make: Any) -> None:
        with pytest.raises(TypeError, match=r"Stream\(\) got an unexpected keyword argument 'foo'; the keywords are"):
            make(foo=1)

    @pytest.mark.parametrize(
        ("keyword", "advice"),
        [
            ("non_blocking", "Leave the keyword out"),
            ("nonblocking", "Leave the keyword out"),
            ("null", r"Write tcuda\.default_stream\(\)"),
            ("ptds", r"Write tcuda\.xp\.cuda\.Stream\(ptds=True\)"),
            ("device_id", "Write device="),
        ],
    )
    def test_a_keyword_of_cupy_is_refused_with_what_to_write(self, keyword: str, advice: str) -> None:
        make: Any = tcuda.Stream
        with pytest.raises(
            TypeError, match=rf"unexpected keyword argument '{keyword}'.* CuPy has this keyword\. {advice}"
        ):
            make(**{keyword: 1})


@pytest.mark.parametrize("bad", ["a", 1.5, None])
def test_sleep_takes_an_integer(bad: Any) -> None:
    with pytest.raises(RuntimeError, match=r"torch.cuda._sleep\(\): expected 'int'"):
        tcuda._sleep(bad)


def test_sleep_takes_a_negative_number() -> None:
    tcuda._sleep(-1)
    tcuda.synchronize()


def test_a_scope_shows_its_stream() -> None:
    side = tcuda.Stream()
    assert repr(tcuda.stream(side)) == f"<tcuda.StreamContext of {side}>"
    assert repr(tcuda.stream(None)) == "<tcuda.StreamContext of None>"
