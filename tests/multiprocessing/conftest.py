"""The fixtures of the tests of shared arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.receivers import Worker, collect, drop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Runtime


@pytest.fixture(scope="session")
def _shared_worker(runtime: Runtime) -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


@pytest.fixture
def worker(_shared_worker: Worker) -> Iterator[Worker]:
    """A process, which all tests share, because a process takes long to start."""
    yield _shared_worker
    _shared_worker.call(drop)
    _shared_worker.call(collect)


@pytest.fixture(autouse=True)
def _nothing_left(runtime: Runtime) -> Iterator[None]:
    """Fail a test that leaves messages on the way, and start a test without any."""
    import tcuda.multiprocessing

    assert tcuda.multiprocessing.unreceived() == 0
    yield
    left = tcuda.multiprocessing.withdraw()
    assert left == 0, "the test left messages that no process has received"
