"""A loop that the device ends: in a graph, and outside of graphs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import function
from tcuda._process.captures import capture_on, captures
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import CONDITIONAL_WHILE
from tcuda.graphs._body import BOOL_OR_INT32, flag_of

if TYPE_CHECKING:
    from collections.abc import Callable

_CALL = "tcuda.graphs.while_loop()"


def while_loop(flag: Any, body: Callable[..., object], *args: Any, **kwargs: Any) -> None:
    """Repeat ``body(*args, **kwargs)`` as long as ``flag`` is not zero. In a capture, the device repeats the work.

    The flag is read before every round, the first one too, as in a ``while`` statement. ``body`` must set the flag.

    In a capture of :class:`tcuda.graph`, the loop is one conditional node of the graph (CUDA's WHILE node). ``body`` is
    called once, and its work is captured. A replay repeats the work and reads the flag itself, so the host does not
    wait between the rounds. The body must keep its results in arrays from before the loop, by operations such as ``+=``
    and ``out=``. The rules for a body are those of :meth:`CUDAGraph.begin_capture_to_if_node`. Loops may be nested.

    If ``body`` raises an exception in a capture, the exception propagates. The capture of the graph then fails at its
    end.

    Outside of captures, the function is a plain loop: the host waits for the current stream, copies the flag, and calls
    ``body`` for each round. So a program can be tried before it is captured.

    Args:
        flag: An array with one bool or int32 on the current device.
        body: A function that launches the work of one round, and sets ``flag``.
        *args: The arguments of ``body``.
        **kwargs: The named arguments of ``body``.

    Raises:
        AcceleratorError: A call has invalidated the capture (901), or a stream that took part in the body was not
            joined again (904).
        RuntimeError: ``flag`` is not one bool or int32 on the current device, or tcuda did not begin the capture of the
            current stream.
        TypeError: ``flag`` is not an array of a device, or ``body`` is not a function.

    Example:
        >>> x, going_on = xp.ones(()), xp.ones((), bool)
        >>> def double():
        ...     x.__imul__(2)
        ...     xp.less(x, 100, out=going_on)
        >>> g = tcuda.CUDAGraph()
        >>> with tcuda.graph(g):
        ...     tcuda.graphs.while_loop(going_on, double)
        >>> g.replay()  # the device repeats the body seven times
        >>> float(x)
        128.0
    """
    function(body, f"{_CALL}: body")
    stream = backend.current_stream().ptr
    if not cuda.streamIsCapturing(stream):
        flag_of(flag, BOOL_OR_INT32, _CALL)
        if not isinstance(flag, backend.array_type()):  # an array of another library
            flag = importlib.import_module(backend.array_module).asarray(flag)
        while flag.item():
            body(*args, **kwargs)
        return
    capture = capture_on(stream) if captures else None
    graph = None if capture is None else capture.graph
    if graph is None:
        raise RuntimeError(
            f"{_CALL}: the current stream is capturing, and tcuda did not begin the capture. Capture with tcuda.graph."
        )
    graph._begin_body(CONDITIONAL_WHILE, flag, BOOL_OR_INT32, _CALL)
    try:
        body(*args, **kwargs)
    except BaseException:
        graph._abandon_body()
        raise
    graph._end_body()
