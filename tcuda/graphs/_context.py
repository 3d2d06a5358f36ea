"""The context manager that captures a graph."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from tcuda._base.arguments import a_kind
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._core import cleanup_on_error
from tcuda._device import synchronize
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import backend, cuda, is_initialized
from tcuda._runtime.protocol import CAPTURE_STATUS_NONE
from tcuda.graphs._cuda_graph import CUDAGraph
from tcuda.memory._cache import empty_before_capture
from tcuda.streams import Stream
from tcuda.streams import stream as in_stream
from tcuda.streams._rings import StreamRing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcuda._process.streams import StreamLike
    from tcuda.graphs._open_capture import OpenCapture
    from tcuda.memory._pools import MemPool, PoolId
    from tcuda.streams._scope import StreamContext


_COLD_TRANSFORM = (
    "cuFFT makes the plan of a transform in the first call with a shape, which a capture forbids: call the transform "
    "once before the capture."
)

_rings: dict[int, StreamRing] = {}
"""For each device a ring with the stream for captures. No other ring has the stream, so that ``Stream()`` in a capture
never returns the stream that captures; torch's does so once in 32 times."""

call_in_child(_rings.clear)  # a forked child cannot use the streams of its parent

_COLLECT = "TCUDA_GRAPH_GC"
"""The environment variable by which garbage is collected before a capture."""


def _collects_garbage() -> bool:
    value = os.environ.get(_COLLECT, "")
    if value not in ("", "0", "1"):
        raise ValueError(f"{_COLLECT} is {value!r}; it can be '0' or '1'.")
    return value == "1"


class graph:
    """Context manager that captures the work of its block into a graph (``torch.cuda.graph``).

    In the block, a side stream is current. Work on that stream, and on streams that wait for that stream, is captured
    and does not run. So arrays that the block makes have undefined contents before the first :meth:`CUDAGraph.replay`.
    Before the end of the block, the capturing stream must wait for all other streams of the capture.

    Before the capture, the context manager waits for the device and empties the cache, as torch does. With
    ``TCUDA_GRAPH_GC=1``, the context manager also collects garbage, which takes milliseconds in a large program. If the
    block raises, the capture is dropped, the stream that was current before is current again, and the exception
    propagates.

    Args:
        cuda_graph: The graph.
        pool: See :meth:`CUDAGraph.capture_begin`.
        stream: The stream on which to capture; a stream of :class:`graph` itself if None.
        capture_error_mode: See :meth:`CUDAGraph.capture_begin`.
        enable_annotations: Must be False. In torch, True annotates kernels for torch's profiler.
        annotation_config: How torch annotates kernels; ignored, because ``enable_annotations`` is False.
        check_input_liveness: See :meth:`CUDAGraph.capture_begin`.

    Raises:
        NotImplementedError: ``enable_annotations`` is true.
        TypeError: ``cuda_graph`` is not a graph.
        RuntimeError: ``stream`` is not a stream.
        ValueError: ``TCUDA_GRAPH_GC`` or ``TCUDA_GRAPH_LINES`` is neither 0 nor 1.

    Example:
        >>> x = xp.zeros(3)
        >>> g = tcuda.CUDAGraph()
        >>> with tcuda.graph(g):
        ...     y = xp.sqrt(x) + 1  # captured; nothing runs yet
        >>> x[...] = xp.array([1, 4, 9])
        >>> g.replay()  # computes y from the new values
        >>> y
        array([2., 3., 4.])
    """

    default_capture_stream: ClassVar[Stream | None] = None
    """The stream for captures without ``stream``; made at the first such capture, and again for another device."""

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: PoolId | MemPool | None = None,
        stream: StreamLike | None = None,
        capture_error_mode: Literal["global", "thread_local", "relaxed"] = "global",
        enable_annotations: bool = False,
        annotation_config: Mapping[str, Any] | None = None,
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
        self.capture_stream: StreamLike = stream if stream is not None else self._default_stream()
        self.stream_ctx = in_stream(self.capture_stream)
        self.capture_error_mode = capture_error_mode
        self.check_input_liveness = check_input_liveness
        self._beginning: _Begun | None = None
        self._begun: _Begun | None = None

    @staticmethod
    def _default_stream() -> Stream:
        chosen, device = graph.default_capture_stream, cuda.getDevice()
        if chosen is None or chosen.device_index != device:
            ring = _rings.setdefault(device, StreamRing(device, 0))
            chosen = graph.default_capture_stream = Stream._wrap(ring.handles[0] or ring.create(0), device)
        return chosen

    def _enter(self) -> None:
        begun = _Begun(in_stream(self.capture_stream), self.cuda_graph._open, self._begun)
        self._beginning = begun
        begun.context.__enter__()  # before synchronize(), because the stream may be of another device
        try:
            synchronize()
        except AcceleratorError as error:
            raise _without_nesting(error) from None
        if _collects_garbage():
            gc.collect()
        empty_before_capture()
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode, self.check_input_liveness)
        self._begun = begun
        self._beginning = None

    def _undo_enter(self) -> None:
        begun = self._beginning
        if begun is not None:
            if self.cuda_graph._open is not begun.capture_before:
                self.cuda_graph._abandon_capture()
            begun.context.__exit__(None, None, None)
            self._beginning = None

    def _exit(self, *args: Any) -> None:
        failed, error, _ = args
        if not failed:
            self.cuda_graph.capture_end()
        elif failed.__name__ == "CuFFTError":
            error.args = (f"{error}. {_COLD_TRANSFORM}",)
        self._leave()

    def _leave(self) -> None:
        self.cuda_graph._abandon_capture()  # does nothing if the capture has ended
        begun = self._begun
        if begun is not None:
            begun.context.__exit__(None, None, None)
            self._begun = begun.outer

    __enter__ = cleanup_on_error(_enter, _undo_enter)
    __exit__ = cleanup_on_error(_exit, _leave)


def _without_nesting(error: AcceleratorError) -> AcceleratorError:
    """Return an error that says what is wrong if ``tcuda.graph()`` cannot wait because a stream captures."""
    if error.error_code != Status.STREAM_CAPTURE_UNSUPPORTED:
        return error
    return AcceleratorError(
        error.error_code,
        "tcuda.graph()",
        "A stream is capturing, and captures cannot be nested: tcuda.graph() waits for the device first. End the other "
        "capture before, or capture all the work into one graph.",
    )


class _Begun(NamedTuple):
    """The state of one entered block.

    Attributes:
        context: The context manager that made the stream current.
        capture_before: The capture of the graph before the block was entered.
        outer: The state of the enclosing block of the same context manager; None if there is no such block.
    """

    context: StreamContext
    capture_before: OpenCapture | None
    outer: _Begun | None


def is_current_stream_capturing() -> bool:
    """Return whether the current stream is capturing (``torch.cuda.is_current_stream_capturing``).

    Example:
        >>> tcuda.is_current_stream_capturing()
        False
        >>> x = xp.zeros(3)
        >>> with tcuda.graph(tcuda.CUDAGraph()):
        ...     x += 1
        ...     tcuda.is_current_stream_capturing()
        True
    """
    if not is_initialized():
        return False
    status, _ = cuda.streamGetCaptureInfo(backend.current_stream().ptr)
    return status != CAPTURE_STATUS_NONE
