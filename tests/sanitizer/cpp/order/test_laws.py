"""The detector against a model that compares every pair of accesses, on random programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.core import for_tests
from support.examples import examples
from support.happens_before import Graph, Program, Race, bytes_of
from support.races import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda import _core

BASE = 0x1000
ROOM = 96  # bytes that the accesses are in, so that many of them overlap
STREAMS = ((0, 0), (0, 2), (0, 0x10), (0, 0x12), (0, 0x14), (0, 0x16), (1, 0), (1, 0x18))
BLOCKING = (True, True, True, True, False, False, True, False)
EVENTS = (1, 2, 3)

streams = st.integers(0, len(STREAMS) - 1)
events = st.sampled_from(EVENTS)


@st.composite
def uses(draw: st.DrawFn, label: str) -> _core.RaceUse:
    """Draw an access, half of the time one of adjacent bytes."""
    kind = draw(st.integers(1, 3))
    if draw(st.booleans()):
        return BASE + draw(st.integers(0, ROOM)), 1, (draw(st.integers(0, ROOM // 2)),), (1,), kind, label
    itemsize = draw(st.integers(1, 4))
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)))
    strides = tuple(draw(st.integers(-12, 12)) for _ in shape)
    return BASE + draw(st.integers(0, ROOM)), itemsize, shape, strides, kind, label


@st.composite
def several_uses(draw: st.DrawFn, name: str = "") -> list[_core.RaceUse]:
    """Draw the accesses of an operation."""
    return [draw(uses(name + label)) for label in "abc"[: draw(st.integers(0, 3))]]


@st.composite
def nodes(draw: st.DrawFn) -> list[tuple[list[_core.RaceUse], list[int]]]:
    """Draw the nodes of a graph."""
    drawn: list[tuple[list[_core.RaceUse], list[int]]] = []
    for place in range(draw(st.integers(1, 5))):
        dependencies = draw(st.sets(st.integers(0, place - 1))) if place else set[int]()
        drawn.append((draw(several_uses(str(place))), sorted(dependencies)))
    return drawn


steps = st.one_of(
    st.tuples(st.just("work"), streams, several_uses()),
    st.tuples(st.just("work"), streams, several_uses()),
    st.tuples(st.just("work"), streams, several_uses()),
    st.tuples(st.just("together"), st.lists(streams, min_size=1, max_size=3, unique=True), several_uses()),
    st.tuples(st.just("host"), several_uses()),
    st.tuples(st.just("record"), events, streams),
    st.tuples(st.just("record"), events, streams),
    st.tuples(st.just("wait"), events, streams),
    st.tuples(st.just("wait"), events, streams),
    st.tuples(st.just("finish_event"), events),
    st.tuples(st.just("forget_event"), events),
    st.tuples(st.just("finish_stream"), streams),
    st.tuples(st.just("finish_device"), st.integers(0, 1)),
    st.tuples(st.just("renew"), streams),
    st.tuples(st.just("launch"), st.integers(0, 1), streams),
    st.tuples(st.just("launch"), st.integers(0, 1), streams),
    st.tuples(st.just("allocate"), st.integers(0, ROOM), st.integers(1, ROOM // 2)),
    st.tuples(st.just("unmap"), st.integers(0, ROOM), st.integers(1, ROOM // 4)),
)


class Both:
    """The detector and the model, which are told of the same steps."""

    def __init__(self, graphs: list[list[tuple[list[_core.RaceUse], list[int]]]]) -> None:
        self.watch = Watch()
        self.detector = self.watch.detector
        self.program = Program()
        self.graphs = [
            (self.detector.graph([("node", accesses, after, 0) for accesses, after in drawn]), Graph(drawn))
            for drawn in graphs
        ]
        for place in range(len(STREAMS)):
            self.create(place)

    def create(self, place: int) -> None:
        self.detector.stream_created(*STREAMS[place], BLOCKING[place])
        self.program.create(*STREAMS[place], BLOCKING[place])

    def run(self, name: str, *arguments: Any) -> None:
        step: Callable[..., set[Race] | None] = getattr(self, name)
        expected = step(*arguments) or set()
        self.compare(expected)

    def compare(self, expected: set[Race]) -> None:
        races = self.watch.taken()
        found = {
            Race(
                race.previous.number,
                race.previous.label,
                race.current.number,
                race.current.label,
                race.use_after_free,
            )
            for race in races
        }
        assert found <= expected
        # The detector forgets an access only if each race with it is a race with a later access too.
        assert {(race.current, race.label) for race in found} == {(race.current, race.label) for race in expected}
        for race in races:
            before, after = race.previous.region, race.current.region
            common = bytes_of((*before, 1, "")) & bytes_of((*after, 1, ""))
            assert race.overlap == (min(common), max(common) + 1 - min(common))
            assert race.current.confidence == "exact"
        self.detector.forget_races()

    # The steps

    def work(self, place: int, accesses: list[_core.RaceUse]) -> set[Race]:
        self.detector.work(*STREAMS[place], "work", accesses)
        return self.program.work([STREAMS[place]], accesses)

    def together(self, places: list[int], accesses: list[_core.RaceUse]) -> set[Race]:
        keys = [STREAMS[place] for place in places]
        self.detector.work_together(keys, "together", accesses)
        return self.program.work(keys, accesses)

    def host(self, accesses: list[_core.RaceUse]) -> set[Race]:
        for_tests.host_access(self.detector, "host", accesses)
        return self.program.host_access(accesses)

    def launch(self, graph: int, place: int) -> set[Race]:
        detected, modelled = self.graphs[graph]
        self.detector.launch(detected, *STREAMS[place])
        return self.program.launch(modelled, *STREAMS[place])

    def record(self, event: int, place: int) -> None:
        self.detector.event_recorded(event, *STREAMS[place])
        self.program.record(event, *STREAMS[place])

    def wait(self, event: int, place: int) -> None:
        self.detector.event_waited(event, *STREAMS[place])
        self.program.wait(event, *STREAMS[place])

    def finish_event(self, event: int) -> None:
        self.detector.event_synchronized(event)
        self.program.finish_event(event)

    def forget_event(self, event: int) -> None:
        self.detector.event_destroyed(event)
        self.program.forget_event(event)

    def finish_stream(self, place: int) -> None:
        self.detector.stream_synchronized(*STREAMS[place])
        self.program.finish_stream(*STREAMS[place])

    def finish_device(self, device: int) -> None:
        self.detector.device_synchronized(device)
        self.program.finish_device(device)

    def renew(self, place: int) -> None:
        if STREAMS[place][1] > 2:
            self.detector.stream_destroyed(*STREAMS[place])
            self.program.destroy(*STREAMS[place])
            self.create(place)

    def allocate(self, offset: int, size: int) -> None:
        self.detector.memory_allocated(BASE + offset, size, 0, 0)
        self.program.allocate(BASE + offset, size)

    def unmap(self, offset: int, size: int) -> None:
        self.detector.memory_unmapped(BASE + offset, size)
        self.program.unmap(BASE + offset, size)


@settings(max_examples=examples(150), deadline=None)
@given(graphs=st.tuples(nodes(), nodes()), program=st.lists(steps, max_size=40))
def test_an_access_races_exactly_if_the_model_says_so(
    graphs: tuple[list[Any], list[Any]], program: list[tuple[Any, ...]]
) -> None:
    both = Both(list(graphs))
    for step in program:
        both.run(*step)
