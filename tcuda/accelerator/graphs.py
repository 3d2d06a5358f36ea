"""Graphs of the accelerator (``torch.accelerator.graphs``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tcuda._base.copying import refusing
from tcuda._base.public_names import public_names
from tcuda.graphs import CUDAGraph, graph
from tcuda.streams import current_stream

if TYPE_CHECKING:
    import os

    from tcuda.memory import MemPool

__all__ = ["Graph"]
__dir__ = public_names(__name__)


class Graph:
    """Captured work, and a context manager that captures the current stream (``torch.accelerator.Graph``).

    In contrast to :class:`tcuda.graph`, the block captures the stream that is current at its begin, which must not be a
    default stream. If the block raises, the capture is dropped. See :class:`tcuda.CUDAGraph` for what a graph keeps.

    Args:
        keep_graph: Whether to keep the nodes after the instantiation; see :class:`tcuda.CUDAGraph`.
        pool: The pool whose memory to use; see :meth:`tcuda.CUDAGraph.capture_begin`.
        capture_error_mode: ``"global"``, ``"thread_local"`` or ``"relaxed"``; see
            :meth:`tcuda.CUDAGraph.capture_begin`. ``"default"`` is ``"global"``.

    Raises:
        TypeError: ``keep_graph`` is not True or False.

    Attributes:
        graph_pool: The argument ``pool``, which a program may change before the next capture.
        capture_error_mode: The argument ``capture_error_mode``, which a program may change before the next capture.

    Example:
        >>> x = xp.zeros(3)
        >>> tcuda.accelerator.synchronize()  # the side stream does not wait for the zeros
        >>> g = tcuda.accelerator.Graph()
        >>> with tcuda.Stream(), g:
        ...     x += 1
        >>> for _ in range(5):
        ...     g.replay()
        >>> x
        array([5., 5., 5.])
    """

    def __init__(
        self,
        keep_graph: bool = False,
        *,
        pool: tuple[int, int] | MemPool | None = None,
        capture_error_mode: Literal["default", "global", "thread_local", "relaxed"] = "default",
    ) -> None:
        self._graph = CUDAGraph(keep_graph)
        self._blocks: list[graph] = []
        self.graph_pool = pool
        self.capture_error_mode = capture_error_mode

    @property
    def _mode(self) -> Literal["global", "thread_local", "relaxed"]:
        return "global" if self.capture_error_mode == "default" else self.capture_error_mode

    def capture_begin(self) -> None:
        """Begin to capture the current stream; see :meth:`tcuda.CUDAGraph.capture_begin`.

        Example:
            >>> x = xp.zeros(3)
            >>> tcuda.accelerator.synchronize()
            >>> g = tcuda.accelerator.Graph()
            >>> with tcuda.Stream():
            ...     g.capture_begin()
            ...     x += 1
            ...     g.capture_end()
            >>> g.replay()
            >>> x
            array([1., 1., 1.])
        """
        self._graph.capture_begin(self.graph_pool, self._mode)

    def capture_end(self) -> None:
        """End the capture; see :meth:`tcuda.CUDAGraph.capture_end`.

        Example:
            >>> x = xp.zeros(3)
            >>> tcuda.accelerator.synchronize()
            >>> g = tcuda.accelerator.Graph()
            >>> with tcuda.Stream():
            ...     g.capture_begin()
            ...     x += 1
            ...     g.capture_end()
            >>> g.replay()
            >>> x
            array([1., 1., 1.])
        """
        self._graph.capture_end()

    def instantiate(self) -> None:
        """Make the ``cudaGraphExec_t``; see :meth:`tcuda.CUDAGraph.instantiate`.

        Example:
            >>> x = xp.zeros(3)
            >>> tcuda.accelerator.synchronize()
            >>> g = tcuda.accelerator.Graph(keep_graph=True)
            >>> with tcuda.Stream(), g:
            ...     x += 1
            >>> g.instantiate()
            >>> g.replay()
            >>> x
            array([1., 1., 1.])
        """
        self._graph.instantiate()

    def replay(self) -> None:
        """Launch the captured work; see :meth:`tcuda.CUDAGraph.replay`.

        Example:
            >>> x = xp.zeros(3)
            >>> tcuda.accelerator.synchronize()
            >>> g = tcuda.accelerator.Graph()
            >>> with tcuda.Stream(), g:
            ...     x += 1
            >>> for _ in range(2):
            ...     g.replay()
            >>> x
            array([2., 2., 2.])
        """
        self._graph.replay()

    def reset(self) -> None:
        """Delete the captured work; see :meth:`tcuda.CUDAGraph.reset`.

        Example:
            >>> x = xp.zeros(3)
            >>> tcuda.accelerator.synchronize()
            >>> g = tcuda.accelerator.Graph()
            >>> with tcuda.Stream(), g:
            ...     x += 1
            >>> g.reset()
            >>> with tcuda.Stream(), g:  # the graph captures other work
            ...     x -= 1
            >>> g.replay()
            >>> x
            array([-1., -1., -1.])
        """
        self._graph.reset()

    def pool(self) -> tuple[int, int]:
        """Return the handle of the graph's pool of memory; see :meth:`tcuda.CUDAGraph.pool`.

        Example:
            >>> x = xp.zeros(3)
            >>> tcuda.accelerator.synchronize()
            >>> g = tcuda.accelerator.Graph()
            >>> with tcuda.Stream(), g:
            ...     x += 1
            >>> later = tcuda.accelerator.Graph(pool=g.pool())
            >>> with tcuda.Stream(), later:
            ...     y = x * 2
            >>> later.pool() == g.pool()
            True
        """
        return self._graph.pool()

    def enable_debug_mode(self) -> None:
        """Keep the nodes of the next capture for :meth:`debug_dump`.

        Example:
            >>> import os, tempfile
            >>> x = xp.zeros(3)
            >>> tcuda.accelerator.synchronize()
            >>> g = tcuda.accelerator.Graph()
            >>> g.enable_debug_mode()
            >>> with tcuda.Stream(), g:
            ...     x += 1
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     g.debug_dump(os.path.join(folder, "graph.dot"))
            ...     os.listdir(folder)
            ['graph.dot']
        """
        self._graph.enable_debug_mode()

    def debug_dump(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file in the DOT language; see :meth:`tcuda.CUDAGraph.debug_dump`.

        Example:
            >>> import os, tempfile
            >>> x = xp.zeros(3)
            >>> tcuda.accelerator.synchronize()
            >>> g = tcuda.accelerator.Graph(keep_graph=True)
            >>> with tcuda.Stream(), g:
            ...     x += 1
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     g.debug_dump(os.path.join(folder, "graph.dot"))
            ...     os.listdir(folder)
            ['graph.dot']
        """
        self._graph.debug_dump(path)

    __reduce__ = refusing("copy or pickle", "both would own the same CUDA graph. Capture the work again.")

    def __enter__(self) -> None:
        block = graph(self._graph, self.graph_pool, current_stream(), self._mode)
        block.__enter__()
        self._blocks.append(block)

    def __exit__(self, *exc_info: object) -> None:
        self._blocks.pop().__exit__(*exc_info)
