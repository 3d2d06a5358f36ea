"""Threads that begin every task on the worker's device.

CUDA's current device belongs to a thread, and a worker of Dask runs its tasks on several threads. A plugin runs on one
of them only. So the pool of threads chooses the device before each task. A task that changes the current device or the
current stream of its thread has no effect on the next task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distributed.threadpoolexecutor import ThreadPoolExecutor
from distributed.utils import offload

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import Worker


class DeviceThreadPoolExecutor(ThreadPoolExecutor):
    """A pool of threads whose tasks begin on the default stream of one device.

    Args:
        stream: The default stream of the device.
        threads: The largest number of threads.
        prefix: The beginning of the names of the threads.
    """

    def __init__(self, stream: tcuda.Stream, threads: int, prefix: str) -> None:
        super().__init__(threads, thread_name_prefix=prefix)  # type: ignore[no-untyped-call]
        self._stream = stream

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Run ``fn`` on a thread of the pool, with the device and its default stream current."""
        return super().submit(self._call, fn, *args, **kwargs)  # type: ignore[no-untyped-call]

    def _call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        tcuda.set_stream(self._stream)
        return fn(*args, **kwargs)


async def use_device(worker: Worker, index: int) -> None:
    """Let tasks, actors, coroutines and (de)serialisation of ``worker`` begin on the device ``index``.

    The thread of the event loop runs coroutines and small messages. Dask has one more thread for large messages. Pools
    of threads that the program has added to the worker stay as they are.
    """
    stream = tcuda.default_stream(index)
    tcuda.set_stream(stream)
    await offload(tcuda.set_stream, stream)
    for name, pool in worker.executors.items():
        if isinstance(pool, ThreadPoolExecutor):
            prefix = pool._thread_name_prefix
            worker.executors[name] = DeviceThreadPoolExecutor(stream, pool._max_workers, prefix)
            pool.shutdown(wait=False)  # the pool first runs the tasks that were submitted to it
