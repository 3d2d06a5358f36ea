"""DLPack and ``__cuda_array_interface__`` between streams: which stream waits for which, and the numbers."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.exchanges import arrays, write_late

if TYPE_CHECKING:
    from collections.abc import Iterator


class Exported:
    """An array of another library, whose work runs on a stream of that library.

    Args:
        array: The array.
        stream: The stream of the other library.

    Attributes:
        asked: The streams that readers named, by their handles.
    """

    def __init__(self, array: Any, stream: tcuda.Stream) -> None:
        self._array = array
        self._stream = stream
        self.asked: list[int] = []

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __dlpack__(self, *, stream: int, **others: Any) -> Any:
        self.asked.append(stream)
        with tcuda.stream(self._stream):
            return self._array.__dlpack__(stream=stream, **others)


class Described:
    """An array of another library that has only ``__cuda_array_interface__``.

    Attributes:
        memory: The array that keeps the memory alive.
    """

    def __init__(self, array: Any, **changes: Any) -> None:
        self.memory = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}


@pytest.fixture
def streams() -> Iterator[tuple[tcuda.Stream, tcuda.Stream]]:
    """A stream that writes, and a stream that reads."""
    yield tcuda.Stream(), tcuda.Stream()
    tcuda.synchronize()


class TestDLPack:
    def test_the_stream_of_the_reader_waits_for_the_current_stream(
        self, streams: tuple[tcuda.Stream, tcuda.Stream]
    ) -> None:
        writing, reading = streams
        source, target = arrays()
        write_late(writing, source)
        with tcuda.stream(writing):
            capsule = source.__dlpack__(stream=reading.cuda_stream)
        assert not writing.query()
        assert not reading.query()
        with tcuda.stream(reading):
            tcuda.xp.add(source, 0, out=target)
        reading.synchronize()
        assert writing.query()
        assert float(target.min()) == 1
        del capsule

    def test_the_reader_does_not_wait_for_streams_that_are_not_current(
        self, streams: tuple[tcuda.Stream, tcuda.Stream]
    ) -> None:
        writing, reading = streams
        source, _ = arrays()
        write_late(writing, source)
        with tcuda.stream(tcuda.Stream()):
            capsule = source.__dlpack__(stream=reading.cuda_stream)
        assert reading.query()
        assert not writing.query()
        with tcuda.stream(writing):
            capsule = source.__dlpack__(stream=-1)  # the reader asks for no wait
        assert reading.query()
        assert not writing.query()
        del capsule

    @pytest.mark.alone
    def test_from_dlpack_names_the_current_stream_which_waits(self, streams: tuple[tcuda.Stream, tcuda.Stream]) -> None:
        writing, reading = streams
        source, target = arrays()
        write_late(writing, source)
        theirs = Exported(source, writing)
        with tcuda.stream(reading):
            x = tcuda.xp.from_dlpack(theirs)
            assert theirs.asked == [reading.cuda_stream]
            tcuda.xp.add(x, 0, out=target)
        assert not writing.query()
        reading.synchronize()
        assert writing.query()
        assert x.data.ptr == source.data.ptr
        assert float(target.min()) == 1

    def test_an_array_from_dlpack_keeps_the_memory_alive(self, streams: tuple[tcuda.Stream, tcuda.Stream]) -> None:
        source, _ = arrays()
        source.fill(5)
        tcuda.synchronize()
        gc.collect()  # arrays of tests that failed
        before = tcuda.memory_allocated()
        size = source.nbytes
        x = tcuda.xp.from_dlpack(Exported(source, streams[0]))
        del source
        gc.collect()
        assert tcuda.memory_allocated() == before
        assert float(x.min()) == 5
        del x
        gc.collect()
        assert tcuda.memory_allocated() == before - size

    @pytest.mark.gpu
    def test_torch_and_tcuda_wait_for_each_other(self, streams: tuple[tcuda.Stream, tcuda.Stream]) -> None:
        torch = pytest.importorskip("torch", reason="tcuda does not need torch")
        ours, _ = streams
        theirs = torch.cuda.Stream()
        source, target = arrays()
        tensor, other = torch.zeros(1 << 16, device="cuda"), torch.zeros(1 << 16, device="cuda")
        with torch.cuda.stream(theirs):
            tensor.fill_(0)
            other.copy_(torch.from_dlpack(source))
            torch.cuda._sleep(1)
        tcuda.synchronize()

        write_late(ours, source)
        with tcuda.stream(ours), torch.cuda.stream(theirs):
            other.copy_(torch.from_dlpack(source))
        assert not ours.query()
        theirs.synchronize()
        assert float(other.min()) == 1

        tcuda.synchronize()
        with torch.cuda.stream(theirs):
            torch.cuda._sleep(100_000_000)
            tensor.fill_(1)
            with tcuda.stream(ours):
                x = tcuda.xp.from_dlpack(tensor)
                target.fill(0)
                tcuda.xp.add(x, 0, out=target)
        assert not theirs.query()
        ours.synchronize()
        assert float(target.min()) == 1


class TestTheCudaArrayInterface:
    def test_the_interface_has_version_3_and_the_current_stream(
        self, streams: tuple[tcuda.Stream, tcuda.Stream]
    ) -> None:
        x, _ = arrays()
        for stream in streams:
            with tcuda.stream(stream):
                interface = x.__cuda_array_interface__
            assert (interface["version"], interface["stream"]) == (3, stream.cuda_stream)
        assert x.__cuda_array_interface__["stream"] == 1  # the number of the default stream in the interface

    def test_a_reader_waits_for_the_stream_of_the_interface(self, streams: tuple[tcuda.Stream, tcuda.Stream]) -> None:
        writing, reading = streams
        source, target = arrays()
        write_late(writing, source)
        with tcuda.stream(writing):
            theirs = Described(source)
        with tcuda.stream(reading):
            assert not writing.query()
            x = tcuda.xp.asarray(theirs)
            assert writing.query()
            tcuda.xp.add(x, 0, out=target)
        reading.synchronize()
        assert x.data.ptr == source.data.ptr
        assert float(target.min()) == 1

    def test_a_reader_waits_for_no_stream_if_the_interface_names_none(
        self, streams: tuple[tcuda.Stream, tcuda.Stream]
    ) -> None:
        writing, reading = streams
        source, _ = arrays()
        write_late(writing, source)
        with tcuda.stream(reading):
            x = tcuda.xp.asarray(Described(source, stream=None))
        assert not writing.query()
        writing.synchronize()
        assert float(x.min()) == 1

    def test_an_array_keeps_the_object_with_the_interface_alive(self) -> None:
        source, _ = arrays()
        theirs = Described(source)
        alive = weakref.ref(theirs)
        x = tcuda.xp.asarray(theirs)
        del theirs
        gc.collect()
        assert alive() is not None
        del x
        gc.collect()
        assert alive() is None
