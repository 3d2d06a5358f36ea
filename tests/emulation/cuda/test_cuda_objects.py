"""``xp.cuda``: devices, streams, events and graphs as CuPy's objects. The tests hold for CuPy itself too."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref

import pytest

import tcuda


@pytest.fixture
def cuda(xp):
    """Return ``xp.cuda``, and make the default stream current afterwards."""
    device = xp.cuda.Device()
    yield xp.cuda
    device.use()
    xp.cuda.Stream.null.use()


def test_the_current_stream_is_that_of_tcuda(xp, cuda):
    stream = cuda.Stream(non_blocking=True)
    with stream as entered:
        assert entered is cuda.get_current_stream() is stream
        assert tcuda.current_stream().cuda_stream == stream.ptr
        with tcuda.stream(tcuda.Stream()) as _:
            assert cuda.get_current_stream().ptr == tcuda.current_stream().cuda_stream != stream.ptr
        assert cuda.get_current_stream() is stream
    assert cuda.get_current_stream() is cuda.Stream.null
    assert tcuda.current_stream() == tcuda.default_stream()
    assert stream.use() is stream is cuda.get_current_stream()
    cuda.Stream.null.use()
    assert tcuda.current_stream() == tcuda.default_stream()


def test_streams_are_compared_by_their_handles(cuda):
    assert cuda.Stream(null=True) == cuda.Stream.null != cuda.Stream.ptds == cuda.Stream(ptds=True)
    one, other = cuda.Stream(), cuda.Stream()
    assert one != other
    assert {one: 1, other: 2}[one] == 1
    assert (cuda.Stream.null.ptr, cuda.Stream.null.device_id) == (0, -1)
    assert one.__cuda_stream__() == (0, one.ptr)


def test_a_stream_has_flags_and_a_priority(cuda):
    assert not cuda.Stream().is_non_blocking
    assert cuda.Stream(non_blocking=True).is_non_blocking
    assert [cuda.Stream(priority=level).priority for level in (None, 0, -1)] == [0, 0, -1]


def test_work_of_a_stream_waits_for_an_event(xp, cuda):
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    with first:
        x = xp.arange(1000.0)
        event = first.record()
    second.wait_event(event)
    with second:
        doubled = x * 2
    second.synchronize()
    assert second.done
    assert event.done
    assert float(doubled[999]) == 1998


def test_events_measure_time(xp, cuda):
    start, end = cuda.Event(), cuda.Event()
    start.record()
    xp.ones(1 << 20) * 2
    end.record()
    end.synchronize()
    assert cuda.get_elapsed_time(start, end) > 0
    with pytest.raises(cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidResourceHandle"):
        cuda.get_elapsed_time(start, cuda.Event(disable_timing=True))
    with pytest.raises(ValueError, match="Timing must be disabled for interprocess events"):
        cuda.Event(interprocess=True)


def test_functions_of_the_host_run_in_the_order_of_the_stream(cuda):
    stream = cuda.Stream()
    called = []
    for number in range(5):
        stream.add_callback(lambda stream, status, number: called.append((stream.ptr, status, number)), number)
        stream.launch_host_func(called.append, number)
    stream.synchronize()
    assert called == [each for number in range(5) for each in ((stream.ptr, 0, number), number)]


LAUNCHES = {
    "launch_host_func": "stream.launch_host_func(function, 1)",
    "add_callback": "stream.add_callback(lambda stream, status, argument: function(argument), 1)",
    "launchHostFunc": "cuda.runtime.launchHostFunc(stream.ptr, function, 1)",
    "streamAddCallback": "cuda.runtime.streamAddCallback(stream.ptr, lambda s, status, each: function(each), 1)",
}
FUNCTION_OF_THE_HOST = """
import signal, sys
import tcuda.emulation
tcuda.emulation.enable()
cuda = tcuda.emulation.xp.cuda
stream = cuda.Stream()
called = []
def function(argument):
    called.append(argument)
    {body}
{launch}
stream.synchronize()
"""


@pytest.mark.emulated  # CuPy prints the error without sys.unraisablehook
@pytest.mark.parametrize("name", LAUNCHES)
@pytest.mark.parametrize(
    "hook",
    ["", "sys.unraisablehook = lambda lost: print(lost.exc_value, file=sys.stderr)"],
    ids=["default hook", "other hook"],
)
def test_an_error_of_a_function_of_the_host_is_reported_and_ends_nothing(run_forked, name, hook):
    code = FUNCTION_OF_THE_HOST.format(body="raise LookupError('no place')", launch=f"{hook}\n{LAUNCHES[name]}\n" * 2)
    done = run_forked(code + "print(called)", TCUDA_RUNTIME="emulated")
    assert (done.returncode, done.stdout) == (0, "[1, 1]\n"), done.stderr
    assert done.stderr.count("no place") == 2
    if not hook:
        assert done.stderr.count("Exception ignored in") == 2
        assert ", in function\n" in done.stderr


@pytest.mark.emulated  # A thread of the driver calls the function on CUDA, and Python handles no signals there.
@pytest.mark.parametrize("name", LAUNCHES)
def test_ctrl_c_in_a_function_of_the_host_ends_the_program(run_forked, name):
    code = FUNCTION_OF_THE_HOST.format(body="signal.raise_signal(signal.SIGINT)", launch=LAUNCHES[name])
    done = run_forked(
        f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{code}", TCUDA_RUNTIME="emulated"
    )
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
    assert "ignored" not in done.stderr


def test_a_stream_captures_a_graph(xp, cuda):
    stream = cuda.Stream(non_blocking=True)
    with stream:
        x, y = xp.zeros(3), xp.zeros(3)
        stream.synchronize()
        stream.begin_capture()
        assert stream.is_capturing()
        xp.add(x, 1, out=y)
        graph = stream.end_capture()
        assert not stream.is_capturing()
        assert not y.any()
        x += 1
        graph.launch()
        graph.upload(stream)
        stream.synchronize()
        assert y.tolist() == [2, 2, 2]
    assert "digraph" in graph.debug_dot_str()
    with pytest.raises(NotImplementedError, match="must be created via stream capture"):
        cuda.Graph()
    with pytest.raises(RuntimeError, match="cannot capture on the default"):
        cuda.Stream.null.begin_capture()


@pytest.mark.emulated  # The driver does not say which stream was not joined.
def test_the_cause_of_an_unjoined_capture_names_the_stream_in_cupys_words(xp, cuda):
    main, side = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    with main:
        x = xp.zeros(3)
        main.begin_capture()
        side.wait_event(main.record())
        with side:
            x += 1
        with pytest.raises(cuda.runtime.CUDARuntimeError, match=r"^cudaErrorStreamCaptureUnjoined: [a-z ]*$") as caught:
            main.end_capture()
    cause = str(caught.value.__cause__)
    assert "The capture does not wait for the work of `side`; its last call is in line" in cause
    assert "Call `main.wait_event(side.record())` before the capture ends." in cause


def test_a_stream_of_another_library_is_kept_alive(cuda):
    class Foreign:
        def __init__(self, ptr):
            self.ptr = ptr

        def __cuda_stream__(self):
            return 0, self.ptr

    owner = cuda.Stream()
    foreign = Foreign(owner.ptr)
    alive = weakref.ref(foreign)
    stream = cuda.Stream.from_external(foreign)
    del foreign
    assert alive() is not None
    assert (stream.ptr, stream.device_id) == (owner.ptr, -1)
    del stream
    gc.collect()
    assert alive() is None
    with pytest.raises(TypeError, match="does not implement"):
        cuda.Stream.from_external(object())
    with pytest.warns(DeprecationWarning, match="ExternalStream is deprecated"):
        assert cuda.ExternalStream(owner.ptr) == owner


@pytest.mark.alone
def test_a_device_is_current_in_its_scope(xp, cuda):
    assert cuda.get_device_id() == cuda.Device().id == int(cuda.Device()) == 0
    assert cuda.Device(0).use() == cuda.Device(0) == cuda.Device(cuda.Device(0)) != 0
    assert repr(cuda.Device(3)) == "<CUDA Device 3>"
    assert cuda.Device(0) < cuda.Device(1) <= cuda.Device(1)
    x = xp.ones(1)
    assert x.device == x.data.device == cuda.Device(0)
    with x.device:
        assert cuda.Device().mem_info == cuda.runtime.memGetInfo()
    assert cuda.Device.from_pci_bus_id(cuda.Device().pci_bus_id) == cuda.Device()
    assert cuda.Device().compute_capability.isdigit()
    assert cuda.Device().attributes["MaxThreadsPerBlock"] >= 1024
    assert cuda.device.from_pointer(x.data.ptr) == cuda.Device()


@pytest.mark.multigpu
def test_devices_have_current_streams_of_their_own(cuda):
    stream = cuda.Stream()
    with stream, cuda.Device(1):
        assert tcuda.current_device() == 1
        assert cuda.get_current_stream() is cuda.Stream.null
        assert cuda.get_current_stream(0) is stream
        with pytest.raises(RuntimeError, match="does not match with the current device"):
            stream.use()
    assert tcuda.current_device() == 0


def test_a_device_that_does_not_exist_is_refused(cuda):
    missing = cuda.Device(100)
    for refused in (missing.use, missing.__enter__, missing.synchronize, lambda: missing.attributes):
        with pytest.raises(cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidDevice: invalid device ordinal") as e:
            refused()
        assert e.value.status == 101
    with cuda.Device(0):
        pass


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("index", "advice"), [(100, "tcuda.device_count() tells."), (2, "TCUDA_EMULATED_DEVICES=3 makes")]
)
def test_the_refusal_of_a_device_says_how_many_devices_there_are(cuda, index, advice):
    with pytest.raises(cuda.runtime.CUDARuntimeError) as e:
        cuda.Device(index).use()
    assert f"sees 2 emulated devices. {advice}" in str(e.value.__cause__)


def test_the_error_of_the_runtime_is_pickled(cuda):
    error = cuda.runtime.CUDARuntimeError(1)
    other = pickle.loads(pickle.dumps(error))
    assert (str(other), other.args, other.status) == (str(error), error.args, 1)
    assert str(error) == "cudaErrorInvalidValue: invalid argument"
    assert isinstance(error, RuntimeError)


def test_the_runtime_creates_and_destroys_streams(xp, cuda):
    runtime = cuda.runtime
    handle = runtime.streamCreateWithFlags(runtime.streamNonBlocking)
    assert runtime.streamGetFlags(handle) == runtime.streamNonBlocking
    x = xp.zeros(8, "u1")
    runtime.deviceSynchronize()
    runtime.memsetAsync(x.data.ptr, 7, 8, handle)
    runtime.streamSynchronize(handle)
    assert x.tolist() == [7] * 8
    runtime.streamDestroy(handle)
    assert runtime.pointerGetAttributes(x.data.ptr).type == runtime.memoryTypeDevice
    assert runtime.pointerGetMemoryType(x.data.ptr) == runtime.memoryTypeDevice
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.deviceGetByPCIBusId("no address")
    assert not runtime.is_hip


def test_each_thread_has_current_streams_of_its_own(cuda):
    stream, seen = cuda.Stream(), []
    with stream:
        thread = threading.Thread(target=lambda: seen.append(cuda.get_current_stream()))
        thread.start()
        thread.join()
    assert seen == [cuda.Stream.null]


def test_errors_of_the_driver_and_the_compiler_have_cupys_types(xp, cuda):
    module = xp.RawModule(code='extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 1; }')
    with pytest.raises(cuda.driver.CUDADriverError, match="CUDA_ERROR_NOT_FOUND") as error:
        module.get_function("missing")
    assert error.value.status == 500
    assert "CUDA_ERROR_NOT_FOUND" in str(pickle.loads(pickle.dumps(error.value)))
    assert str(cuda.driver.CUDADriverError(1)) == "CUDA_ERROR_INVALID_VALUE: invalid argument"
    with pytest.raises(cuda.compiler.CompileException):
        xp.RawKernel('extern "C" __global__ void fill() { no_such_name; }', "fill").compile()
    assert cuda.driver.get_build_version() >= 12000


@pytest.mark.emulated
def test_libraries_that_emulated_devices_do_not_need_are_not_available(cuda):
    assert not any((cuda.cub.available, cuda.cutensor.available, cuda.thrust.available))


@pytest.mark.multigpu
def test_the_exit_of_a_device_takes_any_arguments(cuda):
    for arguments in ((), (None,), (None, None, None), (1, 2, 3, 4)):
        device = cuda.Device(1)
        device.__enter__()
        assert cuda.get_device_id() == 1
        assert device.__exit__(*arguments) is None
        assert cuda.get_device_id() == 0
