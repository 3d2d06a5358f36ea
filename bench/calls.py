"""The calls that are measured: one table, with the layer below beside each."""

from __future__ import annotations

from typing import NamedTuple


class Call(NamedTuple):
    """A call, as a program writes it. ``sides.py`` says what the names in it stand for.

    Attributes:
        surface: The call in torch's spelling, which is tcuda's too: ``cuda`` is the one or the other.
        below: The same work in calls of the runtime, which CuPy and the emulated devices spell alike.
        cupy: The same work on CUDA, where CuPy has a nearer call than the runtime's.
    """

    surface: str
    below: str
    cupy: str | None = None


_SWITCH = "previous = runtime.getDevice(); runtime.setDevice({0}); runtime.setDevice(previous)"
_NEW_EVENT = "made = runtime.eventCreateWithFlags(2)"

CALLS = {
    # Devices
    "is_available()": Call("cuda.is_available()", "runtime.getDeviceCount() > 0"),
    "device_count()": Call("cuda.device_count()", "runtime.getDeviceCount()"),
    "current_device()": Call("cuda.current_device()", "runtime.getDevice()"),
    "set_device(0)": Call("cuda.set_device(0)", "runtime.setDevice(0)"),
    "with device(0)": Call("with cuda.device(0): pass", _SWITCH.format("0"), cupy="with Device(0): pass"),
    "with device_of(x)": Call(
        "with cuda.device_of(x): pass", _SWITCH.format("x.device.id"), cupy="with x.device: pass"
    ),
    "synchronize()": Call("cuda.synchronize()", "runtime.deviceSynchronize()"),
    "get_device_properties()": Call("cuda.get_device_properties()", "runtime.getDeviceProperties(0)"),
    "get_device_name()": Call("cuda.get_device_name()", "runtime.getDeviceProperties(0)['name'].decode()"),
    "mem_get_info()": Call("cuda.mem_get_info()", "runtime.memGetInfo()"),
    # Streams
    "current_stream()": Call("cuda.current_stream()", "runtime.currentStream()", cupy="get_current_stream()"),
    "default_stream()": Call(
        "cuda.default_stream()",
        "runtime.getDevice(), runtime.defaultStream",
        cupy="runtime.getDevice(), Stream.null",
    ),
    "Stream()": Call("cuda.Stream()", "runtime.streamDestroy(runtime.streamCreateWithPriority(1, 0))"),
    "with stream(s)": Call(
        "with cuda.stream(s): pass", "runtime.enterStream(s); runtime.exitStream()", cupy="with s: pass"
    ),
    "set_stream(s)": Call("cuda.set_stream(s)", "runtime.useStream(s)", cupy="s.use()"),
    "stream.query()": Call("stream.query()", "runtime.streamQuery(stream)"),
    "stream.synchronize()": Call("stream.synchronize()", "runtime.streamSynchronize(stream)"),
    "stream.record_event()": Call(
        "stream.record_event()",
        f"{_NEW_EVENT}; runtime.eventRecord(made, stream); runtime.eventDestroy(made)",
    ),
    "stream.wait_stream(s2)": Call(
        "stream.wait_stream(s2)",
        f"{_NEW_EVENT}; runtime.eventRecord(made, s2); runtime.streamWaitEvent(stream, made); "
        "runtime.eventDestroy(made)",
    ),
    # Events
    "Event()": Call("cuda.Event()", "runtime.eventDestroy(runtime.eventCreateWithFlags(2))"),
    "event.record()": Call("event.record()", "runtime.eventRecord(event, 0)"),
    "event.wait()": Call("event.wait()", "runtime.streamWaitEvent(0, event)"),
    "event.query()": Call("event.query()", "runtime.eventQuery(event)"),
    "event.synchronize()": Call("event.synchronize()", "runtime.eventSynchronize(event)"),
    "start.elapsed_time(end)": Call("start.elapsed_time(end)", "runtime.eventElapsedTime(start, end)"),
    # Profilers and telemetry
    "nvtx.range_push() + range_pop()": Call(
        "cuda.nvtx.range_push('step'); cuda.nvtx.range_pop()",
        "domain.push_range(domain.get_event_attributes(message='step')); domain.pop_range()",
    ),
    "utilization()": Call("cuda.utilization()", "nvml.nvmlDeviceGetUtilizationRates(gpu).gpu"),
    "temperature()": Call("cuda.temperature()", "nvml.nvmlDeviceGetTemperature(gpu, 0)"),
}
"""What is measured, by the name that the call has in results, reports and baselines."""
