"""The table of the measured calls, each with the same work in the layer below."""

from __future__ import annotations

from typing import NamedTuple


class State(NamedTuple):
    """The state in which a call is measured: statements before and after each of its rounds, which are not measured.

    The statements are not around the whole benchmark, because the rounds of the layer below lie between the rounds of
    the call, and must not be measured in the same state.

    Attributes:
        begin: The statement before each round.
        end: The statement after each round.
    """

    begin: str = "pass"
    end: str = "pass"


class Call(NamedTuple):
    """A call, as a program writes it. ``sides.py`` explains the names in the statements.

    Attributes:
        surface: The statement of tcuda and of torch, in which ``cuda`` is ``tcuda`` or ``torch.cuda``.
        below: The same work in calls of the runtime and of the ledger in the core, for CUDA and emulated devices.
        cupy: The same work in a call of CuPy; None if the call of the runtime is closer to the work of tcuda.
        torch: The statement of torch; None if it is the same as that of tcuda.
        state: The state in which tcuda and torch are measured.
        state_below: The state in which the layer below is measured.
        beyond: The name of a call that is a part of this call. The report shows only the additional cost.
        cuda_only: Whether the call is left out on emulated devices, which have no such call, or need too long for it.
    """

    surface: str
    below: str
    cupy: str | None = None
    torch: str | None = None
    state: State = State()
    state_below: State = State()
    beyond: str | None = None
    cuda_only: bool = False


_SWITCH = "previous = runtime.getDevice(); runtime.setDevice({0}); runtime.setDevice(previous)"
_NEW_EVENT = "made = runtime.eventCreateWithFlags(2)"
_BUFFER = "cuda.caching_allocator_delete(cuda.caching_allocator_alloc({size}))"
_BUFFER_BELOW = "ledger.free(ledger.allocate(0, {size}, 0))"
_SMALL, _LARGE = 1 << 10, 20 << 20
_SMALL_BUFFER = "caching_allocator_alloc(1 KiB) + delete"

_CAPTURE = "made.capture_begin({0}); {1}(); made.capture_end()"
_ON_STREAM = State("cuda.set_stream(s)", "made = None")
_ON_STREAM_BELOW = State("s.use()", "made = None")

_LAUNCH_OF_TORCH = "scale((8, 1, 1), (125, 1, 1), (floats, 0.5))"  # torch takes three sizes only

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
    "current_stream()": Call("cuda.current_stream()", "backend.current_stream()", cupy="get_current_stream()"),
    "default_stream()": Call(
        "cuda.default_stream()",
        "runtime.getDevice(), backend.default_stream",
        cupy="runtime.getDevice(), Stream.null",
    ),
    "Stream()": Call("cuda.Stream()", "runtime.streamDestroy(runtime.streamCreateWithPriority(1, 0))"),
    "with stream(s)": Call(
        "with cuda.stream(s): pass", "backend.enter_stream(s); backend.exit_stream()", cupy="with s: pass"
    ),
    "set_stream(s)": Call("cuda.set_stream(s)", "backend.use_stream(s)", cupy="s.use()"),
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
    # Memory
    "memory_allocated()": Call("cuda.memory_allocated()", "ledger.allocated(0)"),
    "max_memory_allocated()": Call("cuda.max_memory_allocated()", "ledger.peak_allocated(0)"),
    "memory_reserved()": Call("cuda.memory_reserved()", "ledger.reserved(0)"),
    "memory_stats()": Call("cuda.memory_stats()", "ledger.statistics(0)"),
    "memory_summary()": Call("cuda.memory_summary()", "ledger.statistics(0)"),
    "reset_peak_memory_stats()": Call("cuda.reset_peak_memory_stats()", "ledger.reset_peaks(0)"),
    _SMALL_BUFFER: Call(_BUFFER.format(size=_SMALL), _BUFFER_BELOW.format(size=_SMALL), cupy=f"pool.malloc({_SMALL})"),
    "caching_allocator_alloc(20 MiB) + delete": Call(
        _BUFFER.format(size=_LARGE), _BUFFER_BELOW.format(size=_LARGE), cupy=f"pool.malloc({_LARGE})"
    ),
    "empty(1000)": Call(
        "xp.empty(1000)",
        _BUFFER_BELOW.format(size=8000),
        cupy="cupy.empty(1000)",
        torch="torch.empty(1000, device='cuda')",
    ),
    "memory_snapshot() of 1,000 blocks": Call(
        "cuda.memory_snapshot()",
        "ledger.snapshot(None, False)",
        state=State(
            f"blocks = [cuda.caching_allocator_alloc({_SMALL}) for _ in range(1000)]",
            "for block in blocks: cuda.caching_allocator_delete(block)",
        ),
        state_below=State(
            f"blocks = [ledger.allocate(0, {_SMALL}, 0) for _ in range(1000)]",
            "for block in blocks: ledger.free(block)",
        ),
    ),
    "history added to alloc + delete": Call(
        _BUFFER.format(size=_SMALL),
        _BUFFER_BELOW.format(size=_SMALL),
        cupy=f"pool.malloc({_SMALL})",
        state=State(
            "cuda.memory._record_memory_history(max_entries=100_000, stacks='python')",
            "cuda.memory._record_memory_history(None)",
        ),
        beyond=_SMALL_BUFFER,
    ),
    # Random numbers
    "rand(1000)": Call(
        "xp.random.rand(1000, dtype=xp.float32)",
        "random.random_sample(1000)",
        cupy="random.rand(1000, dtype=cupy.float32)",
        torch="torch.rand(1000, device='cuda')",
    ),
    "randn(1000)": Call(
        "xp.random.randn(1000, dtype=xp.float32)",
        "random.standard_normal(1000)",
        cupy="random.randn(1000, dtype=cupy.float32)",
        torch="torch.randn(1000, device='cuda')",
    ),
    "randint(0, 10, 1000)": Call(
        "xp.random.randint(0, 10, 1000)",
        "random.randint(0, 10, 1000)",
        torch="torch.randint(0, 10, (1000,), device='cuda')",
    ),
    "randn of 100 million": Call(
        "xp.random.randn(100_000_000, dtype=xp.float32); cuda.synchronize()",
        "random.standard_normal(100_000_000); runtime.deviceSynchronize()",
        cupy="random.randn(100_000_000, dtype=cupy.float32); runtime.deviceSynchronize()",
        torch="torch.randn(100_000_000, device='cuda'); cuda.synchronize()",
        cuda_only=True,
    ),
    "manual_seed(1)": Call("cuda.manual_seed(1)", "philox.write(1, 0)"),
    "get_rng_state()": Call("cuda.get_rng_state()", "philox.read()"),
    "set_rng_state(state)": Call("cuda.set_rng_state(state)", "philox.write(1, 0)"),
    # Functions of every element, of 1,000 floats; RawKernel writes to an array that exists.
    "jiterator, beside RawKernel": Call(
        "axpy(floats, floats)", "raw_axpy((4,), (256,), (floats, floats, others, alpha, size))", cuda_only=True
    ),
    "jiterator, beside ElementwiseKernel": Call(
        "axpy(floats, floats, alpha=3.0)", "axpy(floats, floats, 3.0)", cuda_only=True
    ),
    "jiterator of 4 inputs": Call(
        "total(floats, others, floats, others)", "total(floats, others, floats, others)", cuda_only=True
    ),
    "jiterator of broadcast inputs": Call("axpy(row, column)", "axpy(row, column, 2.0)", cuda_only=True),
    # Graphs
    "capture of 20 kernels": Call(
        f"made = cuda.CUDAGraph(); {_CAPTURE.format('', 'in_place')}",
        "s.begin_capture(); in_place(); made = s.end_capture()",
        state=_ON_STREAM,
        state_below=_ON_STREAM_BELOW,
        cuda_only=True,
    ),
    "capture of 20 kernels and 20 arrays": Call(
        f"made = cuda.CUDAGraph(); {_CAPTURE.format('handle', 'with_arrays')}",
        "s.begin_capture(); with_arrays(); made = s.end_capture()",
        state=_ON_STREAM,
        state_below=_ON_STREAM_BELOW,
        cuda_only=True,
    ),
    "replay() of 20 kernels": Call("graph.replay()", "runtime.graphLaunch(graph, 0)"),
    # Kernels
    "launch of a compiled kernel": Call(
        "scale((8,), (125,), (floats, 0.5))",
        "scale((8,), (125,), (floats, 0.5))",
        torch=_LAUNCH_OF_TORCH,
        cuda_only=True,
    ),
    "launch of a compiled kernel, beside the driver's": Call(
        "scale((8,), (125,), (floats, 0.5))",
        "launch_kernel(function, 8, 1, 1, 125, 1, 1, 0, 0, places, 0)",
        torch=_LAUNCH_OF_TORCH,
        cuda_only=True,
    ),
    # Profilers and telemetry
    "nvtx.range_push() + range_pop()": Call(
        "cuda.nvtx.range_push('step'); cuda.nvtx.range_pop()",
        "domain.push_range(domain.get_event_attributes(message='step')); domain.pop_range()",
    ),
    "utilization()": Call("cuda.utilization()", "nvml.nvmlDeviceGetUtilizationRates(gpu).gpu"),
    "temperature()": Call("cuda.temperature()", "nvml.nvmlDeviceGetTemperature(gpu, 0)"),
}
"""The measured calls, by their names in results, reports and baselines."""
