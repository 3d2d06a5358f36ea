"""NVTX: the calls that reach a profiler, and the calls without a profiler."""

from __future__ import annotations

from typing import Any

import pytest

from tcuda import nvtx


class Domain:
    """An NVTX domain that records its calls."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def get_event_attributes(self, message: str) -> str:
        return message

    def push_range(self, attributes: str) -> None:
        self.told.append(("push", attributes))

    def pop_range(self) -> None:
        self.told.append("pop")

    def start_range(self, attributes: str) -> int:
        self.told.append(("start", attributes))
        return 17

    def end_range(self, range_id: int) -> None:
        self.told.append(("end", range_id))

    def mark(self, attributes: str) -> None:
        self.told.append(("mark", attributes))


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> Domain:
    domain = Domain()
    monkeypatch.setattr(nvtx, "_listener", nvtx._Profiler(domain))
    return domain


@pytest.fixture
def _no_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvtx, "_listener", nvtx._NoProfiler())


def test_ranges_nest_and_return_their_depth(domain: Domain) -> None:
    assert [nvtx.range_push("a"), nvtx.range_push("b"), nvtx.range_pop(), nvtx.range_pop()] == [0, 1, 1, 0]
    assert domain.told == [("push", "a"), ("push", "b"), "pop", "pop"]


def test_a_pop_without_a_push_returns_a_negative_depth(domain: Domain) -> None:
    assert nvtx.range_pop() == -2
    assert domain.told == []
    assert nvtx.range_push("a") == 0


def test_ranges_across_threads_and_marks(domain: Domain) -> None:
    range_id = nvtx.range_start("a")
    nvtx.mark("here")
    nvtx.range_end(range_id)
    assert domain.told == [("start", "a"), ("mark", "here"), ("end", 17)]


def test_range_is_a_context_manager_that_formats_its_text(domain: Domain) -> None:
    with pytest.raises(ZeroDivisionError), nvtx.range("step {} of {n}", 1, n=3):
        _ = 1 / 0
    assert domain.told == [("push", "step 1 of 3"), "pop"]


def test_range_is_a_decorator(domain: Domain) -> None:
    @nvtx.range("double")
    def double(x: int) -> int:
        return 2 * x

    assert [double(1), double(2)] == [2, 4]
    assert domain.told == [("push", "double"), "pop"] * 2


@pytest.mark.usefixtures("_no_profiler")
def test_without_a_profiler_nothing_happens() -> None:
    assert nvtx.range_push("a") == nvtx.range_pop() == -2
    assert nvtx.range_start("a") == 0
    nvtx.range_end(0)
    nvtx.mark("a")
    with nvtx.range("a"):
        pass


def test_the_search_for_a_profiler_happens_once() -> None:
    before = nvtx._listener or nvtx._listen()
    nvtx.range_push("ä")
    nvtx.range_pop()
    assert nvtx._listener is before


@pytest.mark.parametrize("bad", [1, None, b"a"])
@pytest.mark.parametrize("function", [nvtx.range_push, nvtx.range_start, nvtx.mark])
def test_other_objects_than_texts_are_refused(function: Any, bad: Any) -> None:
    with pytest.raises(TypeError, match="takes a str"):
        function(bad)


def test_range_end_takes_only_a_range_of_range_start() -> None:
    with pytest.raises(TypeError, match="takes what range_start"):
        nvtx.range_end("a")  # type: ignore[arg-type]
