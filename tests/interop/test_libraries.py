"""Streams and events between tcuda and CuPy or PyTorch, on a real GPU."""

from __future__ import annotations

import importlib
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import OutputOf

pytestmark = pytest.mark.gpu

LONG = 200_000_000


@pytest.fixture
def cupy() -> Any:
    return importlib.import_module("cupy")


def library(name: str) -> Any:
    """Import a library that tcuda does not need, or skip the test if the library is absent."""
    return pytest.importorskip(name, reason=f"tcuda does not need {name}")


@pytest.fixture
def busy() -> Iterator[tcuda.Stream]:
    """A stream that is busy at the start of the test."""
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        tcuda._sleep(1)
        stream.synchronize()
        tcuda._sleep(LONG)
    yield stream
    stream.synchronize()


class TestObjectsOfTcudaInCuPy:
    def test_cupy_launches_on_the_current_stream_and_returns_the_same_object(self, cupy: Any) -> None:
        stream, x = tcuda.Stream(), cupy.zeros(1 << 20)
        x += 0  # compiles the kernel
        tcuda.synchronize()
        with tcuda.stream(stream):
            assert cupy.cuda.get_current_stream() is stream
            tcuda._sleep(LONG)
            x += 1
            assert not stream.query()
        assert cupy.cuda.get_current_stream() is cupy.cuda.Stream.null
        stream.synchronize()
        assert float(x.sum()) == 1 << 20

    def test_the_default_stream_stays_cupys_own(self, cupy: Any) -> None:
        tcuda.set_stream(tcuda.default_stream())
        assert cupy.cuda.get_current_stream() is cupy.cuda.Stream.null
        with tcuda.stream(tcuda.Stream()), tcuda.stream(tcuda.default_stream()):
            assert cupy.cuda.get_current_stream() is cupy.cuda.Stream.null

    def test_a_stream_is_an_argument_of_arrays_and_kernels(self, cupy: Any, busy: tcuda.Stream) -> None:
        host = np.arange(8, dtype=np.float32)
        x = cupy.zeros(8, dtype=cupy.float32)
        tcuda.default_stream().synchronize()
        x.set(host, stream=busy)
        kernel = cupy.RawKernel('extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }', "twice")
        kernel((1,), (8,), (x,), stream=busy)
        assert (x.get(stream=busy) == 2 * host).all()

    def test_cupys_own_copies_work_on_a_stream(self, cupy: Any) -> None:
        host = np.arange(1 << 16, dtype=np.float32)
        with tcuda.stream(tcuda.Stream()):
            x = cupy.asarray(host)  # CuPy copies through pinned memory, which is free once an event of CuPy is complete
            y = cupy.empty_like(x)
            y.set(host)
            assert (cupy.asnumpy(x + y) == 2 * host).all()
            assert (cupy.array([x, y]).get() == [host, host]).all()
            z = cupy.from_dlpack(x)
            assert z.data.ptr == x.data.ptr
            assert float(cupy.linalg.norm(x)) == pytest.approx(float(np.linalg.norm(host)), rel=1e-3)
            assert cupy.allclose(cupy.fft.ifft(cupy.fft.fft(x[:64])).real, x[:64], atol=1e-3)

    def test_an_array_can_be_given_to_a_library_that_works_on_another_stream(self, cupy: Any) -> None:
        torch = library("torch")
        with tcuda.stream(tcuda.Stream()):
            x = cupy.zeros(1 << 16, dtype=cupy.float32)
            x += 0
            tcuda._sleep(LONG)
            x += 1
            tensor = torch.from_dlpack(x)  # CuPy lets torch's stream wait for CuPy's current stream
        assert float(tensor.min()) == 1

    def test_streams_and_events_have_cupys_names(self, busy: tcuda.Stream) -> None:
        event = busy.record()
        assert isinstance(event, tcuda.Event)
        assert not event.done
        assert not busy.done
        busy.synchronize()
        assert event.done
        assert busy.done

    def test_events_of_both_can_be_combined(self, cupy: Any, busy: tcuda.Stream) -> None:
        start, end = tcuda.Event(enable_timing=True), tcuda.Event(enable_timing=True)
        start.record(busy)
        end.record(busy)
        theirs = cupy.cuda.Stream(non_blocking=True)
        theirs.wait_event(end)
        assert not theirs.done
        waiting = tcuda.Stream()
        waiting.wait_event(recorded(cupy, busy))
        assert not waiting.query()
        theirs.synchronize()
        assert end.query()
        assert cupy.cuda.get_elapsed_time(start, end) >= 0

    def test_from_external_takes_a_stream(self, cupy: Any, busy: tcuda.Stream) -> None:
        theirs = cupy.cuda.Stream.from_external(busy)
        assert theirs.ptr == busy.cuda_stream
        assert not theirs.done


def recorded(cupy: Any, stream: tcuda.Stream) -> Any:
    event = cupy.cuda.Event()
    event.record(stream)
    return event


class TestObjectsOfCuPyInTcuda:
    def test_the_current_stream_of_cupy_is_that_of_tcuda(self, cupy: Any) -> None:
        theirs = cupy.cuda.Stream(non_blocking=True)
        with theirs:
            assert tcuda.current_stream().cuda_stream == theirs.ptr
            tcuda._sleep(LONG)
            event = tcuda.Event()
            event.record()
            assert not event.query()
        theirs.synchronize()
        assert event.query()

    def test_use_sets_the_current_stream(self, cupy: Any) -> None:
        theirs = cupy.cuda.Stream(non_blocking=True)
        theirs.use()
        assert tcuda.current_stream().cuda_stream == theirs.ptr
        cupy.cuda.Stream.null.use()
        assert tcuda.current_stream() is tcuda.default_stream()

    def test_blocks_of_both_nest(self, cupy: Any) -> None:
        ours, theirs, inner = tcuda.Stream(), cupy.cuda.Stream(non_blocking=True), tcuda.Stream()
        with tcuda.stream(ours):
            with theirs:
                with tcuda.stream(inner):
                    assert cupy.cuda.get_current_stream() is inner
                assert cupy.cuda.get_current_stream() is theirs
            assert cupy.cuda.get_current_stream() is ours
        assert cupy.cuda.get_current_stream() is cupy.cuda.Stream.null

    def test_the_stream_set_by_use_is_current_again_after_a_scope_of_tcuda(self, cupy: Any) -> None:
        theirs = cupy.cuda.Stream(non_blocking=True)
        theirs.use()
        with tcuda.stream(tcuda.Stream()):
            pass
        assert cupy.cuda.get_current_stream() is theirs
        cupy.cuda.Stream.null.use()

    def test_a_stream_is_an_argument(self, cupy: Any) -> None:
        theirs = cupy.cuda.Stream(non_blocking=True)
        with tcuda.stream(theirs):
            assert cupy.cuda.get_current_stream().ptr == theirs.ptr
            tcuda._sleep(LONG)
        event, waiting = tcuda.Event(), tcuda.Stream()
        event.record(theirs)
        waiting.wait_stream(theirs)
        assert not event.query()
        assert not waiting.query()
        theirs.synchronize()
        waiting.synchronize()

    def test_devices_and_arrays_of_cupy_name_a_device(self, cupy: Any) -> None:
        assert tcuda.get_device_name(cupy.cuda.Device(0)) == tcuda.get_device_name(0)
        assert tcuda.device_of(cupy.zeros(1)).idx == 0


def test_the_per_thread_default_stream_is_the_default_if_cupy_uses_it(output_of: OutputOf) -> None:
    code = (
        "import cupy, tcuda\n"
        "default = tcuda.default_stream()\n"
        "assert tcuda.current_stream() is default\n"
        "assert default.cuda_stream == cupy.cuda.Stream.ptds.ptr == 2\n"
        "tcuda._sleep(200_000_000)\n"
        "event = default.record_event()\n"
        "assert not (event.query() or default.query())\n"
        "with tcuda.stream(tcuda.Stream()), tcuda.stream(default):\n"
        "    assert cupy.cuda.get_current_stream() is cupy.cuda.Stream.ptds\n"
        "default.synchronize()\n"
        "print(event.query())"
    )
    assert output_of(code, CUPY_CUDA_PER_THREAD_DEFAULT_STREAM="1") == "True"


def test_pytorch() -> None:
    torch = library("torch")
    torch.cuda.Stream().record_event().synchronize()  # the first use of torch loads modules, which waits for the device
    busy = tcuda.Stream()
    with tcuda.stream(busy):
        tcuda._sleep(LONG)
    theirs = torch.cuda.ExternalStream(busy.cuda_stream)
    assert not theirs.query() or busy.query()
    stream = torch.cuda.Stream()
    stream.wait_stream(theirs)
    waiting = tcuda.Stream()
    waiting.wait_stream(stream)
    waiting.wait_event(theirs.record_event())
    assert not waiting.query() or busy.query()
    with tcuda.stream(stream):
        assert tcuda.current_stream().cuda_stream == stream.cuda_stream
    assert tcuda.device_of(torch.zeros(1, device="cuda")).idx == 0
    assert tcuda.device_of(torch.zeros(1)).idx == -1
    assert tcuda.get_device_name(torch.device("cuda:0")) == torch.cuda.get_device_name(0)
    waiting.synchronize()


def test_device_properties_equal_pytorchs() -> None:
    torch = library("torch")
    ours, theirs = tcuda.get_device_properties(0), torch.cuda.get_device_properties(0)
    different = [
        name for name in dir(theirs) if name[0] != "_" and str(getattr(theirs, name)) != str(getattr(ours, name))
    ]
    assert not different
    assert repr(ours) == repr(theirs)


class TestMemoryOfCuPy:
    def test_the_first_array_of_xp_initialises_and_is_counted(self, output_of: OutputOf) -> None:
        code = """
            import tcuda
            from tcuda import xp
            print(tcuda.is_initialized())
            x = xp.zeros(1 << 20, dtype="uint8")
            print(tcuda.is_initialized(), tcuda.memory_allocated())
        """
        assert output_of(dedent(code)).split() == ["False", "True", str(1 << 20)]

    def test_workspaces_of_libraries_are_counted(self, cupy: Any) -> None:
        x = cupy.random.random((512, 512))
        cupy.linalg.svd(x)
        with tcuda.memory.track() as usage:
            u, s, v = cupy.linalg.svd(x)
        assert usage.peak > u.nbytes + s.nbytes + v.nbytes

    def test_cupys_out_of_memory_error_is_also_tcudas(self, cupy: Any) -> None:
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError) as caught:
            cupy.empty(1 << 50, dtype="uint8")
        assert isinstance(caught.value, tcuda.OutOfMemoryError)

    def test_memory_of_a_destroyed_stream_of_cupy_is_reused_by_other_streams(self, cupy: Any) -> None:
        size = 64 << 20
        tcuda.empty_cache()
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            cupy.empty(size, dtype="uint8")
        before = tcuda.memory_reserved()
        del stream
        kept = cupy.empty(size, dtype="uint8")
        assert tcuda.memory_reserved() <= before, kept
