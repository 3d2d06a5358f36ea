"""The bodies that a graph captures at the moment: their order, their ends, and the bodies after a failed change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda._runtime.protocol import CONDITIONAL_IF
from tcuda.graphs._body import BOOL
from tcuda.graphs._open_bodies import OpenBodies

if TYPE_CHECKING:
    from tcuda._process.captures import Capture

pytestmark = pytest.mark.usefixtures("allocator_as_found")


@pytest.fixture
def whole() -> Any:
    """The capture of a graph, which the test may break."""
    graph = tcuda.CUDAGraph()
    with tcuda.stream(tcuda.Stream()):
        graph.capture_begin()
        assert graph._open is not None
        capture = graph._open.capture
        yield capture
        graph._abandon_capture()
        del capture


def begin(bodies: OpenBodies, whole: Capture | None, flag: Any) -> None:
    bodies.begin(whole, CONDITIONAL_IF, flag, BOOL, "begin()")


def test_a_body_makes_its_stream_current_until_its_end(xp: Any, whole: Capture) -> None:
    bodies, flag, outside = OpenBodies(), xp.ones((), bool), tcuda.current_stream()
    streams = [outside]
    for number in (1, 2):
        begin(bodies, whole, flag)
        assert len(bodies) == number
        streams.append(tcuda.current_stream())
    assert len(set(streams)) == 3
    for number in (1, 0):
        streams.pop()
        bodies.end()
        assert len(bodies) == number
        assert tcuda.current_stream() == streams[-1]
    assert not whole.is_broken


def test_abandoning_ends_all_bodies_and_breaks_the_capture(xp: Any, whole: Capture) -> None:
    bodies, flag, outside = OpenBodies(), xp.ones((), bool), tcuda.current_stream()
    begin(bodies, whole, flag)
    begin(bodies, whole, flag)
    bodies.abandon()
    assert not bodies
    assert whole.is_broken
    assert tcuda.current_stream() == outside


def test_without_a_body_nothing_is_abandoned(whole: Capture) -> None:
    OpenBodies().abandon()
    assert not whole.is_broken


def test_a_refused_begin_leaves_the_bodies_as_they_were(xp: Any, whole: Capture) -> None:
    bodies, flag = OpenBodies(), xp.ones((), bool)
    begin(bodies, whole, flag)
    inside = tcuda.current_stream()
    with pytest.raises(RuntimeError, match="one element"):
        begin(bodies, whole, xp.ones(2, bool))
    with pytest.raises(RuntimeError, match=r"capture_begin\(\) must be called before"):
        begin(bodies, None, flag)
    assert (len(bodies), whole.is_broken) == (1, False)
    assert tcuda.current_stream() == inside
    bodies.end()


def test_an_end_needs_a_body() -> None:
    with pytest.raises(RuntimeError, match="no body is being captured"):
        OpenBodies().end()
