"""The trace: the times of all work of GPUs, by the activity records of NVIDIA's profiling library CUPTI."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tcuda._runtime.protocol import TracedWork

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BUFFER = 8 << 20  # bytes
_ALL = 1
"""``CUPTI_ACTIVITY_FLAG_FLUSH_FORCED``: also give records whose buffer is not full."""

_COPIES = ("unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
"""The directions of copies, in the order of ``CUpti_ActivityMemcpyKind``, with H for the host and D for a device."""

_WAITS = {"EVENT_SYNCHRONIZE": "event", "STREAM_SYNCHRONIZE": "stream", "CONTEXT_SYNCHRONIZE": "device"}


class CudaTrace:
    """A trace of GPUs, which begins at once.

    Args:
        synchronize: Waits for a device.

    Raises:
        RuntimeError: The package ``cupti-python`` is missing, or CUPTI refuses to record.
    """

    def __init__(self, synchronize: Callable[[int], None]) -> None:
        try:
            from cupti import cupti
        except ImportError as error:
            raise RuntimeError(
                f"A trace of GPUs needs NVIDIA's package cupti-python ({error}). Install tcuda[trace13], or "
                "tcuda[trace12] for CUDA 12."
            ) from error
        self._cupti: Any = cupti
        self._synchronize = synchronize
        self._records: list[Any] = []
        kinds = cupti.ActivityKind
        self._kinds = (
            kinds.CONCURRENT_KERNEL,
            kinds.MEMCPY,
            kinds.MEMCPY2,
            kinds.MEMSET,
            kinds.SYNCHRONIZATION,
        )
        enabled = []
        try:
            cupti.activity_register_callbacks(lambda: (_BUFFER, 0), self._records.extend)
            for kind in self._kinds:
                cupti.activity_enable(kind)
                enabled.append(kind)
            self._ahead = self.now() - time.time_ns()
            """The difference between CUPTI's clock and that of the host, in nanoseconds."""
        except cupti.cuptiError as error:
            for kind in enabled:
                cupti.activity_disable(kind)
            raise RuntimeError(f"CUPTI cannot record a trace: {error}. Another profiler may use CUPTI.") from error

    def now(self) -> int:
        """Return the time in nanoseconds on CUPTI's clock."""
        return int(self._cupti.get_timestamp())

    def moments(self, host_times: Sequence[int]) -> list[int]:
        """Return the times on CUPTI's clock at ``host_times``.

        Args:
            host_times: Times of ``time.time_ns()``.
        """
        return [each + self._ahead for each in host_times]

    def wait(self, devices: Sequence[int]) -> None:
        """Wait for each of ``devices``, also if the work of another one has failed."""
        with ExitStack() as waits:
            for device in devices:
                waits.callback(self._synchronize, device)

    def end(self) -> list[TracedWork]:
        """End the trace, and return what the trace has."""
        cupti = self._cupti
        end = self.now()
        for kind in self._kinds:
            cupti.activity_disable(kind)
        cupti.activity_flush_all(_ALL)
        found = map(self._work, self._records)
        return [work for work in found if work is not None and work.start < end]

    def _work(self, record: Any) -> TracedWork | None:
        kinds = self._cupti.ActivityKind
        if record.kind == kinds.SYNCHRONIZATION:
            return self._wait(record)
        if record.kind == kinds.CONCURRENT_KERNEL:
            kind, name, nbytes = "kernel", str(record.name), 0
        elif record.kind == kinds.MEMSET:
            kind, name, nbytes = "memset", "memset", record.bytes
        else:
            kind, name, nbytes = "memcpy", f"memcpy {_COPIES[record.copy_kind]}", record.bytes
        return TracedWork(kind, name, record.device_id, record.stream_id, record.start, record.end, nbytes)

    def _wait(self, record: Any) -> TracedWork | None:
        """Return a wait of the host; None for the wait of a stream, which CUPTI gives no device and no times of."""
        name = _WAITS.get(self._cupti.ActivitySynchronizationType(record.type).name)
        return None if name is None else TracedWork("wait", f"wait for a {name}", -1, 0, record.start, record.end)
