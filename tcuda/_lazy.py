"""Lazy initialisation: nothing touches a device before the first call that needs one.

As in torch, ``is_initialized`` turns true at that call, calls queued before it run then, and a forked child of an
initialised process gets an error instead of a broken device.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, cast

from tcuda._errors import AcceleratorError, DeferredCudaCallError
from tcuda._runtime import runtime
from tcuda._status import Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tcuda._runtime.protocol import Runtime

_lock = threading.RLock()
_initialized: Runtime | None = None
_begun = False  # whether a device may have been used, also if initialisation failed later
_is_forked = False
_in_bad_fork = False
_initializing = threading.local()
_steps: tuple[Callable[[], object], ...] = ()
_queued: list[tuple[Callable[[], object], list[str]]] = []


_FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start "
    "method"
)


class _ReadyRuntime:
    """The members of the runtime in use, in the instance's own dictionary: finding one there costs next to nothing."""


class _LazyRuntime(_ReadyRuntime):
    """The runtime in use, which the first use of any of its members initialises.

    The object then becomes a :class:`_ReadyRuntime`, because Python looks up every attribute the long way, at 50 ns,
    where a class has ``__getattr__``.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(_initialize(), name)

    def become_ready(self, in_use: Runtime) -> None:
        """Take over the members of ``in_use``."""
        self.__dict__.update({name: getattr(in_use, name) for name in dir(in_use) if name[0] != "_"})
        self.__class__ = _ReadyRuntime  # type: ignore[assignment]


_lazy = _LazyRuntime()
cuda: Runtime = cast("Runtime", _lazy)
"""The runtime in use, as everything above it calls it."""


def init() -> None:
    """Initialise tcuda's state (``torch.cuda.init``).

    Every function that needs a device does this on its own. Does nothing if it was done before.

    Raises:
        RuntimeError: There is no device to use, or this is a forked child of a process that used one.
        DeferredCudaCallError: A call that was queued before failed.
    """
    _lazy_init()


def is_initialized() -> bool:
    """Return whether tcuda's state has been initialised (``torch.cuda.is_initialized``)."""
    return _initialized is not None


def _lazy_init() -> Runtime:
    """Initialise if that was not done, and return the runtime in use."""
    return _initialized or _initialize()


def _lazy_call(callable: Callable[[], object], **kwargs: Any) -> None:
    """Call ``callable`` now if tcuda is initialised, else when it is (``torch.cuda._lazy_call``)."""
    if _initialized is None:
        import traceback  # which takes long to import

        queued = callable, traceback.format_stack()
        with _lock:
            if _initialized is None:
                _queued.append(queued)
                return
    callable()  # without the lock: the call may wait for another thread


def set_steps(*steps: Callable[[], object]) -> None:
    """Let initialisation take ``steps``, in this order and before the queued calls.

    Initialisation that failed is tried again. So a step does nothing where it was done before.
    """
    global _steps
    _steps = steps


def _initialize() -> Runtime:
    global _begun, _initialized
    with _lock:
        if _initialized is not None:
            return _initialized
        if _in_bad_fork:
            raise RuntimeError(_FORKED)
        in_use = runtime()
        if getattr(_initializing, "by_this_thread", False):  # a step, a queued call or a finalizer came back here
            return in_use
        _require_device(in_use)
        _begun = True
        _initializing.by_this_thread = True
        try:
            for step in _steps:
                step()
            _run_queued()
        finally:
            del _initializing.by_this_thread
        _initialized = in_use
        _lazy.become_ready(in_use)
        return in_use


def _require_device(in_use: Runtime) -> None:
    try:
        if in_use.getDeviceCount() > 0:
            if _is_forked:
                in_use.getDevice()  # CUDA still counts devices where it was used before the fork, and refuses this
            return
        reason = "the driver reports none"
    except AcceleratorError as error:
        if _is_forked and error.error_code == Status.INITIALIZATION_ERROR:
            raise RuntimeError(_FORKED) from error
        reason = str(error).splitlines()[0]
    raise RuntimeError(
        f"No CUDA GPUs are available ({reason}). Check the NVIDIA driver and CUDA_VISIBLE_DEVICES="
        f"{os.environ.get('CUDA_VISIBLE_DEVICES')!r}; on a machine without a GPU, set TCUDA_RUNTIME=emulated or call "
        "tcuda.emulation.enable() first."
    )


def _run_queued() -> None:
    while _queued:
        call, stack = _queued[0]
        try:
            call()
        except Exception as error:
            raise DeferredCudaCallError(
                f"CUDA call failed lazily at initialization with error: {error}\n\n"
                f"CUDA call was originally invoked at:\n\n{''.join(stack)}"
            ) from error
        _queued.pop(0)


def _after_fork_in_child() -> None:
    global _initialized, _in_bad_fork, _is_forked, _lock
    _is_forked = True
    _in_bad_fork = _in_bad_fork or _begun
    _initialized = None
    _lazy.__dict__.clear()
    _lazy.__class__ = _LazyRuntime
    _lock = threading.RLock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork_in_child)
