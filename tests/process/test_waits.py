"""The frame of the program that a wait belongs to, and the watcher of waits."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING

import pytest

import tcuda
from tcuda._process import waits
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._process.waits import Wait
    from tcuda._runtime.protocol import Runtime


@pytest.fixture
def told(runtime: Runtime) -> Iterator[list[Wait]]:
    """The waits that the watcher is told of."""
    seen: list[Wait] = []
    waits.watch(seen.append)
    yield seen
    waits.watch(None)


def call_of_module(name: str | None) -> FunctionType:
    """Return a function of the module ``name`` that waits for the stream that it is given."""

    def wait(stream: tcuda.Stream) -> None:
        stream.synchronize()

    return FunctionType(wait.__code__, {"__name__": name} if name is not None else {}, name="wait")


@pytest.mark.parametrize("name", ["__main__", "program", "tcuda_program", "cupyish", "tcuda.demo.train", None])
def test_a_wait_belongs_to_the_program_that_calls(told: list[Wait], name: str | None) -> None:
    call_of_module(name)(tcuda.Stream())
    [wait] = told
    assert wait.frame.f_code.co_name == "wait"
    assert wait.frame.f_globals.get("__name__") == name


@pytest.mark.parametrize(
    "name", ["cupy", "cupy._core.core", "cupyx.scipy", "cupy_backends.cuda", "numpy", "tcuda.comm"]
)
def test_a_wait_of_a_library_belongs_to_the_program_that_calls_the_library(told: list[Wait], name: str) -> None:
    call_of_module(name)(tcuda.Stream())
    [wait] = told
    assert wait.frame.f_globals["__name__"] == __name__


def test_the_watcher_is_told_before_the_wait_and_may_refuse_it(runtime: Runtime) -> None:
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        tcuda._sleep(100_000_000)

    def refuse(wait: Wait) -> None:
        raise KeyError(wait.call)

    waits.watch(refuse)
    try:
        with pytest.raises(KeyError, match=r"Stream\.synchronize"):
            stream.synchronize()
        assert not stream.query()
        waits.unwatched("streamSynchronize")(stream.cuda_stream)
        assert stream.query()
    finally:
        waits.watch(None)


def test_a_later_watcher_takes_the_place_of_an_earlier_one(told: list[Wait]) -> None:
    later: list[Wait] = []
    waits.watch(later.append)
    tcuda.Stream().synchronize()
    assert (len(told), len(later)) == (0, 1)


def test_one_wait_after_an_announcement_is_not_told_again(told: list[Wait]) -> None:
    def copy(announce: Callable[[str], None], stream: tcuda.Stream, waits: int) -> None:
        announce("a copy")
        for _ in range(waits):
            stream.synchronize()

    copy_of_library = FunctionType(copy.__code__, {"__name__": "cupy", "range": range}, name="copy")
    for number, calls in enumerate([[], [], ["Stream.synchronize"], ["Stream.synchronize"] * 2]):
        for _ in range(2):
            copy_of_library(waits.announce_next, tcuda.Stream(), number)
            assert [wait.call for wait in told] == ["a copy", *calls]
            told.clear()


def test_without_a_watcher_the_unwatched_calls_are_those_in_use(runtime: Runtime) -> None:
    assert not waits.watched
    assert all(waits.unwatched(name) is getattr(cuda, name) for name in waits.CALLS)
