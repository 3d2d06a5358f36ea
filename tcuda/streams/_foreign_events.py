"""Events of other libraries: the ``cudaEvent_t`` of an event."""

from __future__ import annotations

from typing import Any, NoReturn


def foreign_handle(event: Any) -> int:
    """Return the ``cudaEvent_t`` of ``event``; 0 for an event of PyTorch that was never recorded.

    Args:
        event: An event of PyTorch (``cuda_event``), of CuPy (``ptr``), of cuda.core or of Numba (``handle``).

    Raises:
        RuntimeError: ``event`` is not an event, or an event of cuda.core that was closed.
    """
    if hasattr(event, "__cuda_stream__"):  # a stream of CuPy has `ptr` too, and streams of the others have `handle`
        refuse_event(event)
    handle = getattr(event, "cuda_event", getattr(event, "ptr", None))
    if isinstance(handle, int):
        return handle
    # Buffers and graphs of cuda.core have a handle too, but the program cannot wait for them.
    if not (hasattr(event, "handle") and (hasattr(event, "sync") or hasattr(event, "synchronize"))):
        refuse_event(event)
    try:
        handle = int(event.handle)
    except (TypeError, ValueError):
        refuse_event(event)
    if not handle:
        raise RuntimeError(
            f"the event {event!r} has no CUDA event. A closed event orders no work; wait before the event is closed."
        )
    return handle


def refuse_event(event: object) -> NoReturn:
    """Raise the error for an object that is not an event."""
    if hasattr(event, "__cuda_stream__"):
        raise RuntimeError(
            f"expected event to be a tcuda.Event, or an event of PyTorch, CuPy, cuda.core or Numba; got the stream "
            f"{event!r}. Use wait_stream() to wait for a stream."
        )
    raise RuntimeError(
        f"expected event to be a tcuda.Event, or an event of PyTorch, CuPy, cuda.core or Numba; got {event!r}"
    )
