"""Copies, pickles, weak references and subclasses of the objects of the package."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf

pytestmark = pytest.mark.usefixtures("runtime")


def recorded_event() -> tcuda.Event:
    return tcuda.Stream().record_event()


def captured_graph() -> tcuda.CUDAGraph:
    graph, x = tcuda.CUDAGraph(), tcuda.xp.zeros(10)
    with tcuda.graph(graph):
        x += 1
    return graph


def external_stream() -> tcuda.ExternalStream:
    return tcuda.ExternalStream(tcuda.Stream().cuda_stream)


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "old pickle": lambda owner: pickle.dumps(owner, 0),
}
OWNERS: dict[str, tuple[Callable[[], Any], str]] = {
    "Event": (recorded_event, "the same CUDA event. Make another event"),
    "a new Event": (tcuda.Event, "the same CUDA event. Make another event"),
    "CUDAGraph": (captured_graph, "the same CUDA graph and its memory. Capture the work again"),
    "MemPool": (tcuda.MemPool, "the same memory. Make another MemPool"),
    "track": (tcuda.memory.track, r"Make another tcuda\.memory\.track\(\)"),
    "allocator": (lambda: tcuda.memory._get_current_allocator(), "Make another CUDAPluggableAllocator"),
}


class TestOwners:
    @pytest.mark.parametrize("way", COPIES)
    @pytest.mark.parametrize("name", OWNERS)
    def test_are_not_copied(self, name: str, way: str) -> None:
        make, text = OWNERS[name]
        owner = make()
        with pytest.raises(TypeError, match=text) as caught:
            COPIES[way](owner)
        assert str(caught.value).startswith(f"cannot copy or pickle {type(owner).__name__!r} object: ")

    @pytest.mark.parametrize("way", COPIES)
    def test_are_unchanged_after_the_refusal(self, way: str) -> None:
        event, graph, pool = recorded_event(), captured_graph(), tcuda.MemPool()
        handle, number, uses = event.cuda_event, graph.pool(), pool.use_count()
        for owner in (event, graph, pool):
            with pytest.raises(TypeError):
                COPIES[way](owner)
        gc.collect()
        assert (event.cuda_event, graph.pool(), pool.use_count()) == (handle, number, uses)
        event.synchronize()
        graph.replay()
        with tcuda.use_mem_pool(pool):
            assert pool.use_count() == uses + 1

    def test_are_found_inside_of_other_objects(self) -> None:
        with pytest.raises(TypeError, match="cannot copy or pickle 'Event' object"):
            copy.deepcopy({"done": [tcuda.Event()]})
        with pytest.raises(TypeError, match="cannot copy or pickle 'CUDAGraph' object"):
            copy.deepcopy(tcuda.graph(tcuda.CUDAGraph()))

    def test_a_subclass_is_named_and_may_define_its_copy(self) -> None:
        class Phase(tcuda.Event):
            pass

        class Renewed(tcuda.Event):
            def __reduce__(self) -> Any:
                return tcuda.Event, (True,)

        with pytest.raises(TypeError, match="cannot copy or pickle 'Phase' object"):
            copy.copy(Phase())
        assert copy.copy(Renewed()).cuda_event == 0

    def test_an_active_measurement_continues_after_the_refusal(self) -> None:
        with tcuda.memory.track() as usage:
            with pytest.raises(TypeError):
                copy.copy(usage)
            gc.collect()
            x = tcuda.xp.zeros(1000)
            assert usage.current >= x.nbytes


class TestStreams:
    @pytest.mark.parametrize("make", [tcuda.Stream, external_stream, tcuda.current_stream])
    @pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
    def test_a_copy_is_the_same_stream(self, make: Callable[[], tcuda.Stream], way: Callable[[Any], Any]) -> None:
        stream = make()
        copied = way(stream)
        assert copied == stream
        assert type(copied) is type(stream)
        assert (copied.cuda_stream, copied.device_index) == (stream.cuda_stream, stream.device_index)

    def test_copying_takes_no_stream_from_the_pool(self) -> None:
        handles = [tcuda.Stream().cuda_stream for _ in range(32)]
        for handle in handles:
            stream = tcuda.Stream()
            assert copy.copy(stream).cuda_stream == copy.deepcopy([stream])[0].cuda_stream == handle

    @pytest.mark.parametrize("make", [tcuda.Stream, external_stream, tcuda.current_stream])
    def test_a_handle_is_not_pickled(self, make: Callable[[], tcuda.Stream]) -> None:
        with pytest.raises(TypeError, match="its handle means nothing in another process"):
            pickle.dumps(make())

    def test_a_context_copies_with_its_stream(self) -> None:
        stream = tcuda.Stream()
        with copy.deepcopy(tcuda.stream(stream)):
            assert tcuda.current_stream() == stream


class TestValues:
    @pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
    def test_are_copied(self, way: Callable[[Any], Any]) -> None:
        device = tcuda.device(0)
        assert way(device).idx == 0
        assert way(tcuda.Stream().device) == tcuda.Stream().device
        assert way(tcuda.get_device_properties()) == tcuda.get_device_properties()
        assert way(tcuda.memory.Usage(1, 2)) == tcuda.memory.Usage(1, 2)
        error = way(tcuda.AcceleratorError(101, "f()"))
        assert (error.error_code, error.call) == (101, "f()")

    @pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
    def test_a_copied_generator_is_independent(self, way: Callable[[Any], Any]) -> None:
        generator = tcuda.Generator().manual_seed(5)
        copied = way(generator)
        first = generator.random(10).get()
        assert copied.get_offset() == 0
        assert (copied.random(10).get() == first).all()


WEAK: dict[str, Callable[[], Any]] = {
    "Event": tcuda.Event,
    "Stream": tcuda.Stream,
    "ExternalStream": external_stream,
    "CUDAGraph": tcuda.CUDAGraph,
    "MemPool": tcuda.MemPool,
    "Generator": tcuda.Generator,
    "device": lambda: tcuda.device(0),
    "StreamContext": lambda: tcuda.stream(None),
    "track": tcuda.memory.track,
    "graph": lambda: tcuda.graph(tcuda.CUDAGraph()),
}


@pytest.mark.parametrize("name", WEAK)
def test_a_weak_reference_ends_with_the_object(name: str) -> None:
    made = WEAK[name]()
    known = weakref.ref(made)
    assert known() is made
    del made
    gc.collect()
    assert known() is None


class TestSubclasses:
    """Subclasses in the style of torch: ``__new__`` passes torch's arguments on, ``__init__`` has its own arguments."""

    def test_of_an_event(self) -> None:
        class Timed(tcuda.Event):
            __slots__ = ("name",)

            def __new__(cls, name: str) -> Timed:
                return super().__new__(cls, enable_timing=True, blocking=True)

            def __init__(self, name: str) -> None:
                self.name = name

        start, end = Timed("start"), Timed("end")
        start.record()
        end.record()
        end.synchronize()
        assert start.elapsed_time(end) >= 0
        assert (start.name, type(start)) == ("start", Timed)

    def test_of_an_event_without_new(self) -> None:
        class Named(tcuda.Event):
            def __init__(self, enable_timing: bool = False, *, name: str = "") -> None:
                super().__init__()
                self.name = name

        class Plain(tcuda.Event):
            pass

        with pytest.raises(TypeError, match="name"):  # __new__ takes the arguments too, as torch's does
            Named(name="start")
        assert Named(True).name == ""
        assert Plain(enable_timing=True)._flags == tcuda.Event(enable_timing=True)._flags

    def test_of_a_stream(self) -> None:
        class Named(tcuda.Stream):
            __slots__ = ("name",)

            def __new__(cls, name: str, priority: int = 0) -> Named:
                return super().__new__(cls, device=0, priority=priority)

            def __init__(self, name: str, priority: int = 0) -> None:
                self.name = name

        stream = Named("copies", priority=-1)
        with tcuda.stream(stream):
            assert tcuda.current_stream() is stream
        assert (stream.name, stream.priority) == ("copies", -1)

    def test_of_an_external_stream(self) -> None:
        class Borrowed(tcuda.ExternalStream):
            def __new__(cls, owner: tcuda.Stream) -> Borrowed:
                return super().__new__(cls, owner.cuda_stream, device=owner.device_index)

            def __init__(self, owner: tcuda.Stream) -> None:
                self.owner = owner

        owner = tcuda.Stream()
        assert Borrowed(owner) == owner
        assert Borrowed(owner).owner is owner

    def test_of_a_graph(self) -> None:
        class Counted(tcuda.CUDAGraph):
            def __new__(cls, replays: int) -> Counted:
                return super().__new__(cls, keep_graph=True)

            def __init__(self, replays: int) -> None:
                self.replays = replays

            def replay(self) -> None:
                self.replays += 1
                super().replay()

        graph, x = Counted(5), tcuda.xp.zeros(10)
        with tcuda.graph(graph):
            x += 1
        graph.replay()
        assert graph.replays == 6
        assert graph.raw_cuda_graph() != 0
        assert (x.get() == 1).all()

    def test_of_a_pool(self) -> None:
        class Named(tcuda.MemPool):
            __slots__ = ("name",)

            def __init__(self, name: str) -> None:
                super().__init__(no_split=True)
                self.name = name

        pool = Named("weights")
        with tcuda.use_mem_pool(pool):
            x = tcuda.xp.zeros(10)
        assert [segment["segment_pool_id"] for segment in pool.snapshot()] == [pool.id]
        assert pool.name == "weights"
        del x

    def test_of_a_generator(self) -> None:
        class Named(tcuda.Generator):
            __slots__ = ("name",)

            def __new__(cls, name: str, device: int) -> Named:
                return super().__new__(cls, device=device)

            def __init__(self, name: str, device: int) -> None:
                self.name = name

            def draw(self) -> Any:
                return self.random(10)

        generator = Named("noise", 0)
        generator.manual_seed(5)
        assert isinstance(generator, Named)
        assert type(generator).__name__ == "Named"
        assert type(Named("other", 0)) is type(generator)
        assert generator.name == "noise"
        assert np.array_equal(generator.draw().get(), tcuda.Generator().manual_seed(5).random(10).get())

    def test_of_a_generator_with_an_init_for_its_device(self) -> None:
        class Seeded(tcuda.Generator):
            def __init__(self, device: Any = None) -> None:
                super().__init__(device)
                self.manual_seed(7)

        assert Seeded().initial_seed() == Seeded("cuda:0").initial_seed() == 7

    def test_an_event_that_event_new_did_not_make_dies_without_an_error(self, output_of: OutputOf) -> None:
        code = (
            "import gc, tcuda\n"
            "class Odd(tcuda.Event):\n"
            "    def __new__(cls):\n"
            "        return object.__new__(cls)\n"
            "Odd()\n"
            "gc.collect()\n"
            "print('quiet')\n"
        )
        assert output_of(code) == "quiet"

    def test_bad_arguments_to_new_are_refused(self) -> None:
        class Odd(tcuda.Event):
            def __new__(cls) -> Odd:
                return super().__new__(cls, colour=1)  # type: ignore[call-arg]

        with pytest.raises(TypeError, match="colour"):
            Odd()
        with contextlib.suppress(TypeError):
            tcuda.CUDAGraph(1, 2)  # type: ignore[call-arg]
        gc.collect()
