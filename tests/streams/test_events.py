"""Events: creation, recording, waiting, timing."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import LONG, keep_busy
from support.threads import in_thread
from tcuda._base.statuses import Status
from tcuda._process.devices import Device
from tcuda._process.lazy import cuda
from tcuda._runtime.protocol import CAPTURE_RELAXED

if TYPE_CHECKING:
    from tcuda._runtime.protocol import Runtime


class TestCreation:
    def test_a_new_event_has_no_cuda_event(self) -> None:
        event = tcuda.Event()
        assert event.cuda_event == 0
        assert event.device is None
        assert event._as_parameter_.value is None
        assert repr(event) == "<tcuda.Event uninitialized>"

    def test_the_first_record_creates_the_event_on_the_device_of_the_stream(self) -> None:
        last = tcuda.device_count() - 1
        event = tcuda.Event()
        event.record(tcuda.Stream(last))
        assert event.device == Device("cuda", last)
        assert repr(event) == f"<tcuda.Event {event.cuda_event:#x}>"
        assert isinstance(event._as_parameter_, ctypes.c_void_p)
        assert event._as_parameter_.value == event.cuda_event != 0
        assert tcuda.current_device() == 0

    def test_queries_and_waits_create_no_cuda_event(self) -> None:
        event = tcuda.Event()
        assert event.query() is True
        event.synchronize()
        event.wait()
        event.wait(tcuda.Stream())
        assert event.cuda_event == 0

    def test_the_cuda_event_of_a_dead_event_is_reused(self) -> None:
        first = tcuda.Event()
        first.record()
        handle = first.cuda_event
        del first
        gc.collect()
        second = tcuda.Event()
        second.record()
        assert second.cuda_event == handle

    def test_living_events_share_no_cuda_event(self) -> None:
        events = [tcuda.Stream().record_event() for _ in range(100)]
        assert len({event.cuda_event for event in events}) == 100

    def test_cuda_events_are_reused_only_for_the_same_flags(self) -> None:
        for timing in (False, True):
            event = tcuda.Event(enable_timing=timing)
            event.record()
            del event
        timed = tcuda.Event(enable_timing=True)
        timed.record()
        timed.synchronize()
        assert timed.elapsed_time(timed) == 0.0

    def test_flags_that_cuda_cannot_combine_fail_at_the_first_record(self) -> None:
        event = tcuda.Event(enable_timing=True, interprocess=True)
        with pytest.raises(tcuda.AcceleratorError, match="invalid argument"):
            event.record()
        assert event.cuda_event == 0
        assert event.device is None

    def test_a_failed_record_does_not_change_the_event(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(event: int, stream: int) -> None:
            raise tcuda.AcceleratorError(400, "cudaEventRecord()")

        event = tcuda.Event()
        with monkeypatch.context() as patch:
            patch.setattr(cuda, "eventRecord", refuse)
            with pytest.raises(tcuda.AcceleratorError):
                event.record()
        assert (event.cuda_event, event.device) == (0, None)
        event.record()
        with monkeypatch.context() as patch:
            patch.setattr(cuda, "eventRecord", refuse)
            with pytest.raises(tcuda.AcceleratorError):
                event.record()
        assert event.device == Device("cuda", 0)  # the earlier record still counts

    @pytest.mark.parametrize("bad", ["a", 1.5, None, []])
    @pytest.mark.parametrize("name", ["enable_timing", "blocking", "interprocess"])
    def test_flags_are_truth_values_or_integers(self, name: str, bad: Any) -> None:
        with pytest.raises(TypeError):
            tcuda.Event(**{name: bad})
        assert tcuda.Event(**{name: 2})._flags == tcuda.Event(**{name: True})._flags

    def test_an_unknown_argument_is_refused(self) -> None:
        with pytest.raises(TypeError, match="colour"):
            tcuda.Event(colour=1)  # type: ignore[call-arg]
        gc.collect()

    def test_it_can_carry_attributes(self) -> None:
        event = tcuda.Event()
        event.phase = "copy"  # type: ignore[attr-defined]
        assert event.phase == "copy"  # type: ignore[attr-defined]


class TestRecording:
    def test_an_event_covers_the_work_before_the_record(self) -> None:
        stream = tcuda.Stream()
        before = stream.record_event()
        keep_busy(stream)
        after = stream.record_event()
        assert before.query()
        assert not after.query()
        after.synchronize()
        assert after.query()

    def test_the_default_is_the_current_stream(self) -> None:
        stream, event = tcuda.Stream(), tcuda.Event()
        with tcuda.stream(stream):
            tcuda._sleep(LONG)
            event.record()
        assert not event.query()
        stream.synchronize()
        assert event.query()

    def test_cupys_names_are_aliases(self) -> None:
        stream, given = tcuda.Stream(), tcuda.Event()
        keep_busy(stream)
        event = stream.record()
        assert stream.record(given) is given
        assert (event.done, given.done, stream.done) == (False, False, False)
        stream.synchronize()
        assert (event.done, given.done, stream.done) == (True, True, True)
        assert event.ptr == event.cuda_event

    def test_the_last_record_counts(self) -> None:
        stream, event = tcuda.Stream(), tcuda.Event()
        event.record(stream)
        keep_busy(stream)
        event.record(stream)
        assert not event.query()
        event.synchronize()
        assert stream.query()

    def test_a_stream_of_another_device_is_refused(self) -> None:
        event = tcuda.Event()
        event.record(tcuda.Stream(0))
        event._device_index = 5  # as if the event had been recorded on device 5
        with pytest.raises(RuntimeError, match="Event device 5 does not match recording stream's device 0"):
            event.record(tcuda.Stream(0))
        event._device_index = 0

    @pytest.mark.parametrize("bad", ["a", 5, object()])
    @pytest.mark.parametrize("method", ["record", "wait"])
    def test_other_objects_than_streams_are_refused(self, method: str, bad: Any) -> None:
        event = tcuda.Event()
        with pytest.raises(RuntimeError, match="expected stream to be a torch.Stream or torch.cuda.Stream object"):
            getattr(event, method)(bad)
        assert event.cuda_event == 0

    def test_external_events_are_nodes_of_a_capture(self, runtime: Runtime) -> None:
        stream, external, plain = tcuda.Stream(), tcuda.Event(external=True), tcuda.Event()
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        external.record(stream)
        external.wait(stream)
        plain.record(stream)
        runtime.graphDestroy(runtime.streamEndCapture(stream.cuda_stream))
        assert external.query()  # the record is a node of the graph and has not run
        with pytest.raises(tcuda.AcceleratorError):
            plain.query()
        external.record(stream)
        assert external.device == Device("cuda", 0)

    def test_a_captured_event_cannot_be_queried(self, runtime: Runtime) -> None:
        stream, event = tcuda.Stream(), tcuda.Event()
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        event.record(stream)
        with pytest.raises(tcuda.AcceleratorError) as caught:
            event.query()
        assert caught.value.error_code == 907
        with pytest.raises(tcuda.AcceleratorError):
            runtime.streamEndCapture(stream.cuda_stream)


class TestWaiting:
    def test_a_stream_waits(self) -> None:
        busy, waiting = tcuda.Stream(), tcuda.Stream()
        keep_busy(busy)
        event = busy.record_event()
        event.wait(waiting)
        assert not waiting.query()
        waiting.synchronize()
        assert event.query()

    def test_the_current_stream_waits(self) -> None:
        busy, waiting = tcuda.Stream(), tcuda.Stream()
        keep_busy(busy)
        event = busy.record_event()
        with tcuda.stream(waiting):
            event.wait()
        assert not waiting.query()
        busy.synchronize()
        waiting.synchronize()

    def test_a_wait_refers_to_the_last_record_before_the_wait(self) -> None:
        first, second, waiting = tcuda.Stream(), tcuda.Stream(), tcuda.Stream()
        event = first.record_event()
        event.wait(waiting)
        keep_busy(second)
        event.record(second)
        waiting.synchronize()
        assert not second.query()
        second.synchronize()

    def test_a_wait_outlives_the_event(self) -> None:
        busy, waiting = tcuda.Stream(), tcuda.Stream()
        keep_busy(busy)
        waiting.wait_event(busy.record_event())  # the CUDA event can be reused at once
        other = tcuda.Stream().record_event()
        other.synchronize()
        assert not waiting.query()
        waiting.synchronize()
        assert busy.query()

    def test_the_host_can_wait_for_a_blocking_event(self) -> None:
        stream, event = tcuda.Stream(), tcuda.Event(blocking=True)
        keep_busy(stream)
        event.record(stream)
        event.synchronize()
        assert stream.query()

    def test_a_thread_can_wait_for_an_event_of_another_thread(self) -> None:
        stream = tcuda.Stream()
        keep_busy(stream)
        event = stream.record_event()
        in_thread(event.synchronize)
        assert event.query()


class TestTiming:
    def test_elapsed_time_is_that_of_the_work_between(self) -> None:
        stream = tcuda.Stream()
        start, end = tcuda.Event(enable_timing=True), tcuda.Event(enable_timing=True)
        start.record(stream)
        keep_busy(stream)
        end.record(stream)
        end.synchronize()
        expected = LONG / tcuda.get_device_properties().clock_rate  # cycles / kHz = ms
        assert start.elapsed_time(end) == pytest.approx(expected, rel=0.5)
        assert end.elapsed_time(start) == pytest.approx(-start.elapsed_time(end))

    def test_events_without_timing_are_refused(self) -> None:
        timed, plain = tcuda.Event(enable_timing=True), tcuda.Event()
        for first, second in ((timed, plain), (plain, timed)):
            with pytest.raises(ValueError, match="Both events must be created with argument 'enable_timing=True'."):
                first.elapsed_time(second)

    def test_unrecorded_events_are_refused(self) -> None:
        first, second = tcuda.Event(enable_timing=True), tcuda.Event(enable_timing=True)
        with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time."):
            first.elapsed_time(second)
        first.record()
        with pytest.raises(ValueError, match="Both events must be recorded"):
            first.elapsed_time(second)
        with pytest.raises(ValueError, match="Both events must be recorded"):
            second.elapsed_time(first)

    @pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")
    def test_events_of_two_devices_are_refused_with_their_devices(self) -> None:
        here, there = (tcuda.Event(enable_timing=True) for _ in range(2))
        for device, event in enumerate((here, there)):
            event.record(tcuda.Stream(device))
            event.synchronize()
        for first, second, devices in ((here, there, "cuda:0 and cuda:1"), (there, here, "cuda:1 and cuda:0")):
            with pytest.raises(tcuda.AcceleratorError, match=f"The events are of two devices, {devices}") as raised:
                first.elapsed_time(second)
            assert raised.value.error_code == Status.INVALID_RESOURCE_HANDLE
            assert str(raised.value).startswith("CUDA error: invalid resource handle")

    def test_a_refused_handle_of_a_recorded_event_is_not_told_as_a_missing_record(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(start: int, end: int) -> float:
            raise tcuda.AcceleratorError(Status.INVALID_RESOURCE_HANDLE, "cudaEventElapsedTime()")

        event = tcuda.Event(enable_timing=True)
        event.record()
        event.synchronize()
        monkeypatch.setattr(cuda, "eventElapsedTime", refuse)
        with pytest.raises(tcuda.AcceleratorError, match="invalid resource handle"):
            event.elapsed_time(event)

    def test_incomplete_events_are_refused(self) -> None:
        stream = tcuda.Stream()
        start, end = tcuda.Event(enable_timing=True), tcuda.Event(enable_timing=True)
        start.record(stream)
        keep_busy(stream)
        end.record(stream)
        with pytest.raises(RuntimeError, match="Both events must be completed before calculating elapsed time."):
            start.elapsed_time(end)
        end.synchronize()

    def test_other_objects_than_events_are_refused(self) -> None:
        with pytest.raises(RuntimeError, match="expected other to be a torch.cuda.Event object"):
            tcuda.Event(enable_timing=True).elapsed_time("now")  # type: ignore[arg-type]


class TestInterprocess:
    def test_the_handle_has_64_bytes_and_creates_the_event_on_the_current_device(self) -> None:
        event = tcuda.Event(interprocess=True)
        handle = event.ipc_handle()
        assert isinstance(handle, bytes)
        assert len(handle) == 64
        assert event.device == Device("cuda", tcuda.current_device())

    def test_an_event_without_interprocess_has_no_handle(self) -> None:
        event = tcuda.Event()
        with pytest.raises(tcuda.AcceleratorError, match="invalid resource handle"):
            event.ipc_handle()
        assert (event.cuda_event, event.device) == (0, None)

    def test_a_handle_cannot_be_opened_in_its_own_process(self) -> None:
        handle = tcuda.Event(interprocess=True).ipc_handle()
        with pytest.raises(tcuda.AcceleratorError) as caught:
            tcuda.Event.from_ipc_handle(0, handle)
        assert caught.value.error_code == 201

    @pytest.mark.parametrize(("bad", "size"), [(b"abc", "3"), ("abc", "3"), (bytes(65), "65")])
    def test_a_handle_of_another_length_is_refused(self, bad: Any, size: str) -> None:
        text = f"cudaIpcEventHandle_t expects byte-like object of size 64, but got {size}"
        with pytest.raises(RuntimeError, match=text):
            tcuda.Event.from_ipc_handle(0, bad)

    @pytest.mark.parametrize("bad", [5, None, bytearray(64), memoryview(bytes(64)), "x" * 64, [0] * 64])
    def test_a_handle_of_another_type_is_refused(self, bad: Any) -> None:
        with pytest.raises(TypeError, match="handle must be the bytes of an ipc_handle"):
            tcuda.Event.from_ipc_handle(0, bad)

    @pytest.mark.parametrize("bad", [1.5, [], object(), b"cuda"])
    def test_other_objects_than_devices_are_refused(self, bad: Any) -> None:
        with pytest.raises(TypeError, match="device must be an int, a str or a device"):
            tcuda.Event.from_ipc_handle(bad, bytes(64))

    def test_the_cpu_is_refused_as_a_device(self) -> None:
        with pytest.raises(RuntimeError, match="Event can only be created on CUDA devices, but got device 'cpu'"):
            tcuda.Event.from_ipc_handle("cpu", bytes(64))


def test_an_event_may_die_in_another_thread() -> None:
    events = [tcuda.Stream().record_event() for _ in range(50)]
    in_thread(events.clear)
    tcuda.Event().record()
    tcuda.synchronize()


class TestTheEndOfAnEvent:
    def test_gives_the_cuda_event_to_the_next_event(self) -> None:
        event = tcuda.Event()
        event.record()
        handle = event.cuda_event
        del event
        following = tcuda.Event()
        following.record()
        assert following.cuda_event == handle

    def test_needs_no_event_that_was_completely_made(self) -> None:
        incomplete = object.__new__(tcuda.Event)
        assert not hasattr(incomplete, "cuda_event")
        del incomplete  # an exception would be a warning, which fails the test

    def test_reports_an_exception_and_raises_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Failing(tcuda.Event):
            def _release(self) -> None:
                super()._release()
                raise ValueError("no release")

        reported: list[object] = []
        monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: reported.append(unraisable.exc_value))
        event = Failing()
        event.record()
        del event
        assert [str(error) for error in reported] == ["no release"]


def test_a_second_process_waits_for_an_event_of_this_one(tmp_path: Any) -> None:
    import subprocess
    import sys

    code = (
        "import sys, tcuda\n"
        "event = tcuda.Event.from_ipc_handle(0, bytes.fromhex(sys.stdin.readline()))\n"
        "print(event.query(), flush=True)\n"
        "event.synchronize()\n"
        "print(event.query(), event.device, flush=True)\n"
    )
    stream, event = tcuda.Stream(), tcuda.Event(interprocess=True)
    handle = event.ipc_handle()
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        # The child opens the handle only after it reads a line. The stream is busy for long enough until then.
        with tcuda.stream(stream):
            tcuda._sleep(20_000_000_000)
        event.record(stream)
        print(handle.hex(), file=child.stdin, flush=True)
        assert child.stdout.readline().strip() == "False"
        assert child.stdout.readline().strip() == "True cuda:0"
        event.synchronize()  # emulated devices have a clock in each process
        assert event.query()
    assert child.returncode == 0
