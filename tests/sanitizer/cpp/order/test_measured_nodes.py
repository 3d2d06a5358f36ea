"""A node of a graph may use other memory at each launch, as a kernel does whose accesses depend on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.races import X, Y, read, write
from tcuda import _core

if TYPE_CHECKING:
    from support.races import Watch


def test_a_launch_has_the_accesses_that_were_set_last(watch: Watch) -> None:
    (main,) = watch.streams(1)
    other = 0x900
    watch.detector.stream_created(0, other, False)
    graph = watch.detector.graph([("fill", [], [], 0), ("sum", [read(Y)], [0], 0)])
    watch.detector.set_node(graph, 0, [write(X)])
    watch.detector.launch(graph, 0, main)
    watch.detector.set_node(graph, 0, [write(Y)])
    watch.detector.launch(graph, 0, main)
    watch.detector.work(0, other, "copy", [read(X, label="src")])
    assert watch.kinds() == ["read after write"]
    watch.detector.work(0, other, "copy", [read(Y, label="src")])
    assert watch.kinds() == ["read after write"]
    watch.detector.set_node(graph, 0, [])
    watch.detector.device_synchronized(0)
    watch.detector.launch(graph, 0, main)
    watch.detector.work(0, other, "copy", [read(X, label="src")])
    assert watch.kinds() == []


def test_a_node_that_the_graph_has_not_is_refused(watch: Watch) -> None:
    graph = watch.detector.graph([("fill", [write()], [], 0)])
    with pytest.raises(IndexError):
        watch.detector.set_node(graph, 1, [])


def test_a_graph_of_another_detector_is_refused(watch: Watch) -> None:
    graph = _core.RaceDetector(lambda race: None).graph([("fill", [write()], [], 0)])
    with pytest.raises(ValueError, match="another detector"):
        watch.detector.set_node(graph, 0, [])
