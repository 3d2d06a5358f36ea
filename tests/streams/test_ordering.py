"""Events order streams. The data that a consumer reads shows the order.

A producer keeps its stream busy and then writes. A consumer on another stream reads. A consumer that waits must read
the written data. On real hardware a consumer that does not wait reads the old data, which shows that these tests can
fail. Emulated devices run in program order, so a consumer always reads the written data there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1 << 16
BUSY = 400_000_000


def consume(order: Callable[[tcuda.Stream, tcuda.Stream], object]) -> float:
    """Return the smallest element that a consumer reads from an array that a producer changes from 0 to 1."""
    xp = tcuda.xp
    source, result = xp.zeros(SIZE, dtype="float32"), xp.empty(SIZE, dtype="float32")
    xp.add(source, 0, out=result)  # CUDA loads the kernels here, before the streams race
    xp.multiply(source, 1, out=source)
    tcuda.synchronize()
    producer, consumer = tcuda.Stream(), tcuda.Stream()
    with tcuda.stream(producer):
        tcuda._sleep(BUSY)
        source.fill(1)
    order(producer, consumer)
    with tcuda.stream(consumer):
        xp.add(source, 0, out=result)
    consumer.synchronize()
    smallest = float(result.min())
    tcuda.synchronize()
    return smallest


WAYS: dict[str, Callable[[tcuda.Stream, tcuda.Stream], object]] = {
    "consumer.wait_stream(producer)": lambda p, c: c.wait_stream(p),
    "consumer.wait_event(producer.record_event())": lambda p, c: c.wait_event(p.record_event()),
    "event.wait(consumer)": lambda p, c: p.record_event().wait(c),
    "event.synchronize()": lambda p, c: p.record_event().synchronize(),
    "producer.synchronize()": lambda p, c: p.synchronize(),
    "synchronize()": lambda p, c: tcuda.synchronize(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_consumer_that_waits_reads_the_written_data(way: str) -> None:
    assert consume(WAYS[way]) == 1


@pytest.mark.gpu
def test_a_consumer_that_does_not_wait_reads_too_early() -> None:
    assert consume(lambda p, c: None) == 0


@pytest.mark.gpu
def test_a_wait_for_another_event_does_not_order_the_streams() -> None:
    early = tcuda.Event()
    early.record(tcuda.Stream())
    assert consume(lambda p, c: c.wait_event(early)) == 0
