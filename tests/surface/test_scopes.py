"""Scopes that end in an unusual way: in another thread, in another order, twice, or without a start."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime

LAST = tcuda.device_count() - 1


def within(make: Callable[[], Any]) -> Iterator[None]:
    with make():
        yield


def current() -> tuple[Any, ...]:
    """Return the current device of this thread, and the current stream of every device."""
    return tcuda.current_device(), *map(tcuda.current_stream, range(tcuda.device_count()))


BLOCKS: dict[str, Callable[[], Any]] = {
    "stream": lambda: tcuda.stream(tcuda.Stream()),
    "stream of the last device": lambda: tcuda.stream(tcuda.Stream(LAST)),
    "with stream": tcuda.Stream,
    "with stream of the last device": lambda: tcuda.Stream(LAST),
    "device": lambda: tcuda.device(LAST),
}


@pytest.mark.parametrize("make", BLOCKS.values(), ids=list(BLOCKS))
class TestAScopeThatAnotherThreadLeaves:
    def test_changes_nothing_in_that_thread(self, runtime: Runtime, make: Callable[[], Any]) -> None:
        generator = within(make)
        next(generator)

        def close() -> tuple[Any, ...]:
            with tcuda.stream(tcuda.Stream(LAST)):
                before = current()
                generator.close()
                assert current() == before
            return current()

        assert in_thread(close)[0] == 0
        with tcuda.device(0):  # the end of this scope restores the device and the streams
            pass
        assert current() == (0, *map(tcuda.default_stream, range(tcuda.device_count())))

    def test_is_undone_at_the_end_of_the_scope_around_it(self, backend: Backend, make: Callable[[], Any]) -> None:
        outer = tcuda.Stream()
        with tcuda.stream(outer):
            generator = within(make)
            next(generator)
            in_thread(generator.close)
        assert current() == (0, *map(tcuda.default_stream, range(tcuda.device_count())))
        with tcuda.stream(outer):
            assert tcuda.current_stream() is outer
        backend.enter_stream(outer)
        backend.exit_stream()  # CuPy restores the stream from its own stack
        assert current() == (0, *map(tcuda.default_stream, range(tcuda.device_count())))

    def test_is_undone_before_the_next_scope_begins(self, runtime: Runtime, make: Callable[[], Any]) -> None:
        generator = within(make)
        next(generator)
        in_thread(generator.close)
        side = tcuda.Stream(0)
        with tcuda.stream(side):
            assert current() == (0, side, *map(tcuda.default_stream, range(1, tcuda.device_count())))
        assert current() == (0, *map(tcuda.default_stream, range(tcuda.device_count())))

    def test_may_belong_to_a_thread_that_has_ended(self, runtime: Runtime, make: Callable[[], Any]) -> None:
        generator = within(make)
        in_thread(lambda: next(generator))
        before = current()
        generator.close()
        assert current() == before

    def test_can_be_entered_and_left_by_several_threads(self, runtime: Runtime, make: Callable[[], Any]) -> None:
        context = make()
        with context:
            inside = current()

            def enter_and_leave() -> tuple[Any, ...]:
                before = current()
                with context:
                    assert current() == inside
                return before + current()

            found = in_thread(enter_and_leave)
            assert found[: len(inside)] == found[len(inside) :]
            assert current() == inside
        assert current() == (0, *map(tcuda.default_stream, range(tcuda.device_count())))


@pytest.mark.parametrize("make", BLOCKS.values(), ids=list(BLOCKS))
def test_a_scope_can_be_entered_again_within_itself(runtime: Runtime, make: Callable[[], Any]) -> None:
    before, context = current(), make()
    with context:
        inside = current()
        with context:
            assert current() == inside
        assert current() == inside
    assert current() == before


@pytest.mark.parametrize("make", BLOCKS.values(), ids=list(BLOCKS))
def test_leaving_a_scope_that_was_not_entered_does_nothing(runtime: Runtime, make: Callable[[], Any]) -> None:
    with tcuda.stream(tcuda.Stream(LAST)):
        before = current()
        make().__exit__(None, None, None)
        assert current() == before


@pytest.mark.parametrize("make", BLOCKS.values(), ids=list(BLOCKS))
def test_a_scope_that_has_ended_can_be_freed(runtime: Runtime, make: Callable[[], Any]) -> None:
    import weakref

    context = make()
    with context:
        pass
    gone = weakref.ref(context)
    del context
    gc.collect()
    assert gone() is None


def test_threads_that_end_inside_a_scope_do_not_affect_other_threads(runtime: Runtime) -> None:
    for _ in range(100):
        in_thread(tcuda.stream(tcuda.Stream()).__enter__)
    with tcuda.stream(tcuda.Stream()) as nothing:
        assert nothing is None
    assert current() == (0, *map(tcuda.default_stream, range(tcuda.device_count())))


class TestAScopeOfAPoolThatAnotherThreadLeaves:
    def test_ends_the_use_of_the_pool_by_its_own_thread(self, runtime: Runtime) -> None:
        pool = tcuda.MemPool()
        generator = within(lambda: tcuda.use_mem_pool(pool))
        next(generator)
        assert pool.use_count() == 2
        in_thread(generator.close)
        assert pool.use_count() == 1
        address = tcuda.memory.caching_allocator_alloc(512)
        assert pool.snapshot() == []
        tcuda.memory.caching_allocator_delete(address)

    def test_keeps_the_pools_of_the_other_thread(self, runtime: Runtime) -> None:
        pool, theirs = tcuda.MemPool(), tcuda.MemPool()
        generator = within(lambda: tcuda.use_mem_pool(pool))
        next(generator)

        def close() -> tuple[int, ...]:
            with tcuda.use_mem_pool(pool), tcuda.use_mem_pool(theirs), tcuda.use_mem_pool(pool):
                generator.close()
                counts = pool.use_count(), theirs.use_count()
                address = tcuda.memory.caching_allocator_alloc(512)
                used = len(pool.snapshot()), len(theirs.snapshot())
                tcuda.memory.caching_allocator_delete(address)
            return counts + used

        assert in_thread(close) == (3, 2, 1, 0)
        assert (pool.use_count(), theirs.use_count()) == (1, 1)
