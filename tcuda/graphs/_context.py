"""The context manager that captures."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, ClassVar

from tcuda._arguments import a_kind
from tcuda._device import synchronize
from tcuda._lazy import cuda, is_initialized
from tcuda._runtime.protocol import CAPTURE_STATUS_NONE
from tcuda.graphs._cuda_graph import CUDAGraph
from tcuda.memory import empty_cache
from tcuda.streams import Stream
from tcuda.streams import stream as in_stream

if TYPE_CHECKING:
    from tcuda.memory._pools import PoolId


class graph:
    """Context manager that captures the work of its block into a graph (``torch.cuda.graph``).

    In the block a side stream is current, and what is launched on it, and on streams that wait for it, is captured
    instead of run: arrays that the block makes have no contents before the first :meth:`CUDAGraph.replay`. Side streams
    have to be joined again: make the capturing stream wait for them.

    Before, it waits for the device, collects garbage and empties the cache, as torch does. If the block fails nothing
    is kept of the capture, the stream that was current before is current again, and the exception goes on.

    Args:
        cuda_graph: The graph.
        pool: See :meth:`CUDAGraph.capture_begin`.
        stream: The stream to capture on; one of :class:`graph`'s own if None.
        capture_error_mode: See :meth:`CUDAGraph.capture_begin`.
        enable_annotations: Must be false: torch annotates kernels for its profiler.
        check_input_liveness: See :meth:`CUDAGraph.capture_begin`.

    Raises:
        NotImplementedError: ``enable_annotations`` is true.
        TypeError: ``cuda_graph`` is no graph.
        RuntimeError: ``stream`` is no stream.

    Example:
        >>> x = cupy.zeros(1000)
        >>> g = tcuda.CUDAGraph()
        >>> with tcuda.graph(g):
        ...     y = cupy.sqrt(x) + 1
        >>> x[...] = new_values
        >>> g.replay()  # y has the results for the new values
    """

    default_capture_stream: ClassVar[Stream | None] = None
    """The stream of captures that are given none; made when it is first needed, and again for another device."""

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: PoolId | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:
        if enable_annotations:
            raise NotImplementedError(
                "enable_annotations is for torch's profiler; leave it out, and mark ranges with tcuda.nvtx."
            )
        if not isinstance(cuda_graph, CUDAGraph):
            raise TypeError(f"tcuda.graph() takes a tcuda.CUDAGraph; got {a_kind(cuda_graph)}.")
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.capture_stream = stream if stream is not None else self._default_stream()
        self.stream_ctx = in_stream(self.capture_stream)
        self.capture_error_mode = capture_error_mode
        self.check_input_liveness = check_input_liveness

    @classmethod
    def _default_stream(cls) -> Stream:
        chosen = graph.default_capture_stream
        if chosen is None or chosen.device_index != cuda.getDevice():
            chosen = graph.default_capture_stream = Stream()
        return chosen

    def __enter__(self) -> None:
        self.stream_ctx.__enter__()  # first: the stream may be of another device
        try:
            synchronize()
            gc.collect()
            empty_cache()
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode, self.check_input_liveness)
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(self, *args: Any) -> None:
        failed, *_ = args
        try:
            if not failed:
                self.cuda_graph.capture_end()
        finally:
            self.cuda_graph._abandon_capture()  # which does nothing after a capture that has ended
            self.stream_ctx.__exit__(*args)


def is_current_stream_capturing() -> bool:
    """Return whether the current stream is capturing (``torch.cuda.is_current_stream_capturing``)."""
    if not is_initialized():
        return False
    status, _ = cuda.streamGetCaptureInfo(cuda.currentStream().ptr)
    return status != CAPTURE_STATUS_NONE
